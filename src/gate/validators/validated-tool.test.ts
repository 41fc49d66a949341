import { expect, test } from "vitest";
import { manualTimers } from "../../../tests/support/manual-timers.ts";
import type { Diff, Validator, Verdict } from "../../model/decision.ts";
import { defineTool } from "../../tools/define-tool.ts";
import type { Tool, ToolCall, ToolResult } from "../../tools/tool.ts";
import { manualClock } from "../../util/clock.ts";
import {
  type Breaker,
  createBreaker,
  type ValidatedToolOptions,
  validatedTool,
} from "./validated-tool.ts";

interface Context {
  readonly signal?: AbortSignal;
}
type Options = ValidatedToolOptions;
type Review = () => Verdict | Promise<Verdict>;

const fine: Verdict = {
  approved: true,
  score: 1,
  reason: "fine",
  severity: "",
  validator: "rules",
  policyVersion: "3",
};
const block: Verdict = {
  ...fine,
  approved: false,
  score: 0,
  reason: "no WHERE",
  severity: "block",
};
const undo = {
  tool: "sql.restore",
  input: [1, 2],
  description: "Restores two rows.",
  irreversible: false,
  manualGuide: "",
};
const result: ToolResult = { text: "2 rows", data: { rows: 2 }, undo };
const bare: Tool = defineTool({
  name: "sql",
  description: "Changes rows.",
  input: { type: "object" },
  safety: { effect: "write" },
  execute: () => "2 rows",
});
const toDiff = ({ input }: ToolCall, { text }: ToolResult): Diff => ({
  sourceTool: "sql",
  raw: new TextEncoder().encode(`${(input as { sql: string }).sql} => ${text}`),
  metadata: {},
});

/** A wrapped tool with counters: what the tool was called with, what was reviewed, what the sink got. */
function setUp(answer: Verdict | Review, change: Partial<Options> = {}, inner: unknown = result) {
  const calls: ToolCall[] = [];
  const reviewed: string[] = [];
  const sunk: Verdict[] = [];
  const tool: Tool = {
    ...bare,
    async execute(call) {
      calls.push(call);
      if (inner instanceof Error) throw inner;
      return inner as ToolResult;
    },
  };
  const validator: Validator = {
    name: "rules",
    review(diff) {
      reviewed.push(new TextDecoder().decode(diff.raw));
      return typeof answer === "function" ? answer() : answer;
    },
  };
  const sink = (verdict: Verdict) => void sunk.push(verdict);
  const wrapped = validatedTool({ tool, validator, toDiff, sink, ...change });
  const call = (context: Context = {}) =>
    wrapped.execute({
      callId: "c",
      input: { sql: "UPDATE t" },
      context: context as ToolCall["context"],
    });
  return { wrapped, call, calls, reviewed, sunk };
}

test("approve hands on the inner result itself, after a review of what toDiff says [I-07]", async () => {
  const { call, calls, reviewed, sunk, wrapped } = setUp(fine);
  const context = {};
  expect(await call(context)).toBe(result);
  expect(wrapped.name).toBe("sql");
  expect(calls[0]?.context).toBe(context);
  expect(calls[0]?.input).toEqual({ sql: "UPDATE t" });
  expect(reviewed).toEqual(["UPDATE t => 2 rows"]);
  expect(sunk).toEqual([fine]);
});

test("warn hands the result on too, and so does an empty severity, which is read as warn [I-07 I-03]", async () => {
  for (const approved of [true, false]) {
    for (const severity of ["warn", ""] as const) {
      const verdict = { ...fine, approved, severity };
      const { call, sunk } = setUp(verdict);
      expect(await call()).toBe(result);
      expect(sunk).toEqual([verdict]);
    }
  }
});

test("block replaces the result by an error that names validator and reason for the model [I-07]", async () => {
  const { call, sunk } = setUp(block);
  const answer = await call();
  expect(answer.isError).toBe(true);
  expect(answer.text).toMatch(/^Blocked by validator "rules" \(policy 3\): no WHERE\. /);
  expect(answer.text).toMatch(/Do not repeat the same call/);
  expect(answer.text).not.toContain("2 rows");
  expect(answer.data).toEqual({ verdict: block });
  expect(sunk).toEqual([block]);
});

test("block forces a roll-back, so the undo recipe of the withheld result is kept [I-03]", async () => {
  expect(await setUp(block).call()).toMatchObject({ undo, takeBack: true });
  const none = await setUp(block, {}, { text: "x" }).call();
  expect(none.undo, "the call was made all the same").toMatchObject({ irreversible: true });
});

test("a verdict without a name is kept under the name of the validator that gave it [I-02]", async () => {
  const { call, sunk } = setUp({ ...fine, validator: "" });
  await call();
  expect(sunk).toEqual([fine]);
});

test("a verdict that approves and blocks at once is a block [I-07]", async () => {
  expect((await setUp({ ...fine, severity: "block" }).call()).isError).toBe(true);
});

test("a call that already failed is not reviewed, whether it says so or throws [I-07]", async () => {
  const failed = { text: "no such table", isError: true };
  const said = setUp(block, {}, failed);
  expect(await said.call()).toBe(failed);
  const thrown = setUp(block, {}, new Error("connection lost"));
  await expect(thrown.call()).rejects.toThrow("connection lost");
  expect([...said.reviewed, ...said.sunk, ...thrown.reviewed, ...thrown.sunk]).toEqual([]);
});

test("only isError true is a failure; anything else is reviewed [I-07]", async () => {
  for (const isError of [false, undefined, 1, "true", null]) {
    const { call, reviewed } = setUp(block, {}, { text: "x", isError });
    expect((await call()).text).toMatch(/^Blocked/);
    expect(reviewed).toHaveLength(1);
  }
});

test("whatever goes wrong in the review is a block that the sink sees [I-07]", async () => {
  const broken: Record<string, () => ReturnType<typeof setUp>> = {
    throws: () =>
      setUp(() => {
        throw new Error("down");
      }),
    rejects: () => setUp(() => Promise.reject(new Error("down"))),
    "answers nothing": () => setUp(() => undefined as never),
    "answers true": () => setUp(() => true as never),
    "answers half a verdict": () => setUp(() => ({ approved: true }) as never),
    "answers NaN": () => setUp({ ...fine, score: Number.NaN }),
    "cannot be shown": () =>
      setUp(fine, {
        toDiff() {
          throw new Error("no diff");
        },
      }),
    "gave no result": () => setUp(fine, {}, null),
    "gave text": () => setUp(fine, {}, "done"),
  };
  for (const [what, make] of Object.entries(broken)) {
    const { call, sunk } = make();
    const answer = await call();
    expect(answer.isError, what).toBe(true);
    expect(answer.text, what).toMatch(/^Blocked by validator "rules": the review failed: ./);
    expect(sunk, what).toMatchObject([{ approved: false, severity: "block", validator: "rules" }]);
  }
});

test("a validator that hangs is a block when the time is over or the caller gives up [I-07]", async () => {
  const timers = manualTimers(manualClock(0));
  const slow = setUp(() => new Promise(() => {}), { timers, timeoutMs: 2000 });
  const answer = slow.call();
  await timers.advance(2000);
  expect((await answer).text).toMatch(/No answer within 2000 ms/);
  expect(timers.open).toBe(0);
  const stop = new AbortController();
  const given = setUp(() => new Promise(() => {}), { timers }).call({ signal: stop.signal });
  await timers.advance(0);
  stop.abort(new Error("user left"));
  expect((await given).text).toMatch(/the review failed: user left/);
});

test("a failing sink never turns a block into a pass, and withholds what it could not record [I-07]", async () => {
  const timers = manualTimers(manualClock(0));
  const sinks: readonly Options["sink"][] = [
    () => {
      throw new Error("disk full");
    },
    () => Promise.reject(new Error("disk full")),
    () => new Promise(() => {}),
  ];
  for (const sink of sinks) {
    for (const verdict of [fine, block]) {
      const answer = setUp(verdict, { sink, timers, timeoutMs: 100 }).call();
      await timers.advance(100);
      expect((await answer).isError).toBe(true);
      expect((await answer).text).toMatch(
        verdict === block ? /^Blocked by validator "rules"/ : /could not be recorded/,
      );
      expect((await answer).undo).toEqual(undo);
    }
  }
});

test("while the circuit is open the tool is not called and the answer says circuit_open [I-10]", async () => {
  const clock = manualClock(0);
  const breaker = createBreaker({ clock, threshold: 3, coolDownMs: 10_000 });
  const { call, calls, sunk } = setUp(block, { breaker });
  for (let count = 0; count < 3; count += 1) await call();
  clock.advance(1000);
  const refused = await call();
  expect(calls).toHaveLength(3);
  expect(sunk).toHaveLength(3);
  expect(refused).toMatchObject({
    isError: true,
    data: { code: "circuit_open", retryAfterMs: 9000 },
  });
  expect(refused.text).toMatch(/^circuit_open: the tool "sql" was not called.* in 9 s\.$/);
});

test("verdicts feed the breaker: blocks and broken reviews open it, warnings do not [I-09 I-03]", async () => {
  const open = async (answer: Verdict | Review, times: number) => {
    const breaker = createBreaker({ clock: manualClock(0) });
    const { call } = setUp(answer, { breaker });
    for (let count = 0; count < times; count += 1) await call();
    return breaker.snapshot();
  };
  expect(await open(block, 5)).toMatchObject({ phase: "open" });
  const broken = () => Promise.reject(new Error("down"));
  expect(await open(broken, 5)).toMatchObject({ phase: "open" });
  const warned: Verdict = { ...fine, approved: false, severity: "warn" };
  expect(await open(warned, 50)).toMatchObject({ phase: "closed", samples: 50, failures: 0 });
});

test("after the cool-down one of many callers probes, and its success lets all through again [I-09]", async () => {
  const clock = manualClock(0);
  const breaker = createBreaker({ clock, threshold: 1, coolDownMs: 1000 });
  let verdict = block;
  const { call, calls } = setUp(() => verdict, { breaker });
  await call();
  verdict = fine;
  clock.advance(1000);
  const answers = await Promise.all(Array.from({ length: 20 }, () => call()));
  expect(answers.filter((answer) => answer === result)).toHaveLength(1);
  expect(calls).toHaveLength(2);
  expect(await call()).toBe(result);
});

test("a probe whose tool fails by itself frees the place for the next [I-09]", async () => {
  const clock = manualClock(0);
  const breaker = createBreaker({ clock, threshold: 1, coolDownMs: 1000 });
  await setUp(block, { breaker }).call();
  clock.advance(1000);
  await expect(setUp(fine, { breaker }, new Error("lost")).call()).rejects.toThrow("lost");
  await setUp(fine, { breaker }, { text: "x", isError: true }).call();
  expect(breaker.snapshot()).toMatchObject({ phase: "half-open", retryAfterMs: 0 });
  expect(await setUp(fine, { breaker }).call()).toBe(result);
  expect(breaker.snapshot().phase).toBe("closed");
});

test("a breaker that is broken itself lets nothing through [I-10]", async () => {
  const breaker: Breaker = {
    ...createBreaker({ clock: manualClock(0) }),
    admit() {
      throw new Error("bug");
    },
  };
  const { call, calls } = setUp(fine, { breaker });
  await expect(call()).rejects.toThrow("bug");
  expect(calls).toHaveLength(0);
});

test("a validated tool without its parts cannot be made [I-08]", () => {
  const parts: Options = {
    tool: bare,
    validator: { name: "rules", review: () => fine },
    toDiff,
    sink: () => {},
  };
  expect(() => validatedTool(parts)).not.toThrow();
  for (const missing of Object.keys(parts)) {
    for (const nothing of [undefined, null, {}]) {
      const broken = { ...parts, [missing]: nothing } as unknown as Options;
      expect(() => validatedTool(broken), `without ${missing}`).toThrow(TypeError);
    }
  }
  for (const timeoutMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => validatedTool({ ...parts, timeoutMs })).toThrow(TypeError);
  }
  expect(() => validatedTool({ ...parts, breaker: {} as Breaker })).toThrow(TypeError);
});
