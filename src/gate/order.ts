// An order to execute one call, its result, how its tool is called (with which arguments, under which lease), and the versions of
// its targets: read right before and right after the call, and again when an operation is to be undone.

import type { SessionId } from "../model/decision.ts";
import type { Interaction } from "../model/interaction.ts";
import { parseJson } from "../model/names.ts";
import type { AlsoChanged, Operation, OperationId } from "../model/operation.ts";
import type { DecisionMove } from "../store/decisions.ts";
import type { Along } from "../store/engine.ts";
import type { Approval, BroughtBack, Hold, Outcome, StartRefusal } from "../store/operations.ts";
import {
  type JudgePlace,
  metadataOf,
  type Progress,
  type Tool,
  type ToolCall,
  type ToolResult,
} from "../tools/tool.ts";
import { inCanonicalOrder } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import type { JsonValue } from "../util/json.ts";
import { inTime, renewEvery, type Stop, type Watch } from "../util/timers.ts";
import type { ExecutionContext, GateContext } from "./context.ts";
import { whileLooking } from "./show.ts";

/** One call that the gate allowed or a person approved, ready to be executed. */
export interface Order {
  readonly operationId: OperationId;
  readonly tool: Tool;
  /** The tool's definition when it was allowed. */
  readonly definitionHash: string;
  /** Parsed, and the very value whose canonical form was shown and hashed. */
  readonly input: JsonValue;
  readonly sessionId: SessionId;
  readonly messageId: string;
  readonly callId: string;
  readonly turn: number;
  readonly step: number;
  readonly workingDirectory: string;
  /** The resolved paths of what the call touches; see `ToolContext.places`. */
  readonly places: readonly string[];
  readonly judgePlace: JudgePlace;
  /** The decision that it consumes, and the hash that was approved. */
  readonly approval?: Approval;
  /** Versions of the target under which it may run; compared after the intent, right before the tool is called. */
  readonly expectedVersions?: readonly string[];
  /**
   * Reads the versions of other targets right before the call and returns a function to call right after it, which says
   * which earlier operations have had their targets changed. A failure of it does not fail the call.
   */
  readonly watch?: () => Promise<WatchedCall>;
  /** The operation that it undoes. */
  readonly undoOf?: OperationId;
  /** Called after an undo: which other targets are now as their operations left them. A failure of it does not fail the call. */
  readonly broughtBack?: () => Promise<readonly BroughtBack[]>;
  /** The move of the decision that this outcome causes; written in the same transaction. */
  readonly closes?: (outcome: Outcome) => DecisionMove | undefined;
  /**
   * Who asked for it, from the agent upwards: none of them may answer the question about a lost outcome. An undo starts with
   * the person who asked for the rollback, who may.
   */
  readonly chain?: readonly string[];
  /** What else must hold in the transaction that writes the intent. */
  readonly holds?: readonly Hold[];
  /** The answer of a person that allows it, to be written together with the intent. */
  readonly yes?: readonly Along[];
  /** The standing rule that allowed it without a person, for the log. */
  readonly allowedBy?: string;
  readonly actor: string;
  readonly signal?: AbortSignal;
  readonly progress?: (report: Progress) => void;
}

/** Called right after the call: which targets of earlier operations are not as they were right before it. */
export type WatchedCall = () => Promise<readonly AlsoChanged[]>;

/** The result of an order; with the closed question if its answer was written together with the intent. Only failures of the store are thrown. */
export type Executed = ExecutedAs & { readonly interaction?: Interaction };

type ExecutedAs =
  | { readonly status: "done"; readonly operation: Operation; readonly result: ToolResult }
  | { readonly status: "failed"; readonly operation: Operation; readonly result: ToolResult }
  | { readonly status: "unknown"; readonly operation: Operation }
  /** Nothing was executed. `used_up` comes with the operation that did it. */
  | {
      readonly status: "refused";
      readonly reason: StartRefusal | "definition_changed";
      readonly operation?: Operation;
    }
  /** Another process took it over meanwhile; the operation is what it has recorded so far. */
  | { readonly status: "overtaken"; readonly operation: Operation };

/** What the tool is called with. */
export function callOf(
  { store: { tenant } }: ExecutionContext,
  order: Order,
  operation: Operation,
  signal: AbortSignal,
): ToolCall {
  return {
    callId: order.callId,
    // The stored call parses to the same bytes, so one that waited for a person or was recovered gets the same input.
    input: inCanonicalOrder(order.input),
    context: {
      tenant,
      sessionId: order.sessionId,
      signal,
      workingDirectory: order.workingDirectory,
      places: order.places,
      judgePlace: order.judgePlace,
      progress: (report) => order.progress?.(report),
      // The same for every attempt: a target that knows keys takes the second one for the first.
      idempotencyKey: `${tenant}/${operation.id}`,
      fence: operation.fence,
    },
  };
}

/** Another process holds the operation by now: what is left to do for it is for that one. */
export class LeaseLostError extends Error {
  override readonly name = "LeaseLostError";

  constructor() {
    super("the lease was lost");
  }
}

/**
 * Calls a tool with its own time limit. The lease of the operation is renewed meanwhile, so that a slow tool is not taken for
 * a process that went away. Throws, or rejects, with a LeaseLostError, a TimeoutError or the reason of `signal`.
 */
export function underLease<Result>(
  { store: { operations }, timers, leaseMs, timeoutMs }: ExecutionContext,
  { id, fence }: Pick<Operation, "id" | "fence">,
  work: (stop: Stop) => Result | PromiseLike<Result>,
  signal?: AbortSignal,
): Result | Promise<Result> {
  const hold: Watch = (giveUp) =>
    renewEvery(leaseMs / 3, timers, async () => {
      const isOurs = await operations.renew(id, fence, leaseMs);
      if (!isOurs) giveUp(new LeaseLostError());
      return isOurs;
    });
  return inTime(work, timeoutMs, timers, signal, hold);
}

// The versions of targets: right around a call, and later, when an operation is to be undone.

export interface Looked {
  /** Empty when it was not read, or could not be. */
  readonly versionBefore: string;
  /** To be called after the call; undefined when nothing is watched, or it could not be read in time. */
  readonly watched?: WatchedCall;
  /** Why it must not run after all. */
  readonly moved?: string;
}

export interface LookedAfter {
  /** Empty when it is not known. */
  readonly stateVersion: string;
  readonly alsoChanged: readonly AlsoChanged[];
}

const NOT_LOOKED: Looked = { versionBefore: "" };

/** Reading a version must not outlast the lease: another process would take the call for abandoned, and it might run twice. */
const PART_OF_LEASE = 1 / 4;

/** Right before the call; with a sentence when the target is not what it was when the call was allowed. */
export async function lookBefore(
  context: ExecutionContext,
  order: Order,
  operation: Operation,
): Promise<Looked> {
  // Both at the same time: one after the other they could outlast the lease.
  const own = isWorthALook(order) ? ownTarget(context, order, operation) : NOT_LOOKED;
  if (order.watch === undefined) return own;
  const [looked, watched] = await Promise.all([own, inLookTime(context, order.watch)]);
  return watched === undefined ? looked : { ...looked, watched };
}

async function ownTarget(
  context: ExecutionContext,
  order: Order,
  operation: Operation,
): Promise<Looked> {
  const { expectedVersions } = order;
  try {
    const versionBefore = await versionNow(context, order, operation, order.signal);
    if (expectedVersions?.includes(versionBefore) !== false) return { versionBefore };
    const moved = "Not executed: the target was changed since this was approved. Propose it again.";
    return { versionBefore, moved };
  } catch (error) {
    // Without an expectation it is only for a later undo, which then relies on the version after the call alone.
    if (expectedVersions === undefined) return NOT_LOOKED;
    const moved = `Not executed: the target could not be looked at (${errorText(error)}). Propose it again.`;
    return { ...NOT_LOOKED, moved };
  }
}

/** Right after the call, so that an undo can see whether the target was changed since. */
export async function lookAfter(
  context: ExecutionContext,
  order: Order & Pick<Looked, "versionBefore" | "watched">,
  operation: Operation,
): Promise<LookedAfter> {
  const { watched, versionBefore } = order;
  const [stateVersion, others = []] = await Promise.all([
    order.tool.stateVersion === undefined
      ? ""
      : versionNow(context, order, operation).catch(() => ""),
    watched && inLookTime(context, watched),
  ]);
  // A call that left its own target unchanged has not changed other targets.
  const isUnchanged = stateVersion !== "" && stateVersion === versionBefore;
  return { stateVersion, alsoChanged: isUnchanged ? [] : others };
}

/** After an undo: what else is now as it was, as far as is known. */
export async function lookBroughtBack(
  context: ExecutionContext,
  { broughtBack }: Order,
): Promise<readonly BroughtBack[]> {
  return (broughtBack && (await inLookTime(context, broughtBack))) ?? [];
}

async function versionNow(
  context: ExecutionContext,
  order: Order,
  operation: Operation,
  signal?: AbortSignal,
): Promise<string> {
  const { timers, leaseMs } = context;
  const look = (stop: Stop) =>
    order.tool.stateVersion?.(callOf(context, order, operation, stop.signal));
  return (await inTime(look, leaseMs * PART_OF_LEASE, timers, signal)) ?? "";
}

/** Undefined when it fails or takes too long. */
async function inLookTime<Seen>(
  { timers, leaseMs }: ExecutionContext,
  look: () => Promise<Seen>,
): Promise<Seen | undefined> {
  try {
    return await inTime(look, leaseMs * PART_OF_LEASE, timers);
  } catch {
    return undefined;
  }
}

/** A call that only reads has no version to expect and nothing to undo, and an undo is not undone. */
function isWorthALook({ tool, expectedVersions, undoOf }: Order): boolean {
  if (tool.stateVersion === undefined) return false;
  return (
    expectedVersions !== undefined || (undoOf === undefined && metadataOf(tool).effect !== "read")
  );
}

/** A sentence when the target was changed after the operation; undefined when it was not, or it is not known. */
export async function targetChangedSince(
  context: GateContext,
  operation: Operation,
): Promise<string | undefined> {
  if (operation.stateVersion === "") return undefined;
  try {
    const version = await versionOf(context, operation);
    if (version === undefined || version === operation.stateVersion) return undefined;
    return "The target was changed since. Look at it before you take this back by hand.";
  } catch (error) {
    return `It could not be seen whether the target was changed since: ${errorText(error)}`;
  }
}

/**
 * Reads versions before an operation is undone and returns a function to call afterwards, which says which of the earlier
 * operations have their targets back as they left them. Two kinds of earlier ones are known to share a record with it:
 * - those in `alsoChanged`, whose versions were read when it ran. Their target must be as it left it then, or as an undo since
 *   has left it.
 * - those with the same target: both have the same version before, both have the same other version after, and the later one
 *   found what the earlier one had left.
 */
export async function watchEarlier(
  context: GateContext,
  operation: Operation,
  earlier: readonly Operation[],
): Promise<() => Promise<readonly BroughtBack[]>> {
  const before = operation.stateVersion;
  const changed = new Map(operation.undo?.alsoChanged?.map(({ id, version }) => [id, version]));
  const here: { one: Operation; isSame: boolean }[] = [];
  for (const one of before === "" ? [] : earlier) {
    const now = await seen(context, one);
    const left = changed.get(one.id);
    const isAsLeft = left !== undefined && now !== "" && [left, one.stateVersion].includes(now);
    const isSame = now === before && one.stateVersion === operation.undo?.versionBefore;
    if (isAsLeft || isSame) here.push({ one, isSame: !isAsLeft });
  }
  return async () => {
    const after = here.length === 0 ? "" : await seen(context, operation);
    const back: BroughtBack[] = [];
    for (const { one, isSame } of after === "" || after === before ? [] : here) {
      const to = await seen(context, one);
      const isBack = to !== "" && to !== one.stateVersion && (!isSame || to === after);
      if (isBack) back.push({ id: one.id, from: one.stateVersion, to });
    }
    return back;
  };
}

/** Empty when it is not known. */
async function seen(context: GateContext, operation: Operation): Promise<string> {
  try {
    return (await versionOf(context, operation)) ?? "";
  } catch {
    return "";
  }
}

/** Undefined when its tool is missing or has no versions. */
async function versionOf(
  context: GateContext,
  { tool: name, sessionId, callId, workingDirectory, input }: Operation,
): Promise<string | undefined> {
  const tool = context.registry.get(name);
  if (tool?.stateVersion === undefined) return undefined;
  const facts = {
    sessionId,
    callId,
    input: parseJson(input),
    workingDirectory,
    places: undefined,
  };
  return whileLooking(context, facts, async (call) => tool.stateVersion?.(call));
}

/** Each costs two reads of its target. */
const MOST = 20;
/** The newest operations of a session among which they are searched. */
const PAGE = 100;

/** Undefined for a call that has no version of its own or only reads: the versions would say nothing. */
export function watchSession(
  context: GateContext,
  sessionId: SessionId,
  tool: Tool,
): (() => Promise<WatchedCall>) | undefined {
  if (tool.stateVersion === undefined || metadataOf(tool).effect === "read") return undefined;
  return async () => {
    const { operations } = await context.store.operations.listNewest(sessionId, { limit: PAGE });
    const inEffect = operations.filter(({ status, undoOf }) => status === "success" && !undoOf);
    const earlier = inEffect.filter((one) => canBeWatched(context, one)).slice(0, MOST);
    const before = await versionsOf(context, earlier);
    // A target that someone else changed is no longer this session's, whatever this call does to it.
    const known = earlier.filter((one) => knownVersions(one, inEffect).includes(before(one)));
    return async () => {
      const after = await versionsOf(context, known);
      const moved = known.filter((one) => after(one) !== "" && after(one) !== before(one));
      return moved.map((one): AlsoChanged => ({ id: one.id, version: after(one) }));
    };
  };
}

function canBeWatched({ registry }: GateContext, { undo, stateVersion, tool }: Operation): boolean {
  const hasUndo = undo !== undefined && !undo.irreversible;
  return hasUndo && stateVersion !== "" && registry.get(tool)?.stateVersion !== undefined;
}

/** As the operation left its target, or as the newest call that changed the same target left it. Newest come first. */
function knownVersions(
  { id, stateVersion }: Operation,
  inEffect: readonly Operation[],
): readonly string[] {
  for (const { undo } of inEffect) {
    const changed = undo?.alsoChanged?.find((one) => one.id === id);
    if (changed !== undefined) return [changed.version, stateVersion];
  }
  return [stateVersion];
}

async function versionsOf(
  context: GateContext,
  operations: readonly Operation[],
): Promise<(operation: Operation) => string> {
  const versions = await Promise.all(operations.map((one) => seen(context, one)));
  const byId = new Map(operations.map(({ id }, index) => [id, versions[index] ?? ""]));
  return ({ id }) => byId.get(id) ?? "";
}
