import type { KeyObject } from "node:crypto";
import type { AuditEntry, ChainHead } from "../model/audit-entry.ts";
import type { Remembered } from "../store/epoch-file.ts";
import type { Store } from "../store/store.ts";
import { Verification } from "./verification.ts";
import type { AnchorSource } from "./verify-anchors.ts";
import { reasonOf, type VerifyReport } from "./verify-report.ts";

export interface VerifyOptions {
  /** Without anchors a verification cannot see that the end was cut off or that everything was rewritten. */
  readonly anchors?: AnchorSource;
  /** What an epoch file outside the store remembers of it: at least so many entries in all tenants together. */
  readonly remembered?: Pick<Remembered, "entries" | "isRolledBack">;
  /** Ed25519 public keys as PEM, known by another way than the anchors. */
  readonly publicKeys?: readonly (string | KeyObject)[];
  /** Look only at these tenants, and expect each of them to be there. */
  readonly tenants?: readonly string[];
  /** Heads from an earlier report that are trusted: only what is newer is checked. */
  readonly from?: readonly ChainHead[];
  /** Epoch milliseconds, to say how old the blind window is. */
  readonly now?: number;
  /** Shape: callback; called every 10,000 entries and waited for, so that other work can have its turn. */
  readonly onProgress?: (progress: { readonly entries: number }) => void | Promise<void>;
}

const PAGE = 1_000;

/**
 * Verifies a trail: numbers, links, hashes and times of each tenant, then all of it against the anchors.
 * Entries of several tenants may come in any mixture. Memory grows with tenants and anchors, not with entries. A bad trail
 * is a report, not an error; throws invalid_input only for a public key that is none.
 */
export async function verifyTrail(
  entries: AsyncIterable<AuditEntry> | Iterable<AuditEntry>,
  options: VerifyOptions = {},
): Promise<VerifyReport> {
  const run = await Verification.start(options);
  try {
    for await (const entry of entries) {
      const pause = run.take(entry);
      if (pause !== undefined) await pause;
    }
  } catch (error) {
    run.problems.add("unreadable", { tenant: "" }, reasonOf(error));
  }
  return run.finish();
}

/** The same for a store: reads every tenant it knows and every tenant that anchors know. */
export async function verifyStore(
  store: Pick<Store, "heads" | "tenant">,
  options: VerifyOptions & { readonly pageSize?: number } = {},
): Promise<VerifyReport> {
  // Anchors before heads: an anchor made in between would speak of entries after the head.
  const run = await Verification.start(options);
  const heads = new Map<string, ChainHead>();
  try {
    for (const head of await store.heads()) heads.set(head.tenant, head);
  } catch (error) {
    run.problems.add("unreadable", { tenant: "" }, reasonOf(error));
  }
  checkRemembered(options, heads, run);
  for (const tenant of options.tenants ?? new Set([...heads.keys(), ...run.expected])) {
    try {
      await readTenant(store, tenant, heads.get(tenant), run, options);
    } catch (error) {
      run.problems.add("unreadable", { tenant }, reasonOf(error));
    }
  }
  return run.finish();
}

/** Without anchors this is all that is known about the end; with them it also covers what came after the last one. */
function checkRemembered(
  { remembered }: VerifyOptions,
  heads: ReadonlyMap<string, ChainHead>,
  run: Verification,
): void {
  if (remembered === undefined) return;
  const found = [...heads.values()].reduce((sum, { seq }) => sum + seq, 0);
  if (found >= remembered.entries && remembered.isRolledBack !== true) return;
  const fact = `the epoch file remembers ${remembered.entries} entries, the store holds ${found}`;
  run.problems.add("cut_off", { tenant: "" }, fact);
}

async function readTenant(
  store: Pick<Store, "tenant">,
  tenant: string,
  head: ChainHead | undefined,
  run: Verification,
  { pageSize = PAGE, from = [] }: VerifyOptions & { readonly pageSize?: number },
): Promise<void> {
  const reader = store.tenant(tenant).audit;
  const trusted = from.find((one) => one.tenant === tenant && one.seq > 0);
  // The trusted entry is read again, and the store's own note of the end looked up: both must still be there.
  const wanted = new Map<number, string | undefined>();
  if (trusted !== undefined) wanted.set(trusted.seq, undefined);
  if (head !== undefined) wanted.set(head.seq, undefined);
  let after = trusted === undefined ? 0 : trusted.seq - 1;
  for (;;) {
    const entries = await reader.read({ after, limit: pageSize });
    for (const entry of entries) {
      if (wanted.has(entry.seq)) wanted.set(entry.seq, entry.hash);
      const pause = run.take(entry);
      if (pause !== undefined) await pause;
    }
    const last = entries.at(-1)?.seq ?? 0;
    // A reader that does not move on is at the end, or is broken, which the numbers have shown.
    if (!(last > after)) break;
    after = last;
  }
  if (trusted !== undefined && wanted.get(trusted.seq) === undefined) {
    run.problems.add("wrong_checkpoint", trusted, "the entry is gone");
  }
  if (head !== undefined && head.seq > 0 && wanted.get(head.seq) !== head.hash) {
    run.problems.add("head_mismatch", head);
  }
}
