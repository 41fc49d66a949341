/** A lead agent delegates research, code and verify. Scopes shrink at every level, and done means proved. */
import assert from "node:assert/strict";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Session, verifyStore } from "sallyport";
import { type DelegationId, describeCapsule, type Worker } from "sallyport/delegation";
import { runUntilKilled } from "./kill.ts";
import { makeShop, openGate, readShop } from "./world.ts";

const root = realpathSync(mkdtempSync(path.join(tmpdir(), "sallyport-delegation-")));
process.on("exit", () => rmSync(root, { recursive: true, force: true }));
const folder = makeShop(root);
const ADA = { actor: "person:ada" };
const LEAD = { actor: "agent:lead" };

// The run: one feature, what done means, and which evidence proves it.
const first = openGate(root);
const promise = {
  id: "p-tax",
  statement: "Every price includes 19 % tax.",
  evidence: [{ name: "the check", command: "node check.mjs" }],
};
const run = await first.gate.runs.start({
  feature: "tax",
  lead: "agent:lead",
  promise,
  documents: path.join(folder, "docs"),
  evidenceFolder: path.join(folder, "docs", "evidence"),
  budget: 20,
});
const lead = first.gate.sessions.open({
  id: run.id,
  agent: "agent:lead",
  workingDirectory: folder,
});

// Research: two readers in parallel. They get a capsule and cannot write.
const question = {
  role: "research",
  promise: { id: "p-found", statement: "It is known where prices are made.", evidence: [] },
  capsule: "The shop is in the working directory.",
  tools: ["files.*"],
} as const;
const dry = await lead.delegate(
  { ...question, agent: "agent:reader", task: "Where are prices made?" },
  { dryRun: true },
);
assert(dry.answer === "dry_run");
console.log(`${describeCapsule(dry.capsule)}\n`);
const reader: Worker<Session> = async ({ session, capsule }) => {
  const path = capsule.task.endsWith("prices.mjs?") ? "prices.mjs" : "check.mjs";
  const written = await session.call({
    callId: "w",
    tool: "files.write",
    input: { path, content: "" },
  });
  assert.equal(written.answer, "denied");
  return (await session.call({ callId: "r", tool: "files.read", input: { path } })).text;
};
const found = await lead.delegateWork({
  mode: "parallel",
  requests: [
    { ...question, agent: "agent:reader-1", task: "What is in prices.mjs?" },
    { ...question, agent: "agent:reader-2", task: "What is checked?" },
  ],
  worker: reader,
});
for (const one of found) {
  assert(one.answer === "worked" && one.outcome.promiseMet);
  console.log(`found: ${one.outcome.output.split("\n")[0]}`);
}

// A person approves the files; only then may code be delegated.
for (const phase of ["spec", "plan"] as const) await first.gate.runs.enter(run.id, phase, LEAD);
await first.gate.runs.approvePlan(run.id, [path.join(folder, "prices.mjs")], ADA);
await first.gate.runs.enter(run.id, "execute", LEAD);
await first.store.close();

// Code: three levels deep, in a process that is killed while a person is asked.
const handed = await runUntilKilled(new URL("./code.ts", import.meta.url), [root, run.id]);
assert.match(readShop(folder, "prices.mjs"), /=> net;/, "nothing was written yet");
assert.equal(readShop(folder, "imprint.txt"), "Example Ltd.\n");

// After the restart the question is in the inbox, with the whole delegation chain.
const { gate, store } = openGate(root);
const [asked] = await gate.interactions.list();
assert(asked !== undefined);
console.log(`\n${asked.displayText} Asked by ${asked.chain.join(" < ")}.`);
assert.deepEqual(asked.chain, ["agent:typist", "agent:helper", "agent:coder", "agent:lead"]);
for (const by of asked.chain) {
  await assert.rejects(
    gate.interactions.approve(asked.id, { hash: asked.hash, by }),
    /not_allowed/,
  );
}
await gate.interactions.approve(asked.id, { hash: asked.hash, by: "person:ada" });
assert.match(readShop(folder, "prices.mjs"), /1\.19/);

// The asking agent gets the answer: at depth three, with its token.
for (const [level, { id, token }] of [...handed.entries()].toReversed()) {
  const { session, watch } = await gate.delegations.attach(id as DelegationId, token);
  const answer = await session.resultOf("the-edit");
  assert.equal(answer?.answer, level === 2 ? "done" : undefined);
  watch.stop();
  const outcome = await gate.delegations.report(
    id as DelegationId,
    "prices.mjs is changed.",
    token,
  );
  assert.equal(outcome.state, "reported");
}

// Verify: nothing ships without its evidence.
await gate.runs.enter(run.id, "verify", LEAD);
await assert.rejects(gate.runs.enter(run.id, "ship", LEAD), /no green evidence for the check/);
const again = gate.sessions.open({ id: run.id, agent: "agent:lead", workingDirectory: folder });
const [verified] = await again.delegateWork({
  mode: "single",
  requests: [
    {
      agent: "agent:verifier",
      role: "verify",
      task: "Prove that prices include tax.",
      capsule: "node check.mjs says so, or says why not.",
      promise: promise.id,
      tools: ["files.read", "files.write", "verify.*"],
    },
  ],
  worker: async ({ session }) => {
    const lazy = {
      need: "the check",
      command: "node check.mjs",
      exitCode: 0,
      keyOutput: "to be verified later",
      verdict: "passed",
      conclusion: "Will be checked tomorrow.",
    };
    const claimed = await session.call({ callId: "v-0", tool: "verify.result", input: lazy });
    console.log(`\n"to be verified later": ${claimed.answer}`);
    assert.equal(claimed.answer, "failed");
    const input = { need: "the check", command: "node check.mjs" };
    const { answer, text } = await session.call({ callId: "v-1", tool: "verify.command", input });
    assert.equal(answer, "done", text);
    return text;
  },
});
assert(verified?.answer === "worked" && verified.outcome.promiseMet, JSON.stringify(verified));
console.log(`verified: ${verified.outcome.output.split("\n")[0]}`);

await gate.runs.enter(run.id, "ship", LEAD);
const shipped = await gate.runs.tell(run.id, { kind: "done" }, LEAD);
assert.deepEqual(await gate.runs.replay(run.id), shipped, "the trail tells the same run");
console.log(`the run is ${shipped.status}, in phase ${shipped.phase}.\n`);

for (const { seq, type, actor } of await gate.audit.read({ after: 0, limit: 200 })) {
  console.log(`${String(seq).padStart(3)}  ${type.padEnd(24)}  ${actor}`);
}
const { ok, entries } = await verifyStore(store);
assert.ok(ok);
console.log(`\nVerified ${entries} entries: no entry between the first and the last was changed.`);
await store.close();
