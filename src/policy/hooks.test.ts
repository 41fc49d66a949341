import fc from "fast-check";
import { expect, test } from "vitest";
import { manualTimers } from "../../tests/support/manual-timers.ts";
import { manualClock } from "../util/clock.ts";
import {
  HOOK_POINTS,
  type Hook,
  type HookOutcome,
  type HookPoint,
  mergeHooks,
  runHooks,
} from "./before-call.ts";

const points = Object.keys(HOOK_POINTS) as HookPoint[];
const said = (answer: unknown, hook = "h"): HookOutcome => ({ hook, kind: "answered", answer });
const answered = (point: HookPoint, ...answers: readonly string[]) =>
  mergeHooks(
    point,
    answers.map((answer, index) => said({ answer, message: `m${index}.` }, `h${index}`)),
  );

test("there are 14 points, among them before and after tool use, before compaction and user prompt [I-46]", () => {
  expect(points).toHaveLength(14);
  for (const point of ["before_tool", "after_tool", "before_compaction", "user_prompt"]) {
    expect(points).toContain(point);
  }
});

test("a handler allows, denies or asks, with a message that is passed on [I-46]", () => {
  expect(answered("before_tool", "allow")).toEqual({ answer: "allow", findings: [] });
  expect(answered("before_tool", "ask")).toMatchObject({
    answer: "ask",
    findings: [{ policy: "hook.h0", severity: "warning" }],
  });
  const denied = answered("before_tool", "deny");
  expect(denied).toMatchObject({
    answer: "deny",
    findings: [{ policy: "hook.h0", severity: "hard-deny" }],
  });
  expect(denied.findings[0]?.message).toContain("m0.");
});

test("deny beats ask, ask beats allow, in any order and number [I-47]", () => {
  const answer = fc.constantFrom<"allow" | "ask" | "deny">("allow", "ask", "deny");
  fc.assert(
    fc.property(fc.array(answer, { minLength: 1 }), (answers) => {
      const strictest = (["deny", "ask", "allow"] as const).find((one) => answers.includes(one));
      expect(answered("before_tool", ...answers).answer).toBe(strictest);
    }),
  );
});

test("every hook's word is kept, also of those that were overruled [I-47]", () => {
  const { findings } = answered("before_tool", "ask", "deny", "allow", "ask");
  expect(findings.map(({ policy }) => policy)).toEqual(["hook.h0", "hook.h1", "hook.h3"]);
});

test("a hook that fails or times out denies where something is about to happen [I-47]", () => {
  const broken: readonly HookOutcome[] = [
    { hook: "h", kind: "failed", error: "boom" },
    { hook: "h", kind: "timed-out", ms: 50 },
    said(undefined),
    said(null),
    said("allow"),
    said({ answer: "yes" }),
    said({ answer: true }),
    said({ allow: true }),
    said([]),
  ];
  for (const outcome of broken) {
    for (const point of points) {
      const { failing } = HOOK_POINTS[point];
      const { answer, findings } = mergeHooks(point, [outcome]);
      expect(answer, point).toBe(failing === "deny" ? "deny" : "allow");
      expect(findings).toHaveLength(1);
    }
    expect(mergeHooks("before_tool", [said({ answer: "allow" }), outcome]).answer).toBe("deny");
  }
  for (const point of points.filter((one) => one.startsWith("before_"))) {
    expect(HOOK_POINTS[point].failing).toBe("deny");
  }
});

test("at points without veto an answer is recorded and stops nothing [I-47]", () => {
  for (const point of points.filter((one) => !HOOK_POINTS[one].veto)) {
    for (const answer of ["deny", "ask"]) {
      const merged = answered(point, answer);
      expect(merged.answer).toBe("allow");
      expect(merged.findings).toMatchObject([{ severity: "warning" }]);
    }
  }
});

const run = (hooks: readonly Hook[], point: HookPoint = "before_tool") => {
  const timers = manualTimers(manualClock(0));
  return { timers, answer: runHooks(hooks, point, { n: 1 }, { timers, timeoutMs: 100 }) };
};
const hook = (
  name: string,
  handle: Hook["handle"],
  at: readonly HookPoint[] = ["before_tool"],
): Hook => ({
  name,
  points: at,
  handle,
});

test("the runner calls the hooks of that point and combines their answers [I-46 I-47]", async () => {
  const seen: unknown[] = [];
  const hooks = [
    hook("sync", (event) => {
      seen.push(event);
      return { answer: "allow" };
    }),
    hook("async", async () => ({ answer: "ask", message: "Look." })),
    hook("elsewhere", () => ({ answer: "deny" }), ["after_tool"]),
  ];
  expect((await run(hooks).answer).answer).toBe("ask");
  expect(seen).toEqual([{ n: 1 }]);
  expect((await run([]).answer).answer).toBe("allow");
});

test("the runner turns throwing, rejecting and hanging hooks into denials [I-47]", async () => {
  const thrower = hook("thrower", () => {
    throw new Error("boom\u001b[31m");
  });
  const rejecter = hook("rejecter", () => Promise.reject(new Error("no")));
  for (const one of [thrower, rejecter]) {
    const { answer, findings } = await run([one]).answer;
    expect(answer).toBe("deny");
    expect(findings[0]?.message).not.toContain("\u001b");
  }
  let signal: AbortSignal | undefined;
  const silent = hook("silent", (_, stop) => {
    signal = stop;
    return new Promise(() => {});
  });
  const { timers, answer } = run([silent, hook("fine", () => ({ answer: "allow" }))]);
  await timers.advance(99);
  expect(signal?.aborted).toBe(false);
  await timers.advance(1);
  const { answer: said, findings } = await answer;
  expect(said).toBe("deny");
  expect(findings[0]?.message).toContain("did not answer within 100 ms");
  expect(signal?.aborted).toBe(true);
  expect(timers.open).toBe(0);
});

test("a hook that answers after its deadline has no effect [I-47]", async () => {
  let late: (answer: { answer: "allow" }) => void = () => {};
  const { timers, answer } = run([hook("late", () => new Promise((resolve) => (late = resolve)))]);
  await timers.advance(100);
  late({ answer: "allow" });
  expect((await answer).answer).toBe("deny");
});
