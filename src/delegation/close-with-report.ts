import { isBlocking } from "../gate/answers.ts";
import type { Delegation } from "../model/delegation.ts";
import type { Finding } from "../model/finding.ts";
import { type Evidence, unmetNeeds } from "../model/promise.ts";
import type { DelegationOutcome } from "./delegation-request.ts";
import type { DelegationParts } from "./delegations.ts";
import { createGateRunner, grantAuthorisation } from "./gate-runner.ts";
import { cutOutput } from "./limits.ts";

/** Takes what a sub-agent reports: cut to its limit, held against its promise, looked at by the gate once more. */
export async function closeWithReport(
  delegation: Delegation,
  given: string,
  parts: DelegationParts<unknown>,
): Promise<DelegationOutcome> {
  const { store, clock, newId, policies, onProblem } = parts;
  const output = cutOutput(given);
  const missing = missingOf(delegation, output, await evidenceOf(delegation, parts));
  const promiseMet = missing.length === 0;
  const { id, agents, runId, rootSession, scope } = delegation;
  const by = { actor: agents[0] ?? "agent" };
  const gate = createGateRunner({
    policies,
    ledger: store.gateLedger,
    newTraceId: newId,
    onProblem,
  });
  const context = {
    point: "post-delegation",
    role: scope.role,
    payload: { planId: scope.planId, task: delegation.task, promiseMet },
    ...(runId === "" ? {} : { run: runId }),
  } as const;
  const bare = await gate.run(context, { sessionId: rootSession, ...by });
  const grants = grantAuthorisation(await store.grants.listFor(rootSession), clock.now());
  const asked = await grants.evaluate(bare, context);
  const closed = asked.allowed
    ? await store.delegations.close(id, { state: "reported", output, promiseMet, missing }, by)
    : await store.delegations.close(id, { state: "failed", reason: reasonOf(asked.findings) }, by);
  return outcomeOf(closed, missing);
}

export function outcomeOf(
  delegation: Delegation,
  missing: readonly string[] = [],
): DelegationOutcome {
  const { id, traceId, promise, state, promiseMet = false, output, reason, scope } = delegation;
  return {
    delegationId: id,
    planId: scope.planId,
    traceId,
    promiseId: promise.id,
    state,
    promiseMet,
    missing,
    output,
    reason,
  };
}

async function evidenceOf(
  { runId }: Delegation,
  { store }: DelegationParts<unknown>,
): Promise<readonly Evidence[]> {
  return (await store.runs.peek(runId))?.evidence ?? [];
}

/** A promise that asks for no evidence is kept by a report that says something. */
function missingOf(
  { promise }: Delegation,
  output: string,
  evidence: readonly Evidence[],
): readonly string[] {
  const unmet = unmetNeeds(promise, evidence).map(({ name }) => name);
  return output.trim() === "" ? [...unmet, "a report"] : unmet;
}

function reasonOf(findings: readonly Finding[]): string {
  const said = findings.filter(isBlocking).map(({ message }) => message);
  return `The gate did not accept the result: ${said.join(" ")}`;
}
