import type { Migration } from "../../migration.ts";

/**
 * The shared task list. `tasks` holds what is written rarely; `task_queue` one narrow row for each task that is not
 * completed, which is all that a claim writes; `task_blocks` who waits for whom.
 */
export const tasks: Migration = {
  version: 4,
  name: "tasks",
  sql: `
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
CREATE UNIQUE INDEX tasks_key ON tasks (tenant, id);
CREATE INDEX tasks_by_ord ON tasks (tenant, ord);

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
CREATE UNIQUE INDEX task_queue_key ON task_queue (tenant, id);
CREATE INDEX task_queue_next ON task_queue (tenant, lane, priority DESC, ord);
CREATE INDEX task_queue_by_lease ON task_queue (tenant, lease_until) WHERE lease_until IS NOT NULL;

CREATE TABLE task_blocks (
  ord INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  blocker_id TEXT NOT NULL,
  task_id TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX task_blocks_key ON task_blocks (tenant, id);
CREATE INDEX task_blocks_by_blocker ON task_blocks (tenant, blocker_id, ord);
`,
};
