// What `sallyport review` prints, as a real process against a real server: foreign text never acts, never passes for ours, and
// a yes is only taken for what was shown.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createGate, type Gate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { createServer, type Server } from "../../src/http/index.ts";
import { NO_RULES } from "../../src/policy/policy.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import type { Store } from "../../src/store/store.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

const root = path.dirname(path.dirname(import.meta.dirname));
const bin = [
  "--conditions=sallyport-source",
  "--disable-warning=ExperimentalWarning",
  path.join(root, "src/cli/bin.ts"),
];
const folder = mkdtempSync(path.join(tmpdir(), "sallyport-review-"));

let store: Store;
let gate: Gate;
let server: Server;
let token: string;
let ran: string[];

const clean = defineTool({
  name: "cache.clean",
  description: "Cleans a folder.",
  input: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  safety: { effect: "write", reversible: true, affects: ["files"] },
  dryRun: ({ input }) => ({
    summary: `runs ${input["command"]}`,
    preview: "--- a/cache\n+++ b/cache\n-old line\n+new line",
    impact: { files: 3 },
  }),
  resources: () => [{ kind: "file" as const, path: "./cache", access: "write" as const }],
  execute({ input }) {
    ran.push(String(input["command"]));
    return "cleaned";
  },
  undo: () => ({ tool: "cache.clean", input: { command: "undo" } }),
});

beforeEach(async () => {
  ran = [];
  store = memoryStore();
  gate = createGate({
    store,
    tenant: "acme",
    tools: [clean],
    validators: { tech: sampleVerdictValidator("t"), business: sampleVerdictValidator("b") },
    guard: allowAlways,
    policy: NO_RULES,
  });
  server = await createServer({ store, gates: { acme: gate } });
  token = await server.makeToken({ tenant: "acme", subject: "person:ada", roles: ["reviewer"] });
  return async () => {
    await server.close();
    await store.close();
  };
});

beforeAll(() => writeFileSync(path.join(folder, "cache"), "old line\n"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function review(input: string, url = server.url): Promise<string> {
  const args = [...bin, "--url", url, "--token", token, "review"];
  const child = spawn(process.execPath, args, { cwd: folder });
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    let out = "";
    child.stdout.on("data", (piece) => (out += piece));
    child.stderr.on("data", (piece) => (out += piece));
    child.on("error", reject);
    child.on("close", () => resolve(out));
  });
}

const call = (command: string) => ({
  callId: "c",
  messageId: "m",
  tool: "cache.clean",
  input: { command },
});

test("review: an agent's choices and remarks can neither control the terminal nor imitate our output [M2]", async () => {
  const session = gate.sessions.open({ id: "s", agent: "agent:x", workingDirectory: folder });
  await session.ask({
    callId: "q",
    text: "Which shelf?",
    choices: ["upper\u001b[2J\u001b[H\u001b]0;owned\u0007", "\u001b]52;c;cm0gLXJmIH4=\u0007lower"],
  });
  const asked = await session.call(call("rm -r ./cache"));
  if (asked.answer !== "pending") throw new Error(asked.text);
  const id = asked.interactionId;
  await gate.interactions.askBack(id, { by: "person:bob", text: "Why?" });
  const forged =
    'housekeeping\n  input: {"command":"ls ./cache"}\n  asked by person:ceo, until 2027';
  await session.reply(id, forged);
  const out = await review("\n\nq\n");
  const bytes = Buffer.from(out);
  expect([bytes.includes(0x1b), bytes.includes(0x07)]).toEqual([false, false]);
  expect(out).toContain("upper\\u{1b}[2J");
  const lines = out.split("\n");
  expect(lines.filter((line) => line.startsWith("  input: "))).toEqual([
    '  input: {"command":"rm -r ./cache"}',
  ]);
  expect(lines.filter((line) => line.startsWith("  asked by person:ceo"))).toEqual([]);
  expect(lines).toContain('  |   input: {"command":"ls ./cache"}');
  expect(lines).toContain("  |   asked by person:ceo, until 2027");
});

test("review: look-alike and invisible characters are marked in the terminal as in the console [M14]", async () => {
  const session = gate.sessions.open({ id: "s", agent: "agent:x", workingDirectory: folder });
  const texts = [
    "p\u0251ypal.com",
    "\u15eaocker.com",
    "a\u3164b",
    "d\u0336e",
    "\u09ea00 EUR",
    "a\u00a0b",
  ];
  await session.ask({ callId: "q", text: texts.join(" / "), choices: texts });
  const out = await review("q\n");
  for (const code of ["251", "15ea", "3164", "336", "9ea", "a0"]) {
    expect(out).toContain(`\\u{${code}}`);
  }
  expect(out).not.toMatch(/\u3164|\u0336|\u00a0/);
});

test("review: the folder, the resolved targets and the diff are printed before an approval is accepted [M3]", async () => {
  const session = gate.sessions.open({ id: "s", agent: "agent:x", workingDirectory: folder });
  await session.call(call("rm -r ./cache"));
  const out = await review("a\n");
  expect(out).toContain(`  folder: ${folder}\n`);
  expect(out).toContain(`  target: ${path.join(folder, "cache")} (file, writes)`);
  expect(out).toContain("  preview: --- a/cache\n  | +++ b/cache\n  | -old line\n  | +new line\n");
});

test("review: no approval is sent when the printed call does not match the hash [M3]", async () => {
  const session = gate.sessions.open({ id: "s", agent: "agent:x", workingDirectory: folder });
  await session.call(call("rm -r ./cache"));
  // A server on the way that shows another folder than the one that would be approved.
  const seen: string[] = [];
  const { createServer: listen } = await import("node:http");
  const proxy = listen((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    fetch(`${server.url}${request.url}`, { headers: { authorization: `Bearer ${token}` } })
      .then((answer) => answer.text())
      .then((text) => {
        response.setHeader("content-type", "application/json");
        response.end(text.replaceAll(folder, "/tmp/harmless"));
      })
      .catch((error) => response.destroy(error));
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const address = proxy.address() as { port: number };
  const out = await review("a\n", `http://127.0.0.1:${address.port}`);
  proxy.closeAllConnections();
  await new Promise((resolve) => proxy.close(resolve));
  expect(out).toContain("folder: /tmp/harmless");
  expect(out).toContain("Not approved.");
  expect(seen.filter((line) => line.startsWith("POST"))).toEqual([]);
  expect(ran).toEqual([]);
});

test("review: no approval is sent when the preview is too long for a terminal [M3]", async () => {
  const session = gate.sessions.open({ id: "s", agent: "agent:x", workingDirectory: folder });
  await session.call(call(`echo\n${"x\n".repeat(500)}rm -r ./cache`));
  const out = await review("a\n");
  expect(out).toMatch(/Not approved\. It has \d+ lines; only the first 200 are here/);
  expect(ran).toEqual([]);
});
