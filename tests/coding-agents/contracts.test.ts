// Everything that can go wrong with our hook, as data, on the published hosts: the tool never runs. Each host runs the tool by
// itself when a hook says nothing, so each row is a way in which the gate could be open.

import { rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { readHookAccess, writeHookAccess } from "../../src/coding-agents/access.ts";
import { HOSTS, type HostName } from "../support/hosts/run-host.ts";
import { installHosts, noHosts } from "../support/hosts.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { asks, openWorld, PROGRAM, type World, type WorldOptions } from "./world.ts";

function says(decision: string): string {
  const answer = { hookEventName: "PreToolUse", permissionDecision: decision, reason: "r" };
  return `echo '${JSON.stringify({ decision, reason: "r", hookSpecificOutput: answer })}'`;
}

interface Row {
  readonly name: string;
  /** The program that stands in for the hook. */
  readonly program?: readonly string[];
  /** What the rules allow; by default the call itself. */
  readonly commands?: WorldOptions["commands"];
  /** Makes the failure, once the hook is installed and allowed calls run. */
  readonly breaks?: (world: World) => Promise<void> | void;
}

const script = (text: string) => ["/bin/sh", "-c", `${text} #`];
/** The real hook, inside a script that gets its words as `$@`. */
const around = (text: string) => ["/bin/sh", "-c", text, "sh", ...PROGRAM];
const waits = (signal: string) =>
  around(`"$@" --wait 8 <&0 & p=$!; sleep 3; kill -${signal} $p; wait $p`);
const DENY = '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}';

const ROWS: readonly Row[] = [
  { name: "the program of the hook is gone", program: ["/nowhere/node"] },
  { name: "the hook crashes", program: [process.execPath, "-e", "throw new Error('bug')"] },
  { name: "the hook ends with 0 and says nothing", program: script("exit 0") },
  { name: "the hook ends with 0 and an empty object", program: script("echo {}") },
  { name: "the hook ends with 0 and text that is no JSON", program: script("echo fine") },
  { name: "the hook ends with 0 and broken JSON", program: script("printf '{'") },
  { name: "the hook ends with 0 and a decision nobody knows", program: script(says("maybe")) },
  { name: "the hook ends with 0 and a bare allow", program: script(says("allow")) },
  { name: "the hook ends with 0 and a deny without a reason", program: script(`echo '${DENY}'`) },
  { name: "a log line before the answer of the hook", program: around('echo log; "$@"') },
  { name: "a log line after the answer of the hook", program: around('"$@"; echo log') },
  { name: "a warning in the answer of the hook", program: around('"$@"; printf warning') },
  { name: "the hook answers, and then ends with 1", program: around('"$@"; exit 1') },
  { name: "the hook cannot write: no standard output", program: around('"$@" >&-') },
  { name: "the hook cannot write: the reader is gone", program: around('"$@" | exit') },
  { name: "the hook gets no event", program: around('"$@" </dev/null') },
  { name: "the hook gets half an event", program: around('head -c 40 | "$@"') },
  { name: "the hook ends with 1 and no text", program: script("exit 1") },
  { name: "the hook ends with 127", program: script("exit 127") },
  { name: "the hook ends with 2 and no text", program: script("exit 2") },
  { name: "the hook is killed", program: script("kill -9 $$") },
  {
    name: "the hook is killed after half an answer",
    program: script("printf '{\"hook'; kill -9 $$"),
  },
  {
    name: "the hook is asked to end",
    program: script(`(sleep 0.3; kill -TERM $$) & exec sleep 20`),
  },
  { name: "the hook is killed while it waits", program: waits("KILL"), commands: [] },
  { name: "the hook is asked to end while it waits", program: waits("TERM"), commands: [] },
  { name: "the hook is stopped", program: script("kill -STOP $$") },
  { name: "the hook hangs", program: script("exec sleep 120") },
  { name: "the shell of the hook is killed", program: script("kill -9 $PPID; sleep 1") },
  { name: "the server is down", breaks: (world) => world.stop() },
  {
    name: "the server was killed and left its access file",
    async breaks(world) {
      const access = readHookAccess(world.data);
      await world.stop();
      if (access !== undefined) writeHookAccess(world.data, access);
    },
  },
  {
    name: "the access file is damaged",
    breaks: ({ data }) => writeFileSync(path.join(data, "hooks.json"), "{"),
  },
  {
    name: "the access file cannot be found",
    breaks: ({ data }) => rmSync(path.join(data, "hooks.json")),
  },
  { name: "the token is wrong", breaks: (world) => withAccess(world, { token: "wrong" }) },
  { name: "the server answers with an error", breaks: (world) => pretender(world, 500, "{}") },
  { name: "the server answers with a page", breaks: (world) => pretender(world, 200, "<html>") },
  { name: "the server answers with nothing", breaks: (world) => pretender(world, 200, "") },
  {
    name: "the server permits without saying what",
    breaks: (world) => pretender(world, 200, '{"answer":"permitted"}'),
  },
  { name: "the server never answers", breaks: (world) => pretender(world, 0, "") },
];

function withAccess(world: World, { token, url }: { token?: string; url?: string }): void {
  const access = readHookAccess(world.data);
  if (access === undefined) throw new Error("there is no access file");
  const tokens = token === undefined ? access.tokens : mapped(access.tokens, token);
  writeHookAccess(world.data, { ...access, url: url ?? access.url, tokens });
}

const mapped = (tokens: Readonly<Record<HostName, string>>, token: string) =>
  Object.fromEntries(Object.keys(tokens).map((name) => [name, token])) as Record<HostName, string>;

/** Something else listens at the address of the server; with status 0 it never answers. */
async function pretender(world: World, status: number, body: string): Promise<void> {
  const server = createServer((_, response) => {
    if (status !== 0) response.writeHead(status, { "content-type": "application/json" }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  const { port } = server.address() as AddressInfo;
  withAccess(world, { url: `http://127.0.0.1:${port}` });
}

beforeAll(async () => {
  if (noHosts === undefined) await installHosts();
});

/** opencode takes half a minute for each row. */
const names = scaled<readonly HostName[]>({
  test: ["claude-code", "codex"],
  proof: ["claude-code", "codex", "gemini"],
  full: ["claude-code", "codex", "gemini", "opencode"],
});

// skip: the programs are hundreds of megabytes
describe.skipIf(noHosts !== undefined).each(names)("%s", { timeout: 180_000 }, (name) => {
  const call = HOSTS[name].shell("toolu_1", "touch MARKER");

  test("with a working hook the tool runs, so the rows below prove something", async () => {
    const world = await openWorld(name, { commands: [["touch", "**"]] });
    await world.run(asks(call));
    expect(world.has("MARKER"), world.told.get("toolu_1")).toBe(true);
  });

  test.each(ROWS)("$name: the tool does not run", async ({ program, commands, breaks }) => {
    const world = await openWorld(name, {
      commands: commands ?? [["touch", "**"]],
      program: program ?? PROGRAM,
    });
    await breaks?.(world);
    await world.run(asks(call));
    const ungated = world.has("MARKER") ? 1 : 0;
    const figures = { rows: 1, "ungated effects": ungated };
    record({ goal: "HOSTS-contract", what: "a hook that fails, on the host itself", figures });
    expect(world.has("MARKER"), world.told.get("toolu_1")).toBe(false);
  });
});
