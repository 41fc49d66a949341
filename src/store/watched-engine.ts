import { SallyportError } from "../model/errors.ts";
import type { Change, Engine } from "./engine.ts";
import type { EpochFile, Remembered } from "./epoch-file.ts";
import { OPERATIONS } from "./operation-rows.ts";
import { EPOCH, SWITCHES } from "./switch-rows.ts";

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
  let rolledBack: SallyportError | undefined;
  let looking: Promise<void> | undefined;
  let writing: Promise<void> | undefined;

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
      known !== undefined && (known.isRolledBack === true || !isSame || entries < known.entries);
    rolledBack = isBehind ? why(known) : undefined;
    file.write(isBehind ? { ...known, isRolledBack: true } : { epoch, entries });
  }

  async function isIn(life: string, heads: readonly { readonly tenant: string }[]) {
    for (const { tenant } of heads) {
      if ((await engine.get(tenant, SWITCHES, EPOCH))?.["state"] === life) return true;
    }
    return false;
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
  function remember(tenant: string, change: Change, seq: number): Promise<void> {
    const last = seen.get(tenant) ?? 0;
    if (seq > last) {
      seen.set(tenant, seq);
      entries += seq - last;
    }
    const begun = epochOf(change);
    if (begun !== undefined) {
      // Another life begins, by somebody who knows that it was restored.
      epoch = begun;
      rolledBack = undefined;
    }
    writing ??= Promise.resolve().then(() => {
      writing = undefined;
      if (rolledBack === undefined) keep();
    });
    return writing;
  }

  function keep(): void {
    try {
      file.write({ epoch, entries });
    } catch (cause) {
      const hint = "It was committed, but the epoch file cannot be written; look at its disk.";
      throw new SallyportError("commit_unknown", { hint }, cause);
    }
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
      const result = await engine.commit(tenant, change);
      if (result.committed) await remember(tenant, change, result.seq);
      return result;
    },
    async close() {
      await engine.close();
      file.close();
    },
  };
}

/** The beginning of an operation, or of another attempt at one. */
function isEffect({ steps }: Change): boolean {
  return steps.some((step) => {
    if (!("table" in step) || step.table.name !== OPERATIONS.name) return false;
    return step.op === "insert" || (step.op === "update" && step.set["status"] === "started");
  });
}

function epochOf({ steps }: Change): string | undefined {
  for (const step of steps) {
    if (step.op !== "insert" && step.op !== "update") continue;
    if (step.table.name !== SWITCHES.name || step.id !== EPOCH) continue;
    const state = (step.op === "insert" ? step.row : step.set)["state"];
    if (typeof state === "string") return state;
  }
  return undefined;
}
