import {
  type AuditEntry,
  type ChainHead,
  dataHash,
  entryHash,
  leafHash,
  linkHash,
} from "../model/audit-entry.ts";
import { SallyportError } from "../model/errors.ts";
import type { AuditReader } from "../store/store.ts";
import { fromIso, toIso } from "../util/clock.ts";
import { type Anchor, publicKeys, signatureProblem } from "./anchor.ts";
import { exportLine, parseExportLine } from "./trail.ts";

/** One place of a chain without what its entry says. */
interface ProofLink {
  readonly at: string;
  readonly leaf: string;
}

/**
 * Shows that an entry is part of a chain with this head, without the entries after it: of those it has only the leaves, which
 * reveal nothing. It is plain JSON and is checked without the database.
 */
export interface InclusionProof {
  readonly v: 1;
  readonly entry: AuditEntry;
  /** From the entry after it to the head. */
  readonly links: readonly ProofLink[];
  readonly head: ChainHead;
  /** A signed anchor of that head, if there is one. Without it the head itself must be known from elsewhere. */
  readonly anchor?: Anchor;
}

const PAGE = 500;
const HASH = /^[0-9a-f]{64}$/;

/**
 * The proof for one entry, up to the first anchor that covers it, otherwise up to the end of the chain. Throws not_found,
 * invalid_input for an entry of the first format, whose hash cannot be checked without the entries after it.
 */
export async function proveEntry(
  reader: AuditReader,
  seq: number,
  anchors: readonly Anchor[] = [],
): Promise<InclusionProof> {
  const { tenant } = reader;
  const [entry] = await reader.read({ after: seq - 1, limit: 1 });
  if (entry?.seq !== seq) {
    const hint = "There is no entry with this number in the trail.";
    throw new SallyportError("not_found", { id: String(seq), hint });
  }
  if (entry.v !== 2) {
    const hint =
      "Entries of the first format have no proofs of their own: export the trail instead.";
    throw new SallyportError("invalid_input", { what: "entry", seq, hint });
  }
  const [anchor] = anchors
    .filter((one) => one.tenant === tenant && one.seq >= seq)
    .toSorted((a, b) => a.seq - b.seq);
  const end = anchor?.seq ?? (await reader.head()).seq;
  const links: ProofLink[] = [];
  let last = entry;
  while (last.seq < end) {
    const page = await reader.read({ after: last.seq, limit: Math.min(PAGE, end - last.seq) });
    if (page.length === 0) break;
    links.push(...page.map((one) => ({ at: one.at, leaf: leafHash(one) })));
    last = page.at(-1) ?? last;
  }
  const head = { tenant, seq: last.seq, hash: last.hash, at: last.at };
  return anchor === undefined ? { v: 1, entry, links, head } : { v: 1, entry, links, head, anchor };
}

/** What a proof shows: that the entry is part of the chain, and who vouches for its head. */
export interface CheckedProof {
  readonly ok: boolean;
  /** True when the head has an anchor that one of the given keys signed. */
  readonly isAnchored: boolean;
  /** In a sentence. */
  readonly message: string;
}

/** Checks a proof by itself. `keys` are public keys from another channel than the proof. Throws invalid_input for an invalid key. */
export function checkProof(proof: InclusionProof, keys: readonly string[] = []): CheckedProof {
  const known = publicKeys(keys);
  try {
    const wrong = wrongIn(proof);
    if (wrong !== undefined) return { ok: false, isAnchored: false, message: wrong };
    const { entry, head, anchor } = proof;
    const place = `Entry ${entry.seq} of "${entry.tenant}" is part of the chain that ends at ${head.seq} with ${head.hash}.`;
    if (anchor === undefined) {
      return {
        ok: true,
        isAnchored: false,
        message: `${place} No anchor: compare this head with one that you trust.`,
      };
    }
    const isOf =
      anchor.tenant === head.tenant && anchor.seq === head.seq && anchor.hash === head.hash;
    if (!isOf)
      return { ok: false, isAnchored: false, message: "The anchor is about another head." };
    const signed = signatureProblem(anchor, known);
    if (signed === "bad_signature") {
      return { ok: false, isAnchored: false, message: "The signature of the anchor is wrong." };
    }
    if (signed === "unknown_key") {
      return {
        ok: true,
        isAnchored: false,
        message: `${place} Its anchor was signed with a key that was not given.`,
      };
    }
    return {
      ok: true,
      isAnchored: true,
      message: `${place} That head was anchored at ${anchor.at}.`,
    };
  } catch {
    return { ok: false, isAnchored: false, message: "This is not a proof." };
  }
}

/** Throws for what is not a proof. */
function wrongIn({ entry: given, links, head }: InclusionProof): string | undefined {
  // Only texts that an entry can have: others could give the same hash in another way.
  const entry = parseExportLine(exportLine(given));
  const { data, salt, seq, tenant } = entry;
  if (entry.v !== 2 || entryHash(entry) !== entry.hash) return "The entry does not give its hash.";
  if ((data === null) !== (salt === null))
    return "Data and salt are erased together or not at all.";
  if (data !== null && salt !== null && dataHash(salt, data) !== entry.dataHash) {
    return "The data does not give its hash.";
  }
  let hash = entry.hash;
  for (const [index, { at, leaf }] of links.entries()) {
    if (!HASH.test(leaf) || toIso(fromIso(at)) !== at) return "A link of it is not one.";
    hash = linkHash({ at, prev: hash, seq: seq + index + 1 }, leaf);
  }
  const isHead = head.tenant === tenant && head.seq === seq + links.length && head.hash === hash;
  return isHead ? undefined : "The entry does not lead to this head.";
}
