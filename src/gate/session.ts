import type { Delegated, DelegationRequest } from "../delegation/plan.ts";
import { delegateWork, type Work, type WorkResult } from "../delegation/worker.ts";
import type { CallAnswer, CallRequest } from "../model/call.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Interaction, InteractionId, Question, QuestionAnswer } from "../model/interaction.ts";
import { isName } from "../model/names.ts";
import { callKeyId } from "../store/confirmations.ts";
import { claimHold } from "../store/left-behind.ts";
import { metadataOf } from "../tools/safety.ts";
import type { Progress } from "../tools/tool.ts";
import type { JsonValue } from "../util/json.ts";
import { plannedPlaces } from "./action.ts";
import {
  answerOf,
  pending,
  rejection,
  resultOfDecision,
  type WaitOptions,
  waitFor,
} from "./answers.ts";
import { ASK_USER, type Asker, ask, questionId, questionIn } from "./ask.ts";
import { runOrder } from "./attempt.ts";
import { mayPlantDecoy } from "./attention.ts";
import type { GateContext } from "./context.ts";
import { allQuestions } from "./inbox.ts";
import { type Caller, type Judged, judgeCall, policiesAfter } from "./judge.ts";
import {
  callAnswerOf,
  OTHER_CALL,
  resultOfCall,
  resultOfKey,
  standingDecision,
} from "./keyed-calls.ts";
import { type CallResult, orchestrate } from "./orchestrate.ts";
import { BEGUN, type Proposal, pastFirstWrite, propose } from "./propose.ts";
import { rollback } from "./rollback.ts";
import type { RollbackReport } from "./rollback-report.ts";
import { ruleFor } from "./standing-rules.ts";
import { watchSession } from "./target-version.ts";
import { undoDispatcher } from "./undo.ts";

/** One conversation or run of an agent. Everything it does carries its id. */
export interface Session {
  readonly id: string;
  /** One tool call, from judging to the answer. Throws when the store fails, and quota_exceeded when too many wait for people. */
  call(request: CallRequest, options?: CallOptions): Promise<CallAnswer>;
  /** Several calls of one message: neighbouring safe ones together, order kept around writes, one result for each. */
  callAll(requests: readonly CallRequest[], options?: CallOptions): AsyncIterable<CallResult>;
  /** Several calls as one decision: approved, rejected and executed as a whole. */
  stage(requests: readonly CallRequest[]): Promise<CallAnswer>;
  /** Asks a person. The answer may take days; asked again with the same id it answers what became of the question. */
  ask(question: Question): Promise<QuestionAnswer>;
  /** The result of a keyed call or of a question (by its call id); undefined when it was never asked for. */
  resultOf(key: string): Promise<CallAnswer | undefined>;
  /** Waits until a keyed call or a question is settled, or the time is over: then `pending` or `unknown` comes back, and nothing is lost. */
  wait(key: string, options: WaitOptions): Promise<CallAnswer | undefined>;
  /** What reviewers asked back and this agent has not replied to yet. */
  askedBack(): Promise<readonly Interaction[]>;
  reply(id: InteractionId, text: string): Promise<Interaction>;
  /** Delegates a task to a sub-agent, or says why not; a dry run shows what would be delegated. */
  delegate(request: DelegationRequest, how?: { readonly dryRun: boolean }): Promise<Delegated>;
  /** The same for several, with the work done: one after the other, side by side, or as a chain. */
  delegateWork(work: Omit<Work<Session>, "parent">): Promise<readonly WorkResult[]>;
  /** Undoes what this session did, or one message or one call of it, newest first. */
  rollback(
    by: string,
    part?: { messageId?: string; operationId?: string },
  ): Promise<RollbackReport>;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Shape: push, while a call runs. */
  readonly onProgress?: (callId: string, report: Progress) => void;
}

type Ready = Extract<Judged, { verdict: "allow" | "ask" }>;

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

  async function call(request: CallRequest, options: CallOptions = {}): Promise<CallAnswer> {
    const known = request.key === undefined ? undefined : await knownCalls([request]);
    if (known !== undefined) return known;
    const judged = await judge(request);
    if (!isReady(judged)) return judged;
    if (judged.tool.name === ASK_USER) return askedByTool(request, judged.input);
    const rule =
      judged.verdict === "ask" && !judged.needsPerson
        ? await ruleFor(context, judged.tool, judged.facts, caller)
        : undefined;
    if (judged.verdict === "ask" && rule === undefined) return stageReady([judged], [request]);
    const { key } = request;
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
      chain: asker.chain,
      actor: agent,
      holds: [
        ...(rule === undefined ? [] : [store.standingRules.holdOf(rule)]),
        ...(caller.claim === undefined ? [] : [claimHold(caller.claim)]),
      ],
      ...(rule === undefined ? {} : { allowedBy: `rule:${rule.id}` }),
      ...signalOf(options.signal, caller.signal),
      progress: (report) => options.onProgress?.(request.callId, report),
    });
    at("S8.before");
    // The key was taken while this call was judged, perhaps by another one.
    const first = executed.status === "refused" ? await knownCalls([request]) : undefined;
    if (first !== undefined) return first;
    return policiesAfter(context, caller, judged.facts, answerOf(executed));
  }

  /** The results of the same calls when they were asked for before, also by a process that is gone. */
  async function knownCalls(requests: readonly CallRequest[]): Promise<CallAnswer | undefined> {
    const results: (CallAnswer | undefined)[] = [];
    for (const { key, tool, input } of requests) {
      if (key === undefined) continue;
      const result = await resultOfCall(context, caller.sessionId, { key, tool, input });
      if (result === OTHER_CALL) return result;
      results.push(result);
    }
    const [first] = results;
    // Some were asked for before and some were not: those keys belong to something else.
    const isSame = results.every((result) => (result === undefined) === (first === undefined));
    return isSame ? first : OTHER_CALL;
  }

  const resultOf = (key: string) => resultOfKey(caller.sessionId, key, store);

  async function askPerson(question: Question): Promise<QuestionAnswer> {
    const bytes = Buffer.byteLength(JSON.stringify(question));
    const id = questionId(caller.sessionId, question.callId);
    // Asked again it is the same question, and its answer is no new one.
    if (!context.quota.has(agent, id)) await context.quota.check(agent, bytes);
    const answer = await ask(question, asker, store.interactions, context.approvalMs);
    if (answer.answer === "pending") context.quota.opened(agent, answer.interactionId, bytes);
    return answer;
  }

  async function askedByTool(request: CallRequest, input: JsonValue): Promise<CallAnswer> {
    const { callId } = request;
    const question = { ...questionIn(input), callId: request.key ?? callId };
    try {
      return callAnswerOf(await askPerson(question));
    } catch (error) {
      if (!isSallyportError(error, "already_exists")) throw error;
      return OTHER_CALL;
    }
  }

  /** Refusals are recorded too, not only executions. */
  async function judge(request: CallRequest): Promise<CallAnswer | Ready> {
    const odd = oddName(request);
    if (odd !== undefined) return { answer: "failed", text: odd };
    const judged = await judgeCall(context, request, caller);
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

  async function stageReady(
    calls: readonly Ready[],
    requests: readonly CallRequest[],
  ): Promise<CallAnswer> {
    const proposal: Proposal = {
      calls: calls.map(({ tool, definition, input, places }, index) => ({
        tool: tool.name,
        definition,
        input,
        workingDirectory: caller.workingDirectory,
        ...plannedPlaces(places),
        callId: requests[index]?.callId ?? "",
        turn: requests[index]?.turn ?? 0,
      })),
      keys: requests.flatMap(({ key }, step) => {
        return key === undefined ? [] : [{ key, step }];
      }),
      sessionId: caller.sessionId,
      chain: caller.chain,
      owner: caller.owner ?? "",
      ...(caller.claim === undefined ? {} : { claim: caller.claim }),
      messageId: requests[0]?.messageId ?? "",
      facts: {},
      editors: [],
    };
    const bytes = Buffer.byteLength(JSON.stringify(proposal.calls));
    await context.quota.check(agent, bytes);
    const proposed = await propose(context, proposal).catch(standingDecision);
    if (typeof proposed === "string") {
      return (await knownCalls(requests)) ?? resultOfDecision(proposed, 0, store);
    }
    if (proposed.proposed) {
      const { id } = proposed.interaction;
      context.quota.opened(agent, id, bytes);
      await pastFirstWrite(id, BEGUN, () => mayPlantDecoy(context, id));
      return pending(id);
    }
    tellRefused(requests, "denied");
    return rejection(proposed.reason);
  }

  return {
    id: caller.sessionId,
    call,
    callAll: (requests, options = {}) =>
      orchestrate(requests, {
        run: (request, { signal, progress }) =>
          call(request, { signal, onProgress: (_, report) => progress(report) }),
        isConcurrencySafe: (name) => {
          const tool = context.registry.get(name);
          return tool !== undefined && metadataOf(tool).concurrencySafe;
        },
        timers: context.timers,
        ...(options.signal === undefined ? {} : { signal: options.signal }),
        ...(options.onProgress === undefined ? {} : { onProgress: options.onProgress }),
      }),
    async stage(requests) {
      if (requests.length === 0) return { answer: "failed", text: "Give at least one call." };
      const known = await knownCalls(requests);
      if (known !== undefined) return known;
      const ready: Ready[] = [];
      for (const request of requests) {
        const judged = await judge(request);
        if (!isReady(judged)) return judged;
        ready.push(judged);
      }
      return stageReady(ready, requests);
    },
    ask: askPerson,
    resultOf,
    wait: (key, options) => waitFor(context, () => resultOf(key), options),
    async askedBack() {
      const open = { status: "open", sessionId: caller.sessionId } as const;
      const asked = await allQuestions(store.interactions, open);
      return asked.filter(({ waitsFor }) => waitsFor === "agent");
    },
    async reply(id, text) {
      const { sessionId } = await store.interactions.get(id);
      if (sessionId !== caller.sessionId) throw new SallyportError("not_found", { id });
      return store.interactions.remark(id, text, "agent", { actor: agent });
    },
    delegate: (request, how) => context.delegations.delegate(parent, request, how),
    delegateWork: (work) => delegateWork({ parent, ...work }, context.delegations, context.timers),
    rollback: (by, part = {}) =>
      rollback({
        operations: store.operations,
        scope: { sessionId: caller.sessionId, ...part },
        dispatch: undoDispatcher(context, caller.chain),
        by,
      }),
  };
}

/** Names end up in keys and hashes, and some cannot be stored everywhere: those are refused here, alike on all stores. */
function oddName({ callId, tool, messageId = "" }: CallRequest): string | undefined {
  const names = { callId, tool, ...(messageId === "" ? {} : { messageId }) };
  const odd = Object.entries(names).find(([, name]) => !isName(name));
  if (odd === undefined) return undefined;
  return `Not executed: ${odd[0]} must be a short text without control characters. Send the call again with another one.`;
}

/** A call ends when its caller gives up, or the one it works for is over. */
function signalOf(...given: readonly (AbortSignal | undefined)[]): { signal?: AbortSignal } {
  const signals = given.filter((signal) => signal !== undefined);
  return signals.length === 0 ? {} : { signal: AbortSignal.any(signals) };
}

function isReady(judged: CallAnswer | Ready): judged is Ready {
  return "verdict" in judged;
}
