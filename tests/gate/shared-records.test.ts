// Bundles and rollbacks whose calls touch some of the same records, for versions by content and for counted ones.

import fc from "fast-check";
import { expect, test } from "vitest";
import { leftOver } from "../../src/gate/rollback-report.ts";
import { BY, createBoxes } from "./shared-records-world.ts";

const BOTH = ["content", "counter"] as const;

test.each(BOTH)(
  "a bundle whose calls share a record is executed whole (%s) [D1]",
  async (versions) => {
    const { session, moving, approve, amounts } = createBoxes(versions);
    const staged = await session.stage([moving("a>b"), moving("b>c"), moving("c>a", 1)]);
    const { answers } = await approve(staged);
    expect(answers.map(({ answer, text }) => `${answer}: ${text}`)).toEqual([
      "done: moved",
      "done: moved",
      "done: moved",
    ]);
    expect(amounts()).toBe("a8 b10 c12");
  },
);

test.each(BOTH)(
  "somebody else's change between two calls of a bundle is noticed (%s) [D1]",
  async (versions) => {
    const { session, moving, approve, amounts, add, meanwhile, gate } = createBoxes(versions);
    const staged = await session.stage([moving("a>b"), moving("c>b")]);
    meanwhile("S7.after", 1, () => add("c", 5));
    const { answers, interaction } = await approve(staged);
    expect(answers.at(-1)).toMatchObject({
      answer: "failed",
      text: expect.stringContaining("the target was changed"),
    });
    expect(amounts()).toBe("a10 b10 c15");
    expect((await gate.decisions.get(interaction.decisionId)).state).toBe("failed");
  },
);

test.each(BOTH)(
  "somebody else's change between two calls of a bundle is noticed by the call after those (%s) [D1]",
  async (versions) => {
    const { session, moving, approve, amounts, add, meanwhile } = createBoxes(versions);
    const staged = await session.stage([moving("a>b"), moving("b>a", 1), moving("c>b")]);
    meanwhile("S7.after", 1, () => add("c", 5));
    const { outcome } = await approve(staged);
    expect(outcome).toBe("failed");
    expect(amounts()).toBe("a10 b10 c15");
  },
);

test("a record that somebody else brought to the version of another record is not taken for it [D1]", async () => {
  const { session, moving, approve, amounts, add, meanwhile } = createBoxes("counter");
  // Afterwards a and b are at 1:1 by the first call, and c and d at 1:1 by another writer.
  const staged = await session.stage([moving("a>b"), moving("c>d")]);
  meanwhile("S7.after", 1, () => {
    add("c", 5);
    add("d", 5);
  });
  const { answers } = await approve(staged);
  expect(answers.at(-1)?.answer).toBe("failed");
  expect(amounts()).toBe("a10 b10 c15 d5");
});

test.each(BOTH)("calls that share records are undone whole (%s) [D2]", async (versions) => {
  const { session, call, amounts } = createBoxes(versions);
  await call("a>b");
  await call("b>c");
  const report = await session.rollback(BY);
  expect(leftOver(report)).toEqual([]);
  expect(report.undone).toHaveLength(2);
  expect(amounts()).toBe("a10 b10 c10");
});

test.each(BOTH)(
  "a longer chain over shared records is undone whole, also call by call (%s) [D2]",
  async (versions) => {
    const { session, call, amounts } = createBoxes(versions);
    const ids: string[] = [];
    for (const path of ["a>b", "b>c", "a>c", "c>b", "b>a", "a>b"]) ids.push(await call(path, 1));
    for (const operationId of ids.slice(3).reverse()) {
      expect((await session.rollback(BY, { operationId })).undone).toHaveLength(1);
    }
    ids.push(await call("c>a", 2));
    expect(leftOver(await session.rollback(BY))).toEqual([]);
    expect(amounts()).toBe("a10 b10 c10");
  },
);

test.each(BOTH)(
  "of calls that share a record an earlier one is not undone under a later one (%s) [D2]",
  async (versions) => {
    const { session, call, amounts } = createBoxes(versions);
    const first = await call("a>b");
    await call("b>c");
    const third = await call("c>b", 1);
    await session.rollback(BY, { operationId: third });
    const report = await session.rollback(BY, { operationId: first });
    expect([report.undone.length, report.conflicted.length]).toEqual([0, 1]);
    expect(amounts()).toBe("a7 b10 c13");
  },
);

test.each([
  ["between the calls", 1, "S7.after"],
  ["between the undos", 3, "S7.after"],
] as const)("somebody else's change %s of shared records is kept [D2]", async (_, nth, at) => {
  for (const versions of BOTH) {
    const { session, call, amounts, add, meanwhile } = createBoxes(versions);
    meanwhile(at, nth, () => add("a", 5));
    await call("a>b");
    await call("b>c");
    const report = await session.rollback(BY);
    expect([report.undone.length, report.conflicted.length]).toEqual([1, 1]);
    expect(amounts()).toBe("a12 b13 c10");
  }
});

const paths = fc.array(fc.constantFrom("a>b", "b>c", "c>a", "b>a", "c>b", "a>c"), {
  minLength: 2,
  maxLength: 8,
});

test.each(BOTH)("any session over shared records is undone whole (%s) [D2]", async (versions) => {
  await fc.assert(
    fc.asyncProperty(paths, async (all) => {
      const { session, call, amounts } = createBoxes(versions);
      for (const path of all) await call(path, 1);
      expect(leftOver(await session.rollback(BY))).toEqual([]);
      expect(amounts()).toBe("a10 b10 c10");
    }),
    { numRuns: 40 },
  );
});

test.each(BOTH)(
  "any bundle over shared records is executed, or undone, whole (%s) [D1] [D2]",
  async (versions) => {
    await fc.assert(
      fc.asyncProperty(paths, fc.boolean(), async (all, isTooMuch) => {
        const { session, moving, approve, amounts } = createBoxes(versions);
        const last = isTooMuch ? [moving("a>b", 100)] : [];
        const staged = await session.stage([...all.map((path) => moving(path, 1)), ...last]);
        const { answers } = await approve(staged);
        const texts = answers.map(({ text }) => text);
        if (isTooMuch) {
          expect(texts.at(-1)).toBe("not enough");
          expect(amounts()).toBe("a10 b10 c10");
        } else expect(texts).toEqual(all.map(() => "moved"));
      }),
      { numRuns: 40 },
    );
  },
);

test.each(BOTH)(
  "in any session over shared records somebody else's change is kept (%s) [D2]",
  async (versions) => {
    const box = fc.constantFrom("a", "b", "c");
    await fc.assert(
      fc.asyncProperty(paths, box, fc.integer({ min: 1, max: 16 }), async (all, theirs, nth) => {
        const { session, call, meanwhile, add } = createBoxes(versions);
        // After the n-th call, or, counted on, after the n-th undo.
        meanwhile("S7.after", nth, () => add(theirs, 1_000));
        const ids: string[] = [];
        for (const path of all) ids.push(await call(path, 1));
        const undone = (await session.rollback(BY)).undone.map(({ operationId }) => operationId);
        const left = all.length - Math.max(nth - all.length, 0);
        const inTheWay = all.slice(0, Math.max(Math.min(nth, left), 0));
        for (const [index, path] of inTheWay.entries()) {
          if (path.includes(theirs)) expect(undone).not.toContain(ids[index]);
        }
      }),
      { numRuns: 40 },
    );
  },
);
