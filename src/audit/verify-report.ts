import type { ChainHead } from "../model/audit-entry.ts";
import type { Instant } from "../model/instant.ts";

/** What a verification found. `ok` is true when there is not one problem; read it together with `blindWindow`. */
export interface VerifyReport {
  readonly ok: boolean;
  /** How many entries were checked. */
  readonly entries: number;
  /** How many anchors with a valid signature were compared. */
  readonly anchors: number;
  /** When the newest of them was made. */
  readonly lastAnchorAt?: Instant;
  readonly tenants: readonly TenantReport[];
  /** The first hundred; `problemCount` is all of them. */
  readonly problems: readonly VerifyProblem[];
  readonly problemCount: number;
  /** Entries that no anchor covers yet. Somebody who can write to the database could still change these unnoticed. */
  readonly blindWindow: BlindWindow;
}

export interface TenantReport {
  readonly tenant: string;
  readonly entries: number;
  /** The end of the chain; give it as `from` to check only what is newer next time. */
  readonly head: ChainHead;
  /** Entries whose data was erased; their place in the chain still holds. */
  readonly erased: number;
  /** The number of the last entry that an anchor covers, 0 for none. */
  readonly anchoredSeq: number;
  readonly unanchored: number;
}

export interface BlindWindow {
  readonly entries: number;
  /** When the oldest of them was written. */
  readonly since?: Instant;
  /** How long ago that was, when the caller said what time it is. */
  readonly sinceMs?: number;
}

export interface VerifyProblem {
  readonly code: ProblemCode;
  /** Empty when the problem belongs to no tenant. */
  readonly tenant: string;
  readonly seq?: number;
  /** What it means and what to do. */
  readonly message: string;
}

const TAMPERED = "Keep the file as evidence and compare it with a backup.";

/** Each problem with what it means and what to do about it. `docs/reference` can list the same rows. */
export const PROBLEMS = {
  unreadable:
    "The input could not be read to its end, so the rest was not checked. Export again and repeat.",
  missing_start: `The trail does not begin with its first entry: older entries were cut off. ${TAMPERED}`,
  gap: `Entries before this one are missing: somebody deleted them. ${TAMPERED}`,
  out_of_order: `This number was there before, or comes too late: an entry was inserted, doubled or moved. ${TAMPERED}`,
  broken_link: `This entry does not follow the one before it: one of the two was replaced. ${TAMPERED}`,
  wrong_hash: `The entry was changed after it was written: its fields do not give its hash. ${TAMPERED}`,
  wrong_data: `The data was changed after it was written: it does not give its hash. ${TAMPERED}`,
  half_erased: `Data and salt are erased together or not at all; here one of them is left. ${TAMPERED}`,
  time_backwards: `The entry claims to be older than the one before it. ${TAMPERED}`,
  wrong_checkpoint: `The trail differs from the head that was given as trusted: it was rewritten since. ${TAMPERED}`,
  tenant_missing:
    "The tenant was asked for and has no entries here. Check the name, or look for a backup.",
  head_mismatch: `The store's own note of the end of this trail does not agree with its entries. ${TAMPERED}`,
  anchored_tenant_missing:
    "Anchors prove that this tenant had a trail, and there is none: it was deleted. If only some tenants were meant to be " +
    "verified, name them; otherwise look for a backup.",
  cut_off:
    "Anchors or the epoch file prove that the trail was longer: its last entries were deleted, or an old copy was restored. Unless the anchors " +
    `are newer than the export, which should then be made again: ${TAMPERED.toLowerCase()}`,
  anchor_mismatch: `The trail was rewritten: an anchor proves that this entry had another hash. ${TAMPERED}`,
  anchor_key_unknown:
    "The anchor was signed with a key that was not given, so it proves nothing. Give the public key, if it is one of yours.",
  anchor_signature: `The anchor was forged or changed: its signature is wrong, so it was not used. ${TAMPERED}`,
  anchor_hole: `Anchors before this one are missing: lines were taken out of the anchor file. ${TAMPERED}`,
  anchors_unreadable: "The anchors could not be read to their end. Check the file and repeat.",
} as const satisfies Record<string, string>;

export type ProblemCode = keyof typeof PROBLEMS;

const MAX_PROBLEMS = 100;

/** Keeps the first hundred and counts the rest, so that a ruined trail gives a readable report. */
export class ProblemList {
  readonly kept: VerifyProblem[] = [];
  count = 0;

  add(code: ProblemCode, at: { readonly tenant: string; readonly seq?: number }, fact = ""): void {
    this.count += 1;
    if (this.count > MAX_PROBLEMS) return;
    const message = fact === "" ? PROBLEMS[code] : `${PROBLEMS[code]} (${fact})`;
    const seq = at.seq === undefined ? {} : { seq: at.seq };
    this.kept.push({ code, tenant: at.tenant, ...seq, message });
  }
}

export function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 300);
}
