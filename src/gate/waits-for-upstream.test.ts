import { expect, test } from "vitest";
import type { Validator } from "../model/decision.ts";
import { DECISION_STATES, type DecisionState, newDraft } from "../model/decision.ts";
import { memoryStore } from "../store/memory/index.ts";
import { createStaging, waitsForUpstreamGuard } from "./review.ts";

const NOW = "2026-11-15T06:00:00.000Z";

/** A guard over a fixed table of states, and one question to it. */
async function ask(
  states: Readonly<Record<string, DecisionState>>,
  metadata: Readonly<Record<string, unknown>>,
  { key, signal = new AbortController().signal }: { key?: string; signal?: AbortSignal } = {},
): Promise<boolean> {
  const guard = waitsForUpstreamGuard({
    read: async (id) => {
      const state = states[id];
      return state === undefined ? undefined : { state };
    },
    ...(key === undefined ? {} : { key }),
  });
  const draft = newDraft("s", { sourceTool: "t", raw: new Uint8Array(), metadata }, NOW);
  return guard.allows({ ...draft, id: "self" }, "pending_ml", { signal });
}

test("through the engine: denied first, allowed after the upstream is executed [S0-113]", async () => {
  await using store = memoryStore();
  const { decisions } = store.tenant("default");
  const yes: Validator = {
    name: "yes",
    review: () => ({
      approved: true,
      score: 1,
      reason: "",
      severity: "",
      validator: "yes",
      policyVersion: "1",
    }),
  };
  const guard = waitsForUpstreamGuard({ read: (id) => decisions.get(id) });
  const staging = createStaging({ store: decisions, tech: yes, business: yes, guard });
  const diff = { sourceTool: "t", raw: new Uint8Array([1]), metadata: {} };
  const upstream = await staging.stage("s", diff);
  const metadata = { upstream: upstream.id };
  const { id } = await staging.stage("s", { ...diff, metadata });

  await expect(staging.validateTech(id)).rejects.toMatchObject({ code: "dependency_denied" });
  expect((await staging.get(id)).state).toBe("pending_tech");
  await staging.validateTech(upstream.id);
  await staging.validateBiz(upstream.id);
  await expect(staging.validateTech(id)).rejects.toMatchObject({ code: "dependency_denied" });
  await staging.markExecuted(upstream.id, "proof");
  expect((await staging.validateTech(id)).state).toBe("pending_ml");
  expect((await staging.validateBiz(id)).state).toBe("approved");
});

test("each state of the upstream: executed allows, in flight waits, the other ends never will [S0-113]", async () => {
  for (const state of DECISION_STATES) {
    const answer = ask({ up: state }, { upstream: "up" });
    if (state === "executed") expect(await answer).toBe(true);
    else if (["failed", "rejected_tech", "rejected_ml"].includes(state)) {
      await expect(answer).rejects.toThrow(`up ended as ${state}`);
    } else expect(await answer, state).toBe(false);
  }
});

test("of several upstreams all have to be executed [S0-113]", async () => {
  const states = { a: "executed", b: "executed", c: "approved", d: "failed" } as const;
  expect(await ask(states, { upstream: ["a", "b", "a"] })).toBe(true);
  expect(await ask(states, { upstream: ["a", "b", "c"] })).toBe(false);
  expect(await ask(states, { upstream: ["c", "a"] })).toBe(false);
  await expect(ask(states, { upstream: ["c", "d"] })).rejects.toThrow("d ended as failed");
});

test("without upstreams there is nothing to wait for [S0-113]", async () => {
  expect(await ask({}, {})).toBe(true);
  expect(await ask({}, { upstream: [] })).toBe(true);
  expect(await ask({}, Object.create({ upstream: "unknown" }))).toBe(true);
});

test("another key can hold the ids [S0-113]", async () => {
  const metadata = { after: "a", upstream: "unknown" };
  expect(await ask({ a: "executed" }, metadata, { key: "after" })).toBe(true);
});

test("mistakes never allow and say what is wrong [S0-113]", async () => {
  const sparse = new Array(2);
  sparse[0] = "a";
  const wrong = [1, true, null, undefined, {}, "", " ", [""], [1], ["a", null], [["a"]], sparse];
  for (const upstream of wrong) {
    await expect(ask({ a: "executed" }, { upstream })).rejects.toThrow(/must hold a decision id/);
  }
  await expect(ask({}, { upstream: "nowhere" })).rejects.toThrow("no upstream decision nowhere");
  await expect(ask({ self: "executed" }, { upstream: "self" })).rejects.toThrow("names itself");
  const many = Array.from({ length: 101 }, (_, index) => `d${index}`);
  await expect(ask({}, { upstream: many })).rejects.toThrow(/can wait for 100/);
  await expect(ask({}, { upstream: `x\n${"y".repeat(500)}` })).rejects.toThrow(/^.{1,200}$/);
});

test("a read that fails or hangs is never a yes [S0-113]", async () => {
  const draft = newDraft(
    "s",
    { sourceTool: "t", raw: new Uint8Array(), metadata: { upstream: "up" } },
    NOW,
  );
  const broken = waitsForUpstreamGuard({ read: () => Promise.reject(new Error("store is down")) });
  const { signal } = new AbortController();
  await expect(broken.allows(draft, "approved", { signal })).rejects.toThrow("store is down");
  const hanging = waitsForUpstreamGuard({ read: () => new Promise(() => {}) });
  const stop = new AbortController();
  const answer = hanging.allows(draft, "approved", { signal: stop.signal });
  stop.abort(new Error("too late"));
  await expect(answer).rejects.toThrow("too late");
});

test("the guard cannot be made without a way to read [I-08]", () => {
  expect(() => waitsForUpstreamGuard({} as never)).toThrow(TypeError);
  expect(() => waitsForUpstreamGuard({ read: async () => undefined, key: "" })).toThrow(TypeError);
});
