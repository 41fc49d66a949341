import type { Preview } from "../model/approval.ts";
import type { Decision } from "../model/decision.ts";
import type { TenantStore } from "../store/store.ts";
import { definitionOf } from "../tools/definition-hash.ts";
import { previewCall } from "../tools/preview-call.ts";
import type { Registry } from "../tools/registry.ts";
import { highestClass, type SafetyClass, safetyClassOf } from "../tools/safety-class.ts";
import { isDryRunnable } from "../tools/safety-level.ts";
import type { Tool } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { askersOf, decodeAction, type PlannedCall } from "./action.ts";
import type { JudgeParts } from "./judge-call.ts";
import { whileLooking } from "./looking-call.ts";
import { pinnedTool } from "./pinned-tool.ts";

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
