import { type BoundCaller, boundOf } from "../delegation/bounds.ts";
import { isBlocking } from "../gate/answers.ts";
import type { CallFacts } from "../gate/call-facts.ts";
import type { GateDecision } from "../gate/gate.ts";
import { type GatePolicy, runPolicies } from "../gate/gate-policy.ts";
import type { CallAnswer } from "../model/call.ts";
import type { Finding } from "../model/finding.ts";
import type { Grant } from "../model/grant.ts";
import type { GateEvaluation } from "../store/gate-ledger.ts";
import type { TenantStore } from "../store/store.ts";

/** What binds a session beside the rules that bind everybody. */
export interface Binding {
  readonly policies: readonly GatePolicy[];
  /** What people have lifted for it. */
  readonly grants: readonly Grant[];
  /** The run it works in, and the phase of that. */
  readonly run?: string;
  readonly phase?: string;
  /** What it was sent out for. */
  readonly role?: string;
}

/** Finds out what binds a session, and writes down what a grant has lifted. */
export interface Bindings {
  of(caller: BoundCaller, kind: "call" | "undo"): Promise<Binding>;
  /** For a decision in which a grant has lifted something. */
  overridden(caller: BoundCaller, decision: GateDecision): Promise<void>;
  /** What policies say once it has happened: told to the agent and written down. Nothing is taken back for it. */
  after(
    caller: BoundCaller,
    facts: CallFacts,
    answer: CallAnswer,
  ): CallAnswer | Promise<CallAnswer>;
}

export function bindingsOf(
  store: Pick<TenantStore, "delegations" | "runs" | "grants" | "gateLedger">,
  house: readonly GatePolicy[],
  parts: {
    readonly newId: () => string;
    readonly onProblem: (problem: { readonly traceId: string; readonly error: unknown }) => void;
  },
): Bindings {
  return {
    async of(caller, kind) {
      const bound = await boundOf(caller, store, kind);
      const { rootSession, run, role } = bound;
      const policies = [...house, ...bound.policies];
      if (policies.length === 0) return { policies, grants: [] };
      return {
        policies,
        // Those of a root count for everybody below it.
        grants: await store.grants.listFor(rootSession),
        ...(run === undefined ? {} : { run: run.id, phase: run.phase }),
        ...(role === undefined ? {} : { role }),
      };
    },
    async overridden(caller, { answer, findings, overridden }) {
      await tell(caller, { point: "pre-tool", allowed: answer !== "deny", findings, overridden });
    },
    after: (caller, facts, answer) =>
      house.length === 0 || !("operationId" in answer) ? answer : after(caller, facts, answer),
  };

  async function after(
    caller: BoundCaller,
    facts: CallFacts,
    answer: CallAnswer,
  ): Promise<CallAnswer> {
    const isWrite = facts.resources.some((one) => "access" in one && one.access === "write");
    const points = isWrite ? (["post-tool", "post-write"] as const) : (["post-tool"] as const);
    const said: Finding[] = [];
    for (const point of points) {
      const payload = { ...facts, answer: answer.answer };
      const context = { point, run: caller.sessionId, tool: facts.tool, payload };
      const findings = runPolicies(house, context);
      if (findings.length === 0) continue;
      said.push(...findings);
      const allowed = !findings.some(isBlocking);
      await tell(caller, { point, allowed, findings, overridden: [] });
    }
    if (said.length === 0) return answer;
    const text = [answer.text, ...said.map(({ message }) => message)].join("\n");
    return { ...answer, text };
  }

  async function tell(
    { sessionId, chain }: BoundCaller,
    said: Pick<GateEvaluation, "point" | "allowed" | "findings" | "overridden">,
  ): Promise<void> {
    const traceId = parts.newId();
    try {
      await store.gateLedger.record({ traceId, sessionId, actor: chain[0] ?? "agent", ...said });
    } catch (error) {
      parts.onProblem({ traceId, error });
    }
  }
}
