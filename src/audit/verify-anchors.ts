import { GENESIS } from "../model/audit-entry.ts";
import { type Anchor, anchorHash, signatureProblem } from "./anchor.ts";
import type { PublicKeys } from "./signing-key.ts";
import { type ProblemList, reasonOf } from "./verify-report.ts";

/** Anchors in the order of writing, as a sink's `read` or `readAnchors` gives them. Shape: pulled. */
export type AnchorSource = AsyncIterable<Anchor> | Iterable<Anchor>;

/** What a valid anchor says: at this number the trail had this hash. */
export interface AnchoredPoint {
  readonly seq: number;
  readonly hash: string;
}

export interface CheckedAnchors {
  readonly count: number;
  /** When the newest was made; empty without any. */
  readonly lastAt: string;
  /** Ascending by number. */
  readonly points: ReadonlyMap<string, readonly AnchoredPoint[]>;
}

/**
 * Checks the list itself: each anchor signed with a known key, each following a line that stands before it, each writer's
 * count without a hole. What is not signed properly is reported and then not believed. Takes about 300 bytes of memory
 * for each anchor, which is for every 64th entry of a busy trail.
 */
export async function checkAnchors(
  anchors: AnchorSource,
  keys: PublicKeys,
  problems: ProblemList,
): Promise<CheckedAnchors> {
  const lines = new Set([GENESIS]);
  const counts = new Map<string, number>();
  const points = new Map<string, AnchoredPoint[]>();
  let count = 0;
  let lastAt = "";
  try {
    for await (const anchor of anchors) {
      const line = anchorHash(anchor);
      // An anchor that was sent again after a failure stands there twice and counts once.
      if (lines.has(line)) continue;
      const isLinked = lines.has(anchor.prev);
      lines.add(line);
      const { tenant, seq, hash, writer, n } = anchor;
      const wrong = signatureProblem(anchor, keys);
      if (wrong === "bad_signature") {
        problems.add("anchor_signature", anchor);
        continue;
      }
      if (!isLinked || n !== (counts.get(writer) ?? 0) + 1) {
        problems.add("anchor_hole", anchor, `anchor ${n} of writer ${writer}`);
      }
      counts.set(writer, n);
      if (wrong === "unknown_key") {
        problems.add("anchor_key_unknown", anchor, anchor.keyId);
        continue;
      }
      count += 1;
      if (anchor.at > lastAt) lastAt = anchor.at;
      const known = points.get(tenant);
      if (known === undefined) points.set(tenant, [{ seq, hash }]);
      else known.push({ seq, hash });
    }
  } catch (error) {
    problems.add("anchors_unreadable", { tenant: "" }, reasonOf(error));
  }
  for (const list of points.values()) list.sort((a, b) => a.seq - b.seq);
  return { count, lastAt, points };
}
