// `sallyport mcp` as an MCP host starts it: a real process on standard input and output, decided in another process.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createClient, signIn } from "sallyport/client";
import { expect, test } from "vitest";
import { cliPlace } from "../cli/cli-process.ts";
import { decideAll, startMcp, tinyServer } from "./cli-world.ts";
import { handshake, META, resultIn, TINY, type Wire } from "./world.ts";

test("sallyport mcp: a write waits, is approved in another process and runs once; reads named by a flag pass", async () => {
  const place = cliPlace();
  const { client } = startMcp(place, [
    "--upstream",
    tinyServer,
    "--read-only",
    "count",
    "--hold",
    "0",
  ]);
  await handshake(client);
  const input = { line: "one" };
  expect((await client.call("append", input)).text).toContain("waits for approval");
  expect(await client.call("count")).toMatchObject({ text: "0", isError: false });
  await decideAll(place);
  await expect.poll(async () => existsSync(path.join(place.folder, "ledger.txt"))).toBe(true);
  expect(await client.call("append", input)).toMatchObject({
    text: "appended one",
    isError: false,
  });
  expect(readFileSync(path.join(place.folder, "ledger.txt"), "utf8")).toBe("one\n");
});

test("sallyport mcp: a configuration that does not fit names its field, and nothing is started", async () => {
  const place = cliPlace();
  const file = path.join(place.folder, "mcp.json");
  writeFileSync(
    file,
    JSON.stringify({
      mcp: { upstreams: [{ name: "a", command: "x", tools: { t: { effect: "maybe" } } }] },
    }),
  );
  const { code, err } = await place.run("mcp", "--config", file);
  expect(code).not.toBe(0);
  expect(err).toContain("mcp.upstreams.0.tools.t.effect");
  expect(existsSync(place.data)).toBe(false);
  expect((await place.run("mcp")).err).toContain("mcp.upstreams");
});

test("sallyport mcp --accept: forgets the pinned definitions of a tool, and says when there are none", async () => {
  const place = cliPlace();
  const { client, ended } = startMcp(place, ["--upstream", tinyServer]);
  await handshake(client);
  await client.request("tools/list");
  client.end();
  await ended;
  const file = path.join(place.data, "mcp-pins.json");
  expect(Object.keys(JSON.parse(readFileSync(file, "utf8")).tiny)).toContain("append");
  expect((await place.run("mcp", "--accept", "tiny.append")).out).toContain("tiny.append");
  expect(Object.keys(JSON.parse(readFileSync(file, "utf8")).tiny)).not.toContain("append");
  const none = await place.run("mcp", "--accept", "tiny.append");
  expect(none.code).not.toBe(0);
});

test("sallyport serve with an mcp part: an agent's token calls /mcp, a write waits for a signed-in person and runs once", async () => {
  const place = cliPlace();
  const ledger = path.join(place.folder, "ledger.txt");
  const tiny = { command: process.execPath, args: [TINY], env: { LEDGER: ledger } };
  const mcp = {
    holdMs: 0,
    upstreams: [{ name: "tiny", ...tiny, tools: { count: { effect: "read" } } }],
  };
  const file = path.join(place.folder, "sallyport.config.mjs");
  writeFileSync(file, `export default ${JSON.stringify({ tools: [], mcp })};\n`);
  const server = await place.start("serve", "--config", file);
  const link = /http:\S+link=\S+/.exec(server.said())?.[0] ?? "";
  const person = createClient(await signIn({ link }));
  const { secret } = await person.tokens.make({ subject: "agent:bot", roles: ["agent"] });
  const call = async (name: string, input: object) => {
    const params = { name, arguments: input, _meta: META };
    const response = await fetch(`${server.url}/mcp`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${secret}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": name,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
    });
    return resultIn((await response.json()) as Wire);
  };
  expect(await call("count", {})).toMatchObject({ text: "0", isError: false });
  expect((await call("append", { line: "x" })).text).toContain("waits for approval");
  const { items } = await person.interactions.list();
  expect(items).toHaveLength(1);
  expect(existsSync(ledger)).toBe(false);
  const [{ id = "", hash = "" } = {}] = items;
  await person.interactions.approve({ id, hash });
  expect(await call("append", { line: "x" })).toMatchObject({ text: "appended x" });
  expect(readFileSync(ledger, "utf8")).toBe("x\n");
});
