// Step "show": dry runs, target versions, safety class, and the hash over all of it. Before it: review. After it: decide.

import type { SessionId } from "../model/decision.ts";
import type { PendingTool, Preview } from "../model/interaction.ts";
import type { Verdict } from "../model/verdict.ts";
import { type Review, type ReviewAnswer, reviewFor } from "../policy/review-rules.ts";
import type { CallKey, Showing, Shown } from "../store/confirmations.ts";
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
import { fromIso, toIso } from "../util/clock.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { TimeoutError } from "../util/timers.ts";
import {
  agentOf,
  askersOf,
  type CallDecision,
  type CallProposal,
  type PlannedCall,
} from "./action.ts";
import type { GateContext } from "./context.ts";

/** What a reviewer sees of the calls of a decision, and what the approval is bound to. */
function previewOf(
  { store, registry }: GateContext,
  decision: CallDecision,
  facts: Pick<Preview, "policyHash" | "expiresAt" | "nonce" | "epoch" | "requires">,
  { dryRun, stateVersion }: Looks,
): Preview {
  const { proposal } = decision;
  return {
    decisionId: decision.id,
    tenant: store.tenant,
    sessionId: decision.sessionId,
    askers: askersOf(proposal),
    actionHash: sha256Hex(decision.diff.raw),
    dryRun: [...dryRun],
    stateVersion: [...stateVersion],
    safetyClass: highestClass(classesOf(proposal.calls, registry, dryRun)),
    ...facts,
  };
}

/** Dry run and target version of every call of a decision, in their order. */
export interface Looks {
  readonly dryRun: readonly JsonValue[];
  readonly stateVersion: readonly JsonValue[];
}

export async function looksAt(
  context: GateContext,
  sessionId: SessionId,
  calls: readonly PlannedCall[],
): Promise<Looks> {
  const looks = await lookAt(context, sessionId, calls, []);
  return {
    dryRun: looks.map(({ dryRun }) => dryRun),
    stateVersion: looks.map(({ stateVersion }) => stateVersion),
  };
}

/** Who has to say yes, and until when; `dryRuns` as they are, or were, shown. */
export function reviewOf(
  { reviewRules, registry, approvalMs }: GateContext,
  calls: readonly PlannedCall[],
  dryRuns: readonly JsonValue[],
): ReviewAnswer {
  const classes = classesOf(calls, registry, dryRuns);
  const named = calls.map(({ tool }, index) => ({
    tool,
    safetyClass: classes[index] ?? "irreversible",
  }));
  return reviewFor(named, reviewRules, { deadlineMs: approvalMs });
}

/** Everything that the confirmation of a decision holds. */
export async function showingOf(
  context: GateContext,
  decision: CallDecision,
  { requires, deadlineMs, assignedTo, escalation }: Review,
  machine: Verdict,
  looks: Looks,
): Promise<Showing> {
  const { sessionId, proposal } = decision;
  const { calls } = proposal;
  const facts = {
    policyHash: context.policy.hash,
    requires,
    // From the store's own time, so that a process with a wrong clock makes no confirmation longer or shorter.
    expiresAt: toIso(fromIso(decision.updatedAt) + deadlineMs),
    nonce: context.newNonce(),
    epoch: await context.store.epoch.current(),
  };
  const preview = previewOf(context, decision, facts, looks);
  return {
    preview,
    definitions: definitionsOf(calls, context.registry),
    keys: keysOf(proposal),
    question: {
      sessionId,
      callId: calls[0]?.callId ?? decision.id,
      displayText: textOf(agentOf(proposal), calls),
      chain: askersOf(proposal),
      pendingTool: pendingTool(calls, preview),
      requires,
      ...(assignedTo === undefined ? {} : { assignedTo }),
      ...(escalation === undefined ? {} : { escalation }),
      // The decision's business verdict is the person's; the machine's verdict is kept with the interaction.
      metadata: { ...proposal.facts, machine: verdictFacts(machine) },
    },
  };
}

/** The hash of each keyed call is made from what would run. It is kept out of the metadata, which the log shows. */
function keysOf({ keys, calls }: CallProposal): readonly CallKey[] {
  return keys.flatMap(({ key, step }) => {
    const call = calls[step];
    return call === undefined ? [] : [{ key, step, actionHash: callHash(call.tool, call.input) }];
  });
}

/** SHA-256 of tool and input: the same key with another content is a mistake. */
export function callHash(tool: string, input: JsonValue): string {
  return sha256Hex(canonicalJson({ tool, input }));
}

function verdictFacts(verdict: Verdict): JsonObject {
  const { approved, score, severity, reason, validator, policyVersion } = verdict;
  return { approved, score, severity, reason: reason.toWellFormed(), validator, policyVersion };
}

/** Written without the model: what is asked is what would run. */
export function textOf(agent: string, calls: readonly PlannedCall[]): string {
  const names = calls.map(({ tool }) => tool);
  if (calls.length === 1) return `${agent} asks to run ${names[0]}.`;
  return `${agent} asks to run ${calls.length} calls as a whole: ${names.join(", ")}.`;
}

export function pendingTool(calls: readonly PlannedCall[], { dryRun }: Preview): PendingTool {
  const [first] = calls;
  const single = calls.length === 1 && first !== undefined;
  const looks = Array.isArray(dryRun) ? dryRun : [dryRun];
  return {
    tool_name: single ? first.tool : "bundle",
    args_json: canonicalJson(
      single ? first.input : calls.map(({ tool, input }) => ({ tool, input })),
    ),
    summary: looks.map(inWords).join("\n"),
  };
}

/** The summary of a dry run, or all of it when it has none. */
function inWords(look: JsonValue): string {
  const said = typeof look === "object" && look !== null && !Array.isArray(look) ? look : {};
  return typeof said["summary"] === "string" ? said["summary"].toWellFormed() : canonicalJson(look);
}

/**
 * From the tools, and from what their dry runs could show: a call whose dry run failed counts as irreversible (T14). A tool
 * without a dry run has the class it declares.
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
function definitionsOf(calls: readonly PlannedCall[], registry: Registry): readonly JsonObject[] {
  return calls.map(({ tool: name }) => {
    const tool = registry.get(name);
    return tool === undefined ? {} : definitionOf(tool);
  });
}

/** What differs from what the reviewer saw, in a sentence; undefined when nothing does. */
export async function driftOf(
  context: GateContext,
  { sessionId, proposal: { calls } }: CallDecision,
  first: number,
  shown: Shown,
): Promise<string | undefined> {
  for (const [index, call] of calls.entries()) {
    if (index < first) continue;
    const pinned = pinnedTool(call, shown.definitions[index], context.registry);
    if (!pinned.fits) return pinned.why;
  }
  // Calls that were executed have changed their targets themselves: only the remaining ones can be compared.
  const from = (looks: JsonValue) =>
    canonicalJson(Array.isArray(looks) ? looks.slice(first) : looks);
  const now = await lookAt(context, sessionId, calls, shown.definitions);
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
  context: GateContext,
  sessionId: SessionId,
  calls: readonly PlannedCall[],
  definitions: readonly JsonObject[],
): Promise<readonly Look[]> {
  return Promise.all(
    calls.map(async (call, index) => {
      const pinned = pinnedTool(call, definitions[index], context.registry);
      if (!pinned.fits) {
        return { dryRun: { unavailable: "the tool is gone or was changed" }, stateVersion: "" };
      }
      return look(context, sessionId, call, pinned.tool);
    }),
  );
}

async function look(
  context: GateContext,
  sessionId: SessionId,
  { input, workingDirectory, places, callId }: PlannedCall,
  tool: Tool,
): Promise<Look> {
  const parsed = tool.parseInput(input);
  if (!parsed.ok) {
    // It was proposed to an older version of the tool. The reviewer has to change the input, or say no.
    const problems = parsed.issues.map(({ message }) => message).join("; ");
    return { dryRun: { unavailable: `the input does not fit: ${problems}` }, stateVersion: "" };
  }
  const facts = { sessionId, callId, input, workingDirectory, places };
  try {
    return await whileLooking(context, facts, async (call) => {
      const dryRun = await previewCall(tool, call);
      const stateVersion = (await tool.stateVersion?.(call)) ?? "";
      return {
        dryRun: dryRun === undefined ? { unavailable: "no dry run" } : { ...dryRun },
        stateVersion,
      };
    });
  } catch (error) {
    // Shown as such: the reviewer sees that the dry run failed, and one that works later is a difference.
    return { dryRun: { unavailable: `looking failed: ${errorText(error)}` }, stateVersion: "" };
  }
}

/** How the tool that is here now relates to the one that a pending call was shown with. */
export type Pinned =
  | { readonly fits: true; readonly tool: Tool; readonly definition: string }
  | { readonly fits: false; readonly why: string };

/**
 * Pending calls outlive deploys. The same definition continues. Another one continues only when its author has declared that
 * it continues that version, only wording and the input schema changed, and it parses this input as before. Everything else
 * was part of what a person approved, and goes back to review.
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
  readonly sessionId: SessionId;
  readonly callId: string;
  readonly input: JsonValue;
  readonly workingDirectory: string;
  /** Undefined for a call that was made earlier: its places are not kept, and only versions are compared. */
  readonly places: readonly string[] | undefined;
}

/**
 * A call that only reads (dry run, version of the target). It has no key and no fence, because it changes nothing. Its signal
 * is aborted when it takes too long.
 */
export async function whileLooking<Seen>(
  { store: { tenant }, timers }: Pick<GateContext, "timers"> & { store: { tenant: string } },
  { sessionId, callId, input, workingDirectory, places }: LookingFacts,
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
