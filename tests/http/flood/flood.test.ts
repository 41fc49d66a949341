// T39: the agents of one tenant run wild; the others, and the people who decide, hardly notice.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../../../src/client/index.ts";
import { answerOf } from "../../support/child-answer.ts";
import { record } from "../../support/record.ts";
import { SCALE, scaled } from "../../support/scale.ts";
import { clientOf } from "../passes.ts";
import type { Flooded, FloodPlan } from "./flooder.ts";
import type { Served, ServedPlan } from "./served.ts";

/** What the agents of a tenant may send; those of one send so many times as much. */
const RATE = { perSecond: 40, burst: 10 };
const FLOOD = 20;
const SENDERS = 20;
/** A stretch of quiet and one of flood, in turns, so that the machine's own moods hit both. */
const TURNS = scaled({ test: 1, proof: 2, full: 10 });
const TURN_MS = scaled({ test: 1_000, proof: 2_000, full: 6_000 });
const EVERY_MS = 40;

test(`one tenant sends ${FLOOD} times its rate: it is asked to slow down, another tenant is not affected, and people can decide immediately [T39]`, async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-flood-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const plan: ServedPlan = {
    file: path.join(folder, "store.db"),
    limits: { tenantRate: RATE },
    flooders: SENDERS,
  };
  const { url, loud, quiet, reviewer } = (await answerOf(start("served", plan))) as Served;
  const flood: FloodPlan = { url, tokens: loud, perSecond: FLOOD * RATE.perSecond };
  const flooder = start("flooder", flood);
  await answerOf(flooder);
  const agent = createClient({ url, token: quiet });
  const person = clientOf(url, reviewer);
  const { id } = await agent.sessions.open({});
  const calls = { calm: [] as number[], flooded: [] as number[] };
  const decisions = { calm: [] as number[], flooded: [] as number[] };

  /** At a steady pace, whatever the answers take; every tenth call is one that a person decides. */
  async function work(during: "calm" | "flooded"): Promise<void> {
    const under: Promise<void>[] = [];
    const end = performance.now() + TURN_MS;
    for (let n = 0; performance.now() < end; n += 1) {
      under.push(n % 10 === 9 ? decide(`${during}-${end}-${n}`, during) : look(n, during));
      await setTimeout(EVERY_MS);
    }
    await Promise.all(under);
  }

  async function look(n: number, during: "calm" | "flooded"): Promise<void> {
    const begun = performance.now();
    const { answer } = await agent.sessions.call({
      id,
      callId: `c-${n}`,
      tool: "world.look",
      input: { key: "k" },
    });
    expect(answer).toBe("done");
    calls[during].push(performance.now() - begun);
  }

  async function decide(callId: string, during: "calm" | "flooded"): Promise<void> {
    const input = { key: callId, value: 1 };
    const asked = await agent.sessions.call({ id, callId, tool: "world.set", input });
    if (asked.answer !== "pending") throw new Error(`no person was asked: ${asked.text}`);
    const { hash } = await person.interactions.get({ id: asked.interactionId });
    const begun = performance.now();
    await person.interactions.approve({ id: asked.interactionId, hash });
    decisions[during].push(performance.now() - begun);
  }

  await work("calm");
  calls.calm.length = 0;
  decisions.calm.length = 0;
  let floodedMs = 0;
  let answers: Flooded = {};
  for (let turn = 0; turn < TURNS; turn += 1) {
    await work("calm");
    const begun = performance.now();
    flooder.send("begin");
    await work("flooded");
    flooder.send("pause");
    answers = (await answerOf(flooder)) as Flooded;
    floodedMs += performance.now() - begun;
    await setTimeout(200);
  }
  const [calm, flooded] = [at(calls.calm, 0.99), at(calls.flooded, 0.99)];
  const { 200: passed = 0, 429: refused = 0 } = answers;
  const figures = {
    sent: Object.values(answers).reduce((sum, count) => sum + count, 0),
    passed,
    "asked to slow down": refused,
    "calls of the other tenant": calls.flooded.length,
    decided: decisions.flooded.length,
    "p50 ms, calm": at(calls.calm, 0.5),
    "p50 ms, flooded": at(calls.flooded, 0.5),
    "p99 ms, calm": calm,
    "p99 ms, flooded": flooded,
    "slowdown of p99": Math.round((flooded / calm) * 100) / 100,
    "decision p99 ms": at(decisions.flooded, 0.99),
    "decision p99 ms, calm": at(decisions.calm, 0.99),
  };
  record({ goal: "T39", what: "one tenant floods, another works on", figures });
  console.log(figures);
  // No more than its rate, what it had saved up in each pause, and what was under way when its answers were counted.
  const may = (floodedMs / 1_000) * RATE.perSecond + RATE.burst * TURNS;
  expect(passed).toBeLessThanOrEqual(Math.ceil(may) + 64);
  expect(Object.keys(answers).toSorted()).toEqual(["200", "429"]);
  // In the short run, beside other tests, the flooder gets few turns itself.
  const flooding = scaled({ test: 0, proof: passed, full: 10 * passed });
  expect(refused, "void: it was no flood").toBeGreaterThan(flooding);
  expect(decisions.flooded.length, "void: hardly anything was decided").toBeGreaterThanOrEqual(
    TURNS,
  );
  // Where decisions take long also without a flood, the machine is busy with something else.
  expect(at(decisions.flooded, 0.99)).toBeLessThan(Math.max(500, 3 * at(decisions.calm, 0.99)));
  // Short runs share the processors with others.
  if (SCALE === "full") expect(flooded / calm).toBeLessThanOrEqual(2);
}, 300_000);

function start(name: "served" | "flooder", plan: object): ChildProcess {
  const child = fork(path.join(import.meta.dirname, `${name}.ts`), [JSON.stringify(plan)], {
    execArgv: ["--disable-warning=ExperimentalWarning"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const gone = once(child, "exit");
  onTestFinished(async () => {
    child.disconnect();
    await gone;
  });
  return child;
}

function at(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round((sorted[Math.floor(share * (sorted.length - 1))] ?? 0) * 10) / 10;
}
