import type { Table } from "./engine.ts";

/** What was shown for a decision and can be approved; the key is the decision's id. */
export const APPROVALS: Table = {
  name: "approvals",
  columns: {
    hash: "text",
    preview: "text",
    definitions: "text",
    expires_at: "int",
    created_at: "int",
  },
  indexed: [],
};
