import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type McpWorld, mcpWorld, READS, TINY } from "./world.ts";

const put = (value: string) => ({ key: "a", value });

const UNDO = {
  snapshot: { tool: "get", input: { key: "{input.key}" } },
  tool: "put",
  input: { key: "{input.key}", value: "{before}" },
};

const world = (undo: object, tools: object = READS) =>
  mcpWorld({
    upstreams: ({ env }) => [
      {
        name: "tiny",
        command: process.execPath,
        args: [TINY],
        env,
        tools: { ...tools, put: { undo } },
      },
    ],
  });

async function approved({ client, decide }: McpWorld, value: string): Promise<void> {
  await client.call("put", put(value));
  await decide("approve");
  expect(await client.call("put", put(value))).toMatchObject({ isError: false });
}

async function sessionOf({ gate }: McpWorld): Promise<string> {
  const [decision] = await gate.decisions.list({ limit: 1 });
  return decision?.sessionId ?? "";
}

/** A rollback is gated like any other call; a person lets it through. */
async function rollback(place: McpWorld) {
  const session = place.gate.sessions.open({ id: await sessionOf(place), agent: "operator" });
  return session.rollback("person:ada");
}

test("mcp: a write with a snapshot is rolled back to what was there before, through the gate", async () => {
  const place = await world(UNDO);
  await approved(place, "one");
  await approved(place, "two");
  const report = await rollback(place);
  expect(report).toMatchObject({ undone: expect.any(Array) });
  await place.decide("approve");
  await expect
    .poll(async () => (await place.client.call("get", { key: "a" })).text)
    .not.toBe("two");
});

test("mcp: the snapshot is taken before the write, and a changed target is noticed before an approved call runs", async () => {
  const place = await world(UNDO);
  await approved(place, "one");
  await place.client.call("put", put("two"));
  writeFileSync(place.file("state.json"), JSON.stringify({ a: "by somebody else" }));
  const [asked] = await place.gate.interactions.list();
  const { outcome } = await place.gate.interactions.approve(asked?.id ?? "", {
    hash: asked?.hash ?? "",
    by: "ada",
  });
  expect(outcome).toBe("asked_again");
  expect((await place.client.call("get", { key: "a" })).text).toBe("by somebody else");
});

test("mcp: a tool without an undo is irreversible, and its guide is recorded where the operator wrote one", async () => {
  const manualGuide = "Put the old value back by hand.";
  const place = await world({ irreversible: true, manualGuide });
  await approved(place, "one");
  const [operation] = await place.gate.operations.listBySession(await sessionOf(place));
  expect(operation?.undo).toMatchObject({ irreversible: true, manualGuide });
});

test("mcp: an undo that cannot be made of the answer leaves the call done and irreversible", async () => {
  const place = await world({ tool: "put", input: { key: "{output.nothing}" } });
  await approved(place, "one");
  const [operation] = await place.gate.operations.listBySession(await sessionOf(place));
  expect(operation).toMatchObject({ status: "success", undo: { irreversible: true } });
  expect(operation?.undo?.manualGuide).toContain("there is nothing at {output.nothing}");
});

test("mcp: a snapshot by a tool that the operator does not call read-only is refused at the start", async () => {
  await expect(world(UNDO, {})).rejects.toThrow('give that tool the effect "read" first');
});

test("mcp: rules about paths and hosts apply to the arguments that the operator mapped", async () => {
  const place = await mcpWorld({
    gate: {
      policy: {
        version: "1",
        rules: [
          { id: "r1", effect: "deny", tool: "tiny.*", path: "/etc/**", reason: "not the system" },
          { id: "r2", effect: "deny", tool: "tiny.*", host: "*.example.com", reason: "not there" },
        ],
      },
    },
    upstreams: ({ env }) => [
      {
        name: "tiny",
        command: process.execPath,
        args: [TINY],
        env,
        tools: {
          append: { paths: { write: ["line"] } },
          put: { urls: ["value"] },
        },
      },
    ],
  });
  const path = await place.client.call("append", { line: "/etc/../etc/passwd" });
  expect(path.text).toContain("not the system");
  const host = await place.client.call("put", put("https://api.example.com/x"));
  expect(host.text).toContain("not there");
  expect((await place.client.call("append", { line: "/tmp/x" })).text).toContain(
    "waits for approval",
  );
  expect(place.calls()).toEqual([]);
});
