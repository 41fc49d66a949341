// Hooks: the host's own yes or no at the points of a run. Each point is asked by the step that its name says; here is what a
// hook receives, how a program is asked, and what a session does with the answers.

import { spawn } from "node:child_process";
import type { Decision, Tier, Verdict } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import type { GateAnswer } from "../model/finding.ts";
import { type Interaction, lostId } from "../model/interaction.ts";
import { allow } from "../policy/answers.ts";
import { type Hook, type HookPoint, runHooks } from "../policy/before-call.ts";
import type { TenantStore } from "../store/store.ts";
import { errorText } from "../util/error-text.ts";
import { deepFreeze, type JsonValue } from "../util/json.ts";
import type { Timers } from "../util/timers.ts";
import type { GateContext } from "./context.ts";
import type { Caller } from "./judge.ts";
import { requestedBy } from "./show.ts";

/** What a hook receives. Frozen: a hook decides and changes nothing. What does not apply at a point is left out. */
export interface HookEvent {
  readonly point: HookPoint;
  readonly tenant: string;
  readonly sessionId: string;
  /** The agent, then each agent that delegated to it. */
  readonly chain: readonly string[];
  /** The person on whose behalf; empty when none was named. */
  readonly owner: string;
  readonly workingDirectory: string;
  readonly tool?: string;
  readonly callId?: string;
  /** What it is about: a decision, a delegation, an operation or a question. */
  readonly id?: string;
  /** What is about to happen: the input of a call or an undo, the request of a delegation, the words of a person. */
  readonly input?: JsonValue;
  /** What came of it, at the points after something. */
  readonly result?: JsonValue;
}

/**
 * A program as a hook. It gets the event as JSON on its standard input and writes `{"answer":"allow"}`, or `ask` or `deny`
 * with a `message`, to its standard output. Another exit code than 0, no answer, too much of it or one that comes too late
 * is a failure. It is started without a shell, with PATH, HOME and LANG as its whole environment. Shape: callback.
 */
export interface CommandHook {
  readonly name: string;
  readonly points: readonly HookPoint[];
  readonly command: string;
  readonly args?: readonly string[];
  readonly timeoutMs?: number;
}

/** A function or a program. Shape: callback; the gate waits for it. */
export type GateHook = Hook<HookEvent> | CommandHook;

export interface HookProblem {
  readonly point: HookPoint;
  readonly message: string;
}

/** The hooks as functions. What could not be asked was refused by `createGate`. */
export function hooksOf(given: readonly GateHook[]): readonly Hook<HookEvent>[] {
  return given.map((hook) => ("command" in hook ? commandHook(hook) : hook));
}

function commandHook({ name, points, command, args = [], timeoutMs }: CommandHook) {
  const handle = (event: HookEvent, signal: AbortSignal) => ask(command, args, event, signal);
  const hook = { name, points, handle } as Hook<HookEvent>;
  return timeoutMs === undefined ? hook : { ...hook, timeoutMs };
}

const ANSWER_BYTES = 64 * 1024;
const PASSED_ON = ["PATH", "HOME", "LANG"] as const;

async function ask(
  command: string,
  args: readonly string[],
  event: HookEvent,
  signal: AbortSignal,
): Promise<never> {
  const env = Object.fromEntries(PASSED_ON.map((one) => [one, process.env[one]]));
  // A group of its own, so that what it starts ends with it.
  const child = spawn(command, args, { env, stdio: ["pipe", "pipe", "ignore"], detached: true });
  const kill = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  };
  signal.addEventListener("abort", kill, { once: true });
  try {
    return await new Promise((resolve, reject) => {
      const parts: Buffer[] = [];
      let bytes = 0;
      child.on("error", reject);
      // A program that answers without reading closes its input early.
      child.stdin.on("error", () => {});
      child.stdout.on("data", (part: Buffer) => {
        bytes += part.byteLength;
        if (bytes <= ANSWER_BYTES) parts.push(part);
        else reject(new Error(`it wrote more than ${ANSWER_BYTES} bytes`));
      });
      child.on("close", (code, ended) => {
        if (code !== 0) return reject(new Error(`it ended with ${ended ?? `exit code ${code}`}`));
        try {
          resolve(JSON.parse(Buffer.concat(parts).toString("utf8")) as never);
        } catch (error) {
          reject(new Error(`its answer is not JSON (${errorText(error)})`));
        }
      });
      child.stdin.end(JSON.stringify(event));
    });
  } finally {
    signal.removeEventListener("abort", kill);
    kill();
  }
}

/** The part of the context that hooks need. */
export interface HookContext {
  readonly tenant: string;
  readonly hooks: readonly Hook<HookEvent>[];
  readonly timers: Timers;
  readonly hookTimeoutMs: number;
  /** Shape: push. */
  readonly onHookProblem: (problem: HookProblem) => void;
}

/** The answer of all hooks at a point. No hooks: no objection. Never throws. */
export async function hooksAt(
  context: HookContext,
  event: Omit<HookEvent, "tenant">,
): Promise<GateAnswer> {
  const { tenant, hooks, timers, hookTimeoutMs: timeoutMs, onHookProblem } = context;
  const { point } = event;
  if (!hooks.some(({ points }) => points.includes(point))) return allow();
  const frozen = deepFreeze(structuredClone({ tenant, ...event }));
  const said = await runHooks(hooks, point, frozen, { timers, timeoutMs });
  if (said.answer === "allow") {
    for (const { message } of said.findings) onHookProblem({ point, message });
  }
  return said;
}

/** What every event of a session carries. */
export function eventOf(
  point: HookPoint,
  { sessionId, chain, owner = "", workingDirectory }: Omit<Caller, "tenant" | "signal">,
): Omit<HookEvent, "tenant"> {
  return { point, sessionId, chain, owner, workingDirectory };
}

/** Points that only the one who runs the agent's loop can know of; the flow reports them by itself. */
export type ReportedPoint = "user_prompt" | "before_compaction" | "stop";

export type Reached =
  | { readonly answer: "allow" }
  /** Not to be done; the text is for the agent. */
  | { readonly answer: "deny"; readonly text: string };

/** What the hooks know of one session object. */
export interface HookedSession {
  /** Undefined when it may work. Asked once for each session, and again after it has ended. */
  whyNot(): Promise<GateAnswer | undefined>;
  reach(point: ReportedPoint, input: JsonValue): Promise<Reached>;
  end(reason: string): Promise<void>;
}

const MOST_STARTED = 10_000;

export function hookedSession(context: GateContext, caller: Caller): HookedSession {
  const { started, store } = context;
  const { sessionId, chain } = caller;
  let isOver = false;

  /** A veto outside a call is recorded like a refused call. */
  async function asked(point: HookPoint, input?: JsonValue): Promise<GateAnswer> {
    const event = eventOf(point, caller);
    const said = await hooksAt(context, input === undefined ? event : { ...event, input });
    if (said.answer === "allow") return said;
    const findings = said.findings.map(({ severity, policy }) => ({ severity, policy }));
    const data = { tool: "", point, verdict: "deny", findings };
    await store.refusals.record({ callId: point, sessionId, actor: chain[0] ?? "agent", data });
    return said;
  }

  return {
    async whyNot() {
      if (isOver) {
        throw new SallyportError("illegal_transition", { id: sessionId, hint: OVER });
      }
      if (started.has(sessionId)) return undefined;
      const said = await asked("session_start");
      if (said.answer !== "allow") return said;
      if (started.size >= MOST_STARTED) started.clear();
      started.add(sessionId);
      return undefined;
    },
    async reach(point, input) {
      const said = await asked(point, input);
      return said.answer === "allow" ? { answer: "allow" } : { answer: "deny", text: saidIn(said) };
    },
    async end(reason) {
      isOver = true;
      started.delete(sessionId);
      await hooksAt(context, { ...eventOf("session_end", caller), result: { reason } });
    },
  };
}

/** Without hooks only an end counts. */
export function unhookedSession(id: string): HookedSession {
  let isOver = false;
  return {
    async whyNot() {
      if (isOver) throw new SallyportError("illegal_transition", { id, hint: OVER });
      return undefined;
    },
    reach: async () => ({ answer: "allow" }),
    async end() {
      isOver = true;
    },
  };
}

const OVER = "The session has ended. Open it again to continue it.";

export function saidIn({ findings }: GateAnswer): string {
  return findings.map(({ message }) => message).join("\n");
}

function reviewEvent(point: HookPoint, tier: Tier, decision: Decision) {
  const { id, sessionId, diff } = decision;
  const { chain, owner } = requestedBy(decision);
  const payload = Buffer.from(diff.raw).toString("utf8");
  const input = { tier, sourceTool: diff.sourceTool, payload };
  const about = { sessionId, chain, owner, workingDirectory: "" };
  return { ...eventOf(point, about), tool: diff.sourceTool, id, input };
}

/** The no of a hook to a review, in its name; undefined when the validator is asked. A person decides in any case. */
export async function vetoOfReview(
  context: Partial<HookContext>,
  tier: Tier,
  decision: Decision,
): Promise<Verdict | undefined> {
  if (!isHooked(context)) return undefined;
  const said = await hooksAt(context, reviewEvent("before_review", tier, decision));
  if (said.answer !== "deny") return undefined;
  const validator = said.findings[0]?.policy ?? "hook";
  const reason = saidIn(said);
  return { approved: false, score: 0, severity: "block", reason, validator, policyVersion: "" };
}

export async function toldOfReview(
  context: Partial<HookContext>,
  tier: Tier,
  decision: Decision,
  verdict: Verdict,
): Promise<void> {
  if (!isHooked(context)) return;
  await hooksAt(context, {
    ...reviewEvent("after_review", tier, decision),
    result: { ...verdict },
  });
}

function isHooked(context: Partial<HookContext>): context is HookContext {
  return context.hooks !== undefined && context.hooks.length > 0;
}

/** The store of a gate that reports every question it opens to the hooks, without waiting for them. */
export function notifying(store: TenantStore, context: () => HookContext): TenantStore {
  const tell = ({ id, sessionId, callId, chain, displayText, type }: Told) => {
    const event = eventOf("notification", { sessionId, chain, workingDirectory: "" });
    void hooksAt(context(), { ...event, callId, id, input: { type, text: displayText } });
  };
  const { interactions, operations } = store;
  return {
    ...store,
    interactions: {
      ...interactions,
      async show(showing, by) {
        const shown = await interactions.show(showing, by);
        // Where machines decide there is no question to people.
        if (showing.preview.lane === undefined) tell(shown);
        return shown;
      },
      async open(id, draft, by) {
        const opened = await interactions.open(id, draft, by);
        tell(opened);
        return opened;
      },
    },
    operations: {
      ...operations,
      async settle(id, settlement) {
        const settled = await operations.settle(id, settlement);
        const { operation } = settled;
        if (settled.settled && operation.status === "unknown") {
          const displayText = `It is not known whether ${operation.tool} happened: ${operation.error}`;
          const lost = { type: "connection_lost", displayText } as const;
          tell({ ...operation, ...lost, id: lostId(id, operation.attempt) });
        }
        return settled;
      },
    },
  };
}

type Told = Pick<Interaction, "id" | "sessionId" | "callId" | "chain" | "displayText" | "type">;
