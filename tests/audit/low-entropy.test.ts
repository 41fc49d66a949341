// T23: the log must not reveal a short secret to a reader who has only the export.

import { expect, test } from "vitest";
import { createRedactor } from "../../src/audit/redact.ts";
import { exportTrail } from "../../src/audit/trail.ts";
import { compareRecords } from "../../src/crashkit/compare-records.ts";
import { collectEvidence } from "../../src/crashkit/evidence.ts";
import { questionHash } from "../../src/gate/inbox.ts";
import { encodeProposal } from "../../src/gate/show.ts";
import type { AuditEntry } from "../../src/model/audit-entry.ts";
import { SallyportError } from "../../src/model/errors.ts";
import { OPERATIONS } from "../../src/model/operation.ts";
import { createStore } from "../../src/store/store.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { definitionHash } from "../../src/tools/registry.ts";
import { canonicalJson } from "../../src/util/canonical-json.ts";
import { sha256Hex } from "../../src/util/hash.ts";
import type { JsonObject } from "../../src/util/json.ts";
import { encodeValue } from "../../src/util/value-codec.ts";
import { AGENT, openGate, PERSON, TENANT } from "../support/port-world.ts";

const PIN = "4711";
const inputOf = (pin: string) => ({ door: "north", pin });
const question = (pin: string) => ({ callId: "q-1", text: "Which pin?", choices: [pin, "none"] });

const schema: JsonObject = {
  type: "object",
  properties: { door: { type: "string" }, pin: { type: "string" } },
  required: ["door", "pin"],
  additionalProperties: false,
};
/** Says its pin in its output, its version and its undo record. */
const door = defineTool({
  name: "door.open",
  description: "Opens a door.",
  input: schema,
  safety: { effect: "external", reversible: true },
  dryRun: ({ input }) => `opens ${String(input["door"])} with ${String(input["pin"])}`,
  stateVersion: async () => PIN,
  execute: ({ input }) => ({ text: `pin ${String(input["pin"])}`, data: { ...input } }),
  undo: ({ output }) => ({ tool: "door.open", input: output as JsonObject }),
});
const lost = defineTool({
  name: "door.ring",
  description: "Rings.",
  input: schema,
  safety: { effect: "external" },
  execute() {
    throw new SallyportError("outcome_unknown", { hint: "the line was cut" });
  },
});
const free = defineTool({
  name: "door.look",
  description: "Looks.",
  input: schema,
  safety: { effect: "read" },
  permissionClass: "readonly",
  execute: ({ input }) => `saw ${String(input["pin"])}`,
});

const REQUESTED = { chain: [], owner: "", messageId: "", keys: [], facts: {}, editors: [] };

/** Everything that is hashed somewhere, with this pin in it. */
function guesses(pin: string): readonly (string | Uint8Array)[] {
  const input = inputOf(pin);
  const undo = { tool: "door.open", input };
  const call = (tool: typeof door, callId: string) => ({
    tool: tool.name,
    definition: definitionHash(tool),
    input,
    workingDirectory: "",
    callId,
    turn: 0,
  });
  const raws = ["c-1", "c-2", "c-3", "c-4"].flatMap((id) =>
    [door, lost].map((tool) => encodeProposal({ ...REQUESTED, calls: [call(tool, id)] }).raw),
  );
  return [
    pin,
    canonicalJson(input),
    encodeValue(pin),
    encodeValue({ pin }),
    encodeValue(undo),
    encodeValue({ ...undo, irreversible: false }),
    `pin ${pin}`,
    `saw ${pin}`,
    encodeValue({ steps: 1, output_sha256: sha256Hex(`pin ${pin}`) }),
    canonicalJson({ tool: "door.open", input }),
    canonicalJson({ tool: "door.ring", input }),
    ...raws,
  ];
}

async function history() {
  const redact = createRedactor({ key: Buffer.alloc(32, 7), secretKeys: ["pin"] });
  const world = openGate({ tools: [door, lost, free] });
  const store = createStore(world.tap.engine, { redact });
  const gate = world.again({ store });
  const session = gate.sessions.open({ id: "s-1", agent: AGENT });
  const yes = async (id: string, by = PERSON) => {
    const { hash } = await gate.interactions.get(id);
    return gate.interactions.approve(id, { hash, by });
  };
  const ask = async (tool: string, callId: string, pin: string, key?: string) => {
    const keyed = key === undefined ? {} : { key };
    const answer = await session.call({ callId, tool, input: inputOf(pin), ...keyed });
    if (answer.answer !== "pending") throw new Error(answer.text);
    return answer.interactionId;
  };
  await session.call({ callId: "c-0", tool: "door.look", input: inputOf(PIN) });
  await yes(await ask("door.open", "c-1", PIN, "key-1"));
  // Edited by one person, approved by another.
  const first = await ask("door.open", "c-2", "0000");
  const { hash } = await gate.interactions.get(first);
  const edit = { hash, by: "person:eve", inputs: { 0: inputOf(PIN) } };
  const edited = await gate.interactions.edit(first, edit);
  if (!edited.edited) throw new Error(edited.text);
  await yes(edited.interaction.id);
  // Its outcome is lost, and a person says what came of it.
  await yes(await ask("door.ring", "c-3", PIN));
  const [open] = await gate.interactions.list({ status: "open" });
  if (open === undefined) throw new Error("no question about the lost call");
  const found = { hash: open.hash, by: PERSON, happened: true, output: `pin ${PIN}` } as const;
  await gate.interactions.settle(open.id, found);
  // A question, and an answer that is a secret.
  await session.ask(question(PIN));
  const [asked] = await gate.interactions.list({ status: "open" });
  if (asked === undefined) throw new Error("no open question");
  await gate.interactions.answer(asked.id, { hash: asked.hash, by: PERSON, answer: PIN });
  await session.rollback(PERSON);
  let file = "";
  for await (const line of exportTrail(gate.audit)) file += line;
  const collect = () => collectEvidence(store, TENANT, { ledger: [], told: [], isAtRest: true });
  return { file, collect, tap: world.tap, lostQuestion: open, gate };
}

function hashesIn(file: string): ReadonlySet<string> {
  return new Set(file.match(/[0-9a-f]{64}/g));
}

test("export: a four-digit pin cannot be found by trying all of them against every hash in it [T23 M8]", async () => {
  const { file, lostQuestion } = await history();
  const hashes = hashesIn(file);
  expect(hashes.size).toBeGreaterThan(40);
  expect(file, "the redactor does its part").not.toMatch(new RegExp(`\\b${PIN}\\b`));
  const recovered: string[] = [];
  for (let n = 0; n < 10_000; n += 1) {
    const pin = String(n).padStart(4, "0");
    const asked = questionHash("s-1", question(pin));
    const operation = lostQuestion.operationId;
    const facts = { v: 1, operation, attempt: 1, tool: "door.ring" };
    const ofLost = sha256Hex(canonicalJson({ ...facts, args_json: canonicalJson(inputOf(pin)) }));
    const all = [asked, ofLost, ...guesses(pin).map((text) => sha256Hex(text))];
    if (all.some((hash) => hashes.has(hash))) recovered.push(pin);
  }
  expect(recovered).toEqual([]);
});

test("export: equal contents of two records have different proofs, and the key is not in it [T23 M8]", async () => {
  const { file, tap } = await history();
  const lines = file.trim().split("\n");
  const facts = lines.map((line) => JSON.parse(JSON.parse(line).data) as Record<string, unknown>);
  const proofs = facts.flatMap((data) =>
    Object.entries(data).flatMap(([name, value]) => (name.endsWith("_hmac") ? [value] : [])),
  );
  expect(proofs.length).toBeGreaterThan(15);
  expect(new Set(proofs).size).toBe(proofs.length);
  expect(
    facts.flatMap((data) => Object.keys(data)).filter((one) => one.endsWith("_sha256")),
  ).toEqual([]);
  const table = { name: "content_keys", columns: {}, indexed: [] };
  const [row] = await tap.engine.find(TENANT, table, { limit: 10 });
  expect(String(row?.["secret"])).toMatch(/^[0-9a-f]{64}$/);
  expect(file).not.toContain(String(row?.["secret"]));
});

test("records: a change in the database is found, also without the key [I19 M8]", async () => {
  const { collect, tap } = await history();
  expect(compareRecords(await collect())).toEqual([]);
  const evidence = await collect();
  expect(compareRecords({ ...evidence, contentProof: undefined }).length).toBeGreaterThan(10);
  const [operation] = evidence.operations;
  const input = canonicalJson(inputOf("1234"));
  await tap.tamper(OPERATIONS, operation?.id ?? "", { input });
  expect(compareRecords(await collect())).toContain(
    `the input of ${operation?.id} is not the one in the audit log`,
  );
});

test("records: entries of earlier versions, with plain hashes, are compared as before [I19 M8]", async () => {
  const { collect } = await history();
  const evidence = await collect();
  const asBefore = (over: (input: string) => string) => (entry: AuditEntry) => {
    const operation = evidence.operations.find(({ id }) => id === entry.subject);
    if (entry.type !== "operation.started" || operation === undefined) return entry;
    const { input_hmac: _, ...data } = JSON.parse(entry.data ?? "{}");
    const input_sha256 = sha256Hex(over(operation.input));
    return { ...entry, data: canonicalJson({ ...data, input_sha256 }) };
  };
  const old = evidence.trail.map(asBefore((input) => input));
  expect(compareRecords({ ...evidence, trail: old })).toEqual([]);
  const forged = evidence.trail.map(asBefore((input) => `${input} `));
  expect(compareRecords({ ...evidence, trail: forged }).length).toBe(evidence.operations.length);
});
