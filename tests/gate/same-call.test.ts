// A retry of a call that was not executed yet finds the first one.

import { expect, test } from "vitest";
import type { CallAnswer } from "../../src/model/operation.ts";
import { DAY, no, onStores, yes } from "../interactions/inbox-world.ts";
import { AGENT, decisionIdOf } from "../support/port-world.ts";
import { STORE_NAMES } from "../support/stores.ts";

/** As a coding agent asks: no key, no message, a new call id each time. */
const asked = (value = 1, callId = "c-1") => ({
  callId,
  tool: "world.set",
  input: { key: "a", value },
});

const text = ({ text: said }: CallAnswer) => said;

onStores(
  "the same call again",
  (open) => {
    test("while it waits: the same question, in every process, and no second one", async () => {
      const { gate, restart } = await open();
      const session = gate.sessions.open({ id: "s-1", agent: AGENT });
      const id = decisionIdOf(await session.call(asked()));
      const again = (await restart()).sessions.open({ id: "s-1", agent: AGENT });
      expect(decisionIdOf(await again.call(asked(1, "c-2")))).toBe(id);
      expect(decisionIdOf(await again.stage([asked(1, "c-3")]))).toBe(id);
      expect(await gate.interactions.list()).toHaveLength(1);
      expect(decisionIdOf(await again.call(asked(2, "c-4")))).not.toBe(id);
    });

    test("approved and unused: it is executed, once, and the next one is a new question", async () => {
      const { gate, effects, restart } = await open();
      const session = gate.sessions.open({ id: "s-1", agent: AGENT });
      const id = decisionIdOf(await session.call(asked()));
      await yes(await restart({ tools: [] }), id);
      const retries = ["c-2", "c-3", "c-4"].map((callId) => session.call(asked(1, callId)));
      const answers = await Promise.all(retries);
      expect(effects).toHaveLength(1);
      expect(answers.map(({ answer }) => answer)).toContain("done");
      const next = decisionIdOf(await session.call(asked(1, "c-5")));
      expect(next, "two calls that were meant stay two calls").not.toBe(id);
      await yes(gate, next);
      // Shown before the first call had changed the target, it came back with the difference, once.
      for (const again of await gate.interactions.list()) await yes(gate, again.id);
      expect(effects).toHaveLength(2);
    });

    test("refused or expired: a new question", async () => {
      const { gate, clock } = await open();
      const session = gate.sessions.open({ id: "s-1", agent: AGENT });
      const first = decisionIdOf(await session.call(asked()));
      await no(gate, first);
      const second = decisionIdOf(await session.call(asked(1, "c-2")));
      expect(second).not.toBe(first);
      clock.advance(2 * DAY);
      const third = decisionIdOf(await session.call(asked(1, "c-3")));
      expect(third, "nobody has swept yet").not.toBe(second);
    });

    test("another session, agent, owner or definition: a question of its own", async () => {
      const { gate, tools, restart } = await open();
      const ids = new Set([decisionIdOf(await open1({ id: "s-1", agent: AGENT }))]);
      ids.add(decisionIdOf(await open1({ id: "s-2", agent: AGENT })));
      ids.add(decisionIdOf(await open1({ id: "s-1", agent: "agent:two" })));
      ids.add(decisionIdOf(await open1({ id: "s-1", agent: AGENT, owner: "person:own" })));
      expect(ids.size).toBe(4);
      const changed = { ...tools.set, description: () => "Sets a value, and tells everybody." };
      const other = await restart({ tools: [changed] });
      const session = other.sessions.open({ id: "s-1", agent: AGENT });
      expect(ids).not.toContain(decisionIdOf(await session.call(asked(1, "c-2"))));

      function open1(how: Parameters<typeof gate.sessions.open>[0]) {
        return gate.sessions.open(how).call(asked());
      }
    });

    test("calls with keys of their own, and siblings of one message, are different calls", async () => {
      const { gate } = await open();
      const session = gate.sessions.open({ id: "s-1", agent: AGENT });
      const ids: string[] = [];
      for (const key of ["k-1", "k-2"])
        ids.push(decisionIdOf(await session.call({ ...asked(), key })));
      for (const callId of ["c-1", "c-2"]) {
        ids.push(decisionIdOf(await session.call({ ...asked(1, callId), messageId: "m-1" })));
      }
      for await (const { answer } of session.callAll([asked(5, "d-1"), asked(5, "d-2")])) {
        ids.push(decisionIdOf(answer));
      }
      expect(new Set(ids).size).toBe(6);
      const retry = decisionIdOf(await session.call({ ...asked(1, "c-9"), messageId: "m-2" }));
      expect(retry, "a later message asks again").toBe(ids[3]);
    });

    test("of identical calls at the same moment people see one", async () => {
      const { gate } = await open();
      const session = gate.sessions.open({ id: "s-1", agent: AGENT });
      const calls = Array.from({ length: 5 }, (_, n) => session.call(asked(1, `c-${n}`)));
      const ids = new Set((await Promise.all(calls)).map(decisionIdOf));
      expect(ids.size).toBe(1);
      expect(await gate.interactions.list()).toHaveLength(1);
    });

    test("a request that is sent again with its key has the same answer, also after the execution", async () => {
      const { gate, effects, restart } = await open();
      const session = gate.sessions.open({ id: "s-1", agent: AGENT });
      const id = decisionIdOf(await session.call({ ...asked(), requestKey: "r-1" }));
      await yes(await restart({ tools: [] }), id);
      const request = { ...asked(1, "c-2"), requestKey: "r-2" };
      const done = await session.call(request);
      expect(done).toMatchObject({ answer: "done", text: "set" });
      expect(text(await session.call(request))).toBe("set");
      expect(text(await session.call({ ...asked(), requestKey: "r-1" }))).toBe("set");
      expect(effects).toHaveLength(1);
    });

    test("a call that needs no person has one answer for its key, and one effect", async () => {
      const rules = [{ id: "set", effect: "allow", tool: "world.set", reason: "a test" }] as const;
      const { gate, effects, restart } = await open({ policy: { version: "1", rules } });
      const request = { ...asked(), requestKey: "r-1" };
      const session = gate.sessions.open({ id: "s-1", agent: AGENT });
      expect(await session.call(request)).toMatchObject({ answer: "done", text: "set" });
      const again = (await restart()).sessions.open({ id: "s-1", agent: AGENT });
      expect(text(await again.call({ ...request, callId: "c-2" }))).toBe("set");
      expect(effects).toHaveLength(1);
      await session.call({ ...request, requestKey: "r-2" });
      expect(effects, "another request is meant").toHaveLength(2);
    });

    test("edited meanwhile: the retry gets the edited call, and is told what was changed", async () => {
      const { gate, effects } = await open();
      const session = gate.sessions.open({ id: "s-1", agent: AGENT });
      const id = decisionIdOf(await session.call(asked(100)));
      const { hash } = await gate.interactions.get(id);
      const inputs = { 0: { key: "a", value: 10 } };
      const edited = await gate.interactions.edit(id, { hash, by: "person:ada", inputs });
      if (!edited.edited) throw new Error(edited.text);
      const pending = await session.call(asked(100, "c-2"));
      expect(pending).toMatchObject({
        answer: "pending",
        decisionId: edited.interaction.id,
        edited: {
          by: ["person:ada"],
          original: { key: "a", value: 100 },
          input: { key: "a", value: 10 },
          fields: ["value"],
        },
      });
      expect(pending.text).toContain("person:ada changed your call");
      expect(pending.text).toContain("value (10 instead of 100)");
      await no(gate, edited.interaction.id, "person:bob");
      expect(effects).toEqual([]);
    });
  },
  STORE_NAMES,
);
