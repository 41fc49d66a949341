import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createGateRunner } from "../../src/delegation/plan.ts";
import { createEvidenceBook, verifyCommand, verifyResult } from "../../src/delegation/verify.ts";
import type { Run } from "../../src/model/delegation.ts";
import type { GatePolicy } from "../../src/policy/decide.ts";
import type { ToolCall } from "../../src/tools/tool.ts";
import { asks, openWorld, PROMISE } from "./world.ts";

type World = ReturnType<typeof openWorld>;

async function folder(): Promise<string> {
  const made = await mkdtemp(path.join(tmpdir(), "sallyport-verify-"));
  onTestFinished(() => rm(made, { recursive: true, force: true }));
  return made;
}

function call(sessionId: string, input: unknown, key = "k-1", workingDirectory = "/"): ToolCall {
  return {
    callId: "c-1",
    input,
    context: {
      tenant: "acme",
      sessionId,
      signal: new AbortController().signal,
      workingDirectory,
      progress: () => {},
      idempotencyKey: key,
      fence: 1,
    },
  };
}

const CLAIM = {
  need: "tests",
  command: "npm test",
  exitCode: 0,
  keyOutput: "9 passed, 0 failed",
  verdict: "passed",
  conclusion: "All tests pass.",
} as const;

const toolOf = (world: World) => verifyResult(createEvidenceBook(world.store, world.clock));
const evidenceOf = async (world: World, { id }: Run) => (await world.runs.get(id)).evidence;

test("the tool records command, exit code, key output and conclusion in the run of its session [I-64]", async () => {
  const world = openWorld();
  const evidenceFolder = await folder();
  const run = await world.runIn("verify", { evidenceFolder });
  const given = await world.delegations.delegate(
    world.lead(run.id),
    asks({ agent: "agent:verify", role: "verify", promise: PROMISE.id }),
  );
  if (given.answer !== "delegated") throw new Error(given.text);
  const result = await toolOf(world).execute(call(given.delegation.id, CLAIM));
  expect(result).toMatchObject({ text: "Recorded: green evidence for tests." });
  const [evidence] = await evidenceOf(world, run);
  expect(evidence).toMatchObject({
    command: "npm test",
    exitCode: 0,
    keyOutput: CLAIM.keyOutput,
    conclusion: CLAIM.conclusion,
    green: true,
    sessionId: given.delegation.id,
    promiseId: PROMISE.id,
  });
  const [file] = await readdir(evidenceFolder);
  expect(JSON.parse(await readFile(path.join(evidenceFolder, String(file)), "utf8"))).toEqual(
    evidence,
  );
  const trail = await world.store.audit.read({ after: 0, limit: 100 });
  expect(trail.at(-1)).toMatchObject({ type: "run.evidence_recorded", actor: "agent:verify" });
});

test("a postponed or failed check is not green; a failure is recorded as one [I-64]", async () => {
  const world = openWorld();
  const run = await world.runIn("verify");
  const tool = toolOf(world);
  const refused = [
    { ...CLAIM, conclusion: "To be verified later." },
    { ...CLAIM, exitCode: 1 },
    { ...CLAIM, keyOutput: "will verify tomorrow" },
    { ...CLAIM, need: "unheard of" },
    { ...CLAIM, promise: "p-other" },
  ];
  for (const [index, claim] of refused.entries()) {
    const result = await tool.execute(call(run.id, claim, `k-${index}`));
    expect(result, JSON.stringify(claim)).toMatchObject({ isError: true });
  }
  expect(await evidenceOf(world, run)).toEqual([]);
  const failed = { ...CLAIM, exitCode: 1, verdict: "failed", conclusion: "Two tests fail." };
  expect((await tool.execute(call(run.id, failed, "k-f"))).text).toMatch(/has to be repaired/);
  expect(await evidenceOf(world, run)).toMatchObject([{ green: false }]);
  await expect(world.runs.enter(run.id, "ship", { actor: "agent:lead" })).rejects.toThrow(/tests/);
});

test("a repeat with the same key returns the same evidence [I-64]", async () => {
  const world = openWorld();
  const run = await world.runIn("verify");
  const tool = toolOf(world);
  await Promise.all(Array.from({ length: 5 }, () => tool.execute(call(run.id, CLAIM))));
  expect(await evidenceOf(world, run)).toHaveLength(1);
  await tool.execute(call(run.id, CLAIM, "k-2"));
  expect(await evidenceOf(world, run)).toHaveLength(2);
});

test("evidence is recorded only in the phase verify of a run, with the command of the promise [I-62 I-64]", async () => {
  const world = openWorld();
  const tool = toolOf(world);
  const early = await world.runIn("execute");
  expect(await tool.execute(call(early.id, CLAIM))).toMatchObject({ isError: true });
  expect(await tool.execute(call("session-1", CLAIM))).toMatchObject({ isError: true });
  const promise = { ...PROMISE, evidence: [{ name: "tests", command: "npm test" }] };
  const run = await world.runIn("verify", { promise });
  const other = await tool.execute(call(run.id, { ...CLAIM, command: "true" }));
  expect(other).toMatchObject({ isError: true });
  expect(other.text).toContain("npm test");
  expect((await tool.execute(call(run.id, CLAIM))).isError).toBeUndefined();
});

function commandTool(world: World, policies: readonly GatePolicy[] = []) {
  const gate = createGateRunner({
    policies,
    ledger: world.store.gateLedger,
    newTraceId: () => "trace",
    onProblem: () => expect.unreachable(),
  });
  return verifyCommand({ book: createEvidenceBook(world.store, world.clock), gate });
}

test("the command of the promise is run, and its exit code is the evidence [I-64]", async () => {
  const world = openWorld();
  const here = await folder();
  for (const [command, green] of [
    ["echo 9 passed", true],
    ["echo broken >&2; exit 3", false],
    ["kill -9 $$", false],
  ] as const) {
    const run = await world.runIn("verify", {
      promise: { ...PROMISE, evidence: [{ name: "tests", command }] },
    });
    const result = await commandTool(world).execute(
      call(run.id, { need: "tests", command }, "k", here),
    );
    expect(result.isError === true, command).toBe(!green);
    expect(await evidenceOf(world, run)).toMatchObject([{ green, command }]);
    const other = await commandTool(world).execute(
      call(run.id, { need: "tests", command: "true" }, "k2", here),
    );
    expect(other).toMatchObject({ isError: true });
    expect(await evidenceOf(world, run)).toHaveLength(1);
  }
});

test("a denial at pre-verify-command runs no command [I-55 I-64]", async () => {
  const world = openWorld();
  const here = await folder();
  const command = "touch ran";
  const run = await world.runIn("verify", {
    promise: { ...PROMISE, evidence: [{ name: "tests", command }] },
  });
  const seen: unknown[] = [];
  const house: GatePolicy = {
    name: "house",
    points: ["pre-verify-command"],
    check(context) {
      seen.push(context.command);
      return [{ severity: "hard-deny", policy: "house", message: "not on this machine" }];
    },
  };
  const result = await commandTool(world, [house]).execute(
    call(run.id, { need: "tests", command }, "k", here),
  );
  expect(result).toMatchObject({ isError: true });
  expect(result.text).toContain("not on this machine");
  expect(seen).toEqual([command]);
  expect(await readdir(here)).toEqual([]);
  expect(await evidenceOf(world, run)).toEqual([]);
});
