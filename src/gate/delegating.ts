// Delegations, runs and grants, wired to the sessions and rollbacks of the gate.

import { createDelegations, type Delegations } from "../delegation/delegations.ts";
import {
  createGateRunner,
  type DelegationRequest,
  grantAuthorisation,
  type Parent,
  planError,
} from "../delegation/plan.ts";
import { createRuns, type Runs } from "../delegation/runs.ts";
import { resolvePlaces } from "../delegation/scope.ts";
import {
  type Delegation,
  type DelegationId,
  isDelegated,
  isRunId,
  type Run,
  type RunEvent,
  type RunId,
} from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import type { Interaction, Question, QuestionAnswer } from "../model/interaction.ts";
import { foldName } from "../model/names.ts";
import type { OperationId } from "../model/operation.ts";
import type { By } from "../store/decisions.ts";
import type { GrantStore } from "../store/grants.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { definedFields } from "../util/defined-fields.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonValue } from "../util/json.ts";
import type { GateContext } from "./context.ts";
import { eventOf, hooksAt } from "./hooks.ts";
import { openQuestion, whyNot } from "./inbox.ts";
import { rollback } from "./rollback.ts";
import { type PlannedUndo, rollbackPlan } from "./rollback-plan.ts";
import type { RollbackReport } from "./rollback-report.ts";
import { openSession, type Session } from "./session.ts";
import { undoDispatcher } from "./undo.ts";

/** With what needs the operations of those who worked. */
export interface GateDelegations extends Delegations<Session> {
  /** Takes back what was done under a delegation and everything below it, the newest delegation first; `only` chooses. */
  rollback(
    id: DelegationId,
    by: string,
    part?: { readonly only?: readonly OperationId[] },
  ): Promise<readonly TakenBack[]>;
  /** What that would do as things are now, in the same order. Changes nothing. */
  rollbackPlan(id: DelegationId): Promise<readonly PlannedUndo[]>;
}

export interface TakenBack {
  readonly delegationId: DelegationId;
  readonly report: RollbackReport;
}

export interface GateRuns extends Runs {
  /**
   * Puts the files that the run may write before a person, as a question in the inbox: bound to exactly these files, open to
   * everyone who may decide and did not ask. Asked again it says what became of it. A yes approves the plan in that person's name.
   */
  proposePlan(id: RunId, files: readonly string[]): Promise<QuestionAnswer>;
  /** The person's answer to a question of `proposePlan` takes effect; any other question is left alone. */
  planAnswered(question: Interaction): Promise<void>;
}

/** Delegations, runs and grants, as the gate offers them. */
export function delegatingOf(context: GateContext): {
  delegations: GateDelegations;
  runs: GateRuns;
  grants: GrantStore;
} {
  const { store, timers, clock, random, folders, newId } = context;
  const { gatePolicies: policies, onLedgerProblem: onProblem } = context;
  const delegations = createDelegations<Session>({
    store,
    policies,
    folderFor: (asked) => folders.check(asked),
    open: (delegation, signal) => childSession(context, delegation, signal),
    clock,
    random,
    timers,
    newId,
    onProblem,
    objections: (parent, request) => objectionsOf(context, parent, request),
  });
  const told = async (id: DelegationId) => tellEnded(context, await store.delegations.get(id));
  const runs = createRuns({
    runs: store.runs,
    audit: store.audit,
    gate: createGateRunner({ policies, ledger: store.gateLedger, newTraceId: newId, onProblem }),
    authorisation: async (id) => grantAuthorisation(await store.grants.listFor(id), clock.now()),
    newId,
  });
  const takesBack: GateDelegations["rollback"] = (id, by, { only } = {}) =>
    takeBack(context, id, by, only);
  return {
    delegations: {
      ...delegations,
      rollback: takesBack,
      rollbackPlan: (id) => planBack(context, id),
      async report(id, output, token) {
        const outcome = await delegations.report(id, output, token);
        await told(id);
        return outcome;
      },
      async fail(id, reason, by) {
        const failed = await delegations.fail(id, reason, by);
        await told(id);
        return failed;
      },
      async revoke(id, reason, by) {
        const revoked = await delegations.revoke(id, reason, by);
        await told(id);
        return revoked;
      },
      async sweep() {
        const swept = await delegations.sweep();
        for (const id of swept) await told(id);
        return swept;
      },
    },
    runs: withPlans(context, runs),
    grants: personsGrants(context),
  };
}

const YES = "approve";
const PLAN = "plan-";

/** Its id and its text are made of the files alone, so that no other question can be taken for it. */
function planQuestion({ id, feature }: Run, files: readonly string[]): Question {
  const hash = sha256Hex(canonicalJson([id, ...files]));
  const text = `May the run "${feature}" write these ${files.length} files?\n${files.join("\n")}\nHash of the list: ${hash}`;
  return { callId: `${PLAN}${hash}`, text, choices: [YES, "reject"] };
}

function withPlans(context: GateContext, runs: Runs): GateRuns {
  const { store, people, approvalMs } = context;

  async function chainOf({ id, lead }: Run): Promise<readonly string[]> {
    const { owner = "" } = (await store.sessions.peek(id)) ?? {};
    return owner === "" ? [lead] : [lead, owner];
  }

  /** Without a list of people: who has ever called a tool, works in this run, or is named as an agent. */
  async function isAgent(id: RunId, name: string): Promise<boolean> {
    if (foldName(name).startsWith("agent:")) return true;
    const below = await store.delegations.list({ rootSession: id });
    if (below.some(({ agents }) => agents.some((one) => foldName(one) === foldName(name)))) {
      return true;
    }
    return (await store.calls.find({ agent: name }, { limit: 1 })).length > 0;
  }

  async function approvePlan(id: RunId, files: readonly string[], by: By): Promise<Run> {
    const chain = await chainOf(await runs.get(id));
    const hint = whyNot(by.actor, { chain, assignedTo: "" }, people);
    if (hint !== undefined)
      throw new SallyportError("dependency_denied", { id, by: by.actor, hint });
    if (people === undefined && (await isAgent(id, by.actor))) {
      const why = "An agent cannot approve a plan, not even that of another one. Ask a person.";
      throw new SallyportError("dependency_denied", { id, by: by.actor, hint: why });
    }
    return runs.approvePlan(id, files, by);
  }

  async function proposePlan(id: RunId, given: readonly string[]): Promise<QuestionAnswer> {
    const run = await runs.get(id);
    const files = await resolvePlaces(given, "");
    if (files.some((file) => /[\p{Cc}\u2028\u2029]/u.test(file))) {
      const hint = "A name with a line break could pass for two. Rename the file.";
      throw new SallyportError("invalid_input", { what: "files", hint });
    }
    const asker = { sessionId: id, chain: await chainOf(run) };
    const question = planQuestion(run, files);
    const answer = await openQuestion(question, asker, store.interactions, approvalMs);
    if (answer.answer !== "answered" || answer.value !== YES || isPlan(run, files)) return answer;
    await approvePlan(id, files, { actor: answer.by });
    return answer;
  }

  return {
    ...runs,
    approvePlan,
    proposePlan,
    // A person's yes and what a command has shown are recorded where they happen, and nowhere else.
    async tell(id, event, by) {
      if (!FORGED.includes(event.kind)) return runs.tell(id, event, by);
      const hint =
        "Put the plan before a person with proposePlan; let the verify tools record evidence.";
      throw new SallyportError("not_allowed", { id, event: event.kind, hint });
    },
    async planAnswered({ sessionId, callId, displayText, answer }) {
      if (!isRunId(sessionId) || !callId.startsWith(PLAN) || answer !== YES) return;
      const run = await store.runs.peek(sessionId);
      const files = displayText.split("\n").slice(1, -1);
      if (run === undefined || planQuestion(run, files).text !== displayText) return;
      if (planQuestion(run, files).callId === callId) await proposePlan(run.id, files);
    },
  };
}

const FORGED: readonly RunEvent["kind"][] = ["plan_approved", "evidence_recorded"];

function isPlan({ planFiles }: Run, files: readonly string[]): boolean {
  return canonicalJson([...planFiles]) === canonicalJson([...files]);
}

/** What the hooks say against a delegation. */
async function objectionsOf(
  context: GateContext,
  { sessionId, agents, owner = "", workingDirectory = "" }: Parent,
  request: DelegationRequest,
) {
  const about = { sessionId, chain: agents, owner, workingDirectory };
  const input = JSON.parse(JSON.stringify(request)) as JsonValue;
  const said = await hooksAt(context, { ...eventOf("before_delegation", about), input });
  if (said.answer === "allow") return [];
  return said.findings.map(({ policy, message }) => planError("hard-deny", policy, message));
}

/** A delegation that has ended is the end of its session too. */
async function tellEnded(context: GateContext, delegation: Delegation): Promise<void> {
  const { id, agents, owner, workingDirectory, state, output, reason } = delegation;
  const about = { sessionId: id, chain: agents, owner, workingDirectory };
  const result = { state, output, reason, promiseMet: delegation.promiseMet === true };
  await hooksAt(context, { ...eventOf("after_delegation", about), id, result });
  context.started.delete(id);
  await hooksAt(context, { ...eventOf("session_end", about), result: { reason: state } });
}

async function takeBack(
  context: GateContext,
  id: DelegationId,
  by: string,
  only?: readonly OperationId[],
): Promise<readonly TakenBack[]> {
  const { operations } = context.store;
  const below = await withBelow(context, id);
  const chosen = only && (await Promise.all(only.map((one) => operations.get(one))));
  const stray = chosen?.find(({ sessionId }) => !below.some((one) => one.id === sessionId));
  if (stray !== undefined) throw new SallyportError("not_found", { id: stray.id });
  const taken: TakenBack[] = [];
  for (const { id: delegationId, agents } of below) {
    const own = chosen?.filter(({ sessionId }) => sessionId === delegationId);
    if (own?.length === 0) continue;
    const scope = {
      sessionId: delegationId,
      ...definedFields({ only: own?.map((operation) => operation.id) }),
    };
    const dispatch = undoDispatcher(context, agents);
    const report = await rollback({ operations, scope, dispatch, by });
    taken.push({ delegationId, report });
  }
  return taken;
}

/** The newest first: what builds on another's work is undone before it. */
async function withBelow({ store }: GateContext, id: DelegationId): Promise<readonly Delegation[]> {
  const { rootSession } = await store.delegations.get(id);
  const all = await store.delegations.list({ rootSession });
  return all.toReversed().filter(({ chain }) => chain.includes(id));
}

async function planBack(context: GateContext, id: DelegationId): Promise<readonly PlannedUndo[]> {
  const lines: PlannedUndo[] = [];
  for (const { id: sessionId } of await withBelow(context, id)) {
    lines.push(...(await rollbackPlan(context, { sessionId })));
  }
  return lines;
}

/** A grant is a person's decision: not of the agent it is for, nor of anyone who delegated to it. */
function personsGrants({ store, people }: GateContext): GrantStore {
  async function askers(sessionId: string): Promise<readonly string[]> {
    if (isDelegated(sessionId)) {
      const { agents, owner } = await store.delegations.get(sessionId);
      return [...agents, owner];
    }
    const run = await store.runs.peek(sessionId);
    const session = await store.sessions.peek(sessionId);
    return [run?.lead ?? "", session?.agent ?? "", session?.owner ?? ""];
  }
  return {
    ...store.grants,
    async give(grant) {
      const chain = (await askers(grant.sessionId)).filter((name) => name !== "");
      const hint = whyNot(grant.by, { chain, assignedTo: "" }, people);
      if (hint !== undefined) throw new SallyportError("not_allowed", { by: grant.by, hint });
      return store.grants.give(grant);
    },
  };
}

/**
 * The session of a sub-agent. Everything in it is bound by its delegation, which the gate and the store find by its id. Here
 * is only what they cannot see: in whose name it speaks, and that no one is asked on behalf of one that has ended.
 */
function childSession(
  context: GateContext,
  { id, agents, owner, workingDirectory }: Delegation,
  signal: AbortSignal,
): Session {
  const { tenant, delegations } = context.store;
  const caller = { tenant, sessionId: id, chain: agents, owner, workingDirectory, signal };
  const session = openSession(context, caller);

  async function checkAlive(): Promise<void> {
    const why = await delegations.whyOver(id);
    if (why === undefined) return;
    const hint = `${why} Stop working on this.`;
    throw new SallyportError("illegal_transition", { id, hint });
  }

  return {
    ...session,
    async ask(question) {
      await checkAlive();
      return session.ask(question);
    },
    async reply(interaction, text) {
      await checkAlive();
      return session.reply(interaction, text);
    },
    // Whatever name it gives, a sub-agent rolls back in its own.
    rollback: (_by, part) => session.rollback(agents[0] ?? "agent", part),
  };
}
