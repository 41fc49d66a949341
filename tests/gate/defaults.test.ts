import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { createGate } from "../../src/gate/create-gate.ts";
import type { OpenCall } from "../../src/gate/options.ts";
import type { ReviewRequest, Validator } from "../../src/model/decision.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";

let folder = "";
const home = process.cwd();
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sallyport-defaults-"));
  process.chdir(folder);
});
afterEach(() => {
  process.chdir(home);
  rmSync(folder, { recursive: true, force: true });
});

function tools() {
  const done: unknown[] = [];
  const refund = defineTool({
    name: "refund",
    description: "Pays an invoice back.",
    input: z.object({ invoice: z.string(), cents: z.int() }),
    execute: ({ input }) => {
      done.push(input);
      return `refunded ${input.invoice}`;
    },
  });
  const lookup = defineTool({
    name: "lookup",
    description: "Reads an invoice.",
    input: z.object({ invoice: z.string() }),
    readOnly: true,
    execute: ({ input }) => `invoice ${input.invoice}: open`,
  });
  return { refund, lookup, done };
}
const input = { invoice: "2041", cents: 900 };

test("without options a gate keeps everything in a private SQLite file, and asks a person about what is not read-only", async () => {
  const { refund, lookup, done } = tools();
  await using gate = createGate();
  gate.tools.register(refund);
  gate.tools.register(lookup);
  const session = gate.sessions.open({ agent: "billing" });
  expect(await session.call({ tool: "lookup", input: { invoice: "2041" } })).toMatchObject({
    answer: "done",
    text: "invoice 2041: open",
  });
  const asked = await session.call({ tool: "refund", input });
  expect(asked.answer).toBe("pending");
  expect(done).toEqual([]);
  const modes = [".sallyport", ".sallyport/sallyport.db"].map((one) => statSync(one).mode & 0o777);
  expect(modes).toEqual([0o700, 0o600]);

  // Another process over the same file, with the tenant that `sallyport serve` shows.
  await using store = sqliteStore({ file: ".sallyport/sallyport.db" });
  const decision = asked.answer === "pending" ? asked.decisionId : "";
  const { techVerdict } = await store.tenant("default").decisions.get(decision);
  expect(techVerdict).toMatchObject({ validator: "none", reason: "no validator configured" });
  const { hash } = await gate.interactions.get(decision);
  const yes = await gate.interactions.approve(decision, { hash, by: "ada" });
  expect(yes.outcome).toBe("executed");
  expect(done).toEqual([input]);
});

test("a new data folder stays out of commits and out of what searches of the project print [H2] [L10]", async () => {
  const git = (...words: string[]) => execFileSync("git", words, { encoding: "utf8" });
  git("init", "--quiet");
  writeFileSync("mine.txt", "needle");
  await using gate = createGate();
  gate.tools.register(tools().refund);
  const session = gate.sessions.open({ agent: "billing" });
  await session.call({ tool: "refund", input: { ...input, invoice: "needle" } });
  expect(git("status", "--porcelain", "--untracked-files=all")).toBe("?? mine.txt\n");
  expect(git("grep", "--untracked", "--text", "--name-only", "needle")).toBe("mine.txt\n");
});

test("a method that a part of the gate does not have is refused, not answered with nothing", async () => {
  await using gate = createGate({ store: memoryStore() });
  const misspelt = gate.decisions as unknown as { aprove(id: string): Promise<unknown> };
  await expect(misspelt.aprove("d")).rejects.toThrow("aprove is not a function");
});

test("a gate over the default store can be closed before and after its first use", async () => {
  const unused = createGate();
  await unused.close();
  await expect(unused.recover()).rejects.toMatchObject({ code: "store_closed" });
  const used = createGate();
  await used.recover();
  await used.close();
  await expect(used.recover()).rejects.toMatchObject({ code: "store_closed" });
});

test("a store that was passed in stays open when the gate is closed", async () => {
  await using store = memoryStore();
  const gate = createGate({ store });
  await gate.close();
  expect(await gate.interactions.list()).toEqual([]);
});

test("a validator gets the calls decoded, with session, agent and the bytes beside them", async () => {
  const { refund } = tools();
  const seen: ReviewRequest[] = [];
  const tech: Validator = {
    name: "limit",
    review(request) {
      seen.push(request);
      const [call] = request.calls;
      const { cents } = z.object({ cents: z.int() }).parse(call?.input);
      const verdict = { severity: "", validator: "limit", policyVersion: "1", score: 1 } as const;
      return { ...verdict, approved: cents < 1_000, reason: `${cents} cents` };
    },
  };
  await using store = memoryStore();
  const gate = createGate({ store, tools: [refund], validators: { tech } });
  const session = gate.sessions.open({ id: "s-1", agent: "billing" });
  expect(await session.call({ callId: "c-1", tool: "refund", input })).toMatchObject({
    answer: "pending",
  });
  expect(await session.call({ tool: "refund", input: { ...input, cents: 5_000 } })).toMatchObject({
    answer: "denied",
  });
  const [first] = seen;
  expect(first).toMatchObject({ session: "s-1", agent: "billing", sourceTool: "refund" });
  expect(first?.calls).toEqual([{ tool: "refund", input, callId: "c-1" }]);
  expect(new TextDecoder().decode(first?.raw)).toContain('"invoice":"2041"');
});

test("wait finds a call by its key, decision, interaction or operation, and only in its own session", async () => {
  const { refund } = tools();
  await using store = memoryStore();
  const gate = createGate({ store, tools: [refund] });
  const session = gate.sessions.open({ agent: "billing" });
  const asked = await session.call({ key: "k-1", tool: "refund", input });
  if (asked.answer !== "pending" || asked.decisionId === "") throw new Error(asked.answer);
  const { decisionId, interactionId } = asked;
  const now = { timeoutMs: 0 };
  for (const id of ["k-1", decisionId, interactionId]) {
    expect(await session.wait(id, now)).toMatchObject({ answer: "pending", decisionId });
  }
  const { hash } = await gate.interactions.get(interactionId);
  await gate.interactions.approve(interactionId, { hash, by: "ada" });
  const done = await session.wait(decisionId, now);
  expect(done).toMatchObject({ answer: "done", text: "refunded 2041" });
  const operationId = done?.answer === "done" ? done.operationId : "";
  for (const id of ["k-1", interactionId, operationId]) {
    expect(await session.wait(id, now)).toEqual(done);
  }
  const other = gate.sessions.open({ agent: "billing" });
  for (const id of ["k-1", decisionId, interactionId, operationId, "nothing"]) {
    expect(await other.wait(id, now)).toBeUndefined();
  }
});

test("onPending and onSettled report a call once each, also when it is decided elsewhere", async () => {
  const { refund } = tools();
  const said: string[] = [];
  const note = (word: string) => (call: OpenCall) =>
    void said.push(`${word} ${call.tool} ${call.callId} ${call.answer.answer}`);
  await using store = memoryStore();
  const gate = createGate({
    store,
    tools: [refund],
    onPending: note("pending"),
    onSettled: note("settled"),
  });
  const session = gate.sessions.open({ agent: "billing" });
  const asked = await session.call({ key: "k-1", tool: "refund", input });
  await session.call({ key: "k-1", tool: "refund", input });
  expect(said).toEqual(["pending refund k-1 pending"]);
  const elsewhere = createGate({ store, tools: [refund] });
  const id = asked.answer === "pending" ? asked.interactionId : "";
  const { hash } = await elsewhere.interactions.get(id);
  await elsewhere.interactions.reject(id, { hash, by: "ada", reason: "not today" });
  await expect
    .poll(() => said)
    .toEqual(["pending refund k-1 pending", "settled refund k-1 denied"]);
  await gate.close();
});
