import { expect, test } from "vitest";
import type { AuditSink, ToolAuditEntry } from "../../src/audit/observer.ts";
import { createGate } from "../../src/gate/create-gate.ts";
import type { GateOptions } from "../../src/gate/options.ts";
import { allowAlways, reviewRequest } from "../../src/gate/review.ts";
import { newDraft, type Validator } from "../../src/model/decision.ts";
import { ONE_PERSON } from "../../src/model/interaction.ts";
import { NO_RULES, type Policy } from "../../src/policy/policy.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

const PATH = "/results/acme/s-1/1.txt";

/** A gate with one undoable tool, everything allowed by default, and a sink that records. */
function setUp(
  over: Partial<GateOptions> = {},
  safety: { checkpoint?: boolean; confidenceMin?: number } = {},
  more: AuditSink[] = [],
) {
  const entries: ToolAuditEntry[] = [];
  const problems: unknown[] = [];
  const note = defineTool({
    name: "notes.put",
    description: "Puts a note.",
    input: {
      type: "object",
      properties: { text: { type: "string" } },
      required: ["text"],
      additionalProperties: false,
    },
    auditOperation: "jot",
    safety: { effect: "external", reversible: true, ...safety },
    execute: ({ input }) => {
      if ((input as { text: string }).text === "bad") {
        return { text: "no such note", isError: true };
      }
      return "put";
    },
    undo: () => ({ tool: "notes.put", input: { text: "old" } }),
  });
  const store = memoryStore();
  const gate = createGate({
    store,
    tenant: "acme",
    tools: [note],
    validators: { tech: sampleVerdictValidator("t"), business: sampleVerdictValidator("b") },
    guard: allowAlways,
    policy: {
      version: "1",
      rules: [{ id: "all", effect: "allow", tool: "notes.*", reason: "a test" }],
    },
    audit: {
      sinks: [...more, { name: "own", write: (entry) => void entries.push(entry) }],
      onProblem: (problem) => problems.push(problem),
    },
    ...over,
  });
  const session = gate.sessions.open({ id: "s-1", agent: "agent:one" });
  const call = (text = "hi") =>
    session.call({ callId: "c-1", tool: "notes.put", input: { text }, turn: 5 });
  const told = () => entries.map(({ outcome, callId }) => `${outcome} ${callId}`);
  return { gate, store, session, call, entries, told, problems };
}

test("a call, its failure and its undo are entries with all their fields [I-27]", async () => {
  const { call, session, entries, told } = setUp();
  await call();
  expect(entries[0]).toEqual({
    operation: "jot",
    tool: "notes.put",
    sessionId: "s-1",
    callId: "c-1",
    at: expect.stringMatching(/^\d{4}-.*Z$/),
    outcome: "done",
    turn: 5,
  });
  await call("bad");
  await session.rollback("person:ada");
  expect(told()).toEqual([
    "done c-1",
    "failed c-1",
    expect.stringMatching(/^done undo/),
    "undone c-1",
  ]);
});

const deny = { version: "1", rules: [{ id: "no", effect: "deny", tool: "*", reason: "a test" }] };
test.each<[string, Partial<GateOptions>, Parameters<typeof setUp>[1]]>([
  ["permission", { policy: deny as Policy }, {}],
  ["checkpoint", {}, { checkpoint: true }],
  ["confidence", {}, { confidenceMin: 0.9 }],
  [
    "gate",
    {
      gatePolicies: [
        {
          name: "never",
          points: [],
          check: () => [{ severity: "hard-deny", policy: "never", message: "No." }],
        },
      ],
    },
    {},
  ],
])("a refusal by %s is an entry [I-30]", async (_, over, safety) => {
  const { call, entries } = setUp(over, safety);
  expect(await call()).toMatchObject({ answer: "denied" });
  expect(entries).toMatchObject([
    {
      outcome: "denied",
      tool: "notes.put",
      operation: "jot",
      callId: "c-1",
      turn: 5,
      sessionId: "s-1",
    },
  ]);
});

test("a review, a person and the kill switch that say no are entries; waiting is none [I-30]", async () => {
  const yes = sampleVerdictValidator("t");
  const no: Validator = {
    name: "b",
    review: async (diff, options) => ({
      ...(await yes.review(diff, options)),
      approved: false,
      severity: "block",
    }),
  };
  const reviewed = setUp({ policy: NO_RULES, validators: { tech: yes, business: no } });
  expect(await reviewed.call()).toMatchObject({ answer: "denied" });
  expect(reviewed.told()).toEqual(["denied c-1"]);

  const asked = setUp({ policy: NO_RULES });
  const answer = await asked.call();
  if (answer.answer !== "pending") throw new Error(answer.text);
  expect(asked.told()).toEqual([]);
  const { hash = "" } = (await asked.gate.interactions.shown(answer.decisionId)) ?? {};
  await asked.gate.interactions.reject(answer.decisionId, { hash, by: "person:ada", reason: "no" });
  expect(asked.told()).toEqual([`denied ${answer.decisionId}.0`]);

  // Staged from outside, with a payload that only the stager can read.
  const { decisions, interactions } = asked.gate;
  const diff = { sourceTool: "etl.load", raw: new Uint8Array([0xff]), metadata: {} };
  const staged = await decisions.stage(newDraft("s-2", diff, "2026-11-15T06:00:00.000Z"));
  const verdict = await yes.review(reviewRequest(diff), { signal: new AbortController().signal });
  await decisions.updateTechVerdict(staged.id, verdict);
  const facts = { decisionId: staged.id, tenant: "acme", actionHash: "", dryRun: [] };
  const rest = {
    stateVersion: [],
    safetyClass: "irreversible",
    policyHash: "",
    nonce: "",
    epoch: "",
    sessionId: "s-2",
    askers: [],
    requires: ONE_PERSON,
  };
  const preview = { ...facts, ...rest, expiresAt: "9999-01-01T00:00:00.000Z" } as const;
  const question = {
    sessionId: "s-2",
    callId: "load-1",
    displayText: "May it load?",
    chain: ["etl"],
  };
  const showing = { preview, question, definitions: [], keys: [] };
  const shown = await asked.store.tenant("acme").interactions.show(showing, { actor: "etl" });
  const persons = { hash: shown.hash, by: "person:ada", reason: "no" };
  await interactions.reject(staged.id, persons);
  expect(await decisions.get(staged.id)).toMatchObject({ state: "rejected_ml" });
  expect(asked.entries.at(-1)).toMatchObject({ tool: "etl.load", sessionId: "s-2" });

  const stopped = setUp();
  await stopped.gate.killSwitch.stop("drill", { actor: "person:ada" });
  await stopped.call();
  expect(stopped.told()).toEqual(["denied c-1"]);
});

test("a sink that throws changes neither the answer nor what is stored [I-28]", async () => {
  const broken: AuditSink = {
    name: "broken",
    write() {
      throw new Error("disk full");
    },
  };
  const { call, gate, told, problems } = setUp({}, {}, [broken]);
  expect(await call()).toMatchObject({ answer: "done", text: "put" });
  expect(await gate.operations.listBySession("s-1")).toMatchObject([{ status: "success" }]);
  expect(told()).toEqual(["done c-1"]);
  expect(problems).toMatchObject([{ code: "sink_failed", sink: "broken" }]);
});

test("the stored path of a long output reaches trusted sinks alone [I-31]", async () => {
  const seen: ToolAuditEntry[] = [];
  const trusted: AuditSink = {
    name: "trusted",
    trusted: true,
    write: (entry) => void seen.push(entry),
  };
  const processor = { process: async () => ({ text: "short", truncated: true, storedPath: PATH }) };
  const { call, entries } = setUp({ processor }, {}, [trusted]);
  await call();
  expect(seen).toMatchObject([{ storedPath: PATH }]);
  expect(entries).toHaveLength(1);
  expect(JSON.stringify(entries)).not.toContain(PATH);
});
