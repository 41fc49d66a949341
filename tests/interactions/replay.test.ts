// T7: a yes is good for one question, one tenant, one hash, once and in time.

import { expect, test } from "vitest";
import { AGENT, decisionIdOf, PERSON } from "../support/port-world.ts";
import { record } from "../support/record.ts";
import { codeOf, FULL, HOUR, no, OTHER, onlyOpen, onStores, set, yes } from "./inbox-world.ts";

const REPLAYS = FULL ? 1_000 : 50;
const TENTH = REPLAYS / 10;

onStores("a yes is used once", (open) => {
  test("the same approval again and again, one by one and at once: 0 second uses [T7]", async () => {
    const { gate, effects, again } = await open();
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(set("a", 1)));
    const { hash } = await gate.interactions.get(id);
    await gate.interactions.approve(id, { hash, by: PERSON });
    const codes = new Set<string>();
    for (let i = 0; i < REPLAYS; i += TENTH) {
      const gates = Array.from({ length: TENTH }, (_, n) => (n % 2 === 0 ? gate : again()));
      const replays = gates.map((one, n) => {
        const answer = { hash, by: n % 3 === 0 ? PERSON : OTHER };
        return one.interactions.approve(id, answer);
      });
      for (const code of await Promise.all(replays.map(codeOf))) codes.add(code);
    }
    const second = effects.length - 1;
    record({ goal: "T7", what: "replays", figures: { replays: REPLAYS, "second uses": second } });
    expect([...codes]).toEqual(["already_answered"]);
    expect(effects).toEqual(['world.set {"key":"a","value":1}']);
    expect(await gate.operations.listBySession("s-1")).toHaveLength(1);
  });

  test("the approval of one record on another with the same call: 0 uses [T7]", async () => {
    const { gate, effects } = await open();
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const used = decisionIdOf(await session.call(set("a", 1)));
    const { hash } = await gate.interactions.get(used);
    const others: string[] = [];
    for (let i = 0; i < TENTH; i += 1) {
      others.push(decisionIdOf(await session.call(set("a", 1, `c-${i}`))));
    }
    for (let i = 0; i < REPLAYS; i += 1) {
      const id = others[i % others.length] ?? "";
      expect(await codeOf(gate.interactions.approve(id, { hash, by: PERSON }))).toBe(
        "approval_void",
      );
    }
    expect(effects).toEqual([]);
    expect(await gate.interactions.list({ limit: 1_000 })).toHaveLength(others.length + 1);
  });

  test("an approval in another tenant: not even there [T7 I22]", async () => {
    const { gate, again, effects } = await open();
    const id = decisionIdOf(await gate.sessions.open({ agent: AGENT }).call(set("a", 1)));
    const { hash } = await gate.interactions.get(id);
    const strange = again({ tenant: "rival" });
    // A decision of their own with the same call, so that there is something to be had.
    const theirs = decisionIdOf(await strange.sessions.open({ agent: AGENT }).call(set("a", 1)));
    for (let i = 0; i < REPLAYS; i += 1) {
      const answer = { hash, by: PERSON };
      expect(await codeOf(strange.interactions.approve(id, answer))).toBe("not_found");
      expect(await codeOf(strange.interactions.approve(theirs, answer))).toBe("approval_void");
    }
    expect(await strange.interactions.list()).toMatchObject([{ id: theirs }]);
    expect(effects).toEqual([]);
  });

  test("after expiry, also with a clock that was set back: never again [T7 T34 I13]", async () => {
    const { gate, restart, effects, clock } = await open({ approvalMs: HOUR });
    const id = decisionIdOf(await gate.sessions.open({ agent: AGENT }).call(set("a", 1)));
    const { hash } = await gate.interactions.get(id);
    const early = clock.now();
    clock.advance(HOUR + 1);
    for (let i = 0; i < REPLAYS; i += 1) {
      expect(await codeOf(gate.interactions.approve(id, { hash, by: PERSON }))).toBe(
        "approval_void",
      );
    }
    await gate.interactions.sweep();
    clock.set(early);
    const later = await restart();
    expect(await codeOf(later.interactions.approve(id, { hash, by: PERSON }))).toBe(
      "already_answered",
    );
    expect(effects).toEqual([]);
  });

  test("after a restart, and after a no: nothing is taken for a yes [T7]", async () => {
    const { gate, restart, effects } = await open();
    const session = gate.sessions.open({ agent: AGENT });
    const done = decisionIdOf(await session.call(set("a", 1)));
    const refused = decisionIdOf(await session.call(set("b", 1)));
    const hashes = await Promise.all([done, refused].map((id) => gate.interactions.get(id)));
    await yes(gate, done);
    await no(gate, refused);
    const later = await restart();
    for (let i = 0; i < TENTH; i += 1) {
      for (const { id, hash } of hashes) {
        expect(await codeOf(later.interactions.approve(id, { hash, by: OTHER }))).toBe(
          "already_answered",
        );
      }
    }
    expect(effects).toHaveLength(1);
  });

  test("another hash, by one character or by a whole one: 0 uses [T7]", async () => {
    const { gate, effects } = await open();
    const id = decisionIdOf(await gate.sessions.open({ agent: AGENT }).call(set("a", 1)));
    const { hash } = await gate.interactions.get(id);
    const near = Array.from(hash, (digit, place) => {
      return `${hash.slice(0, place)}${digit === "0" ? "1" : "0"}${hash.slice(place + 1)}`;
    });
    for (const wrong of ["", "0", hash.toUpperCase(), `${hash} `, hash.slice(1), ...near]) {
      expect(await codeOf(gate.interactions.approve(id, { hash: wrong, by: PERSON })), wrong).toBe(
        "approval_void",
      );
      expect(await codeOf(gate.interactions.reject(id, { hash: wrong, by: PERSON })), wrong).toBe(
        "approval_void",
      );
    }
    expect(effects).toEqual([]);
    await yes(gate, id);
    expect(effects).toHaveLength(1);
  });

  test("a late answer to one question never releases the next one [R12]", async () => {
    const { gate, effects, clock, restart } = await open({ approvalMs: HOUR });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const first = decisionIdOf(await session.call(set("a", 1)));
    const seen = await gate.interactions.get(first);
    clock.advance(HOUR + 1);
    await gate.interactions.sweep();
    // The agent asks the very same again; only then the answer to the first question arrives.
    const second = decisionIdOf(await session.call(set("a", 1)));
    const later = await restart();
    const late = { hash: seen.hash, by: PERSON };
    expect(await codeOf(later.interactions.approve(first, late))).toBe("already_answered");
    expect(await codeOf(later.interactions.approve(second, late))).toBe("approval_void");
    expect(effects).toEqual([]);
    expect(await onlyOpen(later)).toMatchObject({ id: second, votes: [] });
  });

  test("two surfaces say yes at once: executed once, and the second is told who was first and what was decided [R15]", async () => {
    const { gate, restart, effects } = await open();
    const other = await restart();
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    for (let i = 0; i < 10; i += 1) {
      const id = decisionIdOf(await session.call(set(`k${i}`, i, `c-${i}`)));
      const { hash } = await gate.interactions.get(id);
      const both = await Promise.allSettled([
        gate.interactions.approve(id, { hash, by: PERSON }),
        other.interactions.approve(id, { hash, by: OTHER }),
      ]);
      const won = both.findIndex(({ status }) => status === "fulfilled");
      const winner = [PERSON, OTHER][won];
      expect(both.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      expect(both[1 - won]).toMatchObject({
        reason: { code: "already_answered", details: { outcome: "approved", by: winner } },
      });
      expect(effects).toHaveLength(i + 1);
    }
  });

  test("a yes and a no at once: one of them counts, and never both [R15]", async () => {
    const { gate, restart, effects } = await open();
    const other = await restart();
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    for (let i = 0; i < 10; i += 1) {
      const id = decisionIdOf(await session.call(set(`k${i}`, i, `c-${i}`)));
      const before = effects.length;
      const both = await Promise.allSettled(
        i % 2 === 0 ? [yes(gate, id), no(other, id)] : [no(gate, id), yes(other, id)],
      );
      expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
      const { state } = await gate.decisions.get(id);
      expect(effects.length - before).toBe(state === "executed" ? 1 : 0);
      expect(["executed", "rejected_ml"]).toContain(state);
    }
  });
});
