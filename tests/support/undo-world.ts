import type { UndoAnswer, UndoDispatch, UndoRequest } from "../../src/gate/undo.ts";
import type { Operation, RecordedUndo } from "../../src/model/operation.ts";
import type { Intent, OperationStore, Outcome } from "../../src/store/operations.ts";
import { canonicalJson } from "../../src/util/canonical-json.ts";
import type { JsonValue } from "../../src/util/json.ts";

export const LEASE_MS = 30_000;
export const BY = "person:ada";

/** Where a process can die while it takes something back. */
export const CRASH_POINTS = [
  "before_start",
  "after_start",
  "after_effect",
  "after_settle",
] as const;
export type CrashPoint = (typeof CRASH_POINTS)[number];

/** What the gate or the target makes of the compensation of one operation. */
export type Fate = "done" | "failed" | "denied" | "pending" | "unknown" | "throws";

interface Thing {
  value: JsonValue;
  version: number;
}

/** For tests: production, which remembers every effect, and a dispatcher with all the duties of the real one but the gate. */
export class UndoWorld {
  readonly things = new Map<string, Thing>();
  /** The ids of what was undone, in order: once per effect. */
  readonly undone: string[] = [];
  readonly requests: UndoRequest[] = [];
  readonly fates = new Map<string, Fate>();
  /** Undo tools that exist. Everything else cannot be called. */
  readonly tools = new Set(["thing.restore"]);
  /** How a thing tells that it was changed: a row's number grows, a file's hash can come back. */
  versions: "counter" | "content" = "counter";
  /** Throws to die at this point. */
  onPoint: (point: CrashPoint, id: string) => void | Promise<void> = () => {};

  readonly dispatch: UndoDispatch = async (request) => {
    this.requests.push(request);
    const { operation, undo, undoOperationId } = request;
    const fate = this.fates.get(operation.id) ?? "done";
    if (fate === "pending") {
      return { answer: "pending", text: "not executed", decisionId: `dec.${undoOperationId}` };
    }
    if (fate === "denied") return { answer: "denied", text: "not on a Sunday" };
    if (fate === "throws") throw new Error("the dispatcher broke");
    const key = keyOf(undo.input);
    if (this.versionOf(key) !== operation.stateVersion) {
      return { answer: "conflicted", text: `${key} has another version now` };
    }
    await this.onPoint("before_start", operation.id);
    const begun = await this.#store.start(undoIntent(request));
    if (!begun.started) {
      if (begun.operation !== undefined) return { answer: "used_up", operation: begun.operation };
      return { answer: "failed", text: begun.reason };
    }
    await this.onPoint("after_start", operation.id);
    return this.#run(request, begun.operation, fate);
  };

  readonly #store: OperationStore;

  constructor(store: OperationStore) {
    this.#store = store;
  }

  /** Does something: sets a thing to a value, with an undo record by default. */
  async act(
    id: string,
    over: Partial<Intent> & { readonly key?: string; readonly undo?: RecordedUndo | "none" } = {},
  ): Promise<Operation> {
    const { key = id, undo, ...intent } = over;
    const input = { key, value: `by ${id}` };
    await this.#store.start(intentOf(id, { input: canonicalJson(input), ...intent }));
    const before = this.things.get(key)?.value ?? null;
    this.set(key, input.value);
    const way = undo ?? restoring(key, before);
    return this.settle(id, {
      ...success(this.versionOf(key)),
      undo: way === "none" ? undefined : way,
    });
  }

  async settle(id: string, outcome: Outcome, fence = 1): Promise<Operation> {
    const { operation } = await this.#store.settle(id, { fence, outcome, actor: "executor" });
    return operation;
  }

  set(key: string, value: JsonValue): void {
    this.things.set(key, { value, version: (this.things.get(key)?.version ?? 0) + 1 });
  }

  versionOf(key: string): string {
    const thing = this.things.get(key);
    return this.versions === "content"
      ? canonicalJson(thing?.value ?? null)
      : String(thing?.version);
  }

  /** How often the effect of each was undone. */
  get counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const id of this.undone) counts[id] = (counts[id] ?? 0) + 1;
    return counts;
  }

  /** What the executor's recovery does with abandoned compensations; a target without a probe cannot tell. */
  async recover(target: "probed" | "without probe"): Promise<void> {
    for (const { id, undoOf } of await this.#store.listAbandoned(100)) {
      const taken = await this.#store.takeOver(id, LEASE_MS, "recovery");
      if (taken === undefined) continue;
      const actor = "recovery";
      const { fence } = taken;
      if (target === "without probe") {
        const outcome = { status: "unknown", error: "nobody can tell" } as const;
        await this.#store.settle(id, { fence, outcome, actor });
      } else if (this.undone.includes(undoOf)) {
        await this.#store.settle(id, { fence, outcome: success("2"), tookBack: undoOf, actor });
      } else {
        const outcome = { status: "failed", error: "it never arrived", output: "" } as const;
        await this.#store.settle(id, { fence, outcome, actor });
      }
    }
  }

  async #run(request: UndoRequest, own: Operation, fate: Fate): Promise<UndoAnswer> {
    const { operation, undo } = request;
    const end = (outcome: Outcome) =>
      this.#store.settle(own.id, { fence: own.fence, outcome, actor: request.by });
    if (fate === "unknown") {
      await end({ status: "unknown", error: "no answer" });
      return { answer: "unknown", text: "no answer" };
    }
    if (fate === "failed" || !this.tools.has(undo.tool)) {
      await end({ status: "failed", error: "the target said no", output: "" });
      return { answer: "failed", text: "the target said no" };
    }
    this.undone.push(operation.id);
    this.set(keyOf(undo.input), (undo.input as { value: JsonValue }).value);
    await this.onPoint("after_effect", operation.id);
    const outcome = success(this.versionOf(keyOf(undo.input)));
    const settlement = { fence: own.fence, outcome, tookBack: operation.id, actor: request.by };
    await this.#store.settle(own.id, settlement);
    await this.onPoint("after_settle", operation.id);
    return { answer: "done", text: "restored" };
  }
}

export function restoring(key: string, value: JsonValue): RecordedUndo {
  const description = `puts ${key} back`;
  const input = { key, value };
  return { tool: "thing.restore", input, description, irreversible: false, manualGuide: "" };
}

export function intentOf(id: string, over: Partial<Intent> = {}): Intent {
  return {
    id,
    sessionId: "session-1",
    messageId: "m-1",
    callId: `call-${id}`,
    turn: 1,
    tool: "thing.set",
    effect: "external",
    workingDirectory: "",
    definitionHash: "d".repeat(64),
    input: "{}",
    step: 0,
    undoOf: "",
    approval: undefined,
    leaseMs: LEASE_MS,
    actor: "executor",
    ...over,
  };
}

export function success(stateVersion: string): Outcome & { status: "success" } {
  const nothing = { output: "ok", truncated: false, storedPath: "", undo: undefined };
  return { status: "success", stateVersion, ...nothing };
}

function undoIntent({ operation, undo, undoOperationId, by }: UndoRequest): Intent {
  const { sessionId, messageId, id: undoOf } = operation;
  const input = canonicalJson(undo.input);
  const over = { sessionId, messageId, undoOf, tool: undo.tool, input, actor: by };
  return intentOf(undoOperationId, over);
}

function keyOf(input: JsonValue): string {
  return String((input as { key: JsonValue }).key);
}
