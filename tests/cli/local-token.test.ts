// H2: the token that the server leaves for the commands of its machine can be read by every program of the same user. It is
// worth a look and a stop, and it dies with the server.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { openStore } from "../../src/cli/open-store.ts";
import { type Client, createClient, signIn } from "../../src/client/index.ts";

const root = path.dirname(path.dirname(import.meta.dirname));
const bin = [
  "--conditions=sallyport-source",
  "--disable-warning=ExperimentalWarning",
  path.join(root, "src/cli/bin.ts"),
];

interface Running {
  readonly url: string;
  readonly link: string;
  /** As a program uses it that has read the file. */
  readonly thief: Client;
  readonly token: string;
  end(signal: "SIGINT" | "SIGKILL"): Promise<void>;
}

function dataFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-local-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return path.join(folder, "data");
}

async function started(data: string): Promise<Running> {
  const args = [...bin, "--data", data, "demo", "--quiet", "--every", "150"];
  const child: ChildProcess = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const end = async (signal: "SIGINT" | "SIGKILL") => {
    child.kill(signal);
    await ended;
  };
  onTestFinished(() => end("SIGKILL"));
  let said = "";
  child.stdout?.on("data", (piece) => (said += piece));
  child.stderr?.on("data", (piece) => (said += piece));
  await vi.waitFor(() => expect(said).toMatch(/\/signin\?link=\S+\n/), 60_000);
  const { url, token } = JSON.parse(readFileSync(path.join(data, "local.json"), "utf8"));
  const link = /http:\S+link=\S+/.exec(said)?.[0] ?? "";
  return { url, link, token, end, thief: createClient({ url, token, retries: 0 }) };
}

async function isDead({ url }: Running, token: string): Promise<boolean> {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(`${url}/v1/me`, { headers })).status === 401;
}

test("the token in the data folder can read and stop, but not approve, reject or administer [H2]", async () => {
  const running = await started(dataFolder());
  const { thief } = running;
  expect(await thief.me.get()).toMatchObject({ subject: "local:commands", roles: ["local"] });
  await vi.waitFor(async () => {
    expect((await thief.interactions.list()).items.length).toBeGreaterThan(0);
  }, 100_000);
  const question = (await thief.interactions.list()).items.find(({ type }) => type === "confirm");
  const { id = "", hash = "" } = question ?? {};
  const person = { subject: "person:mallory", roles: ["admin" as const] };
  const tries: readonly (() => Promise<unknown>)[] = [
    () => thief.interactions.approve({ id, hash }),
    () => thief.interactions.approveBatch({ items: [{ id, hash }] }),
    () => thief.interactions.reject({ id, hash }),
    () => thief.interactions.cancel({ id, reason: "x" }),
    () => thief.standingRules.confirm({ id: "x" }),
    () => thief.standingRules.revoke({ id: "x", reason: "x" }),
    () =>
      thief.grants.give({ sessionId: "s", finding: { policy: "p", message: "m" }, reason: "x" }),
    () => thief.tokens.make({ subject: "agent:x", roles: ["agent"] }),
    () => thief.tokens.list(),
    () => thief.people.invite(person),
    () => thief.me.link(),
    () => thief.sessions.open({}),
  ];
  for (const one of tries) {
    await expect(one(), String(one)).rejects.toMatchObject({ code: "not_allowed" });
  }
  expect(await thief.interactions.get({ id })).toMatchObject({ status: "open", votes: [] });
  expect(await thief.switch.stop({ reason: "drill" })).toEqual({ stopped: true });
  expect(await thief.switch.resume({ reason: "over" })).toEqual({ stopped: false });
}, 90_000);

test("the token of a stopped or killed server is invalid at the next one, and each server has one valid token [H2]", async () => {
  const data = dataFolder();
  const first = await started(data);
  await first.end("SIGINT");
  // Ended by the stop itself, before anybody starts again.
  const store = await openStore({ data });
  const left = await store.tenant("default").tokens.list({ kind: "token", limit: 100 });
  await store.close();
  expect(left.filter(({ isLive }) => isLive)).toEqual([]);
  const second = await started(data);
  expect(await isDead(second, first.token)).toBe(true);
  await second.end("SIGKILL");
  const third = await started(data);
  expect(await isDead(third, second.token)).toBe(true);
  expect(await isDead(third, third.token)).toBe(false);
  const you = createClient(await signIn({ link: third.link }));
  const { items } = await you.tokens.list({ kind: "token" });
  const live = items.filter(({ isLive, roles }) => isLive && roles.includes("local"));
  expect(live).toHaveLength(1);
}, 120_000);
