import { randomUUID } from "node:crypto";
import { type AuditEntry, packBlock } from "../../src/model/audit-entry.ts";

/** The rows a cycle leaves behind, as long as the product's own, for the floors to write without any of its logic. */
const verdict = JSON.stringify({
  approved: true,
  score: 1,
  severity: "warn",
  reason: "fits the rules",
  validator: "schema",
  policyVersion: "2026-11",
});

export const DECISION = {
  tool: "billing.refund",
  raw: new TextEncoder().encode(JSON.stringify({ invoice: "INV-2041", cents: 12_900 })),
  metadata: JSON.stringify({ amount: 129, customer: "C-77" }),
  verdict,
  proof: JSON.stringify({ refund: "R-1" }),
} as const;

export const ENTRY = {
  type: "decision.reviewed",
  actor: "validator:schema",
  data: JSON.stringify({ from: "pending_tech", tier: "tech", to: "pending_ml", verdict }),
  salt: "hYw0Jb3mQvGx8kq1S2c4Ag",
  hash: "9".repeat(64),
} as const;

/** On SQLite: number of the last entry, time, head, body; all in the first chain. */
export const SQLITE_BLOCK =
  "INSERT INTO audit_blocks (ord, at, head, body) VALUES ((1 << 32) | ?, ?, ?, ?)";

/** On PostgreSQL: tenant, number of the last entry, time, head, body. */
export const postgresBlock = (schema: string) => ({
  name: "block",
  text: `INSERT INTO ${schema}.audit_blocks (tenant, last, at, head, body) VALUES ($1, $2, $3, $4, $5)`,
});

export const HEAD = Buffer.alloc(32, 9);

/** What is said in an entry, without the places that differ from one to the next. */
type Said = Pick<AuditEntry, "type" | "actor" | "data">;

/**
 * Makes bodies of blocks about as long as the product's: one commit's entries for so many records, packed once for each number of
 * records, so that a floor that writes them packs nothing.
 */
export function bodiesOf(said: readonly Said[]): (records: number) => Uint8Array {
  const made = new Map<number, Uint8Array>();
  return (records) => {
    const known = made.get(records);
    if (known !== undefined) return known;
    const entries = Array.from({ length: records }, () => {
      const [subject, session] = [randomUUID(), `session-1-${randomUUID().slice(0, 2)}`];
      return said.map((one) => ({ ...one, subject, session, salt: randomUUID() }));
    });
    const body = packBlock(entries.flat() as readonly Partial<AuditEntry>[] as AuditEntry[]);
    made.set(records, body);
    return body;
  };
}

/** The moves of one cycle after its insert: column to fill, from, to. */
export const STEPS = [
  ["tech_verdict", "pending_tech", "pending_ml", DECISION.verdict],
  ["biz_verdict", "pending_ml", "approved", DECISION.verdict],
  ["execution_proof", "approved", "executed", DECISION.proof],
] as const;
