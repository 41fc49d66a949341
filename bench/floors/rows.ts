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

/** On SQLite: place, time, type, subject, session, actor, data, salt, hash; all in the first chain. */
export const SQLITE_ENTRY =
  "INSERT INTO audit_entries (ord, at, type, subject, session, actor, data, salt, hash) VALUES ((1 << 32) | ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/** The moves of one cycle after its insert: column to fill, from, to. */
export const STEPS = [
  ["tech_verdict", "pending_tech", "pending_ml", DECISION.verdict],
  ["biz_verdict", "pending_ml", "approved", DECISION.verdict],
  ["execution_proof", "approved", "executed", DECISION.proof],
] as const;
