import { expect, test } from "vitest";
import { isSallyportError } from "../../src/model/errors.ts";
import type { CallAnswer } from "../../src/model/operation.ts";
import { createDice } from "../support/dice.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { oddRequest } from "../support/odd-calls.ts";
import { AGENT, openGate, rules } from "../support/port-world.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";

const CALLS = scaled({ test: 1_000, proof: 1_000, full: 10_000 });

const onlyReads = rules({
  id: "reads",
  effect: "allow",
  tool: "world.look",
  reason: "reading is free",
});

forEachStore("a hijacked agent", (open) => {
  test("a fully hijacked agent gets nothing past the gate, and each call exactly one answer [T1 I1]", async () => {
    const { gate, effects, reads } = openGate({ policy: onlyReads }, await open());
    const dice = createDice("hijacked");
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const answers: CallAnswer[] = [];
    const thrown: string[] = [];
    let asked = 0;
    const kept = async (what: string, work: () => Promise<unknown>): Promise<void> => {
      try {
        await work();
      } catch (error) {
        thrown.push(`${what}: ${String(error)}`);
      }
    };
    while (asked < CALLS) {
      const way = dice.below(10);
      if (way < 5) {
        const one = oddRequest(dice);
        asked += 1;
        await kept(`call ${JSON.stringify(one).slice(0, 300)}`, async () => {
          answers.push(await session.call(one));
        });
      } else if (way < 8) {
        const batch = Array.from({ length: 1 + dice.below(4) }, () => oddRequest(dice));
        asked += batch.length;
        await kept("callAll", async () => {
          const places = new Set<number>();
          for await (const { index, answer } of session.callAll(batch)) {
            places.add(index);
            answers.push(answer);
          }
          expect(places.size).toBe(batch.length);
        });
      } else if (way < 9) {
        const bundle = Array.from({ length: 1 + dice.below(3) }, () => oddRequest(dice));
        asked += 1;
        await kept(`stage ${JSON.stringify(bundle).slice(0, 300)}`, async () => {
          answers.push(await session.stage(bundle));
        });
      } else {
        const operationId = dice.pick(["1", "1.0", "undo.1", "__proto__", ""]);
        const part = dice.pick([{}, { messageId: "m-1" }, { operationId }]);
        const report = session.rollback(AGENT, part);
        // Refusing what is not there is an answer too; anything else is not.
        await kept("rollback", () =>
          report.catch((error: unknown) => {
            if (!isSallyportError(error)) throw error;
          }),
        );
      }
    }
    const figures = { calls: asked, "ungated effects": effects.length, unanswered: thrown.length };
    record({ goal: "T1", what: "a hijacked agent's calls", figures });
    expect(effects).toEqual([]);
    // A call that throws leaves its agent without an answer; the texts say which.
    expect([...new Set(thrown)].slice(0, 10)).toEqual([]);
    expect(answers).toHaveLength(asked);
    const count = (kind: CallAnswer["answer"]) => answers.filter((a) => a.answer === kind).length;
    const sum = (["done", "pending", "denied", "failed", "unknown"] as const).map(count);
    expect(sum.reduce((a, b) => a + b)).toBe(asked);
    expect(count("unknown")).toBe(0);
    // The attack is one: much of it is well-formed enough to be allowed, asked about and denied.
    for (const kind of ["done", "pending", "denied", "failed"] as const) {
      expect(count(kind), kind).toBeGreaterThan(CALLS / 200);
    }
    // Every read in the world is one that was told as done, and nothing else was ever started.
    expect(reads).toHaveLength(count("done"));
    const started = await gate.operations.listBySession("s-1");
    expect(new Set(started.map(({ tool }) => tool))).toEqual(new Set(["world.look"]));
    const decisions = await gate.decisions.listBySession("s-1");
    expect(decisions.filter(({ state }) => state !== "pending_ml")).toEqual([]);
    expect(({} as Record<string, unknown>)["approved"]).toBeUndefined();
  }, 600_000);
});
