import type { Migration } from "../../migration.ts";

/** Who asked for a call is kept with it, so that whoever goes on with it after a crash knows who must not decide about it. */
export const askers: Migration = {
  version: 8,
  name: "askers",
  sql: `
ALTER TABLE operations ADD COLUMN chain TEXT;
`,
};
