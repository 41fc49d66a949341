import type { Decision, Metadata } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { parseJson } from "../model/parse-json.ts";
import type { ClaimRef } from "../store/tasks.ts";
import type { Registry } from "../tools/registry.ts";
import { type ResolvedResource, resolveResources } from "../tools/resources.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";

/**
 * One call inside a staged decision: which tool in which definition, with which input. The folder is part of it, because a
 * relative path means something else in another one.
 */
export interface PlannedCall {
  readonly tool: string;
  readonly definition: string;
  readonly input: JsonValue;
  readonly workingDirectory: string;
  /**
   * Where the gate found the files and folders that the call names. Part of what is approved: a link that leads elsewhere
   * by the time it runs makes another call of it. Left out when it names none.
   */
  readonly places?: readonly string[];
  /** As the agent asked for it, so that the answer finds its question. */
  readonly callId: string;
  readonly turn: number;
}

/** The `places` of a planned call, left out when there are none. */
export function plannedPlaces(places: readonly string[]): Pick<PlannedCall, "places"> {
  return places.length === 0 ? {} : { places };
}

/** The payload of a decision made of calls. Canonical, so the bytes that are hashed and shown are the bytes that run. */
export function encodeAction(calls: readonly PlannedCall[]): Uint8Array {
  return new TextEncoder().encode(canonicalJson({ v: 1, calls }));
}

/** Throws damaged_record for a payload that this module did not write. */
export function decodeAction({ id, diff }: Pick<Decision, "id" | "diff">): readonly PlannedCall[] {
  const action = parseJson(diff.raw);
  const calls = isObject(action) && action["v"] === 1 ? action["calls"] : undefined;
  if (!Array.isArray(calls) || !calls.every(isPlannedCall)) {
    const hint = "It was not staged as calls, so only the one who staged it can execute it.";
    throw new SallyportError("damaged_record", { id, column: "raw", hint });
  }
  return calls;
}

/** Marks a draft as the gate's own. Nobody else does: `createStaging` and `port.decisions` leave the mark out. */
export function stagedByGate(draft: Decision): Decision {
  return { ...draft, origin: "port" };
}

type Staged = Pick<Decision, "origin" | "metadata">;

/**
 * What the gate wrote down when it staged the calls. The metadata of what others staged is theirs, whatever its keys are
 * called: nothing of it says anything to the gate.
 */
export function ownFacts({ origin, metadata }: Staged): Metadata {
  return origin === "port" ? metadata : {};
}

/** The claim under which it was asked for; undefined when there was none. */
export function claimOf(decision: Staged): ClaimRef | undefined {
  const claim = ownFacts(decision)["claim"] as Partial<ClaimRef> | undefined;
  if (claim === undefined) return undefined;
  // What cannot be read is a claim that nobody holds.
  return { id: String(claim.id), fence: Number(claim.fence ?? -1) };
}

/** The agent that asked, then whoever delegated to it. */
export function chainOf(decision: Staged): readonly string[] {
  const { chain } = ownFacts(decision);
  return Array.isArray(chain) ? chain.map(String) : [];
}

/** On whose behalf it was asked for; empty when nobody was named. */
export function ownerOf(decision: Staged): string {
  return String(ownFacts(decision)["owner"] ?? "");
}

/** What it was made from (an edit, or what came back to review); empty for what an agent asked for. */
export function factsOf(decision: Staged): JsonObject {
  return (ownFacts(decision)["facts"] ?? {}) as JsonObject;
}

export function messageIdOf(decision: Staged): string {
  return String(ownFacts(decision)["messageId"] ?? "");
}

/** People who changed its calls and are counted among those who asked for it. */
export function editorsOf(decision: Staged): readonly string[] {
  const { editors } = ownFacts(decision);
  return Array.isArray(editors) ? editors.map(String) : [];
}

/** Everybody who asked for it: the chain, on whose behalf, and who changed it since. None of them may decide anything about it. */
export function askersOf(decision: Staged): readonly string[] {
  const owner = ownerOf(decision);
  return [...chainOf(decision), ...(owner === "" ? [] : [owner]), ...editorsOf(decision)];
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
 * What each call of a decision would touch, resolved as it would be now: for people who look at it. The gate resolves anew
 * whenever it judges. Undefined for a call whose tool is gone or cannot tell.
 */
export async function targetsOf(
  decision: Pick<Decision, "id" | "diff">,
  registry: Registry,
): Promise<readonly (readonly ResolvedResource[] | undefined)[]> {
  const calls = decodeAction(decision);
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
