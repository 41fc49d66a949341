import { type ImagePart, imageIn } from "../gate/image-result.ts";
import { SallyportError } from "../model/errors.ts";
import {
  type CommonState,
  DEFAULT_ROUND_LIMIT,
  FLOW_PHASES,
  type FlowPhase,
  type FlowSnapshot,
  type FlowStateStore,
  type PlanStep,
  type SavedRuntimeState,
} from "../model/flow-state.ts";
import {
  INTERACTION_STATUSES,
  INTERACTION_TYPES,
  type InteractionId,
  type InteractionSnapshot,
  type InteractionType,
  type PendingTool,
  type Question,
  type QuestionAnswer,
  SNAPSHOT_VERSION,
} from "../model/interaction.ts";
import { parseJson } from "../model/names.ts";
import type { CallAnswer, CallRequest } from "../model/operation.ts";
import type { Progress } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import type { ShownTool } from "./prompts.ts";

/** A snapshot while a state holds it: closing it is visible to others that hold it. */
type HeldSnapshot = {
  -readonly [Key in keyof InteractionSnapshot]: InteractionSnapshot[Key];
};

/**
 * Passes a tool call from Execute to Confirm, and an accepted one back. It is never saved, so after a restart the call must be
 * found elsewhere.
 */
export interface Mailbox {
  readonly tool: PendingTool;
  /** The stored question about it. */
  readonly interactionId: InteractionId;
  /** A reviewer changed the call: `tool` is what the agent asked for, not what would run. */
  readonly isChanged?: true;
}

/** Flow control is in `common`, its interruption in `pending`; they are independent. */
export interface RuntimeState {
  common: CommonState;
  pending: HeldSnapshot | undefined;
  mailbox: Mailbox | undefined;
}

/** `common` is kept, not copied. */
export function createRuntimeState(common: Partial<CommonState> = {}): RuntimeState {
  const state = { common: common as CommonState, pending: undefined, mailbox: undefined };
  ensureCommonState(state);
  return state;
}

/** Fills in missing fields. Returns the object that the state holds. */
export function ensureCommonState(state: RuntimeState | undefined): CommonState | undefined {
  if (state === undefined) return undefined;
  state.common ??= {} as CommonState;
  const { common } = state;
  for (const [name, value] of Object.entries(DEFAULTS)) {
    const key = name as keyof CommonState;
    if (common[key] === undefined || common[key] === null) Object.assign(common, { [key]: value });
  }
  if (common.phase === "") common.phase = FIRST_PHASE;
  if (!(common.round_limit > 0)) common.round_limit = DEFAULT_ROUND_LIMIT;
  return common;
}

const FIRST_PHASE: FlowPhase = "planning";

const NO_STEPS: readonly PlanStep[] = [];
const DEFAULTS: CommonState = {
  trace_id: "",
  user_id: "",
  conversation_id: "",
  phase: FIRST_PHASE,
  plan_steps: NO_STEPS,
  current_step: 0,
  round_limit: DEFAULT_ROUND_LIMIT,
  rounds_used: 0,
};

/** Routing checks this first. */
export function hasPendingInteraction(state: RuntimeState | undefined): boolean {
  return state?.pending?.status === "open";
}

/** Empty when nothing is open. */
export function pendingInteractionType(state: RuntimeState | undefined): InteractionType | "" {
  return state?.pending?.status === "open" ? state.pending.type : "";
}

/** What is asked, and the node that continues with the answer. */
export interface Opening {
  readonly interactionId: string;
  readonly displayText: string;
  readonly resumeNode: string;
}

/** False, and nothing is changed, without a state or while another question is open. */
export function openAskUser(state: RuntimeState | undefined, opening: Opening): boolean {
  return openInteraction(state, opening, { type: "ask_user" });
}

/** Without a tool the plan is to be confirmed. Returns false as `openAskUser` does. */
export function openConfirm(
  state: RuntimeState | undefined,
  opening: Opening,
  tool?: PendingTool,
): boolean {
  if (tool === undefined) return openInteraction(state, opening, { type: "confirm" });
  // A copy of these three fields: the caller's object may change, and may have more.
  const { tool_name, args_json, summary } = tool;
  const pending_tool = { tool_name, args_json, summary };
  return openInteraction(state, opening, { type: "confirm", pending_tool });
}

/** For interactions of other kinds. The current phase and step are kept for the resumption, and the flow is interrupted. */
export function openInteraction(
  state: RuntimeState | undefined,
  { interactionId, displayText, resumeNode }: Opening,
  own: Pick<HeldSnapshot, "type" | "pending_tool" | "metadata">,
): boolean {
  if (state === undefined || hasPendingInteraction(state)) return false;
  const common = ensureCommonState(state);
  if (common === undefined) return false;
  state.pending = {
    version: SNAPSHOT_VERSION,
    interaction_id: interactionId.trim(),
    status: "open",
    display_text: displayText.trim(),
    resume_node: resumeNode.trim(),
    resume_phase: common.phase || FIRST_PHASE,
    resume_step: common.current_step,
    ...own,
  };
  common.phase = "interrupted";
  return true;
}

/**
 * Consumes the open interaction and restores phase and step. It chooses no node and restores no mailbox: read the pending tool
 * first, and after an accepted confirmation set the phase to executing. False when nothing is open.
 */
export function resumeFromInteraction(state: RuntimeState | undefined): boolean {
  const pending = state?.pending;
  if (state === undefined || pending === undefined || pending.status !== "open") return false;
  const common = ensureCommonState(state);
  if (common === undefined) return false;
  common.phase = pending.resume_phase as FlowPhase;
  common.current_step = pending.resume_step;
  pending.status = "resolved";
  state.pending = undefined;
  return true;
}

/** Cancels the question. The flow stays interrupted until the next message. */
export function clearInteraction(state: RuntimeState | undefined): void {
  if (state?.pending === undefined) return;
  state.pending.status = "canceled";
  state.pending = undefined;
}

/** One entry of a run's record. It is append-only: the model reads all of it, and the summary is made from it. */
export type WorkEntry =
  | { readonly kind: "said"; readonly text: string }
  | { readonly kind: "planned"; readonly steps: readonly string[] }
  | Act
  | {
      readonly kind: "result";
      readonly id: string;
      readonly answer: "done" | "failed" | "denied";
      readonly text: string;
    }
  | { readonly kind: "reply"; readonly id: string; readonly text: string }
  | { readonly kind: "step"; readonly step: number; readonly check: string }
  | { readonly kind: "correction"; readonly said: string; readonly text: string }
  | { readonly kind: "note"; readonly text: string };

/** A choice of the model. It is saved before it is executed, so that a restart executes it instead of choosing again. */
export type Act =
  | { readonly kind: "call"; readonly id: string; readonly tool: PendingTool }
  | {
      readonly kind: "question";
      readonly id: string;
      readonly text: string;
      readonly choices: readonly string[];
    };

export interface Work {
  readonly entries: WorkEntry[];
  /** Unusable answers of the model in a row. */
  corrections: number;
  /** Why it ended before the model said so; empty otherwise. */
  problem: string;
  /** Pictures of results, by the id of the call. The newest are saved, as far as they fit. */
  readonly images: Map<string, ImagePart>;
}

export function newWork(): Work {
  return { entries: [], corrections: 0, problem: "", images: new Map() };
}

/** The choice without an outcome. */
export function openAct({ entries }: Work): Act | undefined {
  const settled = new Set(
    entries.map((entry) => (entry.kind === "result" || entry.kind === "reply" ? entry.id : "")),
  );
  return entries.filter(isAct).findLast(({ id }) => !settled.has(id));
}

function isAct(entry: WorkEntry): entry is Act {
  return entry.kind === "call" || entry.kind === "question";
}

/**
 * The same for the same choice at the same place of the same run, in every process, so that a repeated call is the same call.
 * It includes the choice, so that another choice never gets the answer of this one.
 */
export function actId(
  { trace_id, current_step, rounds_used }: ActPlace,
  chosen: readonly string[],
): string {
  const what = sha256Hex(canonicalJson(chosen)).slice(0, 16);
  return `${trace_id}.${current_step}.${rounds_used}.${what}`;
}

interface ActPlace {
  readonly trace_id: string;
  readonly current_step: number;
  readonly rounds_used: number;
}

export function savedWork({ entries, corrections, problem, images }: Work): JsonObject {
  const kept = savedImages(images);
  const saved = { entries, corrections, problem, ...(kept.length === 0 ? {} : { images: kept }) };
  return structuredClone(saved) as unknown as JsonObject;
}

/** A state is written after every step, so that it must stay small: a resumed run has the texts of what does not fit. */
const MOST_SAVED_BASE64 = 1024 * 1024;

function savedImages(images: Work["images"]): readonly SavedImage[] {
  let left = MOST_SAVED_BASE64;
  const newest = [...images].toReversed().filter(([, { base64 }]) => {
    left -= base64.length;
    return left >= 0;
  });
  return newest.toReversed().map(([id, { mediaType, base64 }]) => ({ id, mediaType, base64 }));
}

interface SavedImage {
  readonly id: string;
  readonly mediaType: string;
  readonly base64: string;
}

function imagesOf(saved: unknown): Work["images"] {
  const images: Work["images"] = new Map();
  for (const { id, ...data } of Array.isArray(saved) ? (saved as SavedImage[]) : []) {
    const image = imageIn({ kind: "image", ...data });
    if (image !== undefined) images.set(id, image);
  }
  return images;
}

/** Throws damaged_record for anything but the output of `savedWork`. */
export function workOf({ entries, corrections, problem, images }: JsonObject): Work {
  const isWhole =
    Array.isArray(entries) && typeof corrections === "number" && typeof problem === "string";
  if (isWhole) {
    const kept = entries as unknown as WorkEntry[];
    return { entries: kept, corrections, problem, images: imagesOf(images) };
  }
  const hint = "The stored state of this conversation cannot be read. Delete it to start again.";
  throw new SallyportError("damaged_record", { what: "work", hint });
}

/** Counts the round first. False when it was one too many. */
export function countRound(common: CommonState): boolean {
  common.rounds_used += 1;
  return common.rounds_used <= common.round_limit;
}

export function isExhausted({ rounds_used, round_limit }: CommonState): boolean {
  return rounds_used >= round_limit;
}

/** Counted from 1; after the last step it does not grow. */
export function progressOf({ current_step, plan_steps }: CommonState): {
  readonly step: number;
  readonly total: number;
} {
  const total = plan_steps.length;
  return { step: Math.min(current_step + 1, total), total };
}

export function finishPlan(common: CommonState, steps: readonly PlanStep[]): void {
  common.plan_steps = steps;
  common.current_step = 0;
  common.phase = "waiting_confirm";
}

export function confirmPlan(common: CommonState): void {
  common.phase = "executing";
}

export function rejectPlan(common: CommonState): void {
  common.plan_steps = [];
  common.current_step = 0;
  common.phase = "planning";
}

export interface FlowCallOptions {
  readonly signal?: AbortSignal;
  /** Shape: push, while the call runs. */
  readonly onProgress?: (callId: string, report: Progress) => void;
}

/**
 * What a flow needs of the gate: a gate's session fits. A repeat with the same key or id returns the first result and makes no
 * second call or question. Shape: callback; the flow waits for every answer.
 */
export interface FlowSession {
  readonly id: string;
  /** The signal is that of the request: the call ends when its sender goes away. */
  call(request: CallRequest, options?: FlowCallOptions): Promise<CallAnswer>;
  ask(question: Question): Promise<QuestionAnswer>;
  /** Undefined when there was no such call. */
  resultOf(key: string): Promise<CallAnswer | undefined>;
  /** The tools that it is offered; of those the flow shows the ones of its own list. Left out: its own list. */
  tools?(): Promise<readonly ShownTool[]>;
  /** The hooks before a person's words reach the model, and before the run ends. Left out: there are none. */
  reach?(
    point: "user_prompt" | "stop",
    input: string,
  ): Promise<{ readonly answer: "allow" } | { readonly answer: "deny"; readonly text: string }>;
}

/** What is saved of a runtime state, as a copy, without the mailbox. */
export function savedRuntimeState({ common, pending }: RuntimeState): SavedRuntimeState {
  const pending_interaction = pending && savedInteraction(pending);
  return definedFields({ common_state: structuredClone(common), pending_interaction });
}

export function saveRuntimeState(state: RuntimeState): string {
  return JSON.stringify(savedRuntimeState(state));
}

/** Throws invalid_json, and damaged_record for JSON that is not a runtime state. */
export function loadRuntimeState(text: string): RuntimeState {
  return runtimeStateOf(parseJson(text));
}

/** The same from a parsed value. */
export function runtimeStateOf(saved: unknown): RuntimeState {
  const { common_state: common, pending_interaction: pending } = objectOf(saved, "runtime state");
  const state = createRuntimeState(commonOf(objectOf(common, "common_state")));
  if (pending !== undefined)
    state.pending = interactionOf(objectOf(pending, "pending_interaction"));
  return state;
}

/** Empty parts are omitted; all other keys are always present, in this order. */
function savedInteraction(snapshot: InteractionSnapshot): InteractionSnapshot {
  const { version, interaction_id, type, status, display_text } = snapshot;
  const { resume_node, resume_phase, resume_step, pending_tool, metadata = {} } = snapshot;
  return definedFields({
    ...{ version, interaction_id, type, status, display_text },
    ...{ resume_node, resume_phase, resume_step },
    pending_tool: pending_tool && { ...pending_tool },
    metadata: Object.keys(metadata).length === 0 ? undefined : structuredClone(metadata),
  });
}

function commonOf(saved: JsonObject): CommonState {
  const common = createRuntimeState({ ...saved } as Partial<CommonState>).common;
  need(oneOf(common.phase, FLOW_PHASES), "phase");
  for (const name of ["trace_id", "user_id", "conversation_id"] as const) {
    need(typeof common[name] === "string", name);
  }
  for (const name of ["current_step", "round_limit", "rounds_used"] as const) {
    need(Number.isSafeInteger(common[name]) && common[name] >= 0, name);
  }
  need(Array.isArray(common.plan_steps), "plan_steps");
  for (const step of common.plan_steps as JsonValue[]) {
    const { text, done_when } = objectOf(step, "plan_steps");
    need(typeof text === "string" && typeof done_when === "string", "plan_steps");
  }
  return common;
}

function interactionOf(saved: JsonObject): InteractionSnapshot {
  const { version, type, status, resume_phase, resume_step, pending_tool, metadata } = saved;
  need(version === SNAPSHOT_VERSION, "version");
  need(oneOf(type, INTERACTION_TYPES), "type");
  need(oneOf(status, INTERACTION_STATUSES), "status");
  need(oneOf(resume_phase, FLOW_PHASES), "resume_phase");
  need(Number.isSafeInteger(resume_step), "resume_step");
  for (const name of ["interaction_id", "display_text", "resume_node"]) {
    need(typeof saved[name] === "string", name);
  }
  if (metadata !== undefined) objectOf(metadata, "metadata");
  if (pending_tool !== undefined) {
    const tool = objectOf(pending_tool, "pending_tool");
    for (const name of ["tool_name", "args_json", "summary"]) {
      need(typeof tool[name] === "string", `pending_tool.${name}`);
    }
  }
  return savedInteraction(saved as unknown as InteractionSnapshot);
}

function oneOf(value: unknown, names: readonly string[]): boolean {
  return typeof value === "string" && names.includes(value);
}

function objectOf(value: unknown, what: string): JsonObject {
  need(typeof value === "object" && value !== null && !Array.isArray(value), what);
  return value as JsonObject;
}

function need(holds: boolean, what: string): asserts holds {
  if (holds) return;
  const hint = "The stored state of this conversation cannot be read. Delete it to start again.";
  throw new SallyportError("damaged_record", { what, hint });
}

interface Kept {
  readonly text: string;
  readonly traceId: string;
  readonly revision: number;
  readonly expiresAt: number;
}

/** In memory: for tests, and for conversations that may end with the process. */
export function memoryFlowStates({ clock = systemClock }: { clock?: Clock } = {}): FlowStateStore {
  const kept = new Map<string, Kept>();
  const alive = (id: string): Kept | undefined => {
    const found = kept.get(id);
    if (found === undefined || found.expiresAt > clock.now()) return found;
    kept.delete(id);
    return undefined;
  };
  return {
    async save(snapshot, { keepMs }) {
      const { conversation_id: id, revision } = snapshot;
      if ((alive(id)?.revision ?? 0) !== revision - 1) return false;
      const traceId = snapshot.state.common_state.trace_id;
      // As text, so that later changes of the flow do not change the saved state.
      const text = JSON.stringify(snapshot);
      kept.set(id, { text, traceId, revision, expiresAt: clock.now() + keepMs });
      return true;
    },
    async load(id) {
      const found = alive(id);
      if (found === undefined) return { found: false };
      return { found: true, snapshot: JSON.parse(found.text) as FlowSnapshot };
    },
    async delete(id, traceId) {
      if (kept.get(id)?.traceId === traceId) kept.delete(id);
    },
  };
}
