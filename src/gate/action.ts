// What a decision of the gate is about: the calls, and who asked for them. Every step reads it from here and nowhere else.

import {
  type Decision,
  type Diff,
  type Metadata,
  newDraft,
  type SessionId,
} from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import type { Interaction } from "../model/interaction.ts";
import type { Instant } from "../model/names.ts";
import { parseJson } from "../model/parse-json.ts";
import type { CallKey } from "../store/confirmations.ts";
import type { ClaimRef } from "../store/tasks.ts";
import type { Registry } from "../tools/registry.ts";
import { type ResolvedResource, resolveResources } from "../tools/resources.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";

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

/** Who asked for a decision and under which terms. Written by the gate when it stages one, and by nobody else. */
export interface Requested {
  /** The agent, then each agent that delegated to it. */
  readonly chain: readonly string[];
  /** On whose behalf; empty when nobody was named. */
  readonly owner: string;
  readonly messageId: string;
  readonly keys: readonly Pick<CallKey, "key" | "step">[];
  /** What it was made from (an edit, or a call that went back to review); empty for what an agent asked for. */
  readonly facts: JsonObject;
  /** People who changed its calls and therefore count as requesters. */
  readonly editors: readonly string[];
  /** The task claim under which it was asked for, and which must still be live when it runs. */
  readonly claim?: ClaimRef;
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

/** Everyone who asked for it: the chain, the owner, and whoever changed it since. None of them may decide about it. */
export function askersOf({ chain, owner, editors }: Requested): readonly string[] {
  return [...chain, ...(owner === "" ? [] : [owner]), ...editors];
}

/** The person whose edit made this confirmation; empty when there was none. The facts of a `confirm` are the gate's own. */
export function editorOf({ type, metadata: { editedBy } }: Interaction): string {
  return type === "confirm" && typeof editedBy === "string" ? editedBy : "";
}

/** A fresh draft that is marked as the gate's own. `createStaging` and `gate.decisions` never set the mark. */
export function draftOf(sessionId: SessionId, proposal: CallProposal, now: Instant): Decision {
  return { ...newDraft(sessionId, encodeProposal(proposal), now), origin: "port" };
}

/** The calls are canonical, so that the bytes that are hashed and shown are the bytes that run. */
export function encodeProposal(proposal: CallProposal): Diff {
  const { calls, chain, owner, messageId, keys, facts, editors, claim } = proposal;
  const metadata = {
    requester: agentOf(proposal),
    chain,
    owner,
    messageId,
    keys,
    facts,
    ...(editors.length === 0 ? {} : { editors }),
    ...(claim === undefined ? {} : { claim: { ...claim } }),
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
  const { chain, owner, messageId, keys, facts, editors, claim } = ownMetadata(decision);
  return {
    chain: Array.isArray(chain) ? chain.map(String) : [],
    owner: String(owner ?? ""),
    messageId: String(messageId ?? ""),
    keys: Array.isArray(keys) ? (keys as Requested["keys"]) : [],
    facts: (facts ?? {}) as JsonObject,
    editors: Array.isArray(editors) ? editors.map(String) : [],
    ...(claim === undefined ? {} : { claim: claimIn(claim as Partial<ClaimRef>) }),
  };
}

/** Metadata of what others staged is their data, whatever its keys are called: the gate reads none of it. */
function ownMetadata({ origin, metadata }: Staged): Metadata {
  return origin === "port" ? metadata : {};
}

/** What cannot be read is a claim that nobody holds. */
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
