-- Made by `node scripts/schema-dump.ts` from the migrations. Not to be edited.
-- schema_version 2

CREATE TABLE sallyport.audit_blocks (
  tenant text NOT NULL,
  last bigint NOT NULL,
  at bigint NOT NULL,
  head bytea NOT NULL,
  body bytea NOT NULL,
  CONSTRAINT audit_blocks_pkey PRIMARY KEY (tenant, last)
);

CREATE TABLE sallyport.audit_entries (
  tenant text NOT NULL,
  seq bigint NOT NULL,
  at bigint NOT NULL,
  type text NOT NULL,
  subject text NOT NULL,
  session text NOT NULL,
  actor text NOT NULL,
  data text,
  salt text,
  data_hash text,
  hash text NOT NULL,
  CONSTRAINT audit_entries_pkey PRIMARY KEY (tenant, seq)
);

CREATE TABLE sallyport.breakers (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  state text NOT NULL,
  failures bigint NOT NULL,
  reason text NOT NULL,
  closed_by text NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT breakers_pkey PRIMARY KEY (id, tenant),
  CONSTRAINT breakers_state_check CHECK ((state = ANY (ARRAY['closed'::text, 'open'::text])))
);

CREATE TABLE sallyport.call_keys (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  decision_id text NOT NULL,
  step bigint NOT NULL,
  action_hash text NOT NULL,
  created_at bigint NOT NULL,
  CONSTRAINT call_keys_pkey PRIMARY KEY (id, tenant)
);

CREATE TABLE sallyport.call_places (
  tenant text NOT NULL,
  seq bigint NOT NULL,
  hash text NOT NULL,
  CONSTRAINT call_places_pkey PRIMARY KEY (tenant)
);

CREATE TABLE sallyport.calls (
  tenant text NOT NULL,
  id text NOT NULL,
  kind text NOT NULL,
  seq bigint NOT NULL,
  at bigint NOT NULL,
  session_id text NOT NULL,
  agent text NOT NULL,
  tool text NOT NULL,
  title text NOT NULL,
  outcome text NOT NULL,
  decided_by text NOT NULL,
  reason text NOT NULL,
  wait_ms bigint,
  words tsvector NOT NULL,
  CONSTRAINT calls_pkey PRIMARY KEY (tenant, id)
);

CREATE INDEX calls_by_agent ON sallyport.calls USING btree (tenant, agent, at, id);
CREATE INDEX calls_by_outcome ON sallyport.calls USING btree (tenant, outcome, at, id);
CREATE INDEX calls_by_time ON sallyport.calls USING btree (tenant, at, id);
CREATE INDEX calls_by_tool ON sallyport.calls USING btree (tenant, tool, at, id);
CREATE INDEX calls_by_words ON sallyport.calls USING gin (words);

CREATE TABLE sallyport.chains (
  tenant text NOT NULL,
  CONSTRAINT chains_pkey PRIMARY KEY (tenant)
) WITH (fillfactor=50);

CREATE TABLE sallyport.content_keys (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  secret text NOT NULL,
  created_at bigint NOT NULL,
  CONSTRAINT content_keys_pkey PRIMARY KEY (id, tenant)
);

CREATE TABLE sallyport.decisions (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  session_id text NOT NULL,
  state text NOT NULL,
  source_tool text NOT NULL,
  raw bytea NOT NULL,
  diff_metadata text NOT NULL,
  metadata text,
  origin text,
  tech_verdict text,
  biz_verdict text,
  execution_proof text,
  execution_error text,
  asked bigint NOT NULL,
  unasked bigint,
  awaits_tool bigint,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT decisions_origin_check CHECK ((origin = 'port'::text)),
  CONSTRAINT decisions_pkey PRIMARY KEY (id, tenant),
  CONSTRAINT decisions_state_check CHECK ((state = ANY (ARRAY['pending_tech'::text, 'pending_ml'::text, 'approved'::text, 'rejected_tech'::text, 'rejected_ml'::text, 'executed'::text, 'failed'::text])))
);

CREATE INDEX decisions_awaits_tool ON sallyport.decisions USING btree (tenant, awaits_tool) WHERE (awaits_tool IS NOT NULL);
CREATE INDEX decisions_by_ord ON sallyport.decisions USING btree (tenant, ord);
CREATE INDEX decisions_by_session ON sallyport.decisions USING btree (tenant, session_id, ord);
CREATE INDEX decisions_by_state ON sallyport.decisions USING btree (tenant, state, ord);
CREATE INDEX decisions_unasked ON sallyport.decisions USING btree (tenant, unasked) WHERE (unasked IS NOT NULL);

CREATE TABLE sallyport.decoys (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  created_at bigint NOT NULL,
  CONSTRAINT decoys_pkey PRIMARY KEY (id, tenant)
);

CREATE TABLE sallyport.definitions (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  definition text NOT NULL,
  CONSTRAINT definitions_pkey PRIMARY KEY (id, tenant)
);

CREATE TABLE sallyport.delegation_slots (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  parent_session text NOT NULL,
  child_id text NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT delegation_slots_pkey PRIMARY KEY (id, tenant)
);

CREATE INDEX delegation_slots_by_parent ON sallyport.delegation_slots USING btree (tenant, parent_session, ord);

CREATE TABLE sallyport.delegations (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  parent_session text NOT NULL,
  root_session text NOT NULL,
  run_id text NOT NULL,
  trace_id text NOT NULL,
  promise_id text NOT NULL,
  state text NOT NULL,
  chain text NOT NULL,
  agents text NOT NULL,
  owner text NOT NULL,
  task text NOT NULL,
  capsule text NOT NULL,
  promise text NOT NULL,
  plan_id text NOT NULL,
  role text NOT NULL,
  write_permission text NOT NULL,
  scope text NOT NULL,
  calls_left bigint NOT NULL,
  expires_at bigint NOT NULL,
  working_directory text NOT NULL,
  token_hash text NOT NULL,
  output text,
  promise_met bigint,
  reason text,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT delegations_calls_left_check CHECK ((calls_left >= 0)),
  CONSTRAINT delegations_pkey PRIMARY KEY (id, tenant),
  CONSTRAINT delegations_role_check CHECK ((role = ANY (ARRAY['research'::text, 'doc'::text, 'code'::text, 'review'::text, 'verify'::text]))),
  CONSTRAINT delegations_state_check CHECK ((state = ANY (ARRAY['active'::text, 'reported'::text, 'failed'::text, 'revoked'::text]))),
  CONSTRAINT delegations_write_permission_check CHECK ((write_permission = ANY (ARRAY['none'::text, 'docs-and-current-phase-artifact'::text, 'plan-approved-files-only'::text, 'evidence-through-kd_verify_result'::text])))
);

CREATE INDEX delegations_by_parent ON sallyport.delegations USING btree (tenant, parent_session, ord);
CREATE INDEX delegations_by_root ON sallyport.delegations USING btree (tenant, root_session, ord);
CREATE INDEX delegations_by_state ON sallyport.delegations USING btree (tenant, state, ord);

CREATE TABLE sallyport.flow_states (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  session_id text NOT NULL,
  trace_id text NOT NULL,
  node text NOT NULL,
  revision bigint NOT NULL,
  hash text NOT NULL,
  snapshot text NOT NULL,
  expires_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT flow_states_pkey PRIMARY KEY (id, tenant)
);

CREATE INDEX flow_states_by_expiry ON sallyport.flow_states USING btree (tenant, expires_at);

CREATE TABLE sallyport.grants (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  session_id text NOT NULL,
  state text NOT NULL,
  grantor text NOT NULL,
  finding text NOT NULL,
  scope text NOT NULL,
  given_by text NOT NULL,
  reason text NOT NULL,
  expires_at bigint,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT grants_grantor_check CHECK ((grantor = ANY (ARRAY['user'::text, 'plan-revision'::text, 'evidence-update'::text]))),
  CONSTRAINT grants_pkey PRIMARY KEY (id, tenant),
  CONSTRAINT grants_state_check CHECK ((state = ANY (ARRAY['live'::text, 'revoked'::text])))
);

CREATE INDEX grants_by_session ON sallyport.grants USING btree (tenant, session_id, ord);

CREATE TABLE sallyport.http_keys (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  route text NOT NULL,
  content_hash text NOT NULL,
  state text NOT NULL,
  fence bigint NOT NULL,
  lease_until bigint NOT NULL,
  answer text,
  expires_at bigint NOT NULL,
  created_at bigint NOT NULL,
  CONSTRAINT http_keys_pkey PRIMARY KEY (id, tenant),
  CONSTRAINT http_keys_state_check CHECK ((state = ANY (ARRAY['begun'::text, 'answered'::text])))
);

CREATE INDEX http_keys_by_expiry ON sallyport.http_keys USING btree (tenant, expires_at);

CREATE TABLE sallyport.interactions (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  type text NOT NULL,
  status text NOT NULL,
  session_id text NOT NULL,
  call_id text NOT NULL,
  hash text NOT NULL,
  preview text,
  definitions text,
  decision_id text NOT NULL,
  operation_id text NOT NULL,
  facts text NOT NULL,
  votes text,
  remarks text,
  waits_for text NOT NULL,
  assigned_to text NOT NULL,
  deadline bigint NOT NULL,
  due_at bigint,
  escalate_at bigint,
  escalate_to text NOT NULL,
  escalated bigint NOT NULL,
  outcome text,
  answer text,
  answered_by text NOT NULL,
  superseded_by text NOT NULL,
  version bigint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT interactions_outcome_check CHECK ((outcome = ANY (ARRAY['answered'::text, 'approved'::text, 'rejected'::text, 'superseded'::text, 'expired'::text, 'canceled'::text]))),
  CONSTRAINT interactions_pkey PRIMARY KEY (id, tenant),
  CONSTRAINT interactions_status_check CHECK ((status = ANY (ARRAY['open'::text, 'resolved'::text, 'canceled'::text]))),
  CONSTRAINT interactions_type_check CHECK ((type = ANY (ARRAY['ask_user'::text, 'confirm'::text, 'connection_lost'::text]))),
  CONSTRAINT interactions_waits_for_check CHECK ((waits_for = ANY (ARRAY['people'::text, 'agent'::text])))
);

CREATE INDEX interactions_by_due ON sallyport.interactions USING btree (tenant, due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX interactions_by_escalation ON sallyport.interactions USING btree (tenant, escalate_at) WHERE (escalate_at IS NOT NULL);
CREATE INDEX interactions_by_session ON sallyport.interactions USING btree (tenant, session_id, ord);
CREATE INDEX interactions_by_status ON sallyport.interactions USING btree (tenant, status, ord);

CREATE TABLE sallyport.notice_cursors (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  seq bigint NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT notice_cursors_pkey PRIMARY KEY (id, tenant)
);

CREATE TABLE sallyport.notices (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  channel text NOT NULL,
  kind text NOT NULL,
  interaction_id text NOT NULL,
  state text NOT NULL,
  attempts bigint NOT NULL,
  bundle text NOT NULL,
  next_at bigint,
  facts text NOT NULL,
  receipt text,
  problem text,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT notices_kind_check CHECK ((kind = ANY (ARRAY['asked'::text, 'reminded'::text, 'escalated'::text, 'decided'::text]))),
  CONSTRAINT notices_pkey PRIMARY KEY (id, tenant),
  CONSTRAINT notices_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'sent'::text, 'dropped'::text, 'dead'::text])))
);

CREATE INDEX notices_by_interaction ON sallyport.notices USING btree (tenant, interaction_id, ord);
CREATE INDEX notices_by_next ON sallyport.notices USING btree (tenant, next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX notices_by_state ON sallyport.notices USING btree (tenant, state, ord);

CREATE TABLE sallyport.operations (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  session_id text NOT NULL,
  message_id text NOT NULL,
  call_id text NOT NULL,
  turn bigint NOT NULL,
  tool text NOT NULL,
  effect text NOT NULL,
  definition_hash text NOT NULL,
  input text NOT NULL,
  working_directory text NOT NULL,
  chain text NOT NULL,
  decision_id text NOT NULL,
  step bigint NOT NULL,
  undo_of text NOT NULL,
  executor text NOT NULL,
  status text NOT NULL,
  attempt bigint NOT NULL,
  fence bigint NOT NULL,
  lease_until bigint NOT NULL,
  output text,
  truncated bigint NOT NULL,
  stored_path text,
  undo text,
  error text,
  state_version text,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT operations_pkey PRIMARY KEY (id, tenant),
  CONSTRAINT operations_status_check CHECK ((status = ANY (ARRAY['started'::text, 'unknown'::text, 'returned'::text, 'success'::text, 'failed'::text, 'rolled_back'::text])))
);

CREATE INDEX operations_by_session ON sallyport.operations USING btree (tenant, session_id, ord);
CREATE INDEX operations_by_status ON sallyport.operations USING btree (tenant, status, ord);

CREATE TABLE sallyport.pauses (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  kind text NOT NULL,
  subject text NOT NULL,
  reason text NOT NULL,
  actor text NOT NULL,
  created_at bigint NOT NULL,
  CONSTRAINT pauses_kind_check CHECK ((kind = ANY (ARRAY['agent'::text, 'tool'::text, 'session'::text]))),
  CONSTRAINT pauses_pkey PRIMARY KEY (id, tenant)
);

CREATE TABLE sallyport.reviewers (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  status text NOT NULL,
  approved bigint NOT NULL,
  rejected bigint NOT NULL,
  caught bigint NOT NULL,
  missed bigint NOT NULL,
  hour_count bigint NOT NULL,
  hour_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT reviewers_pkey PRIMARY KEY (id, tenant),
  CONSTRAINT reviewers_status_check CHECK ((status = ANY (ARRAY['trusted'::text, 'suspended'::text])))
);

CREATE TABLE sallyport.runs (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  phase text NOT NULL,
  status text NOT NULL,
  version bigint NOT NULL,
  state text NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT runs_phase_check CHECK ((phase = ANY (ARRAY['discuss'::text, 'spec'::text, 'plan'::text, 'execute'::text, 'verify'::text, 'ship'::text]))),
  CONSTRAINT runs_pkey PRIMARY KEY (id, tenant),
  CONSTRAINT runs_status_check CHECK ((status = ANY (ARRAY['open'::text, 'done'::text, 'stopped'::text])))
);

CREATE INDEX runs_by_status ON sallyport.runs USING btree (tenant, status, ord);

CREATE TABLE sallyport.schema_version (
  version bigint NOT NULL,
  name text NOT NULL,
  CONSTRAINT schema_version_pkey PRIMARY KEY (version)
);

CREATE TABLE sallyport.sessions (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  agent text NOT NULL,
  facts text NOT NULL,
  created_at bigint NOT NULL,
  CONSTRAINT sessions_pkey PRIMARY KEY (id, tenant)
);

CREATE INDEX sessions_by_agent ON sallyport.sessions USING btree (tenant, agent, ord);
CREATE INDEX sessions_by_ord ON sallyport.sessions USING btree (tenant, ord);

CREATE TABLE sallyport.standing_rules (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  tool text NOT NULL,
  definition_hash text NOT NULL,
  pattern text NOT NULL,
  working_directory text NOT NULL,
  reason text NOT NULL,
  status text NOT NULL,
  made_by text NOT NULL,
  confirmed_by text NOT NULL,
  uses bigint NOT NULL,
  ended_by text NOT NULL,
  end_reason text NOT NULL,
  expires_at bigint NOT NULL,
  version bigint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT standing_rules_pkey PRIMARY KEY (id, tenant),
  CONSTRAINT standing_rules_status_check CHECK ((status = ANY (ARRAY['proposed'::text, 'active'::text, 'revoked'::text])))
);

CREATE INDEX standing_rules_by_tool ON sallyport.standing_rules USING btree (tenant, tool, ord);

CREATE TABLE sallyport.switches (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  state text NOT NULL,
  reason text NOT NULL,
  actor text,
  updated_at bigint NOT NULL,
  CONSTRAINT switches_check CHECK (((id <> 'kill'::text) OR (state = ANY (ARRAY['running'::text, 'stopped'::text])))),
  CONSTRAINT switches_pkey PRIMARY KEY (id, tenant)
);

CREATE TABLE sallyport.task_blocks (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  blocker_id text NOT NULL,
  task_id text NOT NULL,
  CONSTRAINT task_blocks_pkey PRIMARY KEY (id, tenant)
);

CREATE INDEX task_blocks_by_blocker ON sallyport.task_blocks USING btree (tenant, blocker_id, ord);

CREATE TABLE sallyport.task_queue (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  lane text NOT NULL,
  role text NOT NULL,
  priority bigint NOT NULL,
  session_id text NOT NULL,
  claimer text,
  claimed_at bigint,
  lease_until bigint,
  fence bigint NOT NULL,
  version bigint NOT NULL,
  facts_version bigint NOT NULL,
  waits bigint NOT NULL,
  dependents bigint NOT NULL,
  CONSTRAINT task_queue_lane_check CHECK ((lane = ANY (ARRAY['ready'::text, 'waiting'::text, 'untidy'::text, 'leased'::text, 'kept'::text, 'failed'::text]))),
  CONSTRAINT task_queue_pkey PRIMARY KEY (id, tenant)
);

CREATE INDEX task_queue_by_lease ON sallyport.task_queue USING btree (tenant, lease_until) WHERE (lease_until IS NOT NULL);
CREATE INDEX task_queue_next ON sallyport.task_queue USING btree (tenant, lane, priority DESC NULLS LAST, ord);

CREATE TABLE sallyport.tasks (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  status text NOT NULL,
  facts text NOT NULL,
  claimer text,
  claimed_at bigint,
  completed_at bigint,
  result text,
  fence bigint,
  version bigint NOT NULL,
  CONSTRAINT tasks_pkey PRIMARY KEY (id, tenant),
  CONSTRAINT tasks_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'claimed'::text, 'completed'::text, 'failed'::text])))
) WITH (fillfactor=60);

CREATE INDEX tasks_by_ord ON sallyport.tasks USING btree (tenant, ord);

CREATE TABLE sallyport.tokens (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  kind text NOT NULL,
  hash text NOT NULL,
  subject text NOT NULL,
  roles text NOT NULL,
  task_roles text,
  owner text NOT NULL,
  note text NOT NULL,
  state text NOT NULL,
  made_by text NOT NULL,
  expires_at bigint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT tokens_kind_check CHECK ((kind = ANY (ARRAY['token'::text, 'session'::text, 'link'::text]))),
  CONSTRAINT tokens_pkey PRIMARY KEY (id, tenant),
  CONSTRAINT tokens_state_check CHECK ((state = ANY (ARRAY['live'::text, 'ended'::text])))
);

CREATE UNIQUE INDEX tokens_by_hash ON sallyport.tokens USING btree (tenant, hash);
CREATE INDEX tokens_by_kind ON sallyport.tokens USING btree (tenant, kind, ord);

