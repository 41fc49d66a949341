import type { Migration } from "../../migration.ts";

/** The same tables as in SQLite. The room left in pages lets a completed task stay where it is, without touching an index. */
export const tasks: Migration = {
  version: 4,
  name: "tasks",
  sql: `
CREATE TABLE $schema.tasks (
  ord bigint GENERATED ALWAYS AS IDENTITY,
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
  PRIMARY KEY (id, tenant),
  CHECK (status IN ('pending','claimed','completed','failed'))
) WITH (fillfactor = 60);
CREATE INDEX tasks_by_ord ON $schema.tasks (tenant, ord);

CREATE TABLE $schema.task_queue (
  ord bigint GENERATED ALWAYS AS IDENTITY,
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
  PRIMARY KEY (id, tenant),
  CHECK (lane IN ('ready','waiting','untidy','leased','kept','failed'))
);
CREATE INDEX task_queue_next ON $schema.task_queue (tenant, lane, priority DESC NULLS LAST, ord);
CREATE INDEX task_queue_by_lease ON $schema.task_queue (tenant, lease_until) WHERE lease_until IS NOT NULL;

CREATE TABLE $schema.task_blocks (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  blocker_id text NOT NULL,
  task_id text NOT NULL,
  PRIMARY KEY (id, tenant)
);
CREATE INDEX task_blocks_by_blocker ON $schema.task_blocks (tenant, blocker_id, ord);
`,
};
