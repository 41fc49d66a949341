// The short commands of people, as real processes against a real server: find, approve, undo, tail.

import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createNetServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { beforeEach, expect, test } from "vitest";
import { createGate, type Gate } from "../../src/gate/create-gate.ts";
import { createServer, type Server } from "../../src/http/index.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { cliPlace } from "./cli-process.ts";

let gate: Gate;
let server: Server;
let token: string;
let shelf: string[];

beforeEach(async () => {
  shelf = [];
  const put = defineTool({
    name: "shelf.put",
    description: "Puts something on the shelf.",
    input: { type: "object", properties: { what: { type: "string" } }, required: ["what"] },
    safety: { effect: "write", reversible: true },
    dryRun: ({ input }) => `would put ${String(input["what"]).slice(0, 40)}`,
    resources: () => [{ kind: "file", path: "/shelf/list", access: "write" }],
    execute({ input }) {
      shelf.push(String(input["what"]));
      return "put";
    },
    undo: ({ input }) => ({ tool: "shelf.take", input: { what: String(input["what"]) } }),
  });
  const take = defineTool({
    name: "shelf.take",
    description: "Takes it back.",
    input: { type: "object" },
    undoOnly: true,
    safety: { effect: "write" },
    execute({ input }) {
      shelf.splice(shelf.indexOf(String(input["what"])), 1);
      return "taken";
    },
  });
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-people-"));
  const store = sqliteStore({ file: path.join(folder, "people.db") });
  gate = createGate({ store, tools: [put, take] });
  server = await createServer({ store, gates: { default: gate } });
  const roles = ["reviewer", "operator"] as const;
  token = await server.makeToken({ subject: "person:ada", roles: [...roles] });
  return async () => {
    await server.close();
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  };
});

/** As a program of Ada's; what only people may do needs a link. */
function sallyport(...args: readonly string[]) {
  return cliPlace().run("--url", server.url, "--token", token, ...args);
}

async function asAda(...args: readonly string[]) {
  const roles = ["reviewer", "operator"] as const;
  const link = await server.signInLink({
    tenant: "default",
    subject: "person:ada",
    roles: [...roles],
  });
  return cliPlace().run("--link", link, ...args);
}

async function ask(what: string, callId = what.slice(0, 8)): Promise<string> {
  const session = gate.sessions.open({ id: "s", agent: "agent:x" });
  const answer = await session.call({ callId, tool: "shelf.put", input: { what } });
  if (answer.answer !== "pending") throw new Error(answer.text);
  return answer.interactionId;
}

test("approve prints the whole call with its dry run and targets before it approves, by the end of its id", async () => {
  // In lists a text as long as this one is cut.
  const long = `${"a".repeat(6_000)}THE END OF IT`;
  const id = await ask(long);
  const { code, out } = await asAda("approve", id.slice(-8), "--yes");
  expect(out.includes("THE END OF IT")).toBe(true);
  expect(out).toContain("dry run: would put aaaa");
  expect(out).toContain("target: /shelf/list (file, writes)");
  expect(out).toContain("asked by agent:x");
  expect(out.slice(-500)).toContain("done: put");
  expect(code).toBe(0);
  expect(shelf).toEqual([long]);
});

test("approve takes the # of the table, asks, and without a terminal approves nothing", async () => {
  await ask("first");
  await ask("second");
  const table = await sallyport("interactions", "list");
  expect(table.out.split("\n")[0]).toMatch(/^# +id/);
  expect(table.out).toMatch(/^2 .*second/m);
  const filtered = await sallyport("interactions", "list", "--session-id", "s");
  expect(filtered.out, "numbers of a part of the inbox would name others").not.toMatch(/^2 /m);
  const asked = await asAda("approve", "2");
  expect(asked.out).toContain("second");
  expect(asked.out).not.toContain("first");
  expect(asked.err).toContain("Not a terminal");
  expect(asked.code).toBe(3);
  const numbered = await asAda("approve", "2", "--yes");
  expect(numbered.err).toContain("With --yes give the end of the id");
  expect((await asAda("approve", "9")).err).toContain("not_found");
  expect(shelf).toEqual([]);
});

test("approve finds what is beyond the first page of the inbox", async () => {
  for (let n = 0; n < 120; n += 1) await ask(`thing ${n}`, `c-${n}`);
  const last = (await gate.interactions.list({ status: "open" })).at(-1);
  const { out } = await asAda("approve", last?.id.slice(-8) ?? "", "--yes");
  expect(out).toContain("done: put");
  expect(shelf).toEqual(["thing 119"]);
});

test("undo takes the id that find prints, shows what it would do, and undoes it", async () => {
  const id = await ask("chair");
  await asAda("approve", id.slice(-8), "--yes");
  expect(shelf).toEqual(["chair"]);
  const found = await sallyport("find", "chair");
  const [short = ""] = /^\S+/.exec(found.out) ?? [];
  expect(short).toHaveLength(8);
  const shown = await asAda("undo", short);
  expect(shown.out).toContain("undo: ");
  expect(shown.out).toContain('{"what":"chair"}');
  expect(shown.code).toBe(3);
  expect(shelf).toEqual(["chair"]);
  const undone = await asAda("undo", short, "--yes");
  expect(undone.out).toContain("1 of 1 undone.");
  expect(shelf).toEqual([]);
  expect((await asAda("undo", "nothing-like-it", "--yes")).err).toContain("not_found");
});

test("find says so when nothing is found, and tail prints what happens", async () => {
  expect((await sallyport("find", "nowhere")).out).toContain("Nothing found");
  const place = cliPlace();
  const tail = place.follow("--url", server.url, "--token", token, "tail");
  let lamps = 0;
  // The feed starts with what is new once it is connected.
  const said = async () => {
    lamps += 1;
    await ask(`lamp ${lamps}`, `l-${lamps}`);
    return tail.said();
  };
  await expect.poll(said).toMatch(/#\d+ decision\.staged \S+ agent:x/);
  await tail.stop();
});

test("serve on a port that is in use says so in a sentence", async () => {
  const other = createNetServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as { port: number };
  const { code, err } = await cliPlace().run("serve", "--port", String(port));
  other.close();
  expect(err).toContain(`Port ${port} of 127.0.0.1 is in use by another program`);
  expect(err).not.toContain("EADDRINUSE:");
  expect(code).not.toBe(0);
});
