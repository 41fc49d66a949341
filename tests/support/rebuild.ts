import type { AuditEntry } from "../../src/model/audit-entry.ts";
import { isLegal } from "../../src/model/decision.ts";
import type { AuditReader } from "../../src/store/store.ts";

/** What the trail says about one decision. */
export interface Rebuilt {
  readonly states: string[];
  updatedAt: string;
}

/** I20: the state can be rebuilt from the trail alone. Throws when the trail tells of a move that is not in the table. */
export async function rebuildDecisions(reader: AuditReader): Promise<Map<string, Rebuilt>> {
  const decisions = new Map<string, Rebuilt>();
  for (let after = 0; ; ) {
    const page = await reader.read({ after, limit: 1_000 });
    for (const entry of page) apply(decisions, entry);
    const last = page.at(-1);
    if (last === undefined) return decisions;
    after = last.seq;
  }
}

function apply(decisions: Map<string, Rebuilt>, entry: AuditEntry): void {
  // What was shown is no move.
  if (!entry.type.startsWith("decision.") || entry.type === "decision.previewed") return;
  const data = JSON.parse(entry.data ?? "{}") as { from?: string; to: string };
  const known = decisions.get(entry.subject);
  if (entry.type === "decision.staged") {
    if (known !== undefined) throw new Error(`${entry.subject} was staged twice`);
    decisions.set(entry.subject, { states: [data.to], updatedAt: entry.at });
    return;
  }
  const from = known?.states.at(-1) ?? "nothing";
  if (known === undefined || from !== data.from || !isLegal(from, data.to)) {
    throw new Error(`${entry.subject} went from ${from} to ${data.to} at ${entry.seq}`);
  }
  known.states.push(data.to);
  known.updatedAt = entry.at;
}
