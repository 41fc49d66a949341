import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { DelegationRequest } from "../../src/delegation/plan.ts";
import {
  delegateWork,
  type Job,
  processWorker,
  type Worker,
  type WorkMode,
} from "../../src/delegation/worker.ts";

import { systemTimers } from "../../src/util/timers.ts";
import { ADA, asks, type OpenSession, openWorld } from "./world.ts";

/** A machine that is busy with other things may be late; one that is not on time three times in a row is too late. */
const BUSY = { retry: 2 };

type World = ReturnType<typeof openWorld>;
type Session = OpenSession;

const many = (count: number, more: Partial<DelegationRequest> = {}) =>
  Array.from({ length: count }, (_, n) =>
    asks({ agent: `agent:${n}`, task: `task ${n}`, ...more }),
  );

function work(
  world: World,
  mode: WorkMode,
  requests: readonly DelegationRequest[],
  worker: Worker<Session>,
) {
  return delegateWork(
    { parent: world.lead(), requests, mode, worker },
    world.delegations,
    systemTimers,
  );
}

test("single: one worker reports, and the delegation is closed [I-63]", async () => {
  const world = openWorld();
  const [result] = await work(world, "single", [asks()], async ({ capsule, session }) => {
    expect(session.id).toBe(capsule.delegationId);
    return `looked at: ${capsule.context}`;
  });
  expect(result).toMatchObject({
    answer: "worked",
    outcome: { state: "reported", output: "looked at: the log says no", promiseMet: true },
  });
});

test("parallel: at most four concurrently, results in the order of the requests [I-63]", async () => {
  const world = openWorld();
  let now = 0;
  let most = 0;
  const results = await work(world, "parallel", many(8), async ({ capsule }) => {
    now += 1;
    most = Math.max(most, now);
    await systemTimers.sleep(capsule.task === "task 0" ? 60 : 15);
    now -= 1;
    return capsule.task;
  });
  expect(most).toBe(4);
  const outputs = results.map((one) => (one.answer === "worked" ? one.outcome.output : one.text));
  expect(outputs).toEqual(Array.from({ length: 8 }, (_, n) => `task ${n}`));
});

test("parallel: only read-only roles with their own permission [I-63]", async () => {
  const world = openWorld();
  const never: Worker<Session> = async () => expect.unreachable();
  const wrong: DelegationRequest[][] = [
    many(2, { role: "doc" }),
    many(2, { role: "code" }),
    [asks(), asks({ role: "doc" })],
    many(2, { role: "research", writePermission: "plan-approved-files-only" }),
    many(2, { role: "review", writePermission: "docs-and-current-phase-artifact" }),
    many(9),
    [],
  ];
  for (const requests of wrong) {
    await expect(work(world, "parallel", requests, never)).rejects.toMatchObject({
      code: "invalid_input",
    });
  }
  expect(await world.types()).toEqual([]);
  const verify = await work(world, "parallel", many(2, { role: "verify" }), async () => "checked");
  expect(verify).toHaveLength(2);
});

test("chained: each gets the findings of the one before, at most eight links, a failed link ends it [I-63]", async () => {
  const world = openWorld();
  const contexts: string[] = [];
  const chain = (count: number, worker: Worker<Session>) =>
    work(world, "chained", many(count), worker);
  const links = await chain(8, async ({ capsule }) => {
    contexts.push(capsule.context);
    return `found by ${capsule.task}`;
  });
  expect(links.every(({ answer }) => answer === "worked")).toBe(true);
  expect(contexts[0]).toBe("the log says no");
  expect(contexts[7]).toContain("found by task 6");
  expect(contexts[7]).not.toContain("found by task 5");
  await expect(chain(9, async () => "x")).rejects.toMatchObject({ code: "invalid_input" });
  const broken = await chain(3, async ({ capsule }) => {
    if (capsule.task === "task 1") throw new Error("no idea");
    return "ok";
  });
  expect(broken).toMatchObject([
    { answer: "worked", outcome: { state: "reported" } },
    { answer: "worked", outcome: { state: "failed", reason: "no idea" } },
    { answer: "skipped" },
  ]);
  await expect(work(world, "single", many(2), async () => "x")).rejects.toMatchObject({
    code: "invalid_input",
  });
});

test("a worker is not called for a denied plan [S3-07]", async () => {
  const world = openWorld();
  const [result] = await work(world, "single", [asks({ role: "code" })], async () =>
    expect.unreachable(),
  );
  expect(result).toMatchObject({ answer: "denied" });
});

test(
  "revoking stops the worker within a second, also one that ignores the signal [T33]",
  BUSY,
  async () => {
    const world = openWorld();
    const stopped: number[] = [];
    const revokeSoon = async ({ capsule }: Job<Session>) => {
      await systemTimers.sleep(50);
      await world.delegations.revoke(capsule.delegationId as `dlg-${string}`, "enough", ADA);
      return performance.now();
    };
    const [heard] = await work(world, "single", [asks()], async (job) => {
      const revokedAt = await revokeSoon(job);
      await new Promise<void>((resolve) => job.signal.addEventListener("abort", () => resolve()));
      stopped.push(performance.now() - revokedAt);
      return "I go on";
    });
    expect(heard).toMatchObject({ outcome: { state: "revoked", reason: "enough" } });
    expect(stopped[0]).toBeLessThan(1_000);
    const before = performance.now();
    const [deaf] = await work(world, "single", [asks({ agent: "agent:deaf" })], async (job) => {
      await revokeSoon(job);
      await systemTimers.sleep(10_000);
      return "I go on";
    });
    expect(performance.now() - before).toBeLessThan(3_000);
    expect(deaf).toMatchObject({ outcome: { state: "revoked", output: "" } });
  },
);

async function script(text: string): Promise<{ file: string; folder: string }> {
  const folder = await mkdtemp(path.join(tmpdir(), "sallyport-worker-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = path.join(folder, "worker.mjs");
  await writeFile(file, text);
  return { file, folder };
}
const run = (file: string, folder: string) =>
  processWorker({
    file: process.execPath,
    args: [file],
    directory: folder,
    environment: { ONLY: "this" },
  });
const READ = `let text = ""; for await (const chunk of process.stdin) text += chunk; const { capsule, token } = JSON.parse(text);`;

test("a worker process gets capsule and token on its input, and no inherited environment [I-63]", async () => {
  const world = openWorld();
  process.env["SALLYPORT_TEST_SECRET"] = "s3cret";
  onTestFinished(() => void delete process.env["SALLYPORT_TEST_SECRET"]);
  const { file, folder } = await script(
    `${READ} console.log(JSON.stringify({ task: capsule.task, token: token.length, env: Object.keys(process.env), args: process.argv.length }));`,
  );
  const [result] = await work(world, "single", [asks()], run(file, folder));
  if (result?.answer !== "worked") throw new Error("it should have worked");
  const { task, token, env, args } = JSON.parse(result.outcome.output);
  expect([task, token, args]).toEqual(["find the cause", 43, 2]);
  expect(env.filter((name: string) => !["PATH", "ONLY"].includes(name))).toEqual([]);
});

test("a process with an error or without output has failed, and long output is cut [I-63]", async () => {
  const world = openWorld();
  const bad = await script(`console.error("out of luck"); process.exit(3);`);
  const mute = await script(READ);
  const loud = await script(`process.stdout.write("x".repeat(100_000));`);
  const results = await Promise.all(
    [bad, mute, loud].map(async ({ file, folder }, n) =>
      work(world, "single", [asks({ agent: `agent:${n}` })], run(file, folder)),
    ),
  );
  expect(results.flat()).toMatchObject([
    { outcome: { state: "failed", reason: expect.stringContaining("out of luck") } },
    { outcome: { state: "failed", reason: "It ended without a report." } },
    { outcome: { state: "reported" } },
  ]);
  const [cut] = results[2] ?? [];
  expect(cut?.answer === "worked" && cut.outcome.output.length).toBe(30_000);
});

test("revoking ends the process and its children within a second [T33]", BUSY, async () => {
  const world = openWorld();
  // Both ignore SIGTERM; the grandchild would continue to write.
  const { file, folder } = await script(`
    import { spawn } from "node:child_process";
    import { writeFileSync } from "node:fs";
    process.on("SIGTERM", () => {});
    const code = "process.on('SIGTERM',()=>{});setInterval(()=>require('fs').appendFileSync('beats','x'),20)";
    spawn(process.execPath, ["-e", code], { stdio: "ignore" });
    setInterval(() => {}, 1000);
    writeFileSync("started", String(process.pid));
  `);
  const beats = () => readFile(path.join(folder, "beats"), "utf8").catch(() => "");
  const working = work(world, "single", [asks()], run(file, folder));
  while ((await beats()).length < 3) await systemTimers.sleep(20);
  const [delegation] = await world.delegations.list({});
  await world.delegations.revoke(delegation!.id, "enough", ADA);
  await systemTimers.sleep(1_000);
  const after = await beats();
  await systemTimers.sleep(200);
  expect(await beats()).toBe(after);
  const [result] = await working;
  expect(result).toMatchObject({ outcome: { state: "revoked" } });
  const pid = Number(await readFile(path.join(folder, "started"), "utf8"));
  expect(() => process.kill(pid, 0)).toThrow();
});

test("an external worker reports later with the token", async () => {
  const world = openWorld();
  const given = await world.delegations.delegate(world.lead(), asks());
  if (given.answer !== "delegated") throw new Error(given.text);
  // Everything that goes out is plain data.
  const sent = JSON.parse(JSON.stringify({ capsule: given.capsule, token: given.token }));
  const { file, folder } = await script(`${READ} console.log("seen: " + capsule.context);`);
  const child = spawn(process.execPath, [file], {
    cwd: folder,
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdin.end(JSON.stringify(sent));
  let output = "";
  for await (const chunk of child.stdout) output += chunk;
  const outcome = await world.delegations.report(sent.capsule.delegationId, output, sent.token);
  expect(outcome).toMatchObject({
    state: "reported",
    promiseMet: true,
    output: "seen: the log says no\n",
  });
});
