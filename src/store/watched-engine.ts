import {
  closeSync,
  constants,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  writeSync,
} from "node:fs";
import type { ChainHead } from "../model/audit-entry.ts";
import { SallyportError } from "../model/errors.ts";
import { EPOCH, SWITCHES } from "../model/switch.ts";
import { sha256Hex } from "../util/hash.ts";
import { type Change, type ChangeResult, type Engine, epochOf, startsEffect } from "./engine.ts";

/**
 * An engine that compares the store with its epoch file, which is not part of a backup. When the file remembers more than the
 * database holds, the store was replaced by an older copy. Reading, reviewing and stopping continue, but no effect starts
 * (store_rolled_back) until an operator runs `sallyport store restored`.
 */
export function watchedEngine(engine: Engine, file: EpochFile): Engine {
  /** The last entry of each tenant that this process has seen. */
  const seen = new Map<string, number>();
  let epoch = "";
  let entries = 0;
  /** The last entry that was written here. */
  let last: LastSeen | undefined;
  /** This process began a new epoch, and the file does not contain it yet. */
  let isBegunHere = false;
  let rolledBack: SallyportError | undefined;
  let looking: Promise<void> | undefined;
  let writing: Promise<void> | undefined;
  /** One batch after the other: a loss that one finds applies to all that are answered after it. */
  let written: Promise<unknown> = Promise.resolve();

  async function look(): Promise<void> {
    // Reads the heads after the file: commits in between make the store newer than the file, never older.
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
    // Other processes may have written the file since it was read.
    else file.write({ ...known, epoch, entries: Math.max(entries, file.read()?.entries ?? 0) });
  }

  async function isIn(known: string, heads: readonly { readonly tenant: string }[]) {
    for (const { tenant } of heads) {
      if ((await engine.get(tenant, SWITCHES, EPOCH))?.["state"] === known) return true;
    }
    return false;
  }

  /** The same number of entries does not mean the same entries: the last remembered one must still exist. */
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

  /** One write for all commits that were answered together, before any of their callers gets the result. */
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
      // An operator begins a new epoch and thereby confirms the restored copy.
      epoch = begun;
      isBegunHere = true;
      rolledBack = undefined;
    }
    if (writing === undefined) {
      writing = written.then(() => {
        writing = undefined;
        return rolledBack === undefined ? keep() : undefined;
      });
      written = writing.catch(() => {});
    }
    return writing;
  }

  /** Keeps what other processes on this machine wrote: the number never shrinks, and the epoch never goes back. */
  async function keep(): Promise<void> {
    try {
      const known = isBegunHere ? undefined : file.read();
      if (known?.isRolledBack === true) {
        // Another process noticed it.
        rolledBack = why(known);
      } else if (known !== undefined && known.epoch !== epoch) {
        // Another process began a new epoch: what was counted in the old one is no longer valid.
        looking = undefined;
      } else if (known !== undefined && !(await holdsStill(known.last))) {
        rolledBack = why(known);
        file.write({ ...known, isRolledBack: true });
      } else {
        // Other processes may have written the file meanwhile.
        const now = isBegunHere ? undefined : file.read();
        file.write({ epoch, entries: Math.max(entries, now?.entries ?? 0), ...lastKnown(now) });
        isBegunHere = false;
      }
    } catch (cause) {
      const hint =
        "It was committed, but the epoch file cannot be read or written. Check the disk that it is on.";
      throw new SallyportError("commit_unknown", { hint }, cause);
    }
  }

  /**
   * Whether the entry that the file remembers is still in its chain. Its number alone proves nothing: after a loss the number
   * is assigned again, and other processes may have written further entries without updating the file. This process's own
   * last entry needs no query: the engine compares it whenever it locks the chain.
   */
  async function holdsStill(known: LastSeen | undefined): Promise<boolean> {
    if (known === undefined || known.hash === last?.hash) return true;
    const tenant = [...seen.keys()].find((name) => nameOf(name) === known.tenant);
    const heads = tenant === undefined ? await engine.heads() : [await engine.head(tenant)];
    return await hasEntry(known, heads);
  }

  function lastKnown(known: Remembered | undefined): { readonly last?: LastSeen } {
    const other = known?.last;
    const isOlder = other?.tenant === last?.tenant && (other?.seq ?? 0) > (last?.seq ?? 0);
    const newest = isOlder ? other : (last ?? other);
    return newest === undefined ? {} : { last: newest };
  }

  /** The engine itself has found that entries are gone: records it in the file for processes that start later. */
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
      if (rolledBack !== undefined && startsEffect(change)) {
        // An operator may have confirmed the restored copy meanwhile, in another process.
        await look();
        if (rolledBack !== undefined) throw rolledBack;
      }
      try {
        const result = await engine.commit(tenant, change);
        noteLoss(tenant);
        if (result.committed) await remember(tenant, change, result);
        // The intent is written, but the tool has not been called yet.
        if (rolledBack !== undefined && startsEffect(change)) throw rolledBack;
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

type Committed = Extract<ChangeResult, { readonly committed: true }>;

/** Has a fixed length, so that the line in the file has one too. */
function nameOf(tenant: string): string {
  return sha256Hex(tenant).slice(0, 16);
}

/** What is known about a store outside of it: its epoch, and the least number of entries in its trails. */
export interface Remembered {
  readonly epoch: string;
  readonly entries: number;
  /** The store was replaced by an older copy. Stays set, however many entries are written to that copy. */
  readonly isRolledBack?: boolean;
  readonly last?: LastSeen;
}

/** An entry that was in the store; `tenant` is a digest of its name, so that its length is fixed. */
export interface LastSeen {
  readonly tenant: string;
  readonly seq: number;
  readonly hash: string;
}

/** Fixed, so that one write overwrites the whole file in place. */
const LENGTH = 512;

/**
 * A small file beside a store, or better on another disk, that is not part of a backup. It is written after every group of
 * commits without an fsync, which costs microseconds: it survives the death of the process, and after a loss of power it may
 * be slightly behind. It never claims more than was committed.
 */
export interface EpochFile {
  /** Undefined when there is none yet. Throws damaged_record. */
  read(): Remembered | undefined;
  write(what: Remembered): void;
  /** Makes what was written durable. */
  close(): void;
}

export function epochFile(file: string): EpochFile {
  let handle: number | undefined;
  return {
    read() {
      const text = textOf(handle ?? file).trim();
      return text === "" ? undefined : remembered(text, file);
    },
    write(what) {
      const isNew = handle === undefined;
      handle ??= openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
      const line = `${JSON.stringify(what).padEnd(LENGTH - 1)}\n`;
      writeSync(handle, line, 0);
      if (isNew) fsyncSync(handle);
    },
    close() {
      if (handle === undefined) return;
      fsyncSync(handle);
      closeSync(handle);
      handle = undefined;
    },
  };
}

function textOf(file: string | number): string {
  try {
    if (typeof file === "string") return readFileSync(file, "utf8");
    const line = Buffer.alloc(LENGTH);
    return line.toString("utf8", 0, readSync(file, line, 0, LENGTH, 0));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}

function remembered(text: string, file: string): Remembered {
  try {
    const { epoch, entries, isRolledBack, last } = JSON.parse(text) as Partial<Remembered>;
    if (typeof epoch === "string" && Number.isSafeInteger(entries)) {
      const known = { epoch, entries: Number(entries), ...(last === undefined ? {} : { last }) };
      return isRolledBack === undefined ? known : { ...known, isRolledBack: true };
    }
  } catch {
    // Falls through: the file is damaged.
  }
  const hint = `${file} is damaged. If the store was restored, run: sallyport store restored. It writes a new file.`;
  throw new SallyportError("damaged_record", { id: file, hint });
}
