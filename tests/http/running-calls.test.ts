// A call over HTTP while it runs: its progress is streamed, somebody else can cancel it, its picture and its whole output arrive.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { defineTool } from "../../src/tools/define-tool.ts";
import { openResultStore } from "../../src/tools/result-store.ts";
import { createResultProcessor } from "../../src/tools/tool-call.ts";
import { systemClock } from "../../src/util/clock.ts";
import { createIds } from "../../src/util/ids.ts";
import { systemRandom } from "../../src/util/random.ts";
import { openHttp } from "./http-world.ts";

const input = { type: "object" } as const;
const READ = {
  safety: { effect: "read", concurrencySafe: true },
  permissionClass: "readonly",
} as const;

/** Reports once, then works until it is told to stop. */
function slowTool() {
  const began = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<unknown>();
  const tool = defineTool({
    name: "slow.read",
    description: "Takes its time.",
    input,
    ...READ,
    execute({ signal, progress }) {
      progress({ message: "half of it", done: 0.5 });
      began.resolve();
      return new Promise<string>((_, reject) => {
        signal.addEventListener("abort", () => {
          ended.resolve(signal.reason);
          reject(signal.reason);
        });
      });
    },
  });
  return { tool, began: began.promise, ended: ended.promise };
}

test("progress of a call is streamed while it runs, and its answer ends the stream [S2-05]", async () => {
  const goOn = Promise.withResolvers<void>();
  const tool = defineTool({
    name: "slow.read",
    description: "Takes its time.",
    input,
    ...READ,
    async execute({ progress }) {
      progress({ message: "half of it", done: 0.5 });
      await goOn.promise;
      progress({ message: "nearly" });
      return "all of it";
    },
  });
  const world = await openHttp({ port: { tools: [tool] } });
  const agent = await world.client("acme", "agent");
  const { id } = await agent.sessions.open();
  const reports: unknown[] = [];
  const call = { id, callId: "c", tool: "slow.read", input: {}, key: "k" };
  const giveUp = setTimeout(() => goOn.resolve(), 20_000);
  const answer = await agent.callTool(call, {
    onProgress(report) {
      reports.push(report);
      // The first report arrives although the tool has not ended.
      goOn.resolve();
    },
  });
  clearTimeout(giveUp);
  expect(answer).toMatchObject({ answer: "done", text: "all of it" });
  expect(reports).toEqual([{ message: "half of it", done: 0.5 }, { message: "nearly" }]);
  await expect(agent.callTool({ ...call, id: "agent:one:other" })).rejects.toMatchObject({
    code: "not_found",
  });
  await expect(agent.callTool({ ...call, input: { other: 1 } })).rejects.toMatchObject({
    code: "key_reused",
  });
  expect(world.problems).toEqual([]);
});

test.each(["call", "callTool", "callAll"] as const)(
  "an operator or the agent cancels a running %s; nobody else does, and its answer says so [S2-04]",
  async (way) => {
    const { tool, began, ended } = slowTool();
    const world = await openHttp({ port: { tools: [tool] } });
    const agent = await world.client("acme", "agent");
    const { id } = await agent.sessions.open();
    const call = { callId: "c", tool: "slow.read", input: {} };
    const running =
      way === "callAll"
        ? agent.sessions.callAll({ id, calls: [call] }).then(({ results }) => results[0]?.answer)
        : way === "call"
          ? agent.sessions.call({ id, ...call })
          : agent.callTool({ id, ...call });
    await began;
    const cancel = { id, callId: "c", reason: "too slow" };
    const other = await world.client("acme", "agent", "agent:two");
    await expect(other.sessions.cancel(cancel)).rejects.toMatchObject({ code: "not_found" });
    const bolt = await world.client("bolt", "operator");
    await expect(bolt.sessions.cancel(cancel)).rejects.toMatchObject({ code: "not_found" });
    const operator = await world.client("acme", "operator");
    expect(await operator.sessions.cancel({ ...cancel, callId: "d" })).toEqual({ canceled: false });
    expect(await operator.sessions.cancel(cancel)).toEqual({ canceled: true });
    expect(String(await ended)).toContain("person:operator canceled it: too slow");
    expect(await running).toMatchObject({ answer: "failed" });
    expect(await operator.sessions.cancel(cancel), "it is over").toEqual({ canceled: false });
    expect(world.problems).toEqual([]);
  },
);

test("a picture of a tool arrives as a picture; other data stays in the program [S2-94]", async () => {
  const base64 = Buffer.from("89504e470d0a1a0a00", "hex").toString("base64");
  const data = { kind: "image", mediaType: "image/png", base64, secret: "s3cret" };
  const photo = defineTool({
    name: "photo.read",
    description: "Reads a photo.",
    input,
    ...READ,
    execute: () => ({ text: "a photo", data }),
  });
  const odd = defineTool({
    name: "odd.read",
    description: "Reads data.",
    input,
    ...READ,
    execute: () => ({ text: "no photo", data: { ...data, mediaType: "image/svg+xml" } }),
  });
  const world = await openHttp({ port: { tools: [photo, odd] } });
  const agent = await world.client("acme", "agent");
  const { id } = await agent.sessions.open();
  const call = { id, callId: "c", tool: "photo.read", input: {} };
  const image = { mediaType: "image/png", base64 };
  const answer = await agent.sessions.call(call);
  expect(answer).toMatchObject({ answer: "done", text: "a photo", image });
  expect(JSON.stringify(answer)).not.toContain("s3cret");
  expect(await agent.callTool(call)).toMatchObject({ image });
  const calls = [{ callId: "b", tool: "photo.read", input: {} }];
  const { results } = await agent.sessions.callAll({ id, calls });
  expect(results[0]?.answer).toMatchObject({ image });
  expect(await agent.sessions.call({ ...call, tool: "odd.read" })).not.toHaveProperty("image");
});

test("a picture of a call that waited arrives as a picture when its result is fetched [S2-94]", async () => {
  const base64 = Buffer.from("89504e470d0a1a0a00", "hex").toString("base64");
  const photo = defineTool({
    name: "photo.take",
    description: "Takes a photo.",
    input,
    safety: { effect: "external" },
    execute: () => ({ text: "a photo", data: { kind: "image", mediaType: "image/png", base64 } }),
  });
  const world = await openHttp({ port: { tools: [photo] } });
  const agent = await world.client("acme", "agent");
  const reviewer = await world.client("acme", "reviewer");
  const { id } = await agent.sessions.open();
  const call = { id, callId: "c", key: "photo", tool: "photo.take", input: {} };
  const asked = await agent.sessions.call(call);
  if (asked.answer !== "pending") throw new Error(asked.text);
  const { hash } = await reviewer.interactions.get({ id: asked.interactionId });
  await reviewer.interactions.approve({ id: asked.interactionId, hash });
  const image = { mediaType: "image/png", base64 };
  const { result } = await agent.sessions.resultOf({ id, key: "photo" });
  expect(result).toMatchObject({ answer: "done", text: "a photo", image });
  expect(await agent.sessions.call(call)).toMatchObject({ answer: "done", image });
});

test("people and the agent read the whole of a long output, in parts; other agents do not [S2-92 I-48]", async () => {
  const directory = await mkdtemp(path.join(tmpdir(), "sallyport-output-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const ids = createIds({ clock: systemClock, random: systemRandom });
  const store = await openResultStore({ directory, ids });
  onTestFinished(() => store.close());
  const text = "0123456789".repeat(50);
  const long = defineTool({
    name: "long.read",
    description: "Reads much.",
    input,
    ...READ,
    execute: ({ input: { short, fails } }) =>
      fails === true ? { text, isError: true } : short === true ? "short" : text,
  });
  const processor = createResultProcessor({ store, maxCharacters: 100, headCharacters: 20 });
  const world = await openHttp({ port: { tools: [long], processor } });
  const agent = await world.client("acme", "agent");
  const { id: sessionId } = await agent.sessions.open();
  const call = { id: sessionId, callId: "c", tool: "long.read", input: {} };
  const answer = await agent.sessions.call(call);
  if (answer.answer !== "done") throw new Error(answer.text);
  expect(answer).toMatchObject({ truncated: true });
  const { operationId: id } = answer;
  const auditor = await world.client("acme", "auditor");
  for (const reader of [agent, auditor]) {
    let whole = "";
    for (let offset = 0; ; ) {
      const part = await reader.operations.output({ id, offset, length: 200 });
      whole += part.text;
      offset = part.nextOffset;
      if (offset >= part.totalBytes) break;
    }
    expect(whole).toBe(text);
  }
  const other = await world.client("acme", "agent", "agent:two");
  await expect(other.operations.output({ id })).rejects.toMatchObject({ code: "not_found" });
  const short = await agent.sessions.call({ ...call, callId: "d", input: { short: true } });
  if (short.answer !== "done") throw new Error(short.text);
  expect(await auditor.operations.output({ id: short.operationId })).toEqual({
    text: "short",
    nextOffset: 5,
    totalBytes: 5,
  });
  const failing = { ...call, callId: "e", key: "e", input: { fails: true } };
  const failed = await agent.sessions.call(failing);
  expect(failed).toMatchObject({
    answer: "failed",
    truncated: true,
    storedPath: expect.stringMatching(/./),
  });
  expect((await agent.sessions.resultOf({ id: sessionId, key: "e" })).result).toEqual(failed);
  await rm(directory, { recursive: true, force: true });
  await expect(auditor.operations.output({ id })).rejects.toMatchObject({ code: "not_found" });
  expect(world.problems).toEqual([]);
});
