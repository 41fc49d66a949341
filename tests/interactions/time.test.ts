// Pains 8: people take their time, machines do not wait that long, and both are right.

import { expect, test, vi } from "vitest";
import { defineTool } from "../../src/tools/define-tool.ts";
import { manualTimers } from "../support/manual-timers.ts";
import { AGENT, decisionIdOf, PERSON, request } from "../support/port-world.ts";
import {
  codeOf,
  counted,
  DAY,
  FULL,
  HOUR,
  OTHER,
  onStores,
  seen,
  set,
  yes,
} from "./inbox-world.ts";

const MINUTE = 60_000;

onStores("human time", (open) => {
  test("answered after three days, to a client that waits sixty seconds: pending first, the result later [P8]", async () => {
    const world = await open({ approvalMs: 7 * DAY });
    const timers = manualTimers(world.clock);
    const gate = await world.restart({ timers });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const asked = { ...set("a", 1), key: "k" };
    const id = decisionIdOf(await session.call(asked));
    const waiting = session.wait("k", { timeoutMs: 60_000 });
    await timers.advance(60_000);
    expect(await waiting).toMatchObject({ answer: "pending", decisionId: id });
    expect(timers.open).toBe(0);
    await timers.advance(3 * DAY);
    const later = await world.restart({ timers });
    await yes(later, id);
    const back = later.sessions.open({ id: "s-1", agent: AGENT });
    expect(await back.wait("k", { timeoutMs: 60_000 })).toMatchObject({
      answer: "done",
      text: "set",
    });
    expect(await session.call(asked)).toMatchObject({ answer: "done", text: "set" });
    expect(world.effects).toHaveLength(1);
    expect(timers.open).toBe(0);
  });

  test("whoever waits is woken by the answer, also when it is given in another process [P8]", async () => {
    const world = await open();
    const timers = manualTimers(world.clock);
    const gate = await world.restart({ timers });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call({ ...set("a", 1), key: "k" }));
    const waiting = session.wait("k", { timeoutMs: HOUR });
    await timers.advance(10_000);
    await yes(world.gate, id);
    await timers.advance(1_000);
    expect(await waiting).toMatchObject({ answer: "done" });
  });

  test("who stops waiting gets what is there, leaves nothing behind, and the question stays [P8]", async () => {
    const world = await open();
    const timers = manualTimers(world.clock);
    const gate = await world.restart({ timers });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    await session.call({ ...set("a", 1), key: "k" });
    const stop = new AbortController();
    const waiting = session.wait("k", { timeoutMs: HOUR, signal: stop.signal });
    await timers.advance(5_000);
    stop.abort();
    expect(await waiting).toMatchObject({ answer: "pending" });
    expect(await session.wait("never asked", { timeoutMs: HOUR })).toBeUndefined();
    const gone = AbortSignal.abort();
    expect(await session.wait("k", { timeoutMs: HOUR, signal: gone })).toMatchObject({
      answer: "pending",
    });
    expect(timers.open).toBe(0);
    expect(await gate.interactions.list()).toHaveLength(1);
  });

  test("the time a person takes does not count against the tool's own [P8]", async () => {
    const tool = defineTool({
      name: "slow.work",
      description: "Takes a minute.",
      input: { type: "object" },
      safety: { effect: "external" },
      async execute({ signal }) {
        await timers.sleep(MINUTE, signal);
        return "worked";
      },
    });
    const world = await open({ tools: [tool], approvalMs: 7 * DAY, timeoutMs: MINUTE + 1 });
    const timers = manualTimers(world.clock);
    const gate = await world.restart({ timers });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(request("slow.work", {})));
    await timers.advance(3 * DAY);
    const approving = yes(gate, id);
    // A lease and a deadline are waited for, and the tool waits itself.
    await vi.waitFor(() => expect(timers.open).toBe(3), { timeout: 60_000, interval: 1 });
    await timers.advance(MINUTE);
    expect((await approving).answers).toMatchObject([{ answer: "done", text: "worked" }]);
  });

  test("expiry and escalation fire exactly once, with several sweepers at the same moment [P8]", async () => {
    const count = FULL ? 200 : 24;
    const escalation = { afterMs: HOUR, to: "group:leads" };
    const review = [{ requires: [{ name: "review", count: 1 }], escalation }];
    const world = await open({ approvalMs: DAY, review });
    const { gate, clock } = world;
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const ids: string[] = [];
    for (let i = 0; i < count; i += 1) {
      ids.push(decisionIdOf(await session.call(set(`k${i}`, i, `c-${i}`))));
    }
    const asked = await session.ask({ callId: "q", text: "Who?", escalation });
    ids.push(asked.interactionId);
    const sweepers = [gate, world.again(), await world.restart(), await world.restart()];
    const sweepAll = async () => {
      const swept = await Promise.all(sweepers.map((one) => one.interactions.sweep()));
      return {
        expired: swept.flatMap(({ expired }) => expired),
        escalated: swept.flatMap(({ escalated }) => escalated),
      };
    };
    expect(await sweepAll()).toEqual({ expired: [], escalated: [] });
    // Three are answered in time and are not escalated.
    for (const id of ids.splice(0, 3)) await yes(gate, id);
    clock.advance(HOUR);
    const first = await sweepAll();
    expect(first.expired).toEqual([]);
    expect(first.escalated.toSorted()).toEqual(ids.toSorted());
    expect(await sweepAll()).toEqual({ expired: [], escalated: [] });
    const open_ = await gate.interactions.list({ assignedTo: "group:leads", limit: 1_000 });
    expect(open_).toHaveLength(ids.length);
    clock.advance(DAY - HOUR);
    // An answer in the last millisecond is still in time.
    expect(await sweepAll()).toEqual({ expired: [], escalated: [] });
    clock.advance(1);
    const last = await sweepAll();
    expect(last.expired.toSorted()).toEqual(ids.toSorted());
    expect(await sweepAll()).toEqual({ expired: [], escalated: [] });
    const entries = await counted(gate);
    expect(entries["interaction.escalated"]).toBe(ids.length);
    expect(entries["interaction.expired"]).toBe(ids.length);
    expect(world.effects).toHaveLength(3);
  });

  test("an answer in the last millisecond counts, one after it does not, by the store's clock [P8]", async () => {
    const { gate, clock, effects } = await open({ approvalMs: HOUR });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const early = decisionIdOf(await session.call(set("a", 1)));
    const late = decisionIdOf(await session.call(set("b", 1)));
    clock.advance(HOUR);
    await yes(gate, early);
    clock.advance(1);
    expect(await codeOf(yes(gate, late))).toBe("approval_void");
    expect(effects).toEqual(['world.set {"key":"a","value":1}']);
    const asked = await session.ask({ callId: "q", text: "Who?", deadlineMs: MINUTE });
    clock.advance(MINUTE + 1);
    const given = { ...(await seen(gate, asked.interactionId)), answer: "me" };
    expect(await codeOf(gate.interactions.answer(asked.interactionId, given))).toBe(
      "approval_void",
    );
    await gate.interactions.sweep();
    expect(await session.ask({ callId: "q", text: "Who?", deadlineMs: MINUTE })).toMatchObject({
      answer: "unanswered",
      outcome: "expired",
    });
  });

  test("what was escalated is theirs to decide now, and once [P8]", async () => {
    const escalation = { afterMs: HOUR, to: "group:leads" };
    const review = [{ requires: [{ name: "review", count: 1 }], escalation }];
    const people = [{ id: PERSON }, { id: OTHER, groups: ["group:leads"] }];
    const { gate, clock, effects } = await open({ review, people });
    const id = decisionIdOf(await gate.sessions.open({ agent: AGENT }).call(set("a", 1)));
    clock.advance(HOUR);
    await gate.interactions.sweep();
    expect(await gate.interactions.get(id)).toMatchObject({
      escalated: true,
      assignedTo: "group:leads",
    });
    expect(await codeOf(yes(gate, id, PERSON))).toBe("not_allowed");
    await yes(gate, id, OTHER);
    expect(effects).toHaveLength(1);
  });
});
