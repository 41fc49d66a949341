import type { ChainHead } from "../model/audit-entry.ts";
import { SallyportError } from "../model/errors.ts";
import { EPOCH, SWITCHES } from "../model/switch.ts";
import { sha256Hex } from "../util/hash.ts";
import type { Change, ChangeResult, Engine } from "./engine.ts";
import type { EpochFile, LastSeen, Remembered } from "./epoch.ts";
import { epochOf, isEffect } from "./evaluate.ts";

/**
 * The engine, watched by a file that a restored backup does not bring back. While the file remembers more than the database
 * holds, somebody put an older copy in place: reading, reviewing and stopping go on, and no effect begins (store_rolled_back)
 * until an operator says so with `sallyport store restored`.
 */
export function watchedEngine(engine: Engine, file: EpochFile): Engine {
  /** The last entry of each tenant that this process has seen. */
  const seen = new Map<string, number>();
  let epoch = "";
  let entries = 0;
  /** The last entry that was written here. */
  let last: LastSeen | undefined;
  /** Set until the file knows of the life that began here. */
  let isBegunHere = false;
  let rolledBack: SallyportError | undefined;
  let looking: Promise<void> | undefined;
  let writing: Promise<void> | undefined;
  /** One batch after the other: a loss that one finds counts for all that are answered after it. */
  let written: Promise<unknown> = Promise.resolve();
  /** The first entries of the commits that the next write is for. */
  let firsts: EntryNumber[] = [];

  async function look(): Promise<void> {
    // Heads after the file: what others commit in between is more than the file says, never less.
    const known = file.read();
    const heads = await engine.heads();
    seen.clear();
    for (const { tenant, seq } of heads) seen.set(tenant, seq);
    entries = heads.reduce((sum, { seq }) => sum + seq, 0);
    epoch = known?.epoch ?? "";
    const isSame = epoch === "" || heads.length === 0 || (await isIn(epoch, heads));
    const isBehind =
      known !== undefined &&
      (known.isRolledBack === true ||
        !isSame ||
        entries < known.entries ||
        !(await hasEntry(known.last, heads)));
    rolledBack = isBehind ? why(known) : undefined;
    if (isBehind) file.write({ ...known, isRolledBack: true });
    // Others may have written it since it was read.
    else file.write({ ...known, epoch, entries: Math.max(entries, file.read()?.entries ?? 0) });
  }

  async function isIn(life: string, heads: readonly { readonly tenant: string }[]) {
    for (const { tenant } of heads) {
      if ((await engine.get(tenant, SWITCHES, EPOCH))?.["state"] === life) return true;
    }
    return false;
  }

  /** As many entries are not the same entries: the last one that was remembered must still be there. */
  async function hasEntry(known: LastSeen | undefined, heads: readonly ChainHead[]) {
    if (known === undefined) return true;
    const head = heads.find(({ tenant }) => nameOf(tenant) === known.tenant);
    if (head === undefined || head.seq < known.seq) return false;
    const [entry] = await engine.entries(head.tenant, { after: known.seq - 1, limit: 1 });
    return entry?.hash === known.hash;
  }

  function why(known: Remembered): SallyportError {
    const hint =
      "An older copy was put in place. Nothing is executed until you run: sallyport store restored.";
    return new SallyportError("store_rolled_back", {
      remembered: known.entries,
      found: entries,
      hint,
    });
  }

  /** One write for all commits that were answered together, and before any of them is told to its caller. */
  function remember(tenant: string, change: Change, result: Committed): Promise<void> {
    const { seq, hash } = result;
    const before = seen.get(tenant) ?? 0;
    if (seq > before) {
      seen.set(tenant, seq);
      entries += seq - before;
      if (hash !== undefined) last = { tenant: nameOf(tenant), seq, hash };
    }
    const begun = epochOf(change);
    if (begun !== undefined) {
      // Another life begins, by somebody who knows that it was restored.
      epoch = begun;
      isBegunHere = true;
      rolledBack = undefined;
    }
    firsts.push({ tenant, seq: seq - entriesOf(change, result) + 1 });
    if (writing === undefined) {
      writing = written.then(() => {
        const batch = firsts;
        firsts = [];
        writing = undefined;
        return rolledBack === undefined ? keep(batch) : undefined;
      });
      written = writing.catch(() => {});
    }
    return writing;
  }

  /** What others on this machine wrote into the file stays: it never remembers less, and never an older life. */
  async function keep(batch: readonly EntryNumber[]): Promise<void> {
    try {
      const known = isBegunHere ? undefined : file.read();
      if (known?.isRolledBack === true) {
        // Another process noticed it.
        rolledBack = why(known);
      } else if (known !== undefined && known.epoch !== epoch) {
        // Another process began another life: what was counted in the last one does not hold any more.
        looking = undefined;
      } else if (known !== undefined && !(await holdsStill(known.last, batch))) {
        rolledBack = why(known);
        file.write({ ...known, isRolledBack: true });
      } else {
        // Others may have written it while this one looked.
        const now = isBegunHere ? undefined : file.read();
        file.write({ epoch, entries: Math.max(entries, now?.entries ?? 0), ...lastKnown(now) });
        isBegunHere = false;
      }
    } catch (cause) {
      const hint =
        "It was committed, but the epoch file cannot be compared or written; look at its disk.";
      throw new SallyportError("commit_unknown", { hint }, cause);
    }
  }

  /**
   * An entry that another process wrote before this commit has a lower number than it. If the file remembers one with the
   * same number or a higher one, it was written in the meantime, or it was lost and its number was given away again.
   */
  async function holdsStill(known: LastSeen | undefined, batch: readonly EntryNumber[]) {
    const own = batch.find(({ tenant, seq }) =>
      known === undefined ? false : nameOf(tenant) === known.tenant && seq <= known.seq,
    );
    if (known === undefined || own === undefined) return true;
    const [entry] = await engine.entries(own.tenant, { after: known.seq - 1, limit: 1 });
    return entry?.hash === known.hash;
  }

  function lastKnown(known: Remembered | undefined): { readonly last?: LastSeen } {
    const other = known?.last;
    const isOlder = other?.tenant === last?.tenant && (other?.seq ?? 0) > (last?.seq ?? 0);
    const newest = isOlder ? other : (last ?? other);
    return newest === undefined ? {} : { last: newest };
  }

  /** The engine itself has found that entries are gone: the file keeps that in mind for those who start after this. */
  function noteLoss(tenant: string): void {
    const lost = engine.lostTail?.(tenant);
    if (lost === undefined || rolledBack !== undefined) return;
    rolledBack = lost;
    file.write({ epoch, entries, ...lastKnown(undefined), ...file.read(), isRolledBack: true });
  }

  return {
    ...engine,
    async commit(tenant, change) {
      looking ??= look().catch((error: unknown) => {
        looking = undefined;
        throw error;
      });
      await looking;
      if (rolledBack !== undefined && isEffect(change)) {
        // Perhaps somebody has said so in the meantime, in another process.
        await look();
        if (rolledBack !== undefined) throw rolledBack;
      }
      try {
        const result = await engine.commit(tenant, change);
        noteLoss(tenant);
        if (result.committed) await remember(tenant, change, result);
        // Its intent is written, and nobody has acted on it yet.
        if (rolledBack !== undefined && isEffect(change)) throw rolledBack;
        return result;
      } catch (error) {
        noteLoss(tenant);
        throw error;
      }
    },
    async close() {
      await engine.close();
      file.close();
    },
  };
}

interface EntryNumber {
  readonly tenant: string;
  readonly seq: number;
}

/** How many entries a change has written. */
function entriesOf({ events }: Change, { rows }: Committed): number {
  return events.reduce((sum, { each }) => sum + (each === true ? rows.length : 1), 0);
}

type Committed = Extract<ChangeResult, { readonly committed: true }>;

/** Always as long, so that the line in the file is. */
function nameOf(tenant: string): string {
  return sha256Hex(tenant).slice(0, 16);
}
