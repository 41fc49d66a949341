// The command line as a person or a script uses it: real processes, one server, one data folder.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Client, createClient, signIn } from "../../src/client/index.ts";

const root = path.dirname(path.dirname(import.meta.dirname));
const folder = mkdtempSync(path.join(tmpdir(), "sallyport-cli-"));
const data = path.join(folder, "data");
const bin = [
  "--conditions=sallyport-source",
  "--disable-warning=ExperimentalWarning",
  path.join(root, "src/cli/bin.ts"),
];

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function sallyport(args: readonly string[], input = ""): Promise<Ended> {
  const child = spawn(process.execPath, [...bin, "--data", data, ...args], { cwd: folder });
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    let out = "";
    let err = "";
    child.stdout.on("data", (piece) => (out += piece));
    child.stderr.on("data", (piece) => (err += piece));
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, out, err }));
  });
}

async function json(...args: readonly string[]) {
  const { code, out, err } = await sallyport(["--json", ...args]);
  expect(err, args.join(" ")).toBe("");
  expect(code).toBe(0);
  return JSON.parse(out);
}

let server: ChildProcess;
let said = "";
/** Signed in by the link that the server printed; makes a link for each command that a person is needed for. */
let you: Client;

async function link(): Promise<readonly string[]> {
  return ["--link", (await you.me.link()).link];
}

beforeAll(async () => {
  server = spawn(process.execPath, [...bin, "--data", data, "demo", "--quiet", "--every", "150"]);
  server.stdout?.on("data", (piece) => (said += piece));
  server.stderr?.on("data", (piece) => (said += piece));
  const waiting = { timeout: 100_000, interval: 100 };
  await vi.waitFor(() => expect(said).toMatch(/\/signin\?link=\S+\n/), waiting);
  const { url, session } = await signIn({ link: /http:\S+link=\S+/.exec(said)?.[0] ?? "" });
  you = createClient({ url, session });
  await vi.waitFor(async () => {
    expect((await json("interactions", "list")).items.length).toBeGreaterThan(6);
  }, waiting);
}, 90_000);

afterAll(async () => {
  server.kill("SIGTERM");
  const code = await new Promise((resolve) => server.once("close", resolve));
  rmSync(folder, { recursive: true, force: true });
  expect(code).toBe(0);
});

async function oneOf(type: string): Promise<{ id: string; hash: string }> {
  const { items } = await json("interactions", "list", "--limit", "100");
  const item = items.find((one: { type: string }) => one.type === type);
  if (item === undefined) throw new Error(`no ${type} is open`);
  return item;
}

test("interactions: list, approve once, name the first reviewer to the second, exit with a code for scripts", async () => {
  const { id, hash } = await oneOf("confirm");
  const wrong = await sallyport([
    ...(await link()),
    ...["interactions", "approve", id, "--hash", "0".repeat(64)],
  ]);
  expect(wrong.code).toBe(3);
  expect(wrong.err).toContain("approval_void");
  const { interaction } = await json(
    ...(await link()),
    ...["interactions", "approve", id, "--hash", hash],
  );
  expect(interaction).toMatchObject({ outcome: "approved", answeredBy: "person:you" });
  const again = await sallyport([
    ...["--json", ...(await link())],
    ...["interactions", "approve", id, "--hash", hash],
  ]);
  expect(again.code).toBe(3);
  expect(JSON.parse(again.err).error).toMatchObject({ code: "already_answered" });
  expect(again.err).toContain("You have said yes to it. What came of it: done");
});

test("stop: no effect starts until resume", async () => {
  await json("stop", "drill");
  const { id, hash } = await oneOf("confirm");
  const approve = ["interactions", "approve", id, "--hash", hash];
  const { answers } = await json(...(await link()), ...approve);
  expect(answers[0].answer).not.toBe("done");
  const status = { subject: "local:commands", roles: ["local"], switch: { stopped: true } };
  expect(await json("status")).toMatchObject(status);
  await json("resume", "over");
  expect(await json("status")).toMatchObject({ switch: { stopped: false } });
});

test("review: goes through the inbox: answers, rejects with a reason, leaves the rest open", async () => {
  const question = await oneOf("ask_user");
  const { items } = await json("interactions", "list", "--limit", "100");
  const open: readonly { id: string; type: string }[] = items;
  const rejected = open.find(({ type }) => type === "confirm");
  // One line for each: an answer, a no with its reason, or Enter for later.
  const lines = open.map(({ id }) =>
    id === question.id ? "count again\n" : id === rejected?.id ? "r\nnot today\n" : "\n",
  );
  const { out, code } = await sallyport([...(await link()), "review"], `${lines.join("")}q\n`);
  expect(code).toBe(0);
  expect(out).toContain("asked by agent:");
  expect(await json("interactions", "get", question.id)).toMatchObject({ answer: "count again" });
  expect(await json("interactions", "get", rejected?.id ?? "")).toMatchObject({
    outcome: "rejected",
    reason: "not today",
  });
});

test("audit verify: works without the server, from the store and from an export; a backup can be restored", async () => {
  const { out } = await sallyport(["audit", "verify"]);
  expect(out).toMatch(/^Verified \d+ entries\. The chain is intact; /m);
  const exported = await sallyport(["audit", "export"]);
  expect(exported.out.trimEnd().split("\n").length).toBeGreaterThan(10);
  const copy = path.join(folder, "copy.db");
  await json("store", "backup", copy).catch(() => {});
  const restore = (file: string) =>
    sallyport(["--data", path.join(folder, "other"), "store", "restore", file]);
  // What is no backup is refused, and does not stand in the way of the right one.
  const garbage = path.join(folder, "garbage.db");
  writeFileSync(garbage, "not a store ".repeat(1_000));
  expect((await restore(garbage)).err).toContain("store_incompatible");
  const restored = await restore(copy);
  expect(restored).toMatchObject({ code: 0 });
  expect(restored.out).toContain("0 problems");
  expect((await restore(copy)).code).toBe(3);
});

test("standing-rules: proposed from the command line, and not confirmed by its author [T41]", async () => {
  const pattern = { sku: { equals: "LAMP-01" }, by: { atMost: 3 }, why: { any: true } };
  const terms = ["--tool", "stock.adjust", "--pattern", JSON.stringify(pattern)];
  const { text } = await json("standing-rules", "replay", ...terms);
  expect(text).toMatch(/^Of \d+ decisions/);
  const why = ["--for-ms", "60000", "--reason", "lamps are counted twice"];
  const { id, state } = await json(
    ...(await link()),
    ...["standing-rules", "propose", ...terms, ...why],
  );
  expect(state).toBe("proposed");
  const alone = await sallyport([...(await link()), "standing-rules", "confirm", id]);
  expect(alone.code).toBe(3);
  expect(alone.err).toContain("not_allowed");
  const revoke = ["standing-rules", "revoke", id, "--reason", "never mind"];
  await json(...(await link()), ...revoke);
  const { items } = await json("standing-rules", "list", "--state", "revoked");
  expect(items).toMatchObject([{ id, endReason: "never mind", pattern }]);
  for (const noun of ["grants", "runs"]) expect((await json(noun, "list")).items).toEqual([]);
});

test("exit codes: wrong usage is 2, no server is 4, and both say what to do", async () => {
  const unknown = await sallyport(["interactions", "frob"]);
  expect(unknown).toMatchObject({ code: 2 });
  expect(unknown.err).toContain("unknown command");
  const nowhere = await sallyport(["--data", path.join(folder, "none"), "decisions", "list"]);
  expect(nowhere).toMatchObject({ code: 4 });
  expect(nowhere.err).toContain("sallyport serve");
});

test("completion: names every command, and bash accepts it", async () => {
  const help = (await sallyport(["help"])).out;
  const bash = (await sallyport(["completion", "bash"])).out;
  const names = [...help.matchAll(/^ {2}([a-z]+)[ |]/gm)].map(([, name = ""]) => name);
  expect(names.length).toBeGreaterThan(12);
  for (const name of names.filter((one) => one !== "help")) expect(bash).toContain(name);
  const child = spawn("bash", ["-n"]);
  child.stdin.end(bash);
  expect(await new Promise((resolve) => child.once("close", resolve))).toBe(0);
});

test("local commands read, stop and resume; a decision without a link is refused and says how to sign in [H2]", async () => {
  const { id, hash } = await oneOf("confirm");
  for (const args of [
    ["interactions", "approve", id, "--hash", hash],
    ["interactions", "reject", id, "--hash", hash],
    ["interactions", "cancel", id, "--reason", "x"],
    ["standing-rules", "confirm", "x"],
    ["tokens", "make", "--subject", "agent:x", "--roles", '["agent"]'],
    ["people", "invite", "--subject", "person:eve", "--roles", '["admin"]'],
    ["me", "link"],
  ]) {
    const { code, err } = await sallyport(args);
    expect(err, args.join(" ")).toContain("not_allowed");
    expect(code).toBe(3);
  }
  expect(await json("interactions", "get", id)).toMatchObject({ status: "open", votes: [] });
});

test("a command-line session ends with its command, and its link is used up [H3]", async () => {
  const given = await link();
  expect(await json(...given, "me", "get")).toMatchObject({
    subject: "person:you",
    kind: "session",
  });
  const used = await sallyport([...given, "me", "get"]);
  expect(used.err).toContain("unauthenticated");
  const live = async () => {
    const { items } = await you.tokens.list({ kind: "session", limit: 500 });
    return items.filter(({ isLive }) => isLive).length;
  };
  // Only the session of this test is left.
  expect(await live()).toBe(1);
});
