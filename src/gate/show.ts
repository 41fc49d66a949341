import type { Decision, SessionId } from "../model/decision.ts";
import type { Preview } from "../model/interaction.ts";
import type { TenantStore } from "../store/store.ts";
import {
  type DefinitionChange,
  definitionDifference,
  definitionHash,
  definitionOf,
} from "../tools/definition.ts";
import type { Registry } from "../tools/registry.ts";
import { highestClass, isDryRunnable, type SafetyClass, safetyClassOf } from "../tools/safety.ts";
import type { Tool, ToolCall } from "../tools/tool.ts";
import { previewCall } from "../tools/undo.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { TimeoutError, type Timers } from "../util/timers.ts";
import { askersOf, decodeAction, type PlannedCall } from "./action.ts";
import type { JudgeParts } from "./judge.ts";

export interface PreviewParts {
  readonly store: TenantStore;
  readonly registry: Registry;
  readonly judging: Pick<JudgeParts, "timers">;
}

/** What a reviewer sees of the calls of a decision, and what the approval will be bound to. */
export function previewOf(
  decision: Decision,
  facts: Pick<Preview, "policyHash" | "expiresAt" | "nonce" | "epoch" | "requires">,
  { dryRun, stateVersion }: Looks,
  parts: PreviewParts,
): Preview {
  const calls = decodeAction(decision);
  return {
    decisionId: decision.id,
    tenant: parts.store.tenant,
    sessionId: decision.sessionId,
    askers: askersOf(decision),
    actionHash: sha256Hex(decision.diff.raw),
    dryRun: [...dryRun],
    stateVersion: [...stateVersion],
    safetyClass: highestClass(classesOf(calls, parts.registry, dryRun)),
    ...facts,
  };
}

/** The looks of all calls of a decision, in their order. */
export interface Looks {
  readonly dryRun: readonly JsonValue[];
  readonly stateVersion: readonly JsonValue[];
}

export async function looksAt(decision: Decision, parts: PreviewParts): Promise<Looks> {
  const looks = await lookAt(decision, decodeAction(decision), [], parts);
  return {
    dryRun: looks.map(({ dryRun }) => dryRun),
    stateVersion: looks.map(({ stateVersion }) => stateVersion),
  };
}

/**
 * From the tools, and from what their dry runs could show: a reviewer who could not look decides as if nothing could be
 * undone (T14). A tool that has no dry run at all is known by its class.
 */
export function classesOf(
  calls: readonly PlannedCall[],
  registry: Registry,
  dryRuns: readonly JsonValue[],
): readonly SafetyClass[] {
  return calls.map(({ tool: name }, index) => {
    const tool = registry.get(name);
    if (tool === undefined) return "irreversible";
    const isHidden = isDryRunnable(tool) && isUnavailable(dryRuns[index]);
    return isHidden ? "irreversible" : safetyClassOf(tool);
  });
}

function isUnavailable(dryRun: JsonValue | undefined): boolean {
  return typeof dryRun === "object" && dryRun !== null && Object.hasOwn(dryRun, "unavailable");
}

/** The tools as they are now, to be kept with what is shown. */
export function definitionsOf(
  calls: readonly PlannedCall[],
  registry: Registry,
): readonly JsonObject[] {
  return calls.map(({ tool: name }) => {
    const tool = registry.get(name);
    return tool === undefined ? {} : definitionOf(tool);
  });
}

/** What differs from what the reviewer saw, in a sentence; undefined when nothing does. */
export async function driftOf(
  decision: Decision,
  calls: readonly PlannedCall[],
  first: number,
  shown: { readonly preview: Preview; readonly definitions: readonly JsonObject[] },
  parts: PreviewParts,
): Promise<string | undefined> {
  for (const [index, call] of calls.entries()) {
    if (index < first) continue;
    const pinned = pinnedTool(call, shown.definitions[index], parts.registry);
    if (!pinned.fits) return pinned.why;
  }
  // What was done has changed its target itself: only what is left can be compared.
  const from = (looks: JsonValue) =>
    canonicalJson(Array.isArray(looks) ? looks.slice(first) : looks);
  const now = await lookAt(decision, calls, shown.definitions, parts);
  const dryRun = from(now.map((look) => look.dryRun));
  const approved = from(shown.preview.dryRun);
  if (dryRun !== approved) {
    return `What would happen now is not what was approved. Approved: ${approved}. Now: ${dryRun}.`;
  }
  const { stateVersion } = shown.preview;
  const versions = Array.isArray(stateVersion) ? stateVersion : [];
  const moved = calls.flatMap(({ tool }, index) => {
    if (index < first || now[index]?.stateVersion === versions[index]) return [];
    return [calls.length === 1 ? tool : `${tool} (call ${index + 1} of ${calls.length})`];
  });
  if (moved.length === 0) return undefined;
  return `The target of ${moved.join(" and of ")} was changed since this was approved.`;
}

interface Look {
  readonly dryRun: JsonValue;
  readonly stateVersion: JsonValue;
}

async function lookAt(
  decision: Decision,
  calls: readonly PlannedCall[],
  definitions: readonly JsonObject[],
  parts: PreviewParts,
): Promise<readonly Look[]> {
  return Promise.all(
    calls.map(async (call, index) => {
      const pinned = pinnedTool(call, definitions[index], parts.registry);
      if (!pinned.fits) {
        return { dryRun: { unavailable: "the tool is gone or was changed" }, stateVersion: "" };
      }
      return look(decision, call, pinned.tool, parts);
    }),
  );
}

async function look(
  { sessionId }: Decision,
  { input, workingDirectory, places, callId }: PlannedCall,
  tool: Tool,
  { store: { tenant }, judging }: PreviewParts,
): Promise<Look> {
  const parsed = tool.parseInput(input);
  if (!parsed.ok) {
    // It was proposed to an older version of the tool. Whoever reviews it has to change the input, or say no.
    const problems = parsed.issues.map(({ message }) => message).join("; ");
    return { dryRun: { unavailable: `the input does not fit: ${problems}` }, stateVersion: "" };
  }
  const facts = { tenant, sessionId, callId, input, workingDirectory, places };
  try {
    return await whileLooking(facts, judging.timers, async (call) => {
      const dryRun = await previewCall(tool, call);
      const stateVersion = (await tool.stateVersion?.(call)) ?? "";
      return {
        dryRun: dryRun === undefined ? { unavailable: "no dry run" } : { ...dryRun },
        stateVersion,
      };
    });
  } catch (error) {
    // Shown as such: whoever reviews it knows that nobody could look, and a look that works later is a difference.
    return { dryRun: { unavailable: `looking failed: ${errorText(error)}` }, stateVersion: "" };
  }
}

/** How the tool that is here now relates to the one that a pending call was shown with. */
export type Pinned =
  | { readonly fits: true; readonly tool: Tool; readonly definition: string }
  | { readonly fits: false; readonly why: string };

/**
 * What is pending outlives deploys. The same definition goes on. Another one goes on only when its author has declared that
 * it continues that version, nothing but wording and the input's schema was changed, and it reads this very input as
 * before. Everything else was part of what a person agreed to, and goes back to review.
 */
export function pinnedTool(
  call: PlannedCall,
  shown: JsonObject | undefined,
  registry: Registry,
): Pinned {
  const tool = registry.get(call.tool);
  if (tool === undefined) return { fits: false, why: `The tool "${call.tool}" is gone.` };
  const definition = definitionHash(tool);
  if (definition === call.definition) return { fits: true, tool, definition };
  const changes = shown === undefined ? [] : definitionDifference(shown, definitionOf(tool));
  const declared = tool.continues?.includes(String(shown?.["version"])) ?? false;
  const harmless = changes.length > 0 && changes.every(({ path }) => MAY_CHANGE.test(path));
  if (declared && harmless && readsAlike(tool, call)) return { fits: true, tool, definition };
  return { fits: false, why: `The tool "${call.tool}" was changed: ${describe(changes)}` };
}

/** Wording and the shape of the input; never what the tool does, reaches or promises. */
const MAY_CHANGE = /^(version|description|inputSchema(\..*)?|metadata\.searchHint)$/;

function readsAlike(tool: Tool, { input }: PlannedCall): boolean {
  const parsed = tool.parseInput(input);
  return parsed.ok && canonicalJson(parsed.value) === canonicalJson(input);
}

function describe(changes: readonly DefinitionChange[]): string {
  if (changes.length === 0) return "what it was before is not known.";
  return changes
    .map(({ path, before, after }) => `${path} was ${before || "not there"}, is ${after || "gone"}`)
    .join("; ")
    .concat(".");
}

const LOOK_MS = 60_000;

export interface LookingFacts {
  readonly tenant: string;
  readonly sessionId: SessionId;
  readonly callId: string;
  readonly input: JsonValue;
  readonly workingDirectory: string;
  /** Undefined: the places of a call that was made earlier are not kept, and only versions are compared. */
  readonly places: readonly string[] | undefined;
}

/**
 * A call that only looks (dry run, version of the target): it has no key and no fence, because it changes nothing. Its
 * signal is aborted when the look takes too long.
 */
export async function whileLooking<Seen>(
  { tenant, sessionId, callId, input, workingDirectory, places }: LookingFacts,
  timers: Timers,
  look: (call: ToolCall) => Promise<Seen>,
): Promise<Seen> {
  const stop = new AbortController();
  const cancel = timers.after(LOOK_MS, () => stop.abort(new TimeoutError(LOOK_MS)));
  const context = {
    tenant,
    sessionId,
    signal: stop.signal,
    workingDirectory,
    places,
    progress: () => {},
    idempotencyKey: "",
    fence: 0,
  };
  try {
    return await look({ callId, input, context });
  } finally {
    cancel();
  }
}
