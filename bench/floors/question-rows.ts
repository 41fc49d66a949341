import Sqlite from "better-sqlite3";
import { type AuditEntry, type Block, unpackBlock } from "../../src/model/audit-entry.ts";

export type Cell = string | number | bigint | Uint8Array | null;
export type Row = Readonly<Record<string, Cell>>;
export type TableName = "decisions" | "interactions" | "operations";

/** The rows and entries that one finished cycle of the product has left behind: the floors write the same bytes by hand. */
export interface Sample {
  readonly rows: Readonly<Record<TableName, Row>>;
  readonly entries: readonly AuditEntry[];
}

export function sampleOf(file: string): Sample {
  const db = new Sqlite(file);
  const { id } = db.prepare("SELECT id FROM decisions ORDER BY ord").get() as { id: string };
  const row = (table: TableName): Row => {
    const all = db.prepare(`SELECT * FROM ${table} WHERE id = ?`).get(idIn(table, id)) as Row;
    const { ord: _ord, ...rest } = all;
    return rest;
  };
  const rows = {
    decisions: row("decisions"),
    interactions: row("interactions"),
    operations: row("operations"),
  };
  const blocks = db
    .prepare("SELECT last, at, lower(hex(head)) AS head, body FROM audit_blocks ORDER BY ord")
    .all() as Block[];
  db.close();
  const subjects = [id, idIn("operations", id)];
  const entries = blocks
    .flatMap((block) => unpackBlock("", block, ""))
    .filter(({ subject }) => subjects.includes(subject));
  return { rows, entries };
}

/** A row as it was when it was inserted: as at the end, but for these cells. */
export interface Insert {
  readonly insert: TableName;
  readonly at: Row;
}

/** These columns become what they are at the end, those in `at` what is said there. */
export interface Update {
  readonly update: TableName;
  readonly set: readonly string[];
  readonly at: Row;
  readonly where: Row;
}

/**
 * One commit of the product: the row writes, and which of the entries are its block. Left out are its looks (`require`, reads) and
 * the row by which a repeated call finds its decision.
 */
export interface Commit {
  readonly writes: readonly (Insert | Update)[];
  readonly entries: readonly number[];
}

const decide = (column: string, from: string, to: string): Update => ({
  update: "decisions",
  set: [column, "updated_at"],
  at: { state: to },
  where: { state: from },
});

/** Asked: decision with its technical verdict, preview and question, written once. */
export const ASK: readonly Commit[] = [
  {
    writes: [
      {
        insert: "decisions",
        at: { state: "pending_ml", biz_verdict: null, execution_proof: null, asked: 1 },
      },
      {
        insert: "interactions",
        at: {
          status: "open",
          outcome: null,
          answer: null,
          answered_by: "",
          votes: null,
          version: 1,
        },
      },
    ],
    entries: [0, 1, 2, 3],
  },
];

/** Answered: the yes with the decision's move and the intent, then the outcome with the decision's last move. */
export const ANSWER: readonly Commit[] = [
  {
    writes: [
      {
        update: "interactions",
        set: [
          "status",
          "outcome",
          "answer",
          "answered_by",
          "votes",
          "due_at",
          "version",
          "updated_at",
        ],
        at: {},
        where: { status: "open", version: 1 },
      },
      decide("biz_verdict", "pending_ml", "approved"),
      {
        insert: "operations",
        at: { status: "started", output: null, stored_path: null, state_version: null },
      },
    ],
    entries: [4, 5, 6],
  },
  {
    writes: [
      {
        update: "operations",
        set: ["status", "output", "stored_path", "state_version", "updated_at"],
        at: {},
        where: { status: "started", fence: 1 },
      },
      decide("execution_proof", "approved", "executed"),
    ],
    entries: [7, 8],
  },
];

/** The row as it was inserted; an open question is found by its deadline. */
export function insertedRow({ rows }: Sample, { insert, at }: Insert): Row {
  const row = { ...rows[insert], ...at };
  return insert === "interactions" ? { ...row, due_at: row["deadline"] ?? null } : row;
}

/** What an update sets. */
export function updatedCells({ rows }: Sample, { update, set, at }: Update): Row {
  const own = set.map((name) => [name, rows[update][name] ?? null]);
  return { ...Object.fromEntries(own), ...at };
}

/** An operation is named after its decision. */
export function idIn(table: TableName, id: string): string {
  return table === "operations" ? `${id}.0` : id;
}
