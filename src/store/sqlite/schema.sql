-- Made by `node scripts/schema-dump.ts` from the migrations. Not to be edited.
-- user_version 4

CREATE TABLE audit_blocks (
  ord INTEGER PRIMARY KEY,
  chain INTEGER GENERATED ALWAYS AS (ord >> 32) VIRTUAL,
  last INTEGER GENERATED ALWAYS AS (ord & 4294967295) VIRTUAL,
  at INTEGER NOT NULL,
  head BLOB NOT NULL,
  body BLOB NOT NULL
) STRICT;

CREATE TABLE "audit_entries" (
  ord INTEGER PRIMARY KEY,
  chain INTEGER GENERATED ALWAYS AS (ord >> 32) VIRTUAL,
  seq INTEGER GENERATED ALWAYS AS (ord & 4294967295) VIRTUAL,
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  subject TEXT NOT NULL,
  session TEXT NOT NULL,
  actor TEXT NOT NULL,
  data TEXT,
  salt TEXT,
  data_hash TEXT,
  hash TEXT NOT NULL,
  CHECK ((ord & 4294967295) > 0)
) STRICT;

CREATE TABLE breakers (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  state TEXT NOT NULL,
  failures INTEGER NOT NULL,
  reason TEXT NOT NULL,
  closed_by TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (state IN ('closed','open'))
) STRICT;

CREATE UNIQUE INDEX breakers_key ON breakers (tenant, id);

CREATE TABLE call_keys (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  decision_id TEXT NOT NULL,
  step INTEGER NOT NULL,
  action_hash TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX call_keys_key ON call_keys (tenant, id);

CREATE TABLE chains (
  nr INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE content_keys (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  secret TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX content_keys_key ON content_keys (tenant, id);

CREATE TABLE decisions (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  state TEXT NOT NULL,
  source_tool TEXT NOT NULL,
  raw BLOB NOT NULL,
  diff_metadata TEXT NOT NULL,
  metadata TEXT,
  origin TEXT,
  tech_verdict TEXT,
  biz_verdict TEXT,
  execution_proof TEXT,
  execution_error TEXT,
  asked INTEGER NOT NULL,
  unasked INTEGER,
  awaits_tool INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, machine_verdict TEXT,
  CHECK (state IN ('pending_tech','pending_ml','approved','rejected_tech','rejected_ml','executed','failed')),
  CHECK (origin IN ('port'))
) STRICT;

CREATE INDEX decisions_awaits_tool ON decisions (tenant, awaits_tool) WHERE awaits_tool IS NOT NULL;

CREATE INDEX decisions_by_session ON decisions (tenant, session_id, ord);

CREATE INDEX decisions_by_state ON decisions (tenant, state, ord);

CREATE UNIQUE INDEX decisions_key ON decisions (tenant, id);

CREATE INDEX decisions_unasked ON decisions (tenant, unasked) WHERE unasked IS NOT NULL;

CREATE TABLE decoys (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX decoys_key ON decoys (tenant, id);

CREATE TABLE definitions (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  definition TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX definitions_key ON definitions (tenant, id);

CREATE TABLE delegation_slots (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  parent_session TEXT NOT NULL,
  child_id TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE INDEX delegation_slots_by_parent ON delegation_slots (tenant, parent_session, ord);

CREATE UNIQUE INDEX delegation_slots_key ON delegation_slots (tenant, id);

CREATE TABLE delegations (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  parent_session TEXT NOT NULL,
  root_session TEXT NOT NULL,
  run_id TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  promise_id TEXT NOT NULL,
  state TEXT NOT NULL,
  chain TEXT NOT NULL,
  agents TEXT NOT NULL,
  owner TEXT NOT NULL,
  task TEXT NOT NULL,
  capsule TEXT NOT NULL,
  promise TEXT NOT NULL,
  plan_id TEXT NOT NULL,
  role TEXT NOT NULL,
  write_permission TEXT NOT NULL,
  scope TEXT NOT NULL,
  calls_left INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  working_directory TEXT NOT NULL,
  token_hash TEXT NOT NULL,
  output TEXT,
  promise_met INTEGER,
  reason TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (state IN ('active','reported','failed','revoked')),
  CHECK (role IN ('research','doc','code','review','verify')),
  CHECK (write_permission IN ('none','docs-and-current-phase-artifact','plan-approved-files-only','evidence-through-kd_verify_result')),
  CHECK (calls_left >= 0)
) STRICT;

CREATE INDEX delegations_by_parent ON delegations (tenant, parent_session, ord);

CREATE INDEX delegations_by_root ON delegations (tenant, root_session, ord);

CREATE INDEX delegations_by_state ON delegations (tenant, state, ord);

CREATE UNIQUE INDEX delegations_key ON delegations (tenant, id);

CREATE TABLE flow_states (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  node TEXT NOT NULL,
  revision INTEGER NOT NULL,
  hash TEXT NOT NULL,
  snapshot TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE INDEX flow_states_by_expiry ON flow_states (tenant, expires_at);

CREATE UNIQUE INDEX flow_states_key ON flow_states (tenant, id);

CREATE TABLE grants (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  state TEXT NOT NULL,
  grantor TEXT NOT NULL,
  finding TEXT NOT NULL,
  scope TEXT NOT NULL,
  given_by TEXT NOT NULL,
  reason TEXT NOT NULL,
  expires_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (state IN ('live','revoked')),
  CHECK (grantor IN ('user','plan-revision','evidence-update'))
) STRICT;

CREATE INDEX grants_by_session ON grants (tenant, session_id, ord);

CREATE UNIQUE INDEX grants_key ON grants (tenant, id);

CREATE TABLE http_keys (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  route TEXT NOT NULL,
  content_hash TEXT NOT NULL,
  state TEXT NOT NULL,
  fence INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  answer TEXT,
  expires_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  CHECK (state IN ('begun','answered'))
) STRICT;

CREATE INDEX http_keys_by_expiry ON http_keys (tenant, expires_at);

CREATE UNIQUE INDEX http_keys_key ON http_keys (tenant, id);

CREATE TABLE interactions (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  type TEXT NOT NULL,
  status TEXT NOT NULL,
  session_id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  hash TEXT NOT NULL,
  preview TEXT,
  definitions TEXT,
  decision_id TEXT NOT NULL,
  operation_id TEXT NOT NULL,
  facts TEXT NOT NULL,
  votes TEXT,
  remarks TEXT,
  waits_for TEXT NOT NULL,
  assigned_to TEXT NOT NULL,
  deadline INTEGER NOT NULL,
  due_at INTEGER,
  escalate_at INTEGER,
  escalate_to TEXT NOT NULL,
  escalated INTEGER NOT NULL,
  outcome TEXT,
  answer TEXT,
  answered_by TEXT NOT NULL,
  superseded_by TEXT NOT NULL,
  version INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (type IN ('ask_user','confirm','connection_lost')),
  CHECK (status IN ('open','resolved','canceled')),
  CHECK (waits_for IN ('people','agent')),
  CHECK (outcome IN ('answered','approved','rejected','superseded','expired','canceled'))
) STRICT;

CREATE INDEX interactions_by_due ON interactions (tenant, due_at) WHERE due_at IS NOT NULL;

CREATE INDEX interactions_by_escalation ON interactions (tenant, escalate_at) WHERE escalate_at IS NOT NULL;

CREATE INDEX interactions_by_session ON interactions (tenant, session_id, ord);

CREATE INDEX interactions_by_status ON interactions (tenant, status, ord);

CREATE UNIQUE INDEX interactions_key ON interactions (tenant, id);

CREATE TABLE notice_cursors (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX notice_cursors_key ON notice_cursors (tenant, id);

CREATE TABLE notices (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  channel TEXT NOT NULL,
  kind TEXT NOT NULL,
  interaction_id TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  bundle TEXT NOT NULL,
  next_at INTEGER,
  facts TEXT NOT NULL,
  receipt TEXT,
  problem TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (kind IN ('asked','reminded','escalated','decided')),
  CHECK (state IN ('waiting','sent','dropped','dead'))
) STRICT;

CREATE INDEX notices_by_interaction ON notices (tenant, interaction_id, ord);

CREATE INDEX notices_by_next ON notices (tenant, next_at) WHERE next_at IS NOT NULL;

CREATE INDEX notices_by_state ON notices (tenant, state, ord);

CREATE UNIQUE INDEX notices_key ON notices (tenant, id);

CREATE TABLE operations (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  turn INTEGER NOT NULL,
  tool TEXT NOT NULL,
  effect TEXT NOT NULL,
  definition_hash TEXT NOT NULL,
  input TEXT NOT NULL,
  working_directory TEXT NOT NULL,
  chain TEXT NOT NULL,
  decision_id TEXT NOT NULL,
  step INTEGER NOT NULL,
  undo_of TEXT NOT NULL,
  executor TEXT NOT NULL,
  status TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  output TEXT,
  truncated INTEGER NOT NULL,
  stored_path TEXT,
  undo TEXT,
  error TEXT,
  state_version TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (status IN ('started','unknown','returned','success','failed','rolled_back'))
) STRICT;

CREATE INDEX operations_by_session ON operations (tenant, session_id, ord);

CREATE INDEX operations_by_status ON operations (tenant, status, ord);

CREATE UNIQUE INDEX operations_key ON operations (tenant, id);

CREATE TABLE pauses (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  reason TEXT NOT NULL,
  actor TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  CHECK (kind IN ('agent','tool','session'))
) STRICT;

CREATE UNIQUE INDEX pauses_key ON pauses (tenant, id);

CREATE TABLE pictures (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  media_type TEXT NOT NULL,
  bytes BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX pictures_key ON pictures (tenant, id);

CREATE TABLE reviewers (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  status TEXT NOT NULL,
  approved INTEGER NOT NULL,
  rejected INTEGER NOT NULL,
  caught INTEGER NOT NULL,
  missed INTEGER NOT NULL,
  hour_count INTEGER NOT NULL,
  hour_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (status IN ('trusted','suspended'))
) STRICT;

CREATE UNIQUE INDEX reviewers_key ON reviewers (tenant, id);

CREATE TABLE runs (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  phase TEXT NOT NULL,
  status TEXT NOT NULL,
  version INTEGER NOT NULL,
  state TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (phase IN ('discuss','spec','plan','execute','verify','ship')),
  CHECK (status IN ('open','done','stopped'))
) STRICT;

CREATE INDEX runs_by_status ON runs (tenant, status, ord);

CREATE UNIQUE INDEX runs_key ON runs (tenant, id);

CREATE TABLE sessions (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  agent TEXT NOT NULL,
  facts TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX sessions_by_agent ON sessions (tenant, agent, ord);

CREATE UNIQUE INDEX sessions_key ON sessions (tenant, id);

CREATE TABLE sqlite_sequence(name,seq);

CREATE TABLE standing_rules (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  tool TEXT NOT NULL,
  definition_hash TEXT NOT NULL,
  pattern TEXT NOT NULL,
  working_directory TEXT NOT NULL,
  reason TEXT NOT NULL,
  status TEXT NOT NULL,
  made_by TEXT NOT NULL,
  confirmed_by TEXT NOT NULL,
  uses INTEGER NOT NULL,
  ended_by TEXT NOT NULL,
  end_reason TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  version INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (status IN ('proposed','active','revoked'))
) STRICT;

CREATE INDEX standing_rules_by_tool ON standing_rules (tenant, tool, ord);

CREATE UNIQUE INDEX standing_rules_key ON standing_rules (tenant, id);

CREATE TABLE switches (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  actor TEXT,
  updated_at INTEGER NOT NULL,
  CHECK (id <> 'kill' OR state IN ('running','stopped'))
) STRICT;

CREATE UNIQUE INDEX switches_key ON switches (tenant, id);

CREATE TABLE task_blocks (
  ord INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  blocker_id TEXT NOT NULL,
  task_id TEXT NOT NULL
) STRICT;

CREATE INDEX task_blocks_by_blocker ON task_blocks (tenant, blocker_id, ord);

CREATE UNIQUE INDEX task_blocks_key ON task_blocks (tenant, id);

CREATE TABLE task_queue (
  ord INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  lane TEXT NOT NULL,
  role TEXT NOT NULL,
  priority INTEGER NOT NULL,
  session_id TEXT NOT NULL,
  claimer TEXT,
  claimed_at INTEGER,
  lease_until INTEGER,
  fence INTEGER NOT NULL,
  version INTEGER NOT NULL,
  facts_version INTEGER NOT NULL,
  waits INTEGER NOT NULL,
  dependents INTEGER NOT NULL,
  CHECK (lane IN ('ready','waiting','untidy','leased','kept','failed'))
) STRICT;

CREATE INDEX task_queue_by_lease ON task_queue (tenant, lease_until) WHERE lease_until IS NOT NULL;

CREATE UNIQUE INDEX task_queue_key ON task_queue (tenant, id);

CREATE INDEX task_queue_next ON task_queue (tenant, lane, priority DESC, ord);

CREATE TABLE tasks (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  status TEXT NOT NULL,
  facts TEXT NOT NULL,
  claimer TEXT,
  claimed_at INTEGER,
  completed_at INTEGER,
  result TEXT,
  fence INTEGER,
  version INTEGER NOT NULL,
  CHECK (status IN ('pending','claimed','completed','failed'))
) STRICT;

CREATE INDEX tasks_by_ord ON tasks (tenant, ord);

CREATE UNIQUE INDEX tasks_key ON tasks (tenant, id);

CREATE TABLE tokens (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  hash TEXT NOT NULL,
  subject TEXT NOT NULL,
  roles TEXT NOT NULL,
  task_roles TEXT,
  owner TEXT NOT NULL,
  note TEXT NOT NULL,
  state TEXT NOT NULL,
  made_by TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (kind IN ('token','session','link')),
  CHECK (state IN ('live','ended'))
) STRICT;

CREATE UNIQUE INDEX tokens_by_hash ON tokens (tenant, hash);

CREATE INDEX tokens_by_kind ON tokens (tenant, kind, ord);

CREATE UNIQUE INDEX tokens_key ON tokens (tenant, id);

