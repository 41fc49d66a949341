// A host starts its MCP servers anew with every run: what one process asked for is decided while none runs, and the next ones
// get the outcome once.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { type CliPlace, cliPlace } from "../cli/cli-process.ts";
import { SCALE } from "../support/scale.ts";
import { decideAll, startMcp, tinyServer } from "./cli-world.ts";
import { handshake, type McpClient, META, type Result } from "./world.ts";

const FLAGS = ["--upstream", tinyServer, "--read-only", "count", "--hold", "0"];
const append = { line: "one" };

const ledger = ({ folder }: CliPlace) => {
  const file = path.join(folder, "ledger.txt");
  return existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n") : [];
};

/** One run of the host: a process that starts, does this, and ends. */
async function run<Answer>(
  place: CliPlace,
  work: (client: McpClient) => Promise<Answer>,
  flags: readonly string[] = FLAGS,
): Promise<Answer> {
  const { client, ended } = startMcp(place, flags);
  await handshake(client);
  const answer = await work(client);
  client.end();
  await ended;
  return answer;
}

const ask = (client: McpClient): Promise<Result> => client.call("append", append);

test("mcp: a call that is approved between two runs of the host is executed once, and its result is delivered once", async () => {
  const place = cliPlace();
  expect((await run(place, ask)).text).toContain("waits for approval");
  expect(await decideAll(place)).toBe(1);
  expect(await run(place, ask)).toMatchObject({ text: "appended one", isError: false });
  expect(ledger(place)).toEqual(["one"]);
  expect((await run(place, ask)).text).toContain("waits for approval");
  expect(ledger(place)).toEqual(["one"]);
});

const isSmall = SCALE === "test";

// skip: several processes, which the proof starts; npm test tells the first of these stories
test.skipIf(isSmall)(
  "mcp: a call that is rejected between two runs of the host is refused once with the reason, and then is a new question",
  async () => {
    const place = cliPlace();
    await run(place, ask);
    await decideAll(place, "reject");
    expect((await run(place, ask)).text).toContain("not now");
    expect((await run(place, ask)).text).toContain("waits for approval");
    expect(ledger(place)).toEqual([]);
  },
);

// skip: several processes, which the proof starts; npm test tells the first of these stories
test.skipIf(isSmall)(
  "mcp: what the upkeep of a later run executed by itself is delivered to the run that asks, once",
  async () => {
    const place = cliPlace();
    await run(place, ask);
    await decideAll(place);
    // It has the tool as soon as it has listed it, and nobody calls it.
    await run(place, async (client) => {
      await client.request("tools/list");
      await expect.poll(() => ledger(place)).toEqual(["one"]);
    });
    expect(await run(place, ask)).toMatchObject({ text: "appended one", isError: false });
    expect((await run(place, ask)).text).toContain("waits for approval");
    expect(ledger(place)).toEqual(["one"]);
  },
);

// skip: several processes, which the proof starts; npm test tells the first of these stories
test.skipIf(isSmall)(
  "mcp: another client of the same entry has a session of its own, and --session names one",
  async () => {
    const place = cliPlace();
    const flags = [...FLAGS, "--session", "shared"];
    await run(place, ask, flags);
    await decideAll(place);
    expect((await run(place, ask)).text).toContain("waits for approval");
    expect(await run(place, ask, flags)).toMatchObject({ text: "appended one" });
  },
);

// skip: several processes, which the proof starts; npm test tells the first of these stories
test.skipIf(isSmall)("mcp tasks: a task outlives the gateway that promised it", async () => {
  const place = cliPlace();
  const declared = { extensions: { "io.modelcontextprotocol/tasks": {} } };
  const _meta = { ...META, "io.modelcontextprotocol/clientCapabilities": declared };
  const asTask = async ({ call }: McpClient) =>
    (await call("append", append, { _meta })).raw["result"] as { taskId: string };
  const start = (work: (client: McpClient) => Promise<unknown>) => {
    const { client, ended } = startMcp(place, FLAGS);
    return work(client).finally(() => {
      client.end();
      return ended;
    });
  };
  let taskId = "";
  await start(async (client) => {
    ({ taskId } = await asTask(client));
  });
  await decideAll(place);
  await start(async (client) => {
    await client.request("tools/list", { _meta });
    const state = async () =>
      (await client.request("tasks/get", { taskId, _meta }))["result"] as object;
    await expect.poll(state).toMatchObject({ status: "completed" });
    expect(JSON.stringify(await state())).toContain("appended one");
  });
  expect(ledger(place)).toEqual(["one"]);
});
