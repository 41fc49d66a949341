import {
  closeSync,
  constants,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  writeSync,
} from "node:fs";
import { SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import { EPOCH, SWITCHES } from "../model/switch.ts";
import { checkReason } from "./decision-rows.ts";
import type { By } from "./decisions.ts";
import { NOW, type Step } from "./engine.ts";
import type { Hold } from "./operations.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/**
 * Which life of the store this is. What was approved in another one is void: after a restore nobody can tell from the store
 * whether it was carried out since the backup.
 */
export interface EpochStore {
  /** Empty in the first life. */
  current(): Promise<string>;
  /** Begins another one. From this transaction on nothing that was approved before starts, in no process. */
  begin(epoch: string, reason: string, by: By): Promise<void>;
  /** Looks in the transaction that begins an effect. */
  holdOf(epoch: string): Hold;
}

export function engineEpoch(engine: TenantEngine): EpochStore {
  const current = async () => String((await engine.get(SWITCHES, EPOCH))?.["state"] ?? "");
  return {
    current,
    async begin(epoch, reason, by) {
      checkName("epoch", epoch);
      checkName("actor", by.actor);
      checkReason(reason);
      const set = SWITCHES.row({ state: epoch, reason, updatedAt: NOW });
      for (;;) {
        const before = await current();
        const data = { epoch, before, reason: reason.toWellFormed() };
        const events = [
          { type: "store.restored", subject: EPOCH, session: "", actor: by.actor, data },
        ];
        const write = (step: Step) => engine.commit({ steps: [step], events });
        const where = { state: before };
        const changed = await write({ op: "update", table: SWITCHES, id: EPOCH, where, set });
        if (changed.committed) return;
        // Somebody else began one in between: then this one follows it.
        if (changed.current !== undefined) continue;
        if ((await write({ op: "insert", table: SWITCHES, id: EPOCH, row: set })).committed) return;
      }
    },
    holdOf: (epoch) => ({
      refusal: "restored",
      step: {
        op: "require",
        table: SWITCHES,
        id: EPOCH,
        where: { state: epoch },
        absent: epoch === "" ? "holds" : "refuses",
      },
    }),
  };
}

/** What is known about a store outside of it: which life it is in, and how many entries its trails had at least. */
export interface Remembered {
  readonly epoch: string;
  readonly entries: number;
  /** An older copy was found in place. What is written to it since does not make it the newer one, however much it is. */
  readonly isRolledBack?: boolean;
  readonly last?: LastSeen;
}

/** An entry that was in the store; `tenant` is a digest of its name, so that it is always as long. */
export interface LastSeen {
  readonly tenant: string;
  readonly seq: number;
  readonly hash: string;
}

/** Always as long, so that it is overwritten in place by one write. */
const LENGTH = 512;

/**
 * A small file beside a store, or better on another disk, that a restored backup does not bring back. It is written after
 * every group of commits without being synced, which costs microseconds: it survives the death of the process, and after a
 * loss of power it may remember a little less than there was. What it remembers never goes beyond what was committed.
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
    // Whatever it is, it is not what was written here.
  }
  const hint = `${file} cannot be read. If the store was restored run: sallyport store restored. It writes the file anew.`;
  throw new SallyportError("damaged_record", { id: file, hint });
}
