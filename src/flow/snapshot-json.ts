import { SallyportError } from "../model/errors.ts";
import { type CommonState, FLOW_PHASES, type SavedRuntimeState } from "../model/flow-state.ts";
import {
  INTERACTION_STATUSES,
  INTERACTION_TYPES,
  type InteractionSnapshot,
  SNAPSHOT_VERSION,
} from "../model/interaction.ts";
import { parseJson } from "../model/parse-json.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { createRuntimeState, type RuntimeState } from "./runtime-state.ts";

/** What is kept of a runtime state, as a copy. The mailbox is not. */
export function savedRuntimeState({ common, pending }: RuntimeState): SavedRuntimeState {
  return {
    common_state: structuredClone(common),
    ...(pending === undefined ? {} : { pending_interaction: savedInteraction(pending) }),
  };
}

export function saveRuntimeState(state: RuntimeState): string {
  return JSON.stringify(savedRuntimeState(state));
}

/** Throws invalid_json for no JSON, damaged_record for JSON that is no runtime state. */
export function loadRuntimeState(text: string): RuntimeState {
  return runtimeStateOf(parseJson(text));
}

/** The same from a value that was parsed before. */
export function runtimeStateOf(saved: unknown): RuntimeState {
  const { common_state: common, pending_interaction: pending } = objectOf(saved, "runtime state");
  const state = createRuntimeState(commonOf(objectOf(common, "common_state")));
  if (pending !== undefined)
    state.pending = interactionOf(objectOf(pending, "pending_interaction"));
  return state;
}

/** Empty parts are left out; all other keys are always there, in this order. */
function savedInteraction(snapshot: InteractionSnapshot): InteractionSnapshot {
  const { version, interaction_id, type, status, display_text } = snapshot;
  const { resume_node, resume_phase, resume_step, pending_tool, metadata } = snapshot;
  return {
    version,
    interaction_id,
    type,
    status,
    display_text,
    resume_node,
    resume_phase,
    resume_step,
    ...(pending_tool === undefined ? {} : { pending_tool: { ...pending_tool } }),
    ...(metadata === undefined || Object.keys(metadata).length === 0
      ? {}
      : { metadata: structuredClone(metadata) }),
  };
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
  const hint = "The stored state of this conversation cannot be read. Delete it to start anew.";
  throw new SallyportError("damaged_record", { what, hint });
}
