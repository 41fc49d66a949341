// A gate whose one tool is executed elsewhere, on every kind of store: production is what the executors did.

import type { Gate } from "../../src/gate/create-gate.ts";
import type { Permit } from "../../src/gate/permit.ts";
import { allowAlways, createStaging } from "../../src/gate/review.ts";
import { newDraft } from "../../src/model/decision.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { type InboxWorld, type OpenWorld, yes } from "../interactions/inbox-world.ts";
import { AGENT, decisionIdOf, request } from "../support/port-world.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

export const EXECUTOR = "exec:one";
export const SECOND = "exec:two";
export const LEASE = 30_000;

export function deployTool(description = "Deploys a service."): Tool {
  return defineTool({
    name: "ops.deploy",
    description,
    input: {
      type: "object",
      properties: { service: { type: "string" }, version: { type: "integer" } },
      required: ["service", "version"],
      additionalProperties: false,
    },
    safety: { effect: "external" },
    execution: "external",
  });
}

export const deploy = (version = 1, callId = "c-1") =>
  request("ops.deploy", { service: "shop", version }, callId);

export interface PermitWorld extends InboxWorld {
  readonly id: string;
}

/** One approved decision that waits for its executor. */
export async function approvedOne(open: OpenWorld, call = deploy()): Promise<PermitWorld> {
  const world = await open({ tools: [deployTool()], leaseMs: LEASE });
  const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
  const id = decisionIdOf(await session.call(call));
  await yes(world.gate, id);
  return { ...world, id };
}

/** A payload that another platform staged, after both reviews. */
export async function stagedOutside({ gate }: InboxWorld, raw = "move 3 boxes"): Promise<string> {
  const diff = { sourceTool: "robot.move", raw: new TextEncoder().encode(raw), metadata: {} };
  const { id } = await gate.decisions.stage(
    newDraft("outside-1", diff, "2026-11-15T06:00:00.000Z"),
  );
  const staging = createStaging({
    store: gate.decisions,
    tech: sampleVerdictValidator("schema"),
    business: sampleVerdictValidator("limits"),
    guard: allowAlways,
  });
  await staging.validateTech(id);
  await staging.validateBiz(id);
  return id;
}

export const take = (gate: Gate, id: string, by = EXECUTOR) => gate.permits.take(id, { by });

export const held = ({ fence }: Pick<Permit, "fence">, by = EXECUTOR) => ({ by, fence });

export const executed = (permit: Pick<Permit, "fence">, proof: unknown = { run: 7 }) =>
  ({ ...held(permit), outcome: "executed", proof, output: "deployed" }) as const;

export const failed = (permit: Pick<Permit, "fence">, reason = "no such host") =>
  ({ ...held(permit), outcome: "failed", reason }) as const;
