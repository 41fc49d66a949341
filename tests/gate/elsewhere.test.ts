// Approved in a process that lacks the tool, executed in one that has it.

import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { codeOf, onStores, set, yes } from "../interactions/inbox-world.ts";
import { openStore } from "../interactions/processes/person-child.ts";
import { ENGINES, newPlace } from "../interactions/processes/person-process.ts";
import { AGENT, decisionIdOf, PERSON } from "../support/port-world.ts";
import { isWanted, STORE_NAMES } from "../support/stores.ts";
import { gateOver, noteTool } from "./elsewhere-child.ts";
import { noted, startWorker } from "./elsewhere-worker.ts";

onStores(
  "a yes in a process without the tool",
  (open) => {
    test("says who will execute it, and the process that has the tool does, once", async () => {
      const { gate, effects, restart } = await open();
      const session = gate.sessions.open({ id: "s-1", agent: AGENT });
      const id = decisionIdOf(await session.call(set("a", 1)));
      const without = await restart({ tools: [] });
      const approved = await yes(without, id);
      expect(approved.outcome).toBe("held");
      expect(approved.answers[0]).toMatchObject({ answer: "pending", decisionId: id });
      expect(approved.answers[0]?.text).toContain("a process that has it executes the call");
      expect((await without.executeAwaiting()).decisions).toEqual([]);
      expect(effects).toEqual([]);
      const rounds = await Promise.all([gate, gate, gate].map((one) => one.executeAwaiting()));
      expect(rounds.flatMap(({ left }) => left)).toEqual([]);
      expect(effects).toHaveLength(1);
      expect((await gate.decisions.get(id)).state).toBe("executed");
      expect((await gate.executeAwaiting()).decisions).toEqual([]);
    });

    test("the agent's repeated call and two workers at the same moment execute it once", async () => {
      const { gate, effects, restart, again } = await open();
      const asked = { ...set("a", 1), key: "k" };
      const session = gate.sessions.open({ id: "s-1", agent: AGENT });
      const id = decisionIdOf(await session.call(asked));
      await yes(await restart({ tools: [] }), id);
      await Promise.all([
        session.call(asked),
        gate.executeAwaiting(),
        again().executeAwaiting(),
        again().sessions.open({ id: "s-1", agent: AGENT }).call(asked),
      ]);
      expect(effects).toHaveLength(1);
      expect(await session.call(asked)).toMatchObject({ answer: "done", text: "set" });
    });

    test("a repeated keyed call executes it immediately, without any worker", async () => {
      const { gate, effects, restart } = await open();
      const asked = { ...set("a", 1), key: "k" };
      const session = gate.sessions.open({ id: "s-1", agent: AGENT });
      const id = decisionIdOf(await session.call(asked));
      expect(await session.call(asked)).toMatchObject({ answer: "pending" });
      await yes(await restart({ tools: [] }), id);
      expect(await session.call(asked)).toMatchObject({ answer: "done", text: "set" });
      expect(effects).toHaveLength(1);
    });

    test("nothing runs while everything is stopped, nor after the deadline, nor when the target changed", async () => {
      const { gate, effects, values, restart, clock } = await open();
      const session = gate.sessions.open({ id: "s-1", agent: AGENT });
      const ids: string[] = [];
      for (const key of ["a", "b"]) ids.push(decisionIdOf(await session.call(set(key, 1, key))));
      const without = await restart({ tools: [] });
      for (const id of ids) await yes(without, id);
      await gate.killSwitch.stop("wait", { actor: PERSON });
      expect((await gate.executeAwaiting()).decisions).toEqual([]);
      expect(effects).toEqual([]);
      values.set("a", 7);
      await gate.killSwitch.resume("go on", { actor: PERSON });
      await gate.executeAwaiting();
      await expect.poll(() => effects).toEqual(['world.set {"key":"b","value":1}']);
      expect((await gate.decisions.get(ids[0] ?? "")).state).toBe("failed");
      const late = decisionIdOf(await session.call(set("c", 1, "c")));
      await yes(without, late);
      clock.advance(48 * 3_600_000);
      await gate.executeAwaiting();
      expect(effects).toHaveLength(1);
      expect((await gate.decisions.get(late)).state).toBe("failed");
      expect(await codeOf(yes(without, late))).toBe("already_answered");
    });
  },
  STORE_NAMES,
);

// skip: STORES names the stores to test, and these are not among them
describe.skipIf(!isWanted("sqlite") || !isWanted("postgres"))("in another process", () => {
  test.each(ENGINES)(
    "%s: killed before it begins, another one picks it up, once",
    async (engine) => {
      const place = await newPlace(engine);
      onTestFinished(() => place.remove());
      const { store: kind, place: where, ledger } = place;
      const { store, close } = await openStore({ store: kind, place: where });
      onTestFinished(() => close());
      const plan = { store: kind, place: where, ledger };
      const dying = await startWorker({ ...plan, diesAt: "S5.before" });
      const gone = once(dying, "exit");
      const session = gateOver(store, [noteTool(`${ledger}.wrong`)]).sessions.open({
        agent: AGENT,
      });
      const approving = gateOver(store, []);
      const id = decisionIdOf(
        await session.call({ callId: "c", tool: "ops.note", input: { n: 1 } }),
      );
      await yes(approving, id);
      await gone;
      expect((await noted(ledger)).size).toBe(0);
      await startWorker(plan);
      await expect
        .poll(async () => (await store.tenant("acme").decisions.get(id)).state, { timeout: 10_000 })
        .toBe("executed");
      await sleep(50);
      expect((await noted(ledger)).get(1)).toHaveLength(1);
    },
    60_000,
  );
});
