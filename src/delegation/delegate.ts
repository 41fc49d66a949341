import { type Delegation, delegationId, isDelegated, type Scope } from "../model/delegation.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import { foldName } from "../model/names.ts";
import type { CompletionPromise } from "../model/promise.ts";
import type { Run } from "../model/run.ts";
import { isBlocking } from "../policy/answers.ts";
import type { CreateRefusal } from "../store/delegations.ts";
import { resolveFolder, resolveResources } from "../tools/resources.ts";
import { cutText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { DelegationParts } from "./delegations.ts";
import { createGateRunner, grantAuthorisation } from "./gate-runner.ts";
import {
  createPlan,
  type Delegated,
  type DelegationRequest,
  type Parent,
  type PlanError,
  type PlanVerdict,
  planError,
  validatePlan,
} from "./plan.ts";
import { reduceRun } from "./runs.ts";
import {
  type Capsule,
  capsuleOf,
  describeCapsule,
  isInside,
  narrowScope,
  type ScopeRequest,
} from "./scope.ts";

/** As many as one request may hand out. */
export const MOST_TASKS = 8;
/** As many as may work for one parent at the same time; the store keeps it, also against several processes. */
export const MOST_AT_ONCE = 4;
/** Links of a chain in which each gets what the one before has found. */
export const MOST_LINKS = 8;
/** Levels below a root, whatever a scope says. */
export const MOST_DEPTH = 8;
/** Of what comes back, in characters. */
export const LONGEST_OUTPUT = 30_000;

export const DEFAULT_CALLS = 100;
export const DEFAULT_TTL_MS = 30 * 60 * 1000;

const CUT = "\n[cut: it was longer than 30,000 characters]";

/** Never longer than the limit, and where something is missing it says so. */
export function cutOutput(output: string): string {
  if (output.length <= LONGEST_OUTPUT) return output;
  return `${cutText(output, LONGEST_OUTPUT - CUT.length)}${CUT}`;
}

/** Plan, checks, gate, then the row that makes it true; or a refusal that says everything that was wrong. */
export async function delegate(
  given: Parent,
  request: DelegationRequest,
  parts: DelegationParts<unknown>,
  isDryRun: boolean,
): Promise<Delegated> {
  const { store, clock, random, newId } = parts;
  const chain = isDelegated(given.sessionId)
    ? await store.delegations.chainOf(given.sessionId)
    : [];
  const parent = chain.at(-1);
  // Below the root the record says who is above, not the one who asks.
  const above = parent?.agents ?? given.agents;
  const rootSession = parent?.rootSession ?? given.sessionId;
  const run = await store.runs.peek(rootSession);
  const folder = await childFolder(request, parent ?? given, parts);
  const { workingDirectory } = folder;
  const promise = promiseOf(request, run);
  const { role, task, capsule, writePermission } = request;
  const plan = createPlan(
    {
      role,
      task,
      capsule,
      promiseId: promise.id,
      traceId: newId(),
      ...(writePermission === undefined ? {} : { writePermission }),
    },
    { clock, random },
  );
  const places = await resolvedPlaces(request, workingDirectory);
  const narrowed = narrowScope(
    plan,
    { ...request, ...places },
    {
      ...(parent === undefined ? {} : { scope: scopeOf(parent, chain) }),
      ...(run === undefined ? {} : { run }),
    },
  );
  const gate = createGateRunner({
    policies: parts.policies,
    ledger: isDryRun ? undefined : store.gateLedger,
    newTraceId: newId,
    onProblem: parts.onProblem,
  });
  const found = await validatePlan(plan, {
    gate,
    authorisation: grantAuthorisation(await store.grants.listFor(rootSession), clock.now()),
    workingDirectory,
    caller: { sessionId: rootSession, actor: above[0] ?? "agent" },
    ...(run === undefined ? {} : { run: { id: run.id, phase: run.phase } }),
  });
  const extra = [
    ...(run === undefined ? [] : checkRun(run, above, chain.length === 0)),
    ...folder.errors,
    ...promise.errors,
    ...narrowed.errors,
    ...namesWrong(request.agent, above),
  ];
  const verdict: PlanVerdict = {
    ...found,
    errors: [...found.errors, ...extra],
    allowed: found.allowed && extra.length === 0,
  };

  const dry: Capsule = {
    delegationId: "",
    planId: plan.planId,
    role,
    task,
    context: capsule,
    promise: promise.promise,
    scope: narrowed.scope,
    workingDirectory,
  };
  if (isDryRun) return { answer: "dry_run", capsule: dry, text: describeCapsule(dry), verdict };

  async function refuse(why: PlanVerdict): Promise<Delegated> {
    const findings = [...why.errors, ...(why.gate?.findings ?? [])];
    const data = {
      agent: request.agent.toWellFormed(),
      role,
      trace: plan.traceId,
      findings: findings.map(({ severity, policy }) => ({ severity, policy })),
    };
    const actor = above[0] ?? "agent";
    const { planId } = plan;
    await store.delegations.refuse({ planId, sessionId: rootSession, actor, data });
    const said = findings.filter(isBlocking).map(({ message }) => message);
    return { answer: "denied", text: `Not delegated. ${said.join(" ")}`, verdict: why };
  }

  if (!verdict.allowed) return refuse(verdict);
  if (promise.isNew && run !== undefined) await givePromise(run, promise.promise, above, parts);
  const token = Buffer.from(random.bytes(32)).toString("base64url");
  const { ttlMs } = narrowed;
  const answer = await store.delegations.create({
    id: delegationId(newId()),
    parent,
    parentSession: given.sessionId,
    rootSession,
    agents: [request.agent, ...above],
    owner: parent?.owner ?? given.owner ?? "",
    runId: run?.id ?? "",
    traceId: plan.traceId,
    task,
    capsule,
    promise: promise.promise,
    scope: narrowed.scope,
    ...(ttlMs === undefined ? {} : { ttlMs }),
    atOnce: MOST_AT_ONCE,
    workingDirectory,
    tokenHash: sha256Hex(token),
    actor: above[0] ?? "agent",
  });
  if (!answer.created) {
    const error = planError("hard-deny", "store", REFUSALS[answer.reason]);
    return refuse({ ...verdict, allowed: false, errors: [...verdict.errors, error] });
  }
  const { delegation } = answer;
  return { answer: "delegated", delegation, capsule: capsuleOf(delegation), token, verdict };
}

const REFUSALS: Readonly<Record<CreateRefusal, string>> = {
  stopped: "Everything was stopped by an operator. Ask for it again once work was resumed.",
  parent_exceeded:
    "What you work under is over, or has not that many calls or that much time left. Ask for less, or stop.",
  too_many: `${MOST_AT_ONCE} sub-agents work for you already. Wait until one of them has ended.`,
};

/** A run that has ended hands out nothing, and only its lead speaks for it. */
function checkRun(run: Run, above: readonly string[], isRoot: boolean): readonly PlanError[] {
  if (run.status !== "open") {
    return [planError("hard-deny", "run", "The run has ended. Start another one.")];
  }
  if (!isRoot || foldName(above[0] ?? "") === foldName(run.lead)) return [];
  return [
    planError("hard-deny", "run", `The run is led by ${run.lead}. Only they delegate in it.`),
  ];
}

/** The parent's scope with what is really left: others may have used up what they share from above. */
function scopeOf({ scope }: Delegation, chain: readonly Delegation[]): Scope {
  return { ...scope, calls: Math.min(...chain.map((one) => one.scope.calls)) };
}

/** Somebody who is above itself would be asked by itself. */
function namesWrong(agent: string, above: readonly string[]): readonly PlanError[] {
  if (typeof agent !== "string" || agent.trim() === "") {
    return [planError("hard-deny", "agent", "Say which agent it is for.")];
  }
  // Another spelling of a name is still the same one.
  if (!above.map(foldName).includes(foldName(agent))) return [];
  const message = `${agent} is above itself in this chain. Choose another agent.`;
  return [planError("hard-deny", "cycle", message)];
}

/** Rights only shrink downwards: the child works in its parent's folder or below it, links resolved. */
async function childFolder(
  { workingDirectory: asked }: DelegationRequest,
  { workingDirectory: above }: Pick<Parent, "workingDirectory">,
  { folderFor }: DelegationParts<unknown>,
): Promise<{ readonly workingDirectory: string; readonly errors: readonly PlanError[] }> {
  if (asked === undefined || asked === above) return { workingDirectory: above, errors: [] };
  const refused = (message: string) => ({
    workingDirectory: above,
    errors: [planError("hard-deny", "folder", message)],
  });
  if (above === "") {
    try {
      return { workingDirectory: await folderFor(asked), errors: [] };
    } catch (error) {
      if (!isSallyportError(error, "not_allowed")) throw error;
      return refused(
        `You have no working folder, and ${asked} is not among the folders that the operator listed as sessionFolders. Leave workingDirectory out.`,
      );
    }
  }
  const found = await resolveFolder(asked);
  const outer = await resolveFolder(above);
  if (found !== undefined && outer !== undefined && isInside(found, [outer])) {
    return { workingDirectory: found, errors: [] };
  }
  return refused(
    `The folder ${asked} is not inside yours, ${above}. Leave workingDirectory out, or name a folder below it.`,
  );
}

async function resolvedPlaces(
  { planFiles, documents, artefact }: ScopeRequest,
  workingDirectory: string,
): Promise<ScopeRequest> {
  return {
    ...(planFiles && { planFiles: await resolvePlaces(planFiles, workingDirectory) }),
    ...(documents && { documents: await resolvePlaces(documents, workingDirectory) }),
    ...(artefact && { artefact: await resolvePlace(artefact, workingDirectory) }),
  };
}

interface FoundPromise {
  readonly id: string;
  readonly promise: CompletionPromise;
  /** The run has to be told of it, so that evidence can be left for it. */
  readonly isNew: boolean;
  readonly errors: readonly PlanError[];
}

function promiseOf({ promise }: DelegationRequest, run: Run | undefined): FoundPromise {
  const id = typeof promise === "string" ? promise : promise.id;
  const known = run?.promises.find((one) => one.id === id);
  if (typeof promise !== "string") {
    const isSame = known === undefined || JSON.stringify(known) === JSON.stringify(promise);
    const message = `The run has given another promise ${id}. Choose another id.`;
    const errors = isSame ? [] : [planError("hard-deny", "promise", message)];
    return { id, promise, isNew: known === undefined, errors };
  }
  if (known !== undefined) return { id, promise: known, isNew: false, errors: [] };
  // An empty id is found by the check of the plan itself.
  const message = `There is no promise ${id}. Say what must be true in the end.`;
  const errors = id === "" ? [] : [planError("hard-deny", "promise", message)];
  return { id, promise: { id, statement: "", evidence: [] }, isNew: false, errors };
}

async function givePromise(
  run: Run,
  promise: CompletionPromise,
  [actor = run.lead]: readonly string[],
  { store }: DelegationParts<unknown>,
): Promise<void> {
  for (let tries = 0; tries < 20; tries += 1) {
    const now = await store.runs.get(run.id);
    if (now.promises.some(({ id }) => id === promise.id)) return;
    const event = { kind: "promised", promise } as const;
    if ((await store.runs.move(reduceRun(now, run.id, event), event, { actor })) !== undefined)
      return;
  }
  throw new SallyportError("concurrent_modification", { id: run.id });
}

/** Names of other resources have a word and a colon in front, such as `sql:shop/orders`; a drive has only one letter. */
const OTHER = /^[a-z][a-z0-9+.-]+:/i;

/**
 * Places of a scope as calls will be resolved later: absolute, links followed. A link that is bent afterwards therefore leads
 * out of the scope and not the scope along with it. Throws invalid_input for a place that nobody can resolve.
 */
export async function resolvePlaces(
  places: readonly string[],
  workingDirectory: string,
): Promise<readonly string[]> {
  return Promise.all(places.map((place) => resolvePlace(place, workingDirectory)));
}

async function resolvePlace(place: string, workingDirectory: string): Promise<string> {
  if (place === "" || OTHER.test(place)) return place;
  const file = { kind: "file", path: place, access: "write" } as const;
  const [found] = await resolveResources([file], workingDirectory);
  if (found?.kind === "file") return found.resolved;
  const reason = found?.kind === "unresolved" ? found.reason : "it is no path";
  const hint = `Nobody can say where this place is: ${reason}. Use an absolute path.`;
  throw new SallyportError("invalid_input", { what: "place", hint });
}
