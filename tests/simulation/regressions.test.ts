// What simulated runs have found, each as the shortest way to see it. The seed is that of the run at the time; seeds mean
// something else whenever the actors change, so these stand by themselves.

import { expect, test, vi } from "vitest";
import type { Change, Engine } from "../../src/store/engine.ts";
import { memoryEngine } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { manualClock } from "../../src/util/clock.ts";
import { systemRandom } from "../../src/util/random.ts";
import { HAPPENED, lossy, onStores, seen, set } from "../interactions/inbox-world.ts";
import { AGENT, openGate, PERSON, request } from "../support/port-world.ts";
import { slowReview } from "../support/validators.ts";

const LEASE = 30_000;

onStores("found by simulation", (open) => {
  test("seed 59: a compensation whose answer was lost and that a person found done has undone the call [I28]", async () => {
    const { tool, losses } = lossy();
    const { gate } = await open({
      tools: [tool],
      policy: {
        version: "1",
        rules: [{ id: "r", effect: "allow", tool: "far.*", reason: "test" }],
      },
    });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const done = await session.call({ callId: "c-1", tool: "far.send", input: { what: "mail" } });
    if (done.answer !== "done") throw new Error(done.text);
    losses.left = 1;
    await session.rollback("person:ops");
    const [lost] = await gate.interactions.list();
    await gate.interactions.settle(lost?.id ?? "", {
      ...(await seen(gate, lost?.id ?? "")),
      ...HAPPENED,
    });
    expect((await gate.operations.get(done.operationId)).status).toBe("rolled_back");
  });

  test("seed 102: an edit that was cut off before a person was asked does not wait for ever [I14]", async () => {
    const world = await open();
    const { gate, clock } = world;
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const asked = await session.call(set("a", 1));
    if (asked.answer !== "pending") throw new Error(asked.text);
    const { interactionId: id } = asked;
    const dying = world.again(
      slowReview((point) => {
        if (point === "S3.before") throw new Error("gone");
      }),
    );
    const edit = { ...(await seen(gate, id)), inputs: { 0: { key: "a", value: 2 } } };
    await expect(dying.interactions.edit(id, edit)).rejects.toThrow("gone");
    clock.advance(LEASE);
    expect((await gate.recover()).proposals).toMatchObject([{ asked: false }]);
    const states = (await gate.decisions.listBySession("s-1")).map(({ state }) => state);
    expect(states).toEqual(["pending_ml", "rejected_ml"]);
    // What it was to take the place of can still be answered.
    await gate.interactions.approve(id, await seen(gate, id, PERSON));
    expect(world.effects).toHaveLength(1);
  });

  test("seeds 520 and 813: a call that another process has begun is neither asked about again nor given up [I7 I28]", async () => {
    const effects: string[] = [];
    let version = 1;
    const held = Promise.withResolvers<void>();
    const working = Promise.withResolvers<void>();
    const began = Promise.withResolvers<void>();
    /** One process is held up while it looks once more, the other one while it works. */
    const toolOf = (who: "slow" | "quick"): Tool => {
      let looks = 0;
      return defineTool({
        name: "shop.set",
        description: "Changes the shop.",
        input: { type: "object" },
        safety: { effect: "external", reversible: true },
        dryRun: () => "would set",
        async stateVersion() {
          looks += 1;
          if (who === "slow" && looks === 2) await held.promise;
          return `v${version}`;
        },
        async execute() {
          effects.push(who);
          version += 1;
          began.resolve();
          await working.promise;
          return "set";
        },
        undo: () => ({ tool: "shop.set", input: {} }),
      });
    };
    // Where decisions are counted, a yes is written before anything is compared again.
    const world = await open({ tools: [toolOf("slow")], attention: { onProblem: () => {} } });
    const { gate, clock } = world;
    const quick = await world.restart({ tools: [toolOf("quick")] });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const asked = await session.call({ callId: "c-1", tool: "shop.set", input: {} });
    if (asked.answer !== "pending") throw new Error(asked.text);
    const { interactionId: id } = asked;
    const slow = gate.interactions.approve(id, await seen(gate, id));
    await vi.waitFor(async () => {
      expect((await quick.decisions.get(id)).state).toBe("approved");
    });
    clock.advance(LEASE);
    const recovery = quick.recover();
    await began.promise;
    held.resolve();
    expect((await slow).answers).toMatchObject([{ answer: "unknown" }]);
    working.resolve();
    await recovery;
    expect(effects).toEqual(["quick"]);
    expect((await gate.decisions.get(id)).state).toBe("executed");
    expect(await gate.interactions.list()).toEqual([]);
  });
});

/** An engine over a server, and a standby that lags behind it and can take its place. */
function failingOver() {
  const clock = manualClock(Date.parse("2026-11-15T06:00:00.000Z"));
  const own = { clock, random: systemRandom };
  const first = memoryEngine(own);
  const at = { now: first, standby: first, isDue: (_: Change) => false };
  const engine: Engine = {
    ...first,
    get: (...given) => at.now.get(...given),
    find: (...given) => at.now.find(...given),
    entries: (...given) => at.now.entries(...given),
    head: (tenant) => at.now.head(tenant),
    commit(tenant, change) {
      if (at.isDue(change)) at.now = at.standby;
      return at.now.commit(tenant, change);
    },
  };
  const copies = () => {
    at.standby = at.now.copy(own);
  };
  return { clock, engine, at, copies };
}

test("seed 7507: a decision is not closed by an outcome that was lost after it was read [I28] [SH1]", async () => {
  const { clock, engine, at, copies } = failingOver();
  const { tool, losses } = lossy();
  const { gate } = openGate({ tools: [tool] }, { engine, clock });
  const session = gate.sessions.open({ id: "s-1", agent: AGENT });
  const asked = await session.call(request("far.send", { what: "mail" }));
  if (asked.answer !== "pending") throw new Error(asked.text);
  losses.left = 1;
  await gate.interactions.approve(asked.interactionId, await seen(gate, asked.interactionId));
  const [lost] = await gate.interactions.list();
  copies();
  // After the outcome was read, and before the decision is closed.
  at.isDue = ({ events }) => events.some(({ type }) => type === "decision.executed");
  const found = { ...(await seen(gate, lost?.id ?? "")), ...HAPPENED };
  await gate.interactions.settle(lost?.id ?? "", found);
  clock.advance(LEASE);
  await gate.recover();
  expect(at.now, "void: nothing was lost").toBe(at.standby);
  expect((await gate.decisions.get(asked.decisionId)).state).toBe("approved");
  // The person is asked once more, and then it is closed.
  await gate.interactions.settle(lost?.id ?? "", found);
  clock.advance(LEASE);
  await gate.recover();
  expect((await gate.decisions.get(asked.decisionId)).state).toBe("executed");
});

test("a question about a tool whose definition was lost stores it again, and can be answered [I1] [SH1]", async () => {
  const { clock, engine, at, copies } = failingOver();
  const { tool, sent } = lossy();
  const { gate } = openGate({ tools: [tool] }, { engine, clock });
  const session = gate.sessions.open({ id: "s-1", agent: AGENT });
  copies();
  await session.call(request("far.send", { what: "lost" }, "c-1"));
  await session.call(request("far.send", { what: "lost too" }, "c-2"));
  at.now = at.standby;
  const asked = await session.call(request("far.send", { what: "mail" }, "c-3"));
  if (asked.answer !== "pending") throw new Error(asked.text);
  // A process that has never seen the definition reads it from the store.
  const other = openGate({ tools: [tool] }, { engine: at.now, clock }).gate;
  await other.interactions.approve(asked.interactionId, await seen(other, asked.interactionId));
  expect(sent).toEqual(["mail"]);
});

test("seed 193: a process whose first effect is a rollback that is refused says so once, and does not ask for ever [I14] [I30]", async () => {
  const clock = manualClock(Date.parse("2026-11-15T06:00:00.000Z"));
  const inner = memoryEngine({ clock, random: systemRandom });
  let commits = 0;
  const engine: Engine = {
    ...inner,
    commit(tenant, change) {
      commits += 1;
      if (commits > 100) throw new Error("it does not end");
      return inner.commit(tenant, change);
    },
  };
  const { tool, sent } = lossy();
  const rules = [{ id: "r", effect: "allow", tool: "far.*", reason: "test" }] as const;
  const over = { tools: [tool], policy: { version: "1", rules } };
  const { gate } = openGate(over, { engine, clock });
  await gate.sessions.open({ id: "s-1", agent: AGENT }).call(request("far.send", { what: "a" }));
  await gate.killSwitch.stop("a look first", { actor: PERSON });
  const fresh = openGate(over, { engine, clock }).gate;
  const report = await fresh.sessions.open({ id: "s-1", agent: AGENT }).rollback(PERSON);
  expect(report).toMatchObject({ undone: [], failed: [{ tool: "far.send" }] });
  expect(commits).toBeLessThan(20);
  expect(sent).toEqual(["a"]);
});
