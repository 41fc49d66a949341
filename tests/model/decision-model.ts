/** What a review tier or a guard makes of a decision. `throws` stands for everything that is broken. */
export type Opinion = "yes" | "no" | "throws";
type Tier = "tech" | "business";

export interface Modelled {
  readonly session: string;
  state: string;
  enteredAt: number;
  /** The first proof or reason, which stays. */
  end: string;
}

/** The seven states by themselves: written down from the documentation, not from the code's table. */
const TIERS = {
  tech: { from: "pending_tech", yes: "pending_ml", no: "rejected_tech" },
  business: { from: "pending_ml", yes: "approved", no: "rejected_ml" },
} as const;

export class DecisionModel {
  records: Modelled[] = [];

  stage(session: string, now: number): string {
    if (session === "") return "!illegal_transition";
    this.records.push({ session, state: "pending_tech", enteredAt: now, end: "" });
    return "pending_tech";
  }

  review(tier: Tier, which: number, verdict: Opinion, guard: Opinion, now: number): string {
    const record = this.records[which];
    if (record === undefined) return "!not_found";
    const { from, yes, no } = TIERS[tier];
    if (record.state !== from) return "!illegal_transition";
    // Only a yes needs the guard; whatever is broken means no.
    if (verdict === "yes" && guard !== "yes") return "!dependency_denied";
    return enter(record, verdict === "yes" ? yes : no, now);
  }

  close(which: number, as: "executed" | "failed", end: string, now: number): string {
    const record = this.records[which];
    if (record === undefined) return "!not_found";
    if (record.state === as) return as;
    if (record.state === "executed" || record.state === "failed") return "!already_final";
    if (record.state !== "approved") return "!illegal_transition";
    record.end = end;
    return enter(record, as, now);
  }

  stuckIn(state: string, forMs: number, now: number): number[] {
    return this.indexes((one) => one.state === state && now - one.enteredAt >= forMs);
  }

  indexes(keep: (record: Modelled) => boolean): number[] {
    return this.records.flatMap((record, index) => (keep(record) ? [index] : []));
  }

  copy(): DecisionModel {
    const other = new DecisionModel();
    other.records = this.records.map((record) => ({ ...record }));
    return other;
  }
}

function enter(record: Modelled, state: string, now: number): string {
  record.state = state;
  record.enteredAt = now;
  return state;
}
