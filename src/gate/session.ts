// Where a call arrives: an agent's session. A known key returns the earlier result; a new call is judged, then executed or
// proposed. After it: judge.

import type { Delegated, DelegationRequest } from "../delegation/plan.ts";
import { delegateWork, type WorkRequest, type WorkResult } from "../delegation/worker.ts";
import type { Decision, DecisionId } from "../model/decision.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { GateAnswer } from "../model/finding.ts";
import type { Interaction, InteractionId, Question, QuestionAnswer } from "../model/interaction.ts";
import { isName } from "../model/names.ts";
import type { CallAnswer, CallRequest, NewCall } from "../model/operation.ts";
import { callKeyId } from "../store/decisions.ts";
import { metadataOf, type Progress, safetyWarning, type Tool } from "../tools/tool.ts";
import { definedFields } from "../util/defined-fields.ts";
import type { JsonValue } from "../util/json.ts";
import { firstOf } from "../util/timers.ts";
import {
  answerOf,
  callAnswerOf,
  earlierCall,
  OTHER_CALL,
  pending,
  rejection,
  resultOfCall,
  resultOfDecision,
  resultOfId,
  standingDecision,
  type WaitOptions,
  waitFor,
} from "./answers.ts";
import { runOrder } from "./attempt.ts";
import { mayPlantDecoy } from "./attention.ts";
import type { GateContext } from "./context.ts";
import {
  hookedSession,
  type Reached,
  type ReportedPoint,
  saidIn,
  unhookedSession,
} from "./hooks.ts";
import {
  NOT_EXTERNAL,
  type PermitAnswer,
  type PermitTerms,
  permitAllowed,
  permitApproved,
  reportCall,
  wasGivenBack,
} from "./host-call.ts";
import {
  ASK_USER,
  type Asker,
  allQuestions,
  openQuestion,
  questionId,
  questionIn,
  withdrawOpen,
} from "./inbox.ts";
import {
  type Caller,
  judgeCall,
  type Ready,
  ruledCall,
  ruleFor,
  ruleOf,
  saidAfter,
} from "./judge.ts";
import type { ToolOffer } from "./offering.ts";
import { type CallResult, orchestrate } from "./orchestrate.ts";
import { watchSession } from "./order.ts";
import type { PermitOutcome } from "./permit.ts";
import { type CallPreview, previewOf } from "./preview.ts";
import {
  type Ahead,
  BEGUN,
  type Proposal,
  pastFirstWrite,
  proposalOf,
  propose,
  readAhead,
} from "./propose.ts";
import { executeNow } from "./recover.ts";
import { deliverCall, undelivered } from "./resume.ts";
import { type RollbackScope, rollback, undoneIfBlocked } from "./rollback.ts";
import { type PlannedUndo, rollbackPlan } from "./rollback-plan.ts";
import type { RollbackReport } from "./rollback-report.ts";
import { runDecision } from "./run.ts";
import { callersMetadataProblem, callHash, withProposal } from "./show.ts";
import { undoDispatcher } from "./undo.ts";

/** One conversation or run of an agent. Everything it does carries its id. */
export interface Session {
  readonly id: string;
  /**
   * Asks the hooks at `session_start`, once; the first work of a session does so by itself. Throws not_allowed when one
   * refuses: then nothing of this session is done.
   */
  start(): Promise<void>;
  /** Ends it: the hooks at `session_end` are told, and this object does no more work. */
  end(reason?: string): Promise<void>;
  /** Asks the hooks at a point that only the host of the agent knows of. The host must honour the answer. */
  reach(point: ReportedPoint, input: JsonValue): Promise<Reached>;
  /** The tools it is offered, safer ones first; with `deferredTools` those that it has loaded. */
  tools(): Promise<readonly ToolOffer[]>;
  /** One tool call, from judging to the answer. Throws when the store fails, and quota_exceeded when too many wait for people. */
  call(request: NewCall, options?: CallOptions): Promise<CallAnswer>;
  /** Of an external tool, for a caller that executes it: its permit, where allowed or approved. Throws as `permits.take` does. */
  permit(request: NewCall, how: PermitTerms): Promise<PermitAnswer>;
  /** What came of a call whose permit was taken, by its key, request key or operation. Throws as `permits.report` does. */
  report(key: string, report: { readonly by: string } & PermitOutcome): Promise<CallAnswer>;
  /** What the gate would say to a call, and its dry run. Asks nobody and changes nothing; the trail says that it was judged. */
  preview(request: NewCall): Promise<CallPreview>;
  /** Several calls of one message: neighbouring safe ones together, order kept around writes, one result for each. */
  callAll(requests: readonly NewCall[], options?: CallOptions): AsyncIterable<CallResult>;
  /** Several calls as one decision: approved, rejected and executed as a whole. */
  stage(requests: readonly NewCall[]): Promise<CallAnswer>;
  /** Asks a person. The answer may take days; asked again with the same id it answers what became of the question. */
  ask(question: Question): Promise<QuestionAnswer>;
  /**
   * The result of a call of this session, by its key or by any id that its answer carries (decision, interaction,
   * operation), or of a question by its call id. Undefined when it was never asked for.
   */
  resultOf(id: string): Promise<CallAnswer | undefined>;
  /**
   * The caller has handed on this outcome of the call with this key. True for the first who says so, in whichever process; false
   * also for a call that needed no decision.
   */
  deliver(key: string, answer: CallAnswer): Promise<boolean>;
  /** Waits until the same is settled, or the time is over: then `pending` or `unknown` comes back, and nothing is lost. */
  wait(id: string, options: WaitOptions): Promise<CallAnswer | undefined>;
  /** What reviewers asked back and this agent has not replied to yet. */
  askedBack(): Promise<readonly Interaction[]>;
  reply(id: InteractionId, text: string): Promise<Interaction>;
  /** The agent withdraws its question: it can no longer be approved or answered. Throws not_found. */
  withdraw(id: InteractionId, reason: string): Promise<Interaction>;
  /** Delegates a task to a sub-agent, or says why not; a dry run shows what would be delegated. */
  delegate(request: DelegationRequest, how?: { readonly dryRun: boolean }): Promise<Delegated>;
  /** The same for several, with the work done: one after the other, side by side, or as a chain. */
  delegateWork(work: Omit<WorkRequest<Session>, "parent">): Promise<readonly WorkResult[]>;
  /**
   * Calls off everything that this session has waiting for people: questions, and calls that are not decided. What was
   * approved, and calls whose outcome is not known, stay. Returns what was called off; one that was just decided is not.
   */
  withdrawAll(reason: string, by?: string): Promise<readonly InteractionId[]>;
  /** Undoes what this session did, or one message or one call of it, newest first. */
  rollback(by: string, part?: Omit<RollbackScope, "sessionId">): Promise<RollbackReport>;
  /** What `rollback` would do as things are now, newest first. Changes nothing. */
  rollbackPlan(part?: Omit<RollbackScope, "sessionId">): Promise<readonly PlannedUndo[]>;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  /**
   * For callers that lose their keys: an identical call of this session that has ended since, and whose outcome was not handed on
   * (`deliver`), is the answer to this one, once.
   */
  readonly undelivered?: boolean;
  /** Shape: push, while a call runs. */
  readonly onProgress?: (callId: string, report: Progress) => void;
}

export function openSession(context: GateContext, caller: Caller): Session {
  const { store, observer, at } = context;
  const agent = caller.chain[0] ?? "agent";
  const { owner = "" } = caller;
  const asker: Asker = {
    sessionId: caller.sessionId,
    chain: owner === "" ? caller.chain : [...caller.chain, owner],
  };

  const { workingDirectory } = caller;
  const parent = { sessionId: caller.sessionId, agents: caller.chain, owner, workingDirectory };

  const hooked =
    context.hooks.length === 0 ? unhookedSession(caller.sessionId) : hookedSession(context, caller);

  /** Throws not_allowed when a hook does not let the session begin. */
  async function start(): Promise<void> {
    const said = await hooked.whyNot();
    if (said === undefined) return;
    throw new SallyportError("not_allowed", { id: caller.sessionId, hint: saidIn(said) });
  }

  /** Every record of a call carries its id, so one without an id gets one first. */
  function named(request: NewCall): CallRequest {
    const { callId = request.key ?? context.newId() } = request;
    return { ...request, callId };
  }

  /** `siblings` are the decisions that other calls of the same message have led to. */
  async function call(
    given: NewCall,
    options: CallOptions = {},
    siblings?: Set<string>,
  ): Promise<CallAnswer> {
    const request = named(given);
    const [{ sessionId }, { callId }] = [caller, request];
    const { onProgress } = options;
    const work = async () => told([request], await callOnce(request, options, siblings));
    if (onProgress === undefined) return work();
    const tell = (report: Progress) => onProgress(callId, report);
    return context.running.following({ group: sessionId, name: callId, tell }, work);
  }

  async function callOnce(
    request: CallRequest,
    options: CallOptions,
    siblings: Set<string> | undefined,
  ): Promise<CallAnswer> {
    const known = await knownCalls([request]);
    if (known !== undefined) return known;
    const stopped = await hooked.whyNot();
    if (stopped !== undefined) return refusedAtStart(stopped);
    const judged = await judge(request);
    if (!isReady(judged)) return judged;
    if (judged.tool.name === ASK_USER) return askedByTool(request, judged.input);
    const isExternal = judged.tool.execution === "external";
    const asks = judged.verdict === "ask";
    const ruled =
      asks && !judged.needsPerson && !isExternal
        ? await ruledCall(context, judged.tool, judged.facts, caller)
        : undefined;
    const ahead =
      asks || isExternal
        ? readAhead(store, proposalOf(caller, [judged], [request]), [request])
        : undefined;
    const rule = ruled && (await ruleOf(context, ruled));
    if (ahead !== undefined && rule === undefined) {
      return stageReady([judged], [request], siblings, { ahead, isLost: options.undelivered });
    }
    const how = signalOf(options.signal, caller.signal);
    if (judged.verdict === "review") return reviewReady(judged, request, how);
    const key = keyOf(request);
    const watch = watchSession(context, caller.sessionId, judged.tool);
    const executed = await runOrder(context, {
      ...(watch === undefined ? {} : { watch }),
      operationId: key === undefined ? context.newId() : callKeyId(caller.sessionId, key),
      tool: judged.tool,
      definitionHash: judged.definition,
      input: judged.input,
      sessionId: caller.sessionId,
      messageId: request.messageId ?? "",
      callId: request.callId,
      turn: request.turn ?? 0,
      step: 0,
      workingDirectory: caller.workingDirectory,
      places: judged.places,
      judgePlace: judged.judgePlace,
      chain: asker.chain,
      actor: agent,
      holds: [
        ...(rule === undefined ? [] : [store.standingRules.holdOf(rule)]),
        ...context.claimHolds(caller.claim),
      ],
      ...(rule === undefined ? {} : { allowedBy: `rule:${rule.id}` }),
      ...how,
    });
    at("S8.before");
    // The key was taken while this call was judged, perhaps by another one.
    const first = executed.status === "refused" ? await knownCalls([request]) : undefined;
    if (first !== undefined) return first;
    const answer = warned(judged.tool, answerOf(executed));
    return saidAfter(
      context,
      caller,
      judged.facts,
      await undoneIfBlocked(context, executed, answer),
    );
  }

  async function permit(given: NewCall, how: PermitTerms): Promise<PermitAnswer> {
    const request = named(given);
    const known = await knownCalls([request]);
    const isBack = await wasGivenBack(context, caller.sessionId, keyOf(request));
    if (known !== undefined && !isBack) return permitApproved(context, known, how);
    const stopped = await hooked.whyNot();
    if (stopped !== undefined) return refusedAtStart(stopped);
    const judged = await judge(request);
    if (!isReady(judged)) return judged;
    if (judged.tool.execution !== "external") return NOT_EXTERNAL;
    const rule =
      judged.verdict === "ask" && !judged.needsPerson
        ? await ruleFor(context, judged.tool, judged.facts, caller)
        : undefined;
    if (judged.verdict === "allow" || rule !== undefined) {
      const terms = { ...how, ...definedFields({ rule }) };
      return permitAllowed(context, judged, request, caller, terms);
    }
    const answer = told([request], await stageReady([judged], [request]));
    return permitApproved(context, answer, how);
  }

  /** The results of the same calls when they were asked for before, also by a process that is gone. */
  async function knownCalls(requests: readonly CallRequest[]): Promise<CallAnswer | undefined> {
    const results: (CallAnswer | undefined)[] = [];
    for (const request of requests) {
      const { tool, input } = request;
      const key = keyOf(request);
      if (key === undefined) continue;
      const result = await resultOfCall(context, caller.sessionId, { key, tool, input });
      if (result === OTHER_CALL) return result;
      results.push(result);
    }
    const [first] = results;
    // Some were asked for before and some were not: those keys belong to something else.
    const isSame = results.every((result) => (result === undefined) === (first === undefined));
    if (!isSame) return OTHER_CALL;
    return first === undefined ? undefined : orNow(first);
  }

  /** What is approved and not begun is executed by the one who asks for it, where its tools are here. */
  async function orNow(answer: CallAnswer): Promise<CallAnswer> {
    const id = answer.answer === "pending" ? answer.decisionId : "";
    return id === "" ? answer : ((await executeNow(context, id)) ?? answer);
  }

  /** An identical call that was not executed yet is the answer to this one, unless each has a key of its own. */
  async function sameCall(
    proposal: Proposal,
    last: Promise<DecisionId | undefined>,
    siblings: ReadonlySet<string> | undefined,
    isLost: boolean,
  ): Promise<{ readonly answer: CallAnswer } | { readonly latest: string }> {
    const { calls, keys, sessionId, messageId } = proposal;
    const isSibling = (decision: Decision) => {
      if (siblings?.has(decision.id) === true) return true;
      const other = withProposal(decision).proposal;
      const isSame = other.calls[0]?.callId === calls[0]?.callId;
      return messageId !== "" && other.messageId === messageId && !isSame;
    };
    const { latest, unused } = await earlierCall(context, await last, isSibling);
    const ended = isLost && unused === undefined ? await undelivered(context, latest) : undefined;
    if (ended !== undefined) return { answer: ended };
    if (unused === undefined) return { latest };
    const again = keys.map(({ key, step }) => {
      const { tool = "", input = null } = calls[step] ?? {};
      return { key, step, actionHash: callHash(tool, input) };
    });
    if (again.length > 0) {
      await store.interactions.askedAgain({ id: unused, sessionId }, again, { actor: agent });
    }
    return { answer: await orNow(await resultOfDecision(unused, 0, store)) };
  }

  async function checkOwn(id: InteractionId): Promise<void> {
    const { sessionId } = await store.interactions.get(id);
    if (sessionId !== caller.sessionId) throw new SallyportError("not_found", { id });
  }

  const resultOf = (id: string) => resultOfId(caller.sessionId, id, store);

  /** Reports what waits for a person to the host's own callbacks. */
  function told(requests: readonly CallRequest[], answer: CallAnswer): CallAnswer {
    const [request] = requests;
    if (answer.answer !== "pending" || request === undefined) return answer;
    const { callId, tool, key } = request;
    const { sessionId } = caller;
    const id = answer.interactionId;
    const open = { sessionId, agent, callId, tool, answer, ...definedFields({ key }) };
    context.openCalls.opened(id, open, () => resultOf(id));
    return answer;
  }

  async function askPerson(question: Question): Promise<QuestionAnswer> {
    await start();
    const bytes = Buffer.byteLength(JSON.stringify(question));
    const id = questionId(caller.sessionId, question.callId);
    // Asked again it is the same question, and its answer is no new one.
    if (!context.quota.has(agent, id)) await context.quota.check(agent, bytes);
    const answer = await openQuestion(question, asker, store.interactions, context.approvalMs);
    if (answer.answer === "pending") context.quota.opened(agent, answer.interactionId, bytes);
    return answer;
  }

  async function askedByTool(request: CallRequest, input: JsonValue): Promise<CallAnswer> {
    const { callId } = request;
    const question = { ...questionIn(input), callId: keyOf(request) ?? callId };
    try {
      return callAnswerOf(await askPerson(question));
    } catch (error) {
      if (!isSallyportError(error, "already_exists")) throw error;
      return OTHER_CALL;
    }
  }

  /** Refusals are recorded too, not only executions. */
  async function judge(request: CallRequest): Promise<CallAnswer | Ready> {
    const odd =
      oddName(request) ?? callersMetadataProblem({ ...caller.metadata, ...request.metadata });
    if (odd !== undefined) return { answer: "failed", text: odd };
    const judged = await judgeCall(context, request, caller);
    if (judged.verdict !== "failed") context.countAnswer({ tool: request.tool, agent }, judged);
    if (judged.verdict !== "deny" && judged.verdict !== "failed") return judged;
    const findings = judged.verdict === "deny" ? judged.findings : [];
    await store.refusals.record({
      callId: request.callId,
      sessionId: caller.sessionId,
      actor: agent,
      data: {
        tool: request.tool.toWellFormed(),
        verdict: judged.verdict,
        findings: findings.map(({ severity, policy }) => ({ severity, policy })),
      },
    });
    const { text } = judged;
    tellRefused([request], judged.verdict === "deny" ? "denied" : "failed");
    return judged.verdict === "deny"
      ? { answer: "denied", text, findings }
      : { answer: "failed", text };
  }

  function tellRefused(requests: readonly CallRequest[], outcome: "denied" | "failed"): void {
    for (const request of requests) {
      observer.refused({ ...request, sessionId: caller.sessionId, outcome });
    }
  }

  /** The lane `review`: a decision that both machine reviews have agreed to is executed without a person. */
  async function reviewReady(call: Ready, request: CallRequest, how: CallOptions) {
    const proposal = { ...proposalOf(caller, [call], [request]), lane: "review" } as const;
    const proposed = await propose(context, proposal).catch(standingDecision);
    if (typeof proposed === "string") {
      return (await knownCalls([request])) ?? resultOfDecision(proposed, 0, store);
    }
    if (!proposed.proposed) {
      tellRefused([request], "denied");
      return rejection(proposed.reason);
    }
    const { id, hash } = proposed.interaction;
    const [answer] = await pastFirstWrite(id, BEGUN, () => runDecision(context, id, hash, how));
    return answer ?? resultOfDecision(id, 0, store);
  }

  async function stageReady(
    calls: readonly Ready[],
    requests: readonly CallRequest[],
    siblings?: Set<string>,
    {
      ahead,
      isLost = false,
    }: { readonly ahead?: Ahead; readonly isLost?: boolean | undefined } = {},
  ): Promise<CallAnswer> {
    const kinds = new Set(calls.map(({ tool }) => tool.execution));
    if (kinds.size > 1) return { answer: "failed", text: MIXED };
    const { proposal, hash, last, moment } =
      ahead ?? readAhead(store, proposalOf(caller, calls, requests), requests);
    const earlier = last && (await sameCall(proposal, last, siblings, isLost));
    if (earlier !== undefined && "answer" in earlier) return earlier.answer;
    const isAlone = proposal.messageId === "" && siblings === undefined;
    const otherwise = isAlone ? "the_other" : "both";
    const content = earlier && { content: { hash, replaces: earlier.latest, otherwise } as const };
    const bytes = Buffer.byteLength(JSON.stringify(proposal.calls));
    await context.quota.check(agent, bytes);
    const asked = { ...proposal, ...content };
    const proposed = await propose(context, asked, moment).catch(standingDecision);
    if (typeof proposed === "string") {
      return (await knownCalls(requests)) ?? resultOfDecision(proposed, 0, store);
    }
    if (proposed.proposed) {
      const { id } = proposed.interaction;
      context.quota.opened(agent, id, bytes);
      siblings?.add(id);
      const { attention } = context;
      if (attention !== undefined) {
        await pastFirstWrite(id, BEGUN, () => mayPlantDecoy(context, attention, id));
      }
      return pending(id);
    }
    tellRefused(requests, "denied");
    return rejection(proposed.reason);
  }

  return {
    id: caller.sessionId,
    start,
    tools: () => context.offering.offered(caller.sessionId, workingDirectory),
    end: (reason = "") => hooked.end(reason),
    reach: (point, input) => hooked.reach(point, input),
    call: (request, options) => call(request, options),
    permit,
    async preview(given) {
      await start();
      const request = named(given);
      const text = oddName(request);
      if (text === undefined) return previewOf(context, request, caller);
      return { verdict: "failed", text, findings: [], dryRun: null, safetyClass: "" };
    },
    report: (key, report) => reportCall(context, caller.sessionId, key, report),
    callAll(requests, options = {}) {
      const siblings = new Set<string>();
      return orchestrate(requests.map(named), {
        run: (request, { signal, progress }) =>
          call(request, { signal, onProgress: (_, report) => progress(report) }, siblings),
        isConcurrencySafe: (name) => {
          const tool = context.registry.get(name);
          return tool !== undefined && metadataOf(tool).concurrencySafe;
        },
        timers: context.timers,
        maxAtOnce: context.maxAtOnce,
        ...(options.signal === undefined ? {} : { signal: options.signal }),
        ...(options.onProgress === undefined ? {} : { onProgress: options.onProgress }),
      });
    },
    async stage(given) {
      const requests = given.map(named);
      if (requests.length === 0) return { answer: "failed", text: "Give at least one call." };
      const known = await knownCalls(requests);
      if (known !== undefined) return known;
      const stopped = await hooked.whyNot();
      if (stopped !== undefined) return refusedAtStart(stopped);
      const ready: Ready[] = [];
      for (const request of requests) {
        const judged = await judge(request);
        if (!isReady(judged)) return judged;
        ready.push(judged);
      }
      return told(requests, await stageReady(ready, requests));
    },
    ask: askPerson,
    resultOf,
    deliver: (key, answer) => deliverCall(context, caller.sessionId, key, answer),
    wait: (id, options) => waitFor(context, () => resultOf(id), options),
    async askedBack() {
      const open = { status: "open", sessionId: caller.sessionId } as const;
      const asked = await allQuestions(store.interactions, open);
      return asked.filter(({ waitsFor }) => waitsFor === "agent");
    },
    withdrawAll: (reason, by = agent) =>
      withdrawOpen(store.interactions, caller.sessionId, { reason, by }),
    async reply(id, text) {
      await checkOwn(id);
      return store.interactions.remark(id, text, "agent", { actor: agent });
    },
    async withdraw(id, reason) {
      await checkOwn(id);
      return store.interactions.cancel(id, reason, { actor: agent });
    },
    async delegate(request, how) {
      await start();
      return context.delegations.delegate(parent, request, how);
    },
    async delegateWork(work) {
      await start();
      return delegateWork({ parent, ...work }, context.delegations, context.timers);
    },
    rollback: (by, part = {}) =>
      rollback({
        operations: store.operations,
        scope: { sessionId: caller.sessionId, ...part },
        dispatch: undoDispatcher(context, caller.chain),
        by,
      }),
    rollbackPlan: (part = {}) => rollbackPlan(context, { sessionId: caller.sessionId, ...part }),
  };
}

/** Told with what was done: the tool can be neither tried nor undone. Tools that only read are not worth a warning. */
function warned(tool: Tool, answer: CallAnswer): CallAnswer {
  const warning = metadataOf(tool).effect === "read" ? undefined : safetyWarning(tool);
  if (answer.answer !== "done" || warning === undefined) return answer;
  return { ...answer, warnings: [warning.message] };
}

function refusedAtStart(said: GateAnswer): CallAnswer {
  return { answer: "denied", text: saidIn(said), findings: said.findings };
}

function keyOf({ key, requestKey }: CallRequest): string | undefined {
  return key ?? requestKey;
}

const MIXED =
  "Not executed: calls that an external executor carries out cannot be staged together with calls that run here. Stage them apart.";

/** Names end up in keys and hashes, and some cannot be stored everywhere: those are refused here, alike on all stores. */
function oddName({ callId, tool, messageId = "" }: CallRequest): string | undefined {
  const names = { callId, tool, ...(messageId === "" ? {} : { messageId }) };
  const odd = Object.entries(names).find(([, name]) => !isName(name));
  if (odd === undefined) return undefined;
  return `Not executed: ${odd[0]} must be a short text without control characters. Send the call again with another one.`;
}

/** A call ends when its caller gives up, or the one it works for is over. */
function signalOf(...given: readonly (AbortSignal | undefined)[]): { signal?: AbortSignal } {
  return definedFields({ signal: firstOf(...given) });
}

function isReady(judged: CallAnswer | Ready): judged is Ready {
  return "verdict" in judged;
}
