// `sallyport mcp` as an MCP host starts it: a real process on standard input and output, decided in another process.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { cliPlace } from "../cli/cli-process.ts";
import { decideAll, startMcp, tinyServer } from "./cli-world.ts";
import { handshake } from "./world.ts";

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
