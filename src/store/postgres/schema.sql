-- Made by `node scripts/schema-dump.ts` from the migrations. Not to be edited.
-- schema_version 5

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
  fence bigint NOT NULL DEFAULT 0,
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
  machine_verdict text,
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

CREATE TABLE sallyport.pictures (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  media_type text NOT NULL,
  bytes bytea NOT NULL,
  created_at bigint NOT NULL,
  CONSTRAINT pictures_pkey PRIMARY KEY (id, tenant)
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

CREATE OR REPLACE FUNCTION sallyport.commit_7987d628fe87(tenants text[], fences bigint[], seen bigint[], seen_heads text[], leaves text[], bodies text[], clock bigint, earliest bigint, latest bigint, w0 json, w1 json, w2 json, w3 json, w4 json, w5 json, w6 json, w7 json, w8 json, w9 json, w10 json, w11 json, w12 json, w13 json, w14 json, w15 json, w16 json, w17 json, w18 json, w19 json)
 RETURNS json
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
  v_chain record;
  v_now bigint;
  v_last bigint;
  v_at bigint;
  v_head bytea;
  v_found bytea;
  v_times jsonb;
  v_leaves bytea;
  v_link text;
  v_iso text;
  v_count bigint := 0;
  v_left json;
  v_rows json[] := array_fill(NULL::json, ARRAY[20]);
  v_lasts bigint[] := '{}';
  v_ats bigint[] := '{}';
  v_prevs text[] := '{}';
  v_heads text[] := '{}';
BEGIN
IF current_setting('transaction_isolation') <> 'read committed' THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'not READ COMMITTED'; END IF;
FOR v_chain IN SELECT c.tenant, c.fence FROM sallyport.chains AS c WHERE c.tenant = ANY(tenants) ORDER BY c.tenant FOR UPDATE LOOP
  IF v_chain.fence <> fences[array_position(tenants, v_chain.tenant)] THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'an older fence'; END IF;
  v_count := v_count + 1;
END LOOP;
IF v_count <> cardinality(tenants) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a chain is missing'; END IF;
v_now := coalesce(clock, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
IF v_now < earliest OR v_now > latest THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'the clock jumped'; END IF;
FOR i IN 1 .. cardinality(tenants) LOOP
  SELECT b.last, b.head, b.at INTO v_last, v_head, v_at FROM sallyport.audit_blocks AS b WHERE b.tenant = tenants[i] ORDER BY b.last DESC LIMIT 1;
  v_found := v_head;
  IF v_last IS DISTINCT FROM seen[i] THEN
    SELECT b.head INTO v_found FROM sallyport.audit_blocks AS b WHERE b.tenant = tenants[i] AND b.last = seen[i];
  END IF;
  IF v_found IS DISTINCT FROM decode(seen_heads[i], 'hex') THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'the trail lost what was seen of it'; END IF;
  IF v_at > v_now + 60000 THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'the trail is ahead of the clock'; END IF;
  v_lasts[i] := v_last;
  v_prevs[i] := encode(v_head, 'hex');
  v_ats[i] := greatest(v_at, v_now);
END LOOP;
v_times := jsonb_object(tenants, v_ats::text[]);
IF w0 IS NOT NULL THEN
  SELECT count(*) FILTER (WHERE r.counts), json_agg(r) INTO v_count, v_left FROM (SELECT d.ord, d.tenant, d.id, d.state, d.reason, d.actor, d.updated_at, (d.state || '' = x.w0) IS NOT TRUE AS counts FROM json_to_recordset(w0) AS x(t text, id text, w0 text) JOIN sallyport.switches AS d ON d.id = x.id AND d.tenant || '' = x.t) AS r;
  IF v_count <> 0 THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of switches does not hold'; END IF;
  v_rows[1] := v_left;
END IF;
IF w1 IS NOT NULL THEN
  SELECT count(*) FILTER (WHERE r.counts), json_agg(r) INTO v_count, v_left FROM (SELECT d.ord, d.tenant, d.id, d.state, d.reason, d.actor, d.updated_at, (d.state || '' = x.w0) IS TRUE AS counts FROM json_to_recordset(w1) AS x(t text, id text, w0 text) JOIN sallyport.switches AS d ON d.id = x.id AND d.tenant || '' = x.t) AS r;
  IF v_count <> json_array_length(w1) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of switches does not hold'; END IF;
  v_rows[2] := v_left;
END IF;
IF w2 IS NOT NULL THEN
  SELECT count(*) FILTER (WHERE r.counts), json_agg(r) INTO v_count, v_left FROM (SELECT d.ord, d.tenant, d.id, d.created_at, (d.created_at + 0 = x.w0) IS NOT TRUE AS counts FROM json_to_recordset(w2) AS x(t text, id text, w0 bigint) JOIN sallyport.decoys AS d ON d.id = x.id AND d.tenant || '' = x.t) AS r;
  IF v_count <> 0 THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of decoys does not hold'; END IF;
  v_rows[3] := v_left;
END IF;
IF w3 IS NOT NULL THEN
  SELECT count(*) FILTER (WHERE r.counts), json_agg(r) INTO v_count, v_left FROM (SELECT d.ord, d.tenant, d.id, d.secret, d.created_at, (d.secret || '' = x.w0) IS TRUE AS counts FROM json_to_recordset(w3) AS x(t text, id text, w0 text) JOIN sallyport.content_keys AS d ON d.id = x.id AND d.tenant || '' = x.t) AS r;
  IF v_count <> json_array_length(w3) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of content_keys does not hold'; END IF;
  v_rows[4] := v_left;
END IF;
IF w4 IS NOT NULL THEN
  SELECT count(*) FILTER (WHERE r.counts), json_agg(r) INTO v_count, v_left FROM (SELECT d.ord, d.tenant, d.id, d.definition, (true) IS TRUE AS counts FROM json_to_recordset(w4) AS x(t text, id text) JOIN sallyport.definitions AS d ON d.id = x.id AND d.tenant || '' = x.t) AS r;
  IF v_count <> json_array_length(w4) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of definitions does not hold'; END IF;
  v_rows[5] := v_left;
END IF;
IF w5 IS NOT NULL THEN
  WITH done AS (INSERT INTO sallyport.decisions (tenant, id, session_id, state, source_tool, raw, diff_metadata, metadata, origin, tech_verdict, biz_verdict, machine_verdict, execution_proof, execution_error, asked, unasked, awaits_tool, created_at, updated_at)
SELECT x.t, x.id, x.v0, x.v1, x.v2, decode(x.v3, 'base64'), x.v4, x.v5, x.v6, x.v7, x.v8, x.v9, x.v10, x.v11, x.v12, x.v13, x.v14, (v_times ->> x.t)::bigint + x.v15, (v_times ->> x.t)::bigint + x.v16
FROM json_to_recordset(w5) AS x(t text, id text, v0 text, v1 text, v2 text, v3 text, v4 text, v5 text, v6 text, v7 text, v8 text, v9 text, v10 text, v11 text, v12 bigint, v13 bigint, v14 bigint, v15 bigint, v16 bigint)
ON CONFLICT (id, tenant) DO NOTHING RETURNING tenant, id, ord)
  SELECT count(*), json_agg(done) INTO v_count, v_left FROM done;
  IF v_count <> json_array_length(w5) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of decisions does not hold'; END IF;
  v_rows[6] := v_left;
END IF;
IF w6 IS NOT NULL THEN
  WITH done AS (INSERT INTO sallyport.interactions (tenant, id, type, status, session_id, call_id, hash, preview, definitions, decision_id, operation_id, facts, votes, remarks, waits_for, assigned_to, deadline, due_at, escalate_at, escalate_to, escalated, outcome, answer, answered_by, superseded_by, version, created_at, updated_at)
SELECT x.t, x.id, x.v0, x.v1, x.v2, x.v3, x.v4, x.v5, x.v6, x.v7, x.v8, x.v9, x.v10, x.v11, x.v12, x.v13, x.v14, x.v15, x.v16, x.v17, x.v18, x.v19, x.v20, x.v21, x.v22, x.v23, (v_times ->> x.t)::bigint + x.v24, (v_times ->> x.t)::bigint + x.v25
FROM json_to_recordset(w6) AS x(t text, id text, v0 text, v1 text, v2 text, v3 text, v4 text, v5 text, v6 text, v7 text, v8 text, v9 text, v10 text, v11 text, v12 text, v13 text, v14 bigint, v15 bigint, v16 bigint, v17 text, v18 bigint, v19 text, v20 text, v21 text, v22 text, v23 bigint, v24 bigint, v25 bigint)
ON CONFLICT (id, tenant) DO NOTHING RETURNING tenant, id, ord)
  SELECT count(*), json_agg(done) INTO v_count, v_left FROM done;
  IF v_count <> json_array_length(w6) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of interactions does not hold'; END IF;
  v_rows[7] := v_left;
END IF;
IF w7 IS NOT NULL THEN
  WITH done AS (INSERT INTO sallyport.interactions (tenant, id, type, status, session_id, call_id, hash, preview, definitions, decision_id, operation_id, facts, votes, remarks, waits_for, assigned_to, deadline, due_at, escalate_at, escalate_to, escalated, outcome, answer, answered_by, superseded_by, version, created_at, updated_at)
SELECT x.t, x.id, x.v0, x.v1, x.v2, x.v3, x.v4, x.v5, x.v6, x.v7, x.v8, x.v9, x.v10, x.v11, x.v12, x.v13, x.v14, x.v15, (v_times ->> x.t)::bigint + x.v16, x.v17, x.v18, x.v19, x.v20, x.v21, x.v22, x.v23, (v_times ->> x.t)::bigint + x.v24, (v_times ->> x.t)::bigint + x.v25
FROM json_to_recordset(w7) AS x(t text, id text, v0 text, v1 text, v2 text, v3 text, v4 text, v5 text, v6 text, v7 text, v8 text, v9 text, v10 text, v11 text, v12 text, v13 text, v14 bigint, v15 bigint, v16 bigint, v17 text, v18 bigint, v19 text, v20 text, v21 text, v22 text, v23 bigint, v24 bigint, v25 bigint)
ON CONFLICT (id, tenant) DO NOTHING RETURNING tenant, id, ord)
  SELECT count(*), json_agg(done) INTO v_count, v_left FROM done;
  IF v_count <> json_array_length(w7) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of interactions does not hold'; END IF;
  v_rows[8] := v_left;
END IF;
IF w8 IS NOT NULL THEN
  WITH done AS (INSERT INTO sallyport.call_keys (tenant, id, decision_id, step, action_hash, created_at)
SELECT x.t, x.id, x.v0, x.v1, x.v2, (v_times ->> x.t)::bigint + x.v3
FROM json_to_recordset(w8) AS x(t text, id text, v0 text, v1 bigint, v2 text, v3 bigint)
ON CONFLICT (id, tenant) DO NOTHING RETURNING tenant, id, ord)
  SELECT count(*), json_agg(done) INTO v_count, v_left FROM done;
  IF v_count <> json_array_length(w8) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of call_keys does not hold'; END IF;
  v_rows[9] := v_left;
END IF;
IF w9 IS NOT NULL THEN
  WITH done AS (UPDATE sallyport.call_keys AS d SET decision_id = x.v0, step = x.v1, action_hash = x.v2, created_at = (v_times ->> x.t)::bigint + x.v3 FROM json_to_recordset(w9) AS x(t text, id text, v0 text, v1 bigint, v2 text, v3 bigint, w0 text) WHERE d.id = x.id AND d.tenant || '' = x.t AND d.decision_id || '' = x.w0 RETURNING d.ord, d.tenant, d.id, d.decision_id, d.step, d.action_hash, d.created_at)
  SELECT count(*), json_agg(done) INTO v_count, v_left FROM done;
  IF v_count <> json_array_length(w9) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of call_keys does not hold'; END IF;
  v_rows[10] := v_left;
END IF;
IF w10 IS NOT NULL THEN
  WITH done AS (INSERT INTO sallyport.definitions (tenant, id, definition)
SELECT x.t, x.id, x.v0
FROM json_to_recordset(w10) AS x(t text, id text, v0 text)
ON CONFLICT (id, tenant) DO NOTHING RETURNING tenant, id, ord)
  SELECT count(*), json_agg(done) INTO v_count, v_left FROM done;
  IF v_count <> json_array_length(w10) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of definitions does not hold'; END IF;
  v_rows[11] := v_left;
END IF;
IF w11 IS NOT NULL THEN
  WITH done AS (UPDATE sallyport.interactions AS d SET version = d.version + x.v0, updated_at = (v_times ->> x.t)::bigint + x.v1, status = x.v2, due_at = x.v3, outcome = x.v4, answered_by = x.v5, superseded_by = x.v6, escalate_at = x.v7, votes = x.v8 FROM json_to_recordset(w11) AS x(t text, id text, v0 bigint, v1 bigint, v2 text, v3 bigint, v4 text, v5 text, v6 text, v7 bigint, v8 text, w0 text, w1 bigint, w2 text, w3 bigint, w4 bigint) WHERE d.id = x.id AND d.tenant || '' = x.t AND d.status || '' = x.w0 AND d.version + 0 = x.w1 AND d.hash || '' = x.w2 AND d.due_at + 0 >= (v_times ->> x.t)::bigint + x.w3 AND d.deadline + 0 >= (v_times ->> x.t)::bigint + x.w4 RETURNING d.ord, d.tenant, d.id, d.type, d.status, d.session_id, d.call_id, d.hash, d.preview, d.definitions, d.decision_id, d.operation_id, d.facts, d.votes, d.remarks, d.waits_for, d.assigned_to, d.deadline, d.due_at, d.escalate_at, d.escalate_to, d.escalated, d.outcome, d.answer, d.answered_by, d.superseded_by, d.version, d.created_at, d.updated_at)
  SELECT count(*), json_agg(done) INTO v_count, v_left FROM done;
  IF v_count <> json_array_length(w11) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of interactions does not hold'; END IF;
  v_rows[12] := v_left;
END IF;
IF w12 IS NOT NULL THEN
  WITH done AS (UPDATE sallyport.interactions AS d SET version = d.version + x.v0, updated_at = (v_times ->> x.t)::bigint + x.v1, status = x.v2, due_at = x.v3, outcome = x.v4, answer = x.v5, answered_by = x.v6, superseded_by = x.v7, escalate_at = x.v8, votes = x.v9 FROM json_to_recordset(w12) AS x(t text, id text, v0 bigint, v1 bigint, v2 text, v3 bigint, v4 text, v5 text, v6 text, v7 text, v8 bigint, v9 text, w0 text, w1 bigint, w2 text, w3 bigint, w4 bigint) WHERE d.id = x.id AND d.tenant || '' = x.t AND d.status || '' = x.w0 AND d.version + 0 = x.w1 AND d.hash || '' = x.w2 AND d.due_at + 0 >= (v_times ->> x.t)::bigint + x.w3 AND d.deadline + 0 >= (v_times ->> x.t)::bigint + x.w4 RETURNING d.ord, d.tenant, d.id, d.type, d.status, d.session_id, d.call_id, d.hash, d.preview, d.definitions, d.decision_id, d.operation_id, d.facts, d.votes, d.remarks, d.waits_for, d.assigned_to, d.deadline, d.due_at, d.escalate_at, d.escalate_to, d.escalated, d.outcome, d.answer, d.answered_by, d.superseded_by, d.version, d.created_at, d.updated_at)
  SELECT count(*), json_agg(done) INTO v_count, v_left FROM done;
  IF v_count <> json_array_length(w12) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of interactions does not hold'; END IF;
  v_rows[13] := v_left;
END IF;
IF w13 IS NOT NULL THEN
  WITH done AS (UPDATE sallyport.decisions AS d SET biz_verdict = x.v0, unasked = x.v1, state = x.v2, updated_at = (v_times ->> x.t)::bigint + x.v3 FROM json_to_recordset(w13) AS x(t text, id text, v0 text, v1 bigint, v2 text, v3 bigint, w0 text, w1 text) WHERE d.id = x.id AND d.tenant || '' = x.t AND d.state || '' = x.w0 AND d.session_id || '' = x.w1 RETURNING d.ord, d.tenant, d.id, d.session_id, d.state, d.source_tool, d.raw, d.diff_metadata, d.metadata, d.origin, d.tech_verdict, d.biz_verdict, d.machine_verdict, d.execution_proof, d.execution_error, d.asked, d.unasked, d.awaits_tool, d.created_at, d.updated_at)
  SELECT count(*), json_agg(done) INTO v_count, v_left FROM done;
  IF v_count <> json_array_length(w13) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of decisions does not hold'; END IF;
  v_rows[14] := v_left;
END IF;
IF w14 IS NOT NULL THEN
  WITH done AS (INSERT INTO sallyport.operations (tenant, id, session_id, message_id, call_id, turn, tool, effect, definition_hash, input, working_directory, chain, decision_id, step, undo_of, executor, status, attempt, fence, lease_until, output, truncated, stored_path, undo, error, state_version, created_at, updated_at)
SELECT x.t, x.id, x.v0, x.v1, x.v2, x.v3, x.v4, x.v5, x.v6, x.v7, x.v8, x.v9, x.v10, x.v11, x.v12, x.v13, x.v14, x.v15, x.v16, (v_times ->> x.t)::bigint + x.v17, x.v18, x.v19, x.v20, x.v21, x.v22, x.v23, (v_times ->> x.t)::bigint + x.v24, (v_times ->> x.t)::bigint + x.v25
FROM json_to_recordset(w14) AS x(t text, id text, v0 text, v1 text, v2 text, v3 bigint, v4 text, v5 text, v6 text, v7 text, v8 text, v9 text, v10 text, v11 bigint, v12 text, v13 text, v14 text, v15 bigint, v16 bigint, v17 bigint, v18 text, v19 bigint, v20 text, v21 text, v22 text, v23 text, v24 bigint, v25 bigint)
ON CONFLICT (id, tenant) DO NOTHING RETURNING tenant, id, ord)
  SELECT count(*), json_agg(done) INTO v_count, v_left FROM done;
  IF v_count <> json_array_length(w14) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of operations does not hold'; END IF;
  v_rows[15] := v_left;
END IF;
IF w15 IS NOT NULL THEN
  WITH done AS (UPDATE sallyport.operations AS d SET status = x.v0, output = x.v1, truncated = x.v2, stored_path = x.v3, undo = x.v4, state_version = x.v5, updated_at = (v_times ->> x.t)::bigint + x.v6 FROM json_to_recordset(w15) AS x(t text, id text, v0 text, v1 text, v2 bigint, v3 text, v4 text, v5 text, v6 bigint, w0 bigint, w1 text, w2 json) WHERE d.id = x.id AND d.tenant || '' = x.t AND d.fence + 0 = x.w0 AND d.session_id || '' = x.w1 AND d.status || '' IN (SELECT json_array_elements_text(x.w2)) RETURNING d.ord, d.tenant, d.id, d.session_id, d.message_id, d.call_id, d.turn, d.tool, d.effect, d.definition_hash, d.input, d.working_directory, d.chain, d.decision_id, d.step, d.undo_of, d.executor, d.status, d.attempt, d.fence, d.lease_until, d.output, d.truncated, d.stored_path, d.undo, d.error, d.state_version, d.created_at, d.updated_at)
  SELECT count(*), json_agg(done) INTO v_count, v_left FROM done;
  IF v_count <> json_array_length(w15) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of operations does not hold'; END IF;
  v_rows[16] := v_left;
END IF;
IF w16 IS NOT NULL THEN
  WITH done AS (UPDATE sallyport.operations AS d SET status = x.v0, output = x.v1, truncated = x.v2, stored_path = x.v3, undo = x.v4, state_version = x.v5, updated_at = (v_times ->> x.t)::bigint + x.v6 FROM json_to_recordset(w16) AS x(t text, id text, v0 text, v1 text, v2 bigint, v3 text, v4 text, v5 text, v6 bigint, w0 bigint, w1 text, w2 text) WHERE d.id = x.id AND d.tenant || '' = x.t AND d.fence + 0 = x.w0 AND d.session_id || '' = x.w1 AND d.status || '' = x.w2 RETURNING d.ord, d.tenant, d.id, d.session_id, d.message_id, d.call_id, d.turn, d.tool, d.effect, d.definition_hash, d.input, d.working_directory, d.chain, d.decision_id, d.step, d.undo_of, d.executor, d.status, d.attempt, d.fence, d.lease_until, d.output, d.truncated, d.stored_path, d.undo, d.error, d.state_version, d.created_at, d.updated_at)
  SELECT count(*), json_agg(done) INTO v_count, v_left FROM done;
  IF v_count <> json_array_length(w16) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of operations does not hold'; END IF;
  v_rows[17] := v_left;
END IF;
IF w17 IS NOT NULL THEN
  WITH done AS (UPDATE sallyport.operations AS d SET status = x.v0, output = x.v1, truncated = x.v2, stored_path = x.v3, error = x.v4, updated_at = (v_times ->> x.t)::bigint + x.v5 FROM json_to_recordset(w17) AS x(t text, id text, v0 text, v1 text, v2 bigint, v3 text, v4 text, v5 bigint, w0 bigint, w1 text, w2 json) WHERE d.id = x.id AND d.tenant || '' = x.t AND d.fence + 0 = x.w0 AND d.session_id || '' = x.w1 AND d.status || '' IN (SELECT json_array_elements_text(x.w2)) RETURNING d.ord, d.tenant, d.id, d.session_id, d.message_id, d.call_id, d.turn, d.tool, d.effect, d.definition_hash, d.input, d.working_directory, d.chain, d.decision_id, d.step, d.undo_of, d.executor, d.status, d.attempt, d.fence, d.lease_until, d.output, d.truncated, d.stored_path, d.undo, d.error, d.state_version, d.created_at, d.updated_at)
  SELECT count(*), json_agg(done) INTO v_count, v_left FROM done;
  IF v_count <> json_array_length(w17) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of operations does not hold'; END IF;
  v_rows[18] := v_left;
END IF;
IF w18 IS NOT NULL THEN
  WITH done AS (UPDATE sallyport.operations AS d SET status = x.v0, output = x.v1, truncated = x.v2, stored_path = x.v3, error = x.v4, updated_at = (v_times ->> x.t)::bigint + x.v5 FROM json_to_recordset(w18) AS x(t text, id text, v0 text, v1 text, v2 bigint, v3 text, v4 text, v5 bigint, w0 bigint, w1 text, w2 text) WHERE d.id = x.id AND d.tenant || '' = x.t AND d.fence + 0 = x.w0 AND d.session_id || '' = x.w1 AND d.status || '' = x.w2 RETURNING d.ord, d.tenant, d.id, d.session_id, d.message_id, d.call_id, d.turn, d.tool, d.effect, d.definition_hash, d.input, d.working_directory, d.chain, d.decision_id, d.step, d.undo_of, d.executor, d.status, d.attempt, d.fence, d.lease_until, d.output, d.truncated, d.stored_path, d.undo, d.error, d.state_version, d.created_at, d.updated_at)
  SELECT count(*), json_agg(done) INTO v_count, v_left FROM done;
  IF v_count <> json_array_length(w18) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of operations does not hold'; END IF;
  v_rows[19] := v_left;
END IF;
IF w19 IS NOT NULL THEN
  WITH done AS (UPDATE sallyport.decisions AS d SET execution_proof = x.v0, awaits_tool = x.v1, state = x.v2, updated_at = (v_times ->> x.t)::bigint + x.v3 FROM json_to_recordset(w19) AS x(t text, id text, v0 text, v1 bigint, v2 text, v3 bigint, w0 text, w1 text) WHERE d.id = x.id AND d.tenant || '' = x.t AND d.state || '' = x.w0 AND d.session_id || '' = x.w1 RETURNING d.ord, d.tenant, d.id, d.session_id, d.state, d.source_tool, d.raw, d.diff_metadata, d.metadata, d.origin, d.tech_verdict, d.biz_verdict, d.machine_verdict, d.execution_proof, d.execution_error, d.asked, d.unasked, d.awaits_tool, d.created_at, d.updated_at)
  SELECT count(*), json_agg(done) INTO v_count, v_left FROM done;
  IF v_count <> json_array_length(w19) THEN RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a step of decisions does not hold'; END IF;
  v_rows[20] := v_left;
END IF;
FOR i IN 1 .. cardinality(tenants) LOOP
  v_iso := to_char(timestamp 'epoch' + v_ats[i] * interval '1 millisecond', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
  v_leaves := decode(leaves[i], 'hex');
  v_link := v_prevs[i];
  v_last := v_lasts[i];
  FOR j IN 1 .. length(v_leaves) / 32 LOOP
    v_last := v_last + 1;
    v_link := encode(sha256(convert_to('{"at":"' || v_iso || '","leaf":"' || encode(substring(v_leaves FROM 32 * j - 31 FOR 32), 'hex') || '","prev":"' || v_link || '","seq":' || v_last || ',"v":2}', 'UTF8')), 'hex');
  END LOOP;
  v_heads[i] := v_link;
  INSERT INTO sallyport.audit_blocks (tenant, last, at, head, body) VALUES (tenants[i], v_last, v_ats[i], decode(v_link, 'hex'), decode(bodies[i], 'base64'));
END LOOP;
RETURN json_build_object('now', v_now, 'lasts', v_lasts, 'ats', v_ats, 'prevs', v_prevs, 'heads', v_heads, 'rows', v_rows);
END
$function$;

