import { describe, expect, test } from "vitest";
import { read, tableRows } from "../../tests/support/source-files.ts";
import { BY, intentOf, success, UndoWorld } from "../../tests/support/undo-world.ts";
import { rollback } from "../gate/rollback.ts";
import type { Operation } from "../model/operation.ts";
import { memoryStore } from "../store/memory/index.ts";
import type { OperationStore } from "../store/operations.ts";
import { defineTool } from "../tools/define-tool.ts";
import { createRegistry } from "../tools/registry.ts";
import { manualClock } from "../util/clock.ts";
import {
  AUDIT_OUTCOMES,
  type AuditObserverOptions,
  type AuditSink,
  createAuditObserver,
  OBSERVER_PROBLEMS,
  type ObserverProblem,
  type ToolAuditEntry,
} from "./observer.ts";

const AT = "2026-11-15T06:00:05.000Z";
const PATH = "/var/results/acme/s-1/1.txt";

const OPERATION: Operation = {
  id: "op-1",
  sessionId: "s-1",
  messageId: "m-1",
  callId: "c-1",
  turn: 7,
  tool: "crm.touch",
  workingDirectory: "",
  chain: [],
  effect: "write",
  definitionHash: "d",
  input: '{"password":"in"}',
  decisionId: "",
  step: 0,
  undoOf: "",
  executor: "",
  status: "success",
  attempt: 1,
  fence: 1,
  leaseUntil: "2026-11-15T06:00:30.000Z",
  output: "out",
  truncated: false,
  storedPath: "",
  undo: undefined,
  error: "",
  stateVersion: "",
  createdAt: "2026-11-15T06:00:00.000Z",
  updatedAt: AT,
};
const STORED: Operation = { ...OPERATION, truncated: true, storedPath: PATH };
const DENIED = {
  callId: "c-2",
  tool: "crm.touch",
  sessionId: "s-1",
  turn: 3,
  outcome: "denied",
} as const;

function sink(name: string, trusted?: boolean) {
  const entries: ToolAuditEntry[] = [];
  const write = (entry: ToolAuditEntry): void => void entries.push(entry);
  return { name, entries, write, ...(trusted === undefined ? {} : { trusted }) };
}

function setUp(sinks: readonly AuditSink[], over: Partial<AuditObserverOptions> = {}) {
  const registry = createRegistry();
  const shared = { description: "d", input: { type: "object" }, execute: () => "" } as const;
  registry.register(defineTool({ ...shared, name: "crm.touch", auditOperation: "überweisen" }));
  registry.register(defineTool({ ...shared, name: "crm.delete_contact", aliases: ["forget"] }));
  registry.register(defineTool({ ...shared, name: "crm.refund" }));
  const problems: ObserverProblem[] = [];
  const observer = createAuditObserver({
    sinks,
    findTool: (name) => registry.get(name),
    onProblem: (problem) => problems.push(problem),
    clock: manualClock(Date.parse(AT)),
    ...over,
  });
  return { observer, problems };
}

describe("an entry", () => {
  test("has operation, tool, session, call id, time, outcome, turn and stored path, and nothing else [I-27]", () => {
    const place = sink("own", true);
    const { observer, problems } = setUp([place]);
    observer.settled(STORED);
    expect(place.entries).toEqual([
      {
        operation: "überweisen",
        tool: "crm.touch",
        sessionId: "s-1",
        callId: "c-1",
        at: AT,
        outcome: "done",
        turn: 7,
        storedPath: PATH,
      },
    ]);
    expect(problems).toEqual([]);
  });

  test("has no stored path when nothing was stored [I-27]", () => {
    const place = sink("own", true);
    setUp([place]).observer.settled(OPERATION);
    expect(place.entries.map((entry) => "storedPath" in entry)).toEqual([false]);
  });

  test.each([
    ["crm.touch", "überweisen", "crm.touch"],
    ["crm.delete_contact", "delete", "crm.delete_contact"],
    ["forget", "delete", "crm.delete_contact"],
    ["crm.refund", "invoke", "crm.refund"],
    ["gone.read_file", "read", "gone.read_file"],
    ["gone", "invoke", "gone"],
  ])(
    "of %s has the declared operation, else a guess, else invoke: %s [I-27 S2-45 S2-46]",
    (tool, operation, name) => {
      const place = sink("own");
      const { observer } = setUp([place]);
      observer.settled({ ...OPERATION, tool });
      observer.refused({ ...DENIED, tool });
      const expected = { operation, tool: name };
      expect(place.entries).toMatchObject([expected, expected]);
    },
  );

  test.each([
    ["success", ["done"]],
    ["failed", ["failed"]],
    ["unknown", ["unknown"]],
    ["rolled_back", ["undone"]],
    ["started", []],
  ] as const)("an operation that is %s is reported as %j [I-27]", (status, outcomes) => {
    const place = sink("own");
    setUp([place]).observer.settled({ ...OPERATION, status });
    expect(place.entries.map(({ outcome }) => outcome)).toEqual(outcomes);
  });

  test("guesses the operation when metadata cannot be read, and reports it [I-27]", () => {
    const place = sink("own");
    const cause = new Error("a getter");
    const findTool = () => ({
      name: "crm.delete_contact",
      get metadata(): never {
        throw cause;
      },
    });
    const { observer, problems } = setUp([place], { findTool });
    observer.settled({ ...OPERATION, tool: "crm.delete_contact" });
    expect(place.entries).toMatchObject([{ operation: "delete", outcome: "done" }]);
    expect(problems).toMatchObject([{ code: "tool_unreadable", cause }]);
  });

  test("cannot be used by a model to forge lines [I-27]", () => {
    const place = sink("own");
    const { observer } = setUp([place]);
    observer.refused({
      ...DENIED,
      tool: `x\n${"y".repeat(9_999)}`,
      callId: "c\r\n2026 done \ud800",
    });
    const [entry] = place.entries;
    expect(entry?.callId).toBe("c 2026 done \ufffd");
    expect(entry?.tool).toMatch(/^x y{400,}…$/);
  });
});

describe("a refusal", () => {
  test.each(["denied", "failed"] as const)("is an entry too: %s [I-30]", (outcome) => {
    const place = sink("own", true);
    setUp([place]).observer.refused({ ...DENIED, outcome });
    const { callId, tool, sessionId, turn } = DENIED;
    expect(place.entries).toEqual([
      { operation: "überweisen", tool, sessionId, callId, at: AT, outcome, turn },
    ]);
  });

  test("without a known turn has turn 0 [I-30]", () => {
    const place = sink("own");
    const { turn: _, ...call } = DENIED;
    setUp([place]).observer.refused(call);
    expect(place.entries).toMatchObject([{ turn: 0 }]);
  });
});

describe("a sink", () => {
  test("has the entry when the observer's call returns, each in the order given [I-28]", () => {
    const calls: string[] = [];
    const place = (name: string) => ({ name, write: () => void calls.push(name) });
    const { observer } = setUp([place("first"), place("second")]);
    observer.settled(OPERATION);
    expect(calls).toEqual(["first", "second"]);
    observer.refused(DENIED);
    expect(calls).toEqual(["first", "second", "first", "second"]);
  });

  test.each([
    ["settled", OPERATION.callId],
    ["refused", DENIED.callId],
  ] as const)(
    "that throws is reported, and the others still get the entry: %s [I-28]",
    (event, callId) => {
      const cause = new Error("disk full");
      const broken: AuditSink = {
        name: "broken",
        write() {
          throw cause;
        },
      };
      const [before, after] = [sink("before"), sink("after")];
      const { observer, problems } = setUp([before, broken, after]);
      if (event === "settled") observer.settled(OPERATION);
      else observer.refused(DENIED);
      expect([before, after].map(({ entries }) => entries.map((entry) => entry.callId))).toEqual([
        [callId],
        [callId],
      ]);
      const [entry] = before.entries;
      const message = OBSERVER_PROBLEMS.sink_failed;
      expect(problems).toEqual([{ code: "sink_failed", message, sink: "broken", entry, cause }]);
    },
  );

  test("that is async is not waited for, and its rejection is reported [I-28]", async () => {
    const cause = new Error("offline");
    const slow: AuditSink = { name: "slow", write: () => Promise.reject(cause) };
    const after = sink("after");
    const { observer, problems } = setUp([slow, after]);
    observer.settled(OPERATION);
    expect(after.entries).toHaveLength(1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(problems).toMatchObject([{ code: "sink_failed", sink: "slow", cause }]);
  });

  test("still gets the entry, and the call continues, when onProblem throws as well [I-28]", () => {
    const failing = (): never => {
      throw new Error("no");
    };
    const after = sink("after");
    const broken = { name: "broken", write: failing };
    const { observer } = setUp([broken, after], { onProblem: failing });
    expect(() => observer.settled(OPERATION)).not.toThrow();
    expect(after.entries).toHaveLength(1);
  });

  test("cannot change the entry for the next one [I-28]", () => {
    const forger: AuditSink = {
      name: "forger",
      trusted: true,
      write: (entry) => void Object.assign(entry, { outcome: "done" }),
    };
    const after = sink("after", true);
    const { observer, problems } = setUp([forger, after]);
    observer.settled({ ...STORED, status: "failed" });
    expect(after.entries).toMatchObject([{ outcome: "failed", storedPath: PATH }]);
    expect(problems).toMatchObject([{ sink: "forger", cause: expect.any(TypeError) }]);
  });

  test.each([{}, { name: "", write() {} }, { name: "x" }, null])(
    "that cannot be called is refused when the observer is made: %j",
    (broken) => {
      expect(() => setUp([broken as AuditSink])).toThrow(TypeError);
    },
  );
});

describe("the stored path", () => {
  test.each(["success", "rolled_back"] as const)(
    "goes only to sinks marked as trusted: %s [I-31 S2-92]",
    (status) => {
      const [own, shared, unmarked] = [sink("own", true), sink("shared", false), sink("unmarked")];
      setUp([own, shared, unmarked]).observer.settled({ ...STORED, status });
      expect(own.entries).toMatchObject([{ storedPath: PATH }]);
      for (const { entries } of [shared, unmarked]) {
        expect(entries).toHaveLength(1);
        expect(JSON.stringify(entries)).not.toContain(PATH);
      }
    },
  );

  test.each(["yes", 1, {}, "true"])("needs the word true itself, not %j [I-31]", (trusted) => {
    const place = { ...sink("own"), trusted: trusted as boolean };
    setUp([place]).observer.settled(STORED);
    expect(place.entries.map((entry) => "storedPath" in entry)).toEqual([false]);
  });

  test("is not given to a sink that calls itself trusted later [I-31]", () => {
    const place = sink("own", false);
    const { observer } = setUp([place]);
    place.trusted = true;
    observer.settled(STORED);
    expect(place.entries.map((entry) => "storedPath" in entry)).toEqual([false]);
  });

  test("is not in a problem either, also when a trusted sink throws [I-31]", () => {
    const broken: AuditSink = {
      name: "broken",
      trusted: true,
      write() {
        throw new Error("no");
      },
    };
    const { observer, problems } = setUp([broken]);
    observer.settled(STORED);
    expect(problems).toHaveLength(1);
    expect(JSON.stringify(problems)).not.toContain(PATH);
  });
});

describe("docs/reference/audit-entries.md", () => {
  const page = "docs/reference/audit-entries.md";
  const word = (text = "") => text.replaceAll("`", "");

  test("lists the fields of the entry type with their types [I-29]", () => {
    const body =
      /interface ToolAuditEntry \{(.*?)\n\}/s.exec(read("src/audit/observer.ts"))?.[1] ?? "";
    const defined = [...body.matchAll(/^ {2}readonly (\w+)(\??): (.+);$/gm)].map(
      ([, field, mark, type]) => ({ field, type, present: mark === "?" ? "sometimes" : "always" }),
    );
    expect(defined).toHaveLength(8);
    const documented = tableRows(page, "field").map((row) => ({
      field: word(row["field"]),
      type: word(row["type"]),
      present: row["present"],
    }));
    expect(documented, "documented (+) against defined (-)").toEqual(defined);
  });

  test("the fields of a real entry are the documented ones [I-29]", () => {
    const place = sink("own", true);
    setUp([place]).observer.settled(STORED);
    const fields = tableRows(page, "field").map((row) => word(row["field"]));
    expect(Object.keys(place.entries[0] ?? {}).toSorted()).toEqual(fields.toSorted());
  });

  test("lists the outcomes [I-29]", () => {
    const documented = tableRows(page, "outcome").map((row) => word(row["outcome"]));
    expect(documented).toEqual([...AUDIT_OUTCOMES]);
  });
});

const START = Date.parse("2026-11-15T06:00:00.000Z");

/** Operations over a real store, with a sink that writes down what it hears. */
function overStore(
  over: { sinks?: AuditSink[]; before?: (store: OperationStore) => OperationStore } = {},
) {
  const clock = manualClock(START);
  const store = memoryStore({ clock }).tenant("acme");
  const entries: ToolAuditEntry[] = [];
  const problems: ObserverProblem[] = [];
  const own = { name: "own", write: (entry: ToolAuditEntry): void => void entries.push(entry) };
  const observer = createAuditObserver({
    sinks: [...(over.sinks ?? []), own],
    findTool: () => undefined,
    onProblem: (problem) => problems.push(problem),
    clock,
  });
  const operations = observer.around(over.before?.(store.operations) ?? store.operations);
  const told = () => entries.map(({ outcome, tool, callId }) => `${outcome} ${tool} ${callId}`);
  return { clock, store, operations, entries, problems, told };
}

test("every stored outcome is reported once, with the store's time [I-27]", async () => {
  const { operations, clock, entries, told } = overStore();
  const outcomes = {
    a: success("1"),
    b: { status: "failed", error: "disk full", output: "" },
    c: { status: "unknown", error: "no answer" },
  } as const;
  for (const [id, outcome] of Object.entries(outcomes)) {
    await operations.start(intentOf(id));
    clock.advance(1_000);
    await operations.settle(id, { fence: 1, outcome, actor: "executor" });
  }
  expect(told()).toEqual([
    "done thing.set call-a",
    "failed thing.set call-b",
    "unknown thing.set call-c",
  ]);
  expect(entries[1]).toMatchObject({ at: "2026-11-15T06:00:02.000Z", turn: 1, operation: "edit" });
});

test("an outcome that came too late is not reported [I-27]", async () => {
  const { operations, told } = overStore();
  await operations.start(intentOf("a"));
  const settlement = { fence: 1, outcome: success("1"), actor: "executor" };
  await operations.settle("a", { ...settlement, fence: 9 });
  expect(told()).toEqual([]);
  await operations.settle("a", settlement);
  await operations.settle("a", settlement);
  expect(told()).toEqual(["done thing.set call-a"]);
});

test("an undo is reported as a call of its own, then its target as undone [I-27]", async () => {
  const { operations, told, problems } = overStore();
  const world = new UndoWorld(operations);
  await world.act("a", { turn: 4 });
  await rollback({
    operations,
    scope: { sessionId: "session-1" },
    dispatch: world.dispatch,
    by: BY,
  });
  expect(told()).toEqual([
    "done thing.set call-a",
    "done thing.restore call-undo.a",
    "undone thing.set call-a",
  ]);
  expect(problems).toEqual([]);
});

test("a start that the kill switch or the approval refuses is reported as denied [I-30]", async () => {
  const { operations, store, entries, told } = overStore();
  const approval = { decisionId: "dec-1", hash: "h" };
  await operations.start(intentOf("a", { approval, turn: 2 }));
  await store.killSwitch.stop("fire drill", { actor: BY });
  await operations.start(intentOf("b"));
  expect(told()).toEqual(["denied thing.set call-a", "denied thing.set call-b"]);
  expect(entries[0]).toMatchObject({ sessionId: "session-1", turn: 2 });
});

test("a start that lost a race is not reported as denied [I-30]", async () => {
  const { operations, told } = overStore();
  await operations.start(intentOf("a"));
  expect(await operations.start(intentOf("a"))).toMatchObject({ reason: "used_up" });
  expect(told()).toEqual([]);
});

test("the store's answer is the same with a sink that throws [I-28]", async () => {
  const broken: AuditSink = {
    name: "broken",
    write() {
      throw new Error("disk full");
    },
  };
  const settlement = { fence: 1, outcome: success("1"), actor: "executor" };
  const answers = await Promise.all(
    [overStore(), overStore({ sinks: [broken] })].map(async ({ operations, told, problems }) => {
      await operations.start(intentOf("a"));
      const answer = await operations.settle("a", settlement);
      return { answer, stored: await operations.get("a"), told: told(), problems: problems.length };
    }),
  );
  expect(answers[0]).toMatchObject({ answer: { settled: true }, problems: 0 });
  expect(answers[1]).toEqual({ ...answers[0], problems: 1 });
});

test("an undo counts even if its target cannot be read again [I-28]", async () => {
  const cause = new Error("the store is away");
  let isAway = false;
  const { operations, told, problems } = overStore({
    before: (store) => ({
      ...store,
      get: (id) => (isAway ? Promise.reject(cause) : store.get(id)),
    }),
  });
  await operations.start(intentOf("a"));
  await operations.settle("a", { fence: 1, outcome: success("1"), actor: BY });
  await operations.start(intentOf("undo.a", { undoOf: "a" }));
  isAway = true;
  const settlement = { fence: 1, outcome: success("2"), tookBack: "a", actor: BY };
  expect(await operations.settle("undo.a", settlement)).toMatchObject({ settled: true });
  expect(told()).toHaveLength(2);
  expect(problems).toMatchObject([{ code: "undone_unread", subject: "a", cause }]);
});

test("other calls are passed to the store unchanged", async () => {
  const { operations, clock } = overStore();
  await operations.start(intentOf("a", { leaseMs: 1_000 }));
  expect(await operations.renew("a", 1, 2_000)).toBe(true);
  clock.advance(2_001);
  expect(await operations.listAbandoned(10)).toMatchObject([{ id: "a" }]);
  expect(await operations.takeOver("a", 1_000, "recovery")).toMatchObject({ fence: 2 });
  expect(await operations.listBySession("session-1", { messageId: "m-1" })).toHaveLength(1);
  expect(await operations.listBySession("session-1", { messageId: "m-2" })).toHaveLength(0);
});
