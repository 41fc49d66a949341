/** The part that is killed: a code agent three levels deep asks a person, and its process dies before the answer. */
import assert from "node:assert/strict";
import type { DelegationRequest } from "sallyport/delegation";
import { openGate } from "./world.ts";

const [root = "", runId = ""] = process.argv.slice(2);
const { gate, folder } = openGate(root);
const lead = gate.sessions.open({ id: runId, agent: "agent:lead", workingDirectory: folder });

const code = (agent: string, depth: number): DelegationRequest => ({
  agent,
  role: "code",
  task: "Prices must include 19 % tax.",
  capsule: "price(net) is in prices.mjs and gives the net price back as it is.",
  promise: { id: "p-code", statement: "prices.mjs is changed", evidence: [] },
  planFiles: ["prices.mjs"],
  tools: ["files.*"],
  depth,
});

// Three levels: each delegates from its own scope, and none has more than the one above.
let parent = lead;
const handed: { id: string; token: string }[] = [];
for (const [agent, depth] of [
  ["agent:coder", 2],
  ["agent:helper", 1],
  ["agent:typist", 0],
] as const) {
  const given = await parent.delegate(code(agent, depth));
  assert(given.answer === "delegated", JSON.stringify(given));
  const { session } = await gate.delegations.attach(given.delegation.id, given.token);
  handed.push({ id: given.delegation.id, token: given.token });
  parent = session;
}

const outside = await parent.call({
  callId: "c-1",
  tool: "files.write",
  input: { path: "imprint.txt", content: "Another Ltd.\n" },
});
console.log(`the typist writes the imprint: ${outside.answer}. ${outside.text.split("\n")[0]}`);
assert.equal(outside.answer, "denied");

const further = await parent.delegate(code("agent:fourth", 0));
console.log(`the typist delegates further: ${further.answer}`);
assert.equal(further.answer, "denied");

const asked = await parent.call({
  callId: "c-2",
  key: "the-edit",
  tool: "files.edit",
  input: { path: "prices.mjs", oldText: "=> net;", newText: "=> Math.round(net * 1.19);" },
});
console.log(`the typist edits prices.mjs: ${asked.answer}`);
assert.equal(asked.answer, "pending");
console.log(`handed ${JSON.stringify(handed)}`);
// Nothing is closed: the story continues after this process was killed.
setInterval(() => {}, 1_000);
