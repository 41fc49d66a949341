// The one contract of a flow's state store, on the cache and on every engine.

import { describe, expect, test } from "vitest";
import { createRedactor } from "../../src/audit/redact.ts";
import { memoryFlowStates } from "../../src/flow/runtime-state.ts";
import { FLOW_STATES, type FlowSnapshot, type FlowStateStore } from "../../src/model/flow-state.ts";
import { createStore } from "../../src/store/store.ts";
import { manualClock } from "../../src/util/clock.ts";
import { forEachStore } from "../support/for-each-store.ts";

const KEEP = { keepMs: 1_000 };

function snapshotOf(revision: number, over: { id?: string; trace?: string } = {}): FlowSnapshot {
  const { id = "talk-1", trace = "t-1" } = over;
  return {
    version: 1,
    conversation_id: id,
    session_id: "s-1",
    node: "execute",
    revision,
    state: {
      common_state: {
        trace_id: trace,
        user_id: "u",
        conversation_id: id,
        phase: "executing",
        plan_steps: [],
        current_step: 2,
        round_limit: 30,
        rounds_used: revision,
      },
    },
    work: { entries: [{ kind: "said", text: "a\u0000b \u{1f600} secret=hunter2" }] },
  };
}

interface Opened {
  readonly states: FlowStateStore;
  advance(ms: number): void;
}

function contract(open: () => Promise<Opened>): void {
  test("saves, loads and deletes, and a save replaces the one before [S1-48 I-71 S1-12]", async () => {
    const { states } = await open();
    expect(await states.load("talk-1")).toEqual({ found: false });
    for (const revision of [1, 2, 3]) {
      expect(await states.save(snapshotOf(revision), KEEP)).toBe(true);
      expect(await states.load("talk-1")).toEqual({
        found: true,
        snapshot: snapshotOf(revision),
      });
    }
    expect(await states.load("talk-2")).toEqual({ found: false });
    await states.delete("talk-1", "t-1");
    expect(await states.load("talk-1")).toEqual({ found: false });
  });

  test("deleting twice, or a missing state, is no error [I-71]", async () => {
    const { states } = await open();
    await states.save(snapshotOf(1), KEEP);
    await states.delete("talk-1", "t-1");
    await states.delete("talk-1", "t-1");
    await states.delete("never", "t-1");
    expect(await states.load("talk-1")).toEqual({ found: false });
  });

  test("only the next revision is saved: of two concurrent saves one is rejected", async () => {
    const { states } = await open();
    await states.save(snapshotOf(1), KEEP);
    const both = [snapshotOf(2), { ...snapshotOf(2), node: "confirm" }];
    const saved = await Promise.all(both.map((snapshot) => states.save(snapshot, KEEP)));
    expect(saved.toSorted()).toEqual([false, true]);
    for (const revision of [1, 2, 4]) {
      expect(await states.save(snapshotOf(revision), KEEP)).toBe(false);
    }
    expect(await states.load("talk-1")).toMatchObject({ snapshot: { revision: 2 } });
  });

  test("an expired state is not restored by a late save; the conversation starts again [B5b]", async () => {
    const { states, advance } = await open();
    await states.save(snapshotOf(1), KEEP);
    advance(1_000);
    expect(await states.save(snapshotOf(2), KEEP)).toBe(false);
    expect(await states.load("talk-1")).toEqual({ found: false });
    expect(await states.save(snapshotOf(1), KEEP)).toBe(true);
  });

  test("a deleted state is not restored by a late save, and a late delete affects no other run", async () => {
    const { states } = await open();
    await states.save(snapshotOf(1), KEEP);
    await states.delete("talk-1", "t-1");
    expect(await states.save(snapshotOf(2), KEEP)).toBe(false);
    const next = snapshotOf(1, { trace: "t-2" });
    await states.save(next, KEEP);
    await states.delete("talk-1", "t-1");
    expect(await states.load("talk-1")).toEqual({ found: true, snapshot: next });
  });

  test("a state expires, and then another run may start [I-71]", async () => {
    const { states, advance } = await open();
    await states.save(snapshotOf(1), KEEP);
    advance(999);
    expect(await states.load("talk-1")).toMatchObject({ found: true });
    expect(await states.save(snapshotOf(2), KEEP)).toBe(true);
    advance(999);
    expect(await states.load("talk-1"), "a save prolongs").toMatchObject({ found: true });
    advance(1);
    expect(await states.load("talk-1")).toEqual({ found: false });
    const next = snapshotOf(1, { trace: "t-2" });
    expect(await states.save(next, KEEP)).toBe(true);
    expect(await states.load("talk-1")).toEqual({ found: true, snapshot: next });
  });
}

describe("in memory", () => {
  contract(async () => {
    const clock = manualClock(1_000);
    return { states: memoryFlowStates({ clock }), advance: (ms) => clock.advance(ms) };
  });
});

forEachStore("flow states", (open) => {
  async function opened() {
    const harness = await open();
    const store = createStore(harness.engine, { redact: createRedactor({}) });
    const own = store.tenant("acme");
    return {
      harness,
      own,
      states: own.flowStates,
      advance: (ms: number) => harness.clock.advance(ms),
    };
  }
  contract(opened);

  test("every save and deletion is in the audit log, without the messages", async () => {
    const { own, states, advance } = await opened();
    await states.save(snapshotOf(1), KEEP);
    await states.save(snapshotOf(2), KEEP);
    await states.save(snapshotOf(2), KEEP);
    await states.save(snapshotOf(1, { id: "talk-2" }), KEEP);
    await states.delete("talk-1", "t-1");
    await states.delete("talk-1", "t-1");
    advance(1_000);
    expect(await states.sweep()).toBe(1);
    expect(await states.sweep()).toBe(0);
    const trail = await own.audit.read({ after: 0, limit: 100 });
    expect(trail.map(({ type, subject }) => `${type} ${subject}`)).toEqual([
      "flow.saved talk-1",
      "flow.saved talk-1",
      "flow.saved talk-2",
      "flow.deleted talk-1",
      "flow.expired talk-2",
    ]);
    expect(JSON.parse(trail[1]?.data ?? "")).toEqual({
      node: "execute",
      phase: "executing",
      step: 2,
      revision: 2,
      state_hmac: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(JSON.stringify(trail)).not.toContain("hunter2");
    expect(trail.every(({ session }) => session === "s-1")).toBe(true);
  });

  test("a starting process finds the unfinished conversations [R17]", async () => {
    const { states, advance } = await opened();
    const ids = ["talk-1", "talk-2", "talk-3", "talk-4"];
    for (const id of ids) await states.save(snapshotOf(1, { id }), KEEP);
    await states.delete("talk-2", "t-1");
    advance(500);
    for (const id of ["talk-1", "talk-4"]) await states.save(snapshotOf(2, { id }), KEEP);
    const all = await states.unfinished();
    expect(all.map(({ conversationId }) => conversationId)).toEqual(["talk-1", "talk-3", "talk-4"]);
    expect(all[0]).toMatchObject({ sessionId: "s-1", node: "execute" });
    const [first] = await states.unfinished({ limit: 1 });
    const rest = await states.unfinished({ after: first?.ord ?? 0 });
    expect(rest).toEqual(all.slice(1));
    advance(500);
    const alive = await states.unfinished();
    expect(alive.map(({ conversationId }) => conversationId)).toEqual(["talk-1", "talk-4"]);
  });

  test("tenants do not see each other's states", async () => {
    const { harness, states } = await opened();
    await states.save(snapshotOf(1), KEEP);
    const other = createStore(harness.engine, { redact: createRedactor({}) }).tenant("other");
    expect(await other.flowStates.load("talk-1")).toEqual({ found: false });
    expect(await other.flowStates.save(snapshotOf(2), KEEP)).toBe(false);
    await other.flowStates.delete("talk-1", "t-1");
    expect(await states.load("talk-1")).toMatchObject({ found: true });
  });

  test("a state that was changed in the database is an error, not a miss [I-71]", async () => {
    const { harness, states } = await opened();
    await states.save(snapshotOf(1), KEEP);
    const { engine } = harness;
    await engine.backdate("acme", FLOW_STATES, "talk-1", "hash", "0" as unknown as number);
    await expect(states.load("talk-1")).rejects.toThrow(/damaged_record/);
  });

  test("a closed store is an error, not a miss [I-71]", async () => {
    const { harness, states } = await opened();
    await states.save(snapshotOf(1), KEEP);
    await harness.engine.close();
    await expect(states.load("talk-1")).rejects.toThrow(/store_closed/);
    await expect(states.save(snapshotOf(2), KEEP)).rejects.toThrow(/store_closed/);
  });
});
