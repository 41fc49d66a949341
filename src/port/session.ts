import { type CallResult, orchestrate } from "../executor/orchestrate.ts";
import type { CallAnswer, CallRequest } from "../model/call.ts";
import type { DecisionId } from "../model/decision.ts";
import { isName } from "../model/names.ts";
import { rollback } from "../operations/rollback.ts";
import type { RollbackReport } from "../operations/rollback-report.ts";
import { metadataOf } from "../tools/metadata.ts";
import type { Progress } from "../tools/tool.ts";
import { toIso } from "../util/clock.ts";
import { encodeAction } from "./action.ts";
import { answerOf } from "./answer-of.ts";
import { previewOf } from "./decide-calls.ts";
import { type Caller, type Judged, judgeCall } from "./judge-call.ts";
import type { Rooms } from "./rooms.ts";

/** One conversation or run of an agent. Everything it does carries its id. */
export interface Session {
  readonly id: string;
  /** One tool call, from gate to answer. Throws only when the store fails. */
  call(request: CallRequest, options?: CallOptions): Promise<CallAnswer>;
  /** Several calls of one message: neighbouring safe ones together, order kept around writes, one result for each. */
  callAll(requests: readonly CallRequest[], options?: CallOptions): AsyncIterable<CallResult>;
  /** Several calls as one decision: approved, rejected and executed as a whole. */
  stage(requests: readonly CallRequest[]): Promise<CallAnswer>;
  /** Takes back what this session did, or one message or one call of it, newest first. */
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

export function openSession(caller: Caller, rooms: Rooms): Session {
  const { store, executor, staging, validateBusiness, observer, at } = rooms;
  const agent = caller.chain[0] ?? "agent";

  async function call(request: CallRequest, options: CallOptions = {}): Promise<CallAnswer> {
    const judged = await judge(request);
    if (!isReady(judged)) return judged;
    if (judged.verdict === "ask") return stageReady([judged], [request]);
    const executed = await executor.run({
      operationId: rooms.newId(),
      tool: judged.tool,
      definitionHash: judged.definition,
      input: judged.input,
      sessionId: caller.sessionId,
      messageId: request.messageId ?? "",
      callId: request.callId,
      turn: request.turn ?? 0,
      step: 0,
      workingDirectory: caller.workingDirectory,
      actor: agent,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
      progress: (report) => options.onProgress?.(request.callId, report),
    });
    at("S8.before");
    return answerOf(executed);
  }

  /** Refusals are recorded too, not only executions. */
  async function judge(request: CallRequest): Promise<CallAnswer | Ready> {
    const odd = oddName(request);
    if (odd !== undefined) return { answer: "failed", text: odd };
    const judged = await judgeCall(request, caller, rooms.judging);
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
    const messageId = requests[0]?.messageId ?? "";
    const rejected = (reason: string): CallAnswer => {
      tellRefused(requests, "denied");
      return rejection(reason);
    };
    const raw = encodeAction(
      calls.map(({ tool, definition, input }, index) => ({
        tool: tool.name,
        definition,
        input,
        workingDirectory: caller.workingDirectory,
        callId: requests[index]?.callId ?? "",
        turn: requests[index]?.turn ?? 0,
      })),
    );
    const sourceTool = calls.length === 1 ? (calls[0]?.tool.name ?? "") : "bundle";
    const metadata = { requester: agent, chain: caller.chain, messageId };
    const diff = { sourceTool, raw, metadata };
    at("S1.before");
    const { id } = await staging.stage(caller.sessionId, diff, { actor: agent });
    at("S1.after");
    at("S2a.before");
    const reviewed = await staging.validateTech(id);
    at("S2a.after");
    if (reviewed.state !== "pending_ml") return rejected(reviewed.techVerdict.reason);
    at("S2b.before");
    const verdict = await validateBusiness(reviewed.diff);
    at("S2b.after");
    if (!verdict.approved) {
      await store.decisions.updateBizVerdict(id, verdict);
      return rejected(verdict.reason);
    }
    const facts = {
      policyHash: rooms.judging.policy.hash,
      expiresAt: toIso(rooms.judging.now() + rooms.approvalMs),
      nonce: rooms.newId(),
    };
    const preview = await previewOf(reviewed, facts, rooms.deciding);
    at("S3.before");
    await store.approvals.show(preview, { actor: agent });
    at("S3.after");
    return pending(id);
  }

  return {
    id: caller.sessionId,
    call,
    callAll: (requests, options = {}) =>
      orchestrate(requests, {
        run: (request, { signal, progress }) =>
          call(request, { signal, onProgress: (_, report) => progress(report) }),
        isConcurrencySafe: (name) => {
          const tool = rooms.judging.registry.get(name);
          return tool !== undefined && metadataOf(tool).concurrencySafe;
        },
        ...(options.signal === undefined ? {} : { signal: options.signal }),
        ...(options.onProgress === undefined ? {} : { onProgress: options.onProgress }),
      }),
    async stage(requests) {
      if (requests.length === 0) return { answer: "failed", text: "Give at least one call." };
      const ready: Ready[] = [];
      for (const request of requests) {
        const judged = await judge(request);
        if (!isReady(judged)) return judged;
        ready.push(judged);
      }
      return stageReady(ready, requests);
    },
    rollback: (by, part = {}) =>
      rollback({
        operations: store.operations,
        scope: { sessionId: caller.sessionId, ...part },
        dispatch: rooms.undoFor(caller.chain),
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

function isReady(judged: CallAnswer | Ready): judged is Ready {
  return "verdict" in judged;
}

function pending(id: DecisionId): CallAnswer {
  const text = `Not executed: it waits for approval as decision ${id}. Go on with something else, or ask later.`;
  return { answer: "pending", text, decisionId: id };
}

function rejection(reason: string): CallAnswer {
  const finding = { severity: "soft-deny", policy: "review", message: reason } as const;
  const text = `Not executed: the review said no. ${reason} Change the call or take another way.`;
  return { answer: "denied", text, findings: [finding] };
}
