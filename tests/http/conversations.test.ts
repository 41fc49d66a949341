// Conversations with the agent of a server, over HTTP: begun, answered in the inbox, continued, and nobody else's.

import { expect, test } from "vitest";
import { continueFlows, createFlow, type FlowEvent } from "../../src/flow/index.ts";
import { createGate, type Gate } from "../../src/gate/create-gate.ts";
import { createServer } from "../../src/http/index.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { callOf, DONE, PLAN, planOf } from "../flow/flow-world.ts";
import { modelSaying } from "../flow/scripted-model.ts";
import { raw } from "./http-world.ts";
import { bearer, clientOf, newSession } from "./passes.ts";

async function openTalk(...answers: readonly (string | object)[]) {
  return openTalkWith({}, ...answers);
}

interface TalkOptions {
  /** Another tool beside the one that sells. */
  readonly tool?: Tool;
  readonly onEvent?: (event: FlowEvent) => void;
}

async function openTalkWith(
  { tool, onEvent = () => {} }: TalkOptions,
  ...answers: readonly (string | object)[]
) {
  const sold: string[] = [];
  const sell = defineTool({
    name: "shop.sell",
    description: "Sells.",
    input: { type: "object" },
    safety: { effect: "external" },
    execute() {
      sold.push("one");
      return "sold";
    },
  });
  const store = memoryStore();
  const gate = createGate({ store, tools: tool === undefined ? [sell] : [sell, tool] });
  const states = store.tenant("default").flowStates;
  const flow = createFlow({
    model: modelSaying(...answers),
    openSession: ({ conversationId, userId }) =>
      gate.sessions.open({ id: `talk.${conversationId}`, agent: "agent:shop", owner: userId }),
    tools: gate.tools,
    states,
    onEvent,
    onProblem: ({ error }) => problems.push(error),
    modelRetries: 0,
  });
  const problems: unknown[] = [];
  const server = await createServer({
    store,
    gates: { default: gate },
    flows: { default: flow },
    onProblem: (error) => problems.push(error),
  });
  const token = (subject: string) => server.makeToken({ subject, roles: ["agent"] });
  const user = clientOf(server.url, await token("app:one"));
  const pass = await newSession(server, {
    tenant: "default",
    subject: "person:ada",
    roles: ["reviewer", "operator"],
  });
  const ada = clientOf(server.url, pass);
  const wake = continueFlows({
    flow,
    states,
    interactions: gate.interactions,
    onProblem: ({ error }) => problems.push(error),
  });
  return { store, gate, server, user, ada, sold, problems, token, wake };
}

/** The person says yes to the one open question. */
async function sayYes(ada: Awaited<ReturnType<typeof openTalk>>["ada"], gate: Gate) {
  const [question] = await gate.interactions.list();
  if (question === undefined) throw new Error("no question");
  const { id, hash, type, choices } = question;
  if (type === "confirm") return ada.interactions.approve({ id, hash });
  return ada.interactions.answer({ id, hash, answer: choices[0] ?? "yes" });
}

test("a conversation is begun, confirmed and delivered over HTTP; its calls are decided in the inbox [S1-45 S1-48]", async () => {
  const talk = await openTalk(PLAN, planOf("sell"), callOf("shop.sell"), DONE);
  const { server, user, ada, gate, sold, problems } = talk;
  const begun = await user.conversations.send({ id: "order", message: "Sell one." });
  expect(begun).toMatchObject({ id: "app:one~.order", outcome: "waiting" });
  const { id, interaction: plan } = begun;
  if (plan === undefined) throw new Error("no question");
  expect(await user.conversations.get({ id })).toMatchObject({
    user: "app:one",
    phase: "interrupted",
    steps: [{ text: "sell", done: false }],
    waitsFor: { interaction_id: plan.interaction_id },
  });
  const answer = { id, interactionId: plan.interaction_id, version: plan.version };
  expect(await user.conversations.reply(answer), "nobody has answered").toMatchObject({
    outcome: "waiting",
  });
  await sayYes(ada, gate);
  const called = await user.conversations.reply(answer);
  expect(called).toMatchObject({ outcome: "waiting", interaction: { type: "confirm" } });
  expect(sold, "only a person lets it through").toEqual([]);
  expect(await user.conversations.reply(answer), "an old question").toMatchObject({
    outcome: "refused",
  });
  await sayYes(ada, gate);
  const confirming = {
    id,
    interactionId: called.interaction?.interaction_id ?? "",
    version: called.interaction?.version ?? 0,
  };
  expect(await user.conversations.confirm(confirming)).toMatchObject({ outcome: "delivered" });
  expect(sold).toEqual(["one"]);
  expect(await user.conversations.resume({ id })).toMatchObject({ outcome: "nothing_stored" });
  await expect(user.conversations.get({ id })).rejects.toMatchObject({ code: "not_found" });
  expect(problems).toEqual([]);
  await server.close();
});

test("an answer in the inbox wakes a waiting conversation, without its user [S1-47]", async () => {
  const talk = await openTalk(PLAN, planOf("sell"), callOf("shop.sell"), DONE);
  const { server, user, ada, gate, sold, wake, problems } = talk;
  const { id } = await user.conversations.send({ message: "Sell one." });
  expect((await ada.conversations.list()).items).toMatchObject([{ id, user: "app:one" }]);
  await sayYes(ada, gate);
  expect(await wake()).toEqual([id]);
  await sayYes(ada, gate);
  expect(await wake()).toEqual([id]);
  expect(sold).toEqual(["one"]);
  expect((await ada.conversations.list()).items).toEqual([]);
  expect(problems).toEqual([]);
  await server.close();
});

test("nobody sees or continues the conversation of another, and a server without an agent says so", async () => {
  const four = Array.from({ length: 4 }, () => [PLAN, planOf("sell")]).flat();
  const { server, user, token, store, gate } = await openTalk(...four);
  const { id } = await user.conversations.send({ id: "x", message: "Sell one." });
  // The names of the last two are the beginning of the first one's.
  for (const name of ["app:two", "app", "app:o"]) {
    const other = clientOf(server.url, await token(name));
    for (const work of [
      () => other.conversations.get({ id }),
      () => other.conversations.resume({ id }),
      () => other.conversations.reply({ id, interactionId: "i", version: 1 }),
      () => other.conversations.confirm({ id, interactionId: "i", version: 1 }),
    ]) {
      await expect(work(), name).rejects.toMatchObject({ code: "not_found" });
    }
    expect((await other.conversations.list()).items, name).toEqual([]);
    const { id: theirs } = await other.conversations.send({ id: "one:x", message: "Sell one." });
    expect(theirs, name).not.toBe(id);
  }
  const bare = await createServer({ store, gates: { default: gate } });
  const { text, status } = await raw(`${bare.url}/v1/conversations`, {
    method: "POST",
    headers: {
      ...bearer(await bare.makeToken({ subject: "app:one", roles: ["agent"] })),
      "content-type": "application/json",
    },
    body: JSON.stringify({ message: "Hello" }),
  });
  expect(status).toBe(404);
  expect(text).toContain("holds no conversations");
  await bare.close();
  await server.close();
});

test("who hangs up during a conversation aborts the call that runs for it; its progress is told [S2-04 S2-05]", async () => {
  const began = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<unknown>();
  const look = defineTool({
    name: "shop.look",
    description: "Looks for long.",
    input: { type: "object" },
    readOnly: true,
    execute({ signal, progress }) {
      progress({ message: "half of it" });
      began.resolve();
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          ended.resolve(signal.reason);
          reject(signal.reason);
        });
      });
    },
  });
  const events: FlowEvent[] = [];
  const onEvent = (event: FlowEvent) => void events.push(event);
  const script = [PLAN, planOf("look"), callOf("shop.look"), DONE];
  const talk = await openTalkWith({ tool: look, onEvent }, ...script);
  const { server, user, ada, gate, token } = talk;
  const { id, interaction } = await user.conversations.send({ message: "Look." });
  if (interaction === undefined) throw new Error("no question");
  await sayYes(ada, gate);
  const stop = new AbortController();
  const sent = fetch(`${server.url}/v1/conversations/${encodeURIComponent(id)}/resume`, {
    method: "POST",
    headers: { ...bearer(await token("app:one")), "content-type": "application/json" },
    body: "{}",
    signal: stop.signal,
  });
  await began.promise;
  expect(events.at(-1)).toMatchObject({ type: "progress", report: { message: "half of it" } });
  stop.abort();
  await expect(sent).rejects.toThrow();
  expect(String(await ended.promise)).toContain("hung up");
});

test("a conversation whose call still ran elsewhere is continued once it has a result, although nobody was asked [S1-47]", async () => {
  const talk = await openTalk(PLAN, planOf("sell"), callOf("shop.sell"), DONE);
  const { server, user, ada, gate, sold, problems, store } = talk;
  const { id } = await user.conversations.send({ message: "Sell one." });
  const states = store.tenant("default").flowStates;
  const lost: typeof states.load = async (conversation) => {
    const loaded = await states.load(conversation);
    const { pending_interaction: open } = loaded.found ? loaded.snapshot.state : {};
    if (!loaded.found || open == null) return loaded;
    const running = { ...open, type: "connection_lost", interaction_id: "op-1.0" } as const;
    const state = { ...loaded.snapshot.state, pending_interaction: running };
    return { ...loaded, snapshot: { ...loaded.snapshot, state } };
  };
  const resumed: string[] = [];
  let now = Date.now();
  const wake = continueFlows({
    flow: {
      async resume(conversation) {
        resumed.push(conversation);
        return { outcome: "stopped", text: "" } as never;
      },
    },
    states: {
      load: lost,
      unfinished: (query) => states.unfinished(query),
      sweep: () => states.sweep(),
    },
    interactions: gate.interactions,
    onProblem: ({ error }) => problems.push(error),
    clock: { now: () => now },
  });
  await wake();
  expect(resumed, "it may still run").toEqual([]);
  now += 2_000;
  await wake();
  expect([resumed, problems]).toEqual([[id], []]);
  await sayYes(ada, gate);
  expect(sold).toEqual([]);
  await server.close();
});
