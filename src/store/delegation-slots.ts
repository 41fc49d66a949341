import type { SessionId } from "../model/decision.ts";
import type { DelegationId } from "../model/delegation.ts";
import { sha256Hex } from "../util/hash.ts";
import { DELEGATION_SLOTS, DELEGATIONS } from "./delegation-rows.ts";
import { NOW, type Step } from "./engine.ts";
import type { TenantEngine } from "./tenant-engine.ts";

interface Child {
  readonly id: DelegationId;
  readonly parentSession: SessionId;
  /** How many places a parent has. */
  readonly atOnce: number;
}

/** Ways to get a place for the child, best first: a new one, one whose child has ended, one whose child may be late. */
export async function slotsFor(
  engine: TenantEngine,
  { id, parentSession, atOnce }: Child,
): Promise<readonly (readonly Step[])[]> {
  const where = { parent_session: parentSession };
  const slots = await engine.find(DELEGATION_SLOTS, { where, limit: atOnce });
  const set = { child_id: id, updated_at: NOW };
  if (slots.length < atOnce) {
    const slotId = sha256Hex(`${slots.length}\n${parentSession}`);
    const row = { parent_session: parentSession, ...set };
    return [[{ op: "insert", table: DELEGATION_SLOTS, id: slotId, row }]];
  }
  const ended: Step[][] = [];
  const late: Step[][] = [];
  for (const slot of slots) {
    const child = String(slot["child_id"]);
    const take: Step = {
      op: "update",
      table: DELEGATION_SLOTS,
      id: String(slot["id"]),
      where: { child_id: child },
      set,
    };
    const row = await engine.get(DELEGATIONS, child);
    if (row?.["state"] !== "active") ended.push([take]);
    else late.push([{ ...LATE, id: child }, take]);
  }
  return [...ended, ...late];
}

/** Time decides in the transaction, by the store's clock. */
const LATE = {
  op: "require",
  table: DELEGATIONS,
  where: { expires_at: { atMost: { nowPlusMs: -1 } } },
  absent: "refuses",
} as const;
