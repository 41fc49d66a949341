// Step "show": what a person is asked about. First the action itself, the calls and who asked for them, which every step reads
// from here; then what is shown of it: dry runs, target versions, safety class, and the hash over all of it. Before it: review.
// After it: decide.

import {
  type Decision,
  type Diff,
  type Metadata,
  newDraft,
  type SessionId,
  type Verdict,
} from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import type { Interaction, Preview } from "../model/interaction.ts";
import { type Instant, parseJson } from "../model/names.ts";
import { DELIVERABLE_KEY, type Deliverable } from "../policy/reverse-thinking.ts";
import { type Review, type ReviewAnswer, reviewFor } from "../policy/review-rules.ts";
import type { CallKey } from "../store/decisions.ts";
import type { Showing, Shown } from "../store/interactions.ts";
import type { ClaimRef } from "../store/tasks.ts";
import { presentedBy } from "../tools/presented.ts";
import {
  type DefinitionChange,
  definitionDifference,
  definitionHash,
  definitionOf,
  type Registry,
} from "../tools/registry.ts";
import {
  highestClass,
  isDryRunnable,
  type SafetyClass,
  safetyClassOf,
  safetyWarning,
  type Tool,
  type ToolCall,
} from "../tools/tool.ts";
import { previewCall, type ResolvedResource, resolveResources } from "../tools/tool-call.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { fromIso, toIso } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { TimeoutError } from "../util/timers.ts";
import type { GateContext } from "./context.ts";
import { askedBecause, pendingTool, textOf } from "./inbox.ts";

/**
 * One call of a staged decision: which tool in which definition, with which input. The folder is part of it, because a
 * relative path means something else in another one.
 */
export interface PlannedCall {
  readonly tool: string;
  readonly definition: string;
  readonly input: JsonValue;
  readonly workingDirectory: string;
  /**
   * The resolved paths of the files and folders that the call names. Part of what is approved: a link that leads elsewhere
   * by the time it runs makes it another call. Omitted when it names none.
   */
  readonly places?: readonly string[];
  /** The agent's id of the call, so that the answer finds its question. */
  readonly callId: string;
  readonly turn: number;
}

/** The `places` of a planned call, omitted when there are none. */
export function plannedPlaces(places: readonly string[]): Pick<PlannedCall, "places"> {
  return places.length === 0 ? {} : { places };
}

/** Who asked for a decision and under which terms. Written only by the gate, when it stages one. */
export interface Requested {
  /** The agent, then each agent that delegated to it. */
  readonly chain: readonly string[];
  /** The person on whose behalf; empty when none was named. */
  readonly owner: string;
  readonly messageId: string;
  readonly keys: readonly Pick<CallKey, "key" | "step">[];
  /** What it was made from (an edit, or a call that went back to review); empty for what an agent asked for. */
  readonly facts: JsonObject;
  /** People who changed its calls and therefore count as requesters. */
  readonly editors: readonly string[];
  /** The task claim under which it was asked for, and which must still be live when it runs. */
  readonly claim?: ClaimRef;
  /** The caller's own facts, for guards and validators; the gate reads none of them. */
  readonly metadata?: Metadata;
  /** The counter-checks of the calls, one per call; null for one that needs none. Absent when none does. */
  readonly deliverables?: readonly (Deliverable | null)[];
}

/** Names in the metadata of a decision that are the gate's own. A caller's metadata with one of them is refused. */
// biome-ignore format: a list
const OWN_METADATA: readonly string[] = [
  "requester", "chain", "owner", "messageId", "keys", "facts", "editors", "claim", DELIVERABLE_KEY,
];

/** What is wrong with a caller's metadata, for the caller; undefined when nothing is. */
export function callersMetadataProblem(metadata: Metadata): string | undefined {
  const own = Object.keys(metadata).find((name) => OWN_METADATA.includes(name));
  if (own === undefined) return undefined;
  return `Not executed: the metadata name "${own}" is the gate's own. Send the call again with another name.`;
}

/** The typed payload of a decision: its calls, and who asked for them. */
export interface CallProposal extends Requested {
  readonly calls: readonly PlannedCall[];
}

/** A decision with its decoded payload, which is decoded once per load. */
export interface CallDecision extends Decision {
  readonly proposal: CallProposal;
}

/** The agent that asked. */
export function agentOf({ chain }: Pick<Requested, "chain">): string {
  return chain[0] ?? "agent";
}

/** Everyone who asked for it: the chain, the owner, and the people who edited it since. None of them may decide about it. */
export function askersOf({ chain, owner, editors }: Requested): readonly string[] {
  return [...chain, ...(owner === "" ? [] : [owner]), ...editors];
}

/** The person whose edit made this confirmation; empty when there was none. The facts of a `confirm` are the gate's own. */
export function editorOf({ type, metadata: { editedBy } }: Interaction): string {
  return type === "confirm" && typeof editedBy === "string" ? editedBy : "";
}

/** What is asked for, by whom and in which session: a retry of the same call has the same one, whatever its call id is. */
export function contentHash(sessionId: SessionId, proposal: CallProposal): string {
  const calls = proposal.calls.map(({ callId, turn, ...call }) => call);
  const { claim } = proposal;
  const bound = claim === undefined ? {} : { claim: { ...claim } };
  const known =
    proposal.metadata === undefined ? {} : { metadata: proposal.metadata as JsonObject };
  const askers = askersOf(proposal);
  return sha256Hex(canonicalJson({ v: 1, sessionId, askers, calls, ...bound, ...known }));
}

/** A fresh draft that is marked as the gate's own. `createStaging` and `gate.decisions` never set the mark. */
export function draftOf(sessionId: SessionId, proposal: CallProposal, now: Instant): Decision {
  return { ...newDraft(sessionId, encodeProposal(proposal), now), origin: "port" };
}

/** The calls are canonical, so that the bytes that are hashed and shown are the bytes that run. */
export function encodeProposal(proposal: CallProposal): Diff {
  const { calls, chain, owner, messageId, keys, facts, editors, claim, deliverables } = proposal;
  const metadata = {
    ...proposal.metadata,
    requester: agentOf(proposal),
    chain,
    // What is absent reads as empty: it would be stored with every version of the row.
    ...(owner === "" ? {} : { owner }),
    ...(messageId === "" ? {} : { messageId }),
    ...(keys.length === 0 ? {} : { keys }),
    ...(Object.keys(facts).length === 0 ? {} : { facts }),
    ...(editors.length === 0 ? {} : { editors }),
    ...(claim === undefined ? {} : { claim: { ...claim } }),
    ...(deliverables === undefined
      ? {}
      : { [DELIVERABLE_KEY]: deliverables.length > 1 ? deliverables : deliverables[0] }),
  };
  const sourceTool = calls.length === 1 ? (calls[0]?.tool ?? "") : "bundle";
  const raw = new TextEncoder().encode(canonicalJson({ v: 1, calls }));
  return { sourceTool, raw, metadata };
}

/** Throws damaged_record for a payload that `encodeProposal` did not write. */
export function decodeProposal(decision: Staged & Pick<Decision, "id" | "diff">): CallProposal {
  const { id, diff } = decision;
  const action = parseJson(diff.raw);
  const calls = isObject(action) && action["v"] === 1 ? action["calls"] : undefined;
  if (!Array.isArray(calls) || !calls.every(isPlannedCall)) {
    const hint = "It was not staged as calls, so only the one who staged it can execute it.";
    throw new SallyportError("damaged_record", { id, column: "raw", hint });
  }
  return { calls, ...requestedBy(decision) };
}

/** The decision with its payload; one that was decoded before is returned as it is. Throws damaged_record. */
export function withProposal(decision: Decision | CallDecision): CallDecision {
  return "proposal" in decision ? decision : { ...decision, proposal: decodeProposal(decision) };
}

type Staged = Pick<Decision, "origin" | "metadata">;

/** Who asked, read from what the gate wrote. Empty for a decision that others staged. */
export function requestedBy(decision: Staged): Requested {
  const all = ownMetadata(decision);
  const { chain, owner, messageId, keys, facts, editors, claim } = all;
  const deliverables = all[DELIVERABLE_KEY];
  const others = Object.entries(all).filter(([name]) => !OWN_METADATA.includes(name));
  return {
    chain: Array.isArray(chain) ? chain.map(String) : [],
    owner: String(owner ?? ""),
    messageId: String(messageId ?? ""),
    keys: Array.isArray(keys) ? (keys as Requested["keys"]) : [],
    facts: (facts ?? {}) as JsonObject,
    editors: Array.isArray(editors) ? editors.map(String) : [],
    ...(claim === undefined ? {} : { claim: claimIn(claim as Partial<ClaimRef>) }),
    ...(others.length === 0 ? {} : { metadata: Object.fromEntries(others) }),
    ...(deliverables === undefined ? {} : { deliverables: deliverablesOf(deliverables) }),
  };
}

/** One call's counter-check stands alone, those of a bundle as a list. */
function deliverablesOf(stored: unknown): readonly (Deliverable | null)[] {
  return (Array.isArray(stored) ? stored : [stored]) as readonly (Deliverable | null)[];
}

/** Metadata of what others staged is their data, whatever its keys are called: the gate reads none of it. */
function ownMetadata({ origin, metadata }: Staged): Metadata {
  return origin === "port" ? metadata : {};
}

/** An unreadable claim counts as one without a holder. */
function claimIn({ id, fence }: Partial<ClaimRef>): ClaimRef {
  return { id: String(id), fence: Number(fence ?? -1) };
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isPlannedCall(value: JsonValue): value is JsonValue & PlannedCall {
  if (!isObject(value)) return false;
  const { tool, definition, workingDirectory, places = [], callId, turn } = value;
  if (!Array.isArray(places)) return false;
  const texts = [tool, definition, workingDirectory, callId, ...places];
  return (
    texts.every((text) => typeof text === "string") && typeof turn === "number" && "input" in value
  );
}

/**
 * What each call of a decision would touch, resolved as it would be now, for people who look at it. The gate resolves again
 * whenever it judges. Undefined for a call whose tool is missing or cannot tell.
 */
export async function targetsOf(
  decision: Staged & Pick<Decision, "id" | "diff">,
  registry: Registry,
): Promise<readonly (readonly ResolvedResource[] | undefined)[]> {
  const { calls } = decodeProposal(decision);
  return Promise.all(
    calls.map(async ({ tool, input, workingDirectory }) => {
      try {
        const touched = registry.get(tool)?.resources?.(input, { workingDirectory });
        return touched && (await resolveResources(touched, workingDirectory));
      } catch {
        // The gate would have refused it; here there is nothing to show.
        return undefined;
      }
    }),
  );
}

// What a person is shown.

/** What a reviewer sees of the calls of a decision, and what the approval is bound to. */
function previewOf(
  { store, registry }: GateContext,
  decision: CallDecision,
  facts: Pick<
    Preview,
    "policyHash" | "expiresAt" | "nonce" | "epoch" | "requires" | "machine" | "lane"
  >,
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
    ...warningsOf(proposal.calls, registry),
    ...(proposal.deliverables === undefined
      ? {}
      : { deliverables: proposal.deliverables as unknown as JsonValue }),
    ...facts,
  };
}

/** Tools that can be neither tried nor undone. */
function warningsOf(calls: readonly PlannedCall[], registry: Registry): Pick<Preview, "warnings"> {
  const said = calls.flatMap(({ tool: name }) => {
    const tool = registry.get(name);
    const warning = tool === undefined ? undefined : safetyWarning(tool);
    return warning === undefined ? [] : [warning.message];
  });
  return said.length === 0 ? {} : { warnings: [...new Set(said)] };
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
export function showingOf(
  context: GateContext,
  decision: CallDecision,
  { requires, deadlineMs, assignedTo, escalation, lane }: Review & Pick<Preview, "lane">,
  machine: Verdict,
  looks: Looks,
  epoch: string,
  because: readonly string[] = [],
): Showing {
  const { sessionId, proposal } = decision;
  const { calls } = proposal;
  const facts = {
    policyHash: context.policy.hash,
    requires,
    // From the store's own time, so that a process with a wrong clock makes no confirmation longer or shorter.
    expiresAt: toIso(fromIso(decision.updatedAt) + deadlineMs),
    nonce: context.newNonce(),
    epoch,
    machine: verdictFacts(machine),
    ...(lane === undefined ? {} : { lane }),
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
      // Where the stored preview has it from; the decision has it as `machineVerdict`.
      metadata: {
        ...proposal.facts,
        machine: verdictFacts(machine),
        askedBecause: askedBecause({
          tools: calls.flatMap(({ tool }) => context.registry.get(tool) ?? []),
          classes: classesOf(calls, context.registry, looks.dryRun),
          isBlind: looks.dryRun.some(isUnavailable),
          because,
        }),
      },
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
  const presented = tool.present === undefined ? undefined : presentedBy(tool, parsed.value);
  const facts = { sessionId, callId, input, workingDirectory, places };
  try {
    return await whileLooking(context, facts, async (call) => {
      const dryRun = await previewCall(tool, call);
      const stateVersion = (await tool.stateVersion?.(call)) ?? "";
      const seen = dryRun === undefined ? { unavailable: "no dry run" } : { ...dryRun };
      return { dryRun: { ...seen, ...definedFields({ presented }) }, stateVersion };
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
