// Sallyport itself as an MCP server: what an agent's token sees, what a person's session sees, and how a person approves.

import { PassThrough } from "node:stream";
import { createGate } from "sallyport";
import { createClient, signIn } from "sallyport/client";
import { createServer } from "sallyport/http";
import { serveInbox } from "sallyport/mcp";
import { memoryStore } from "sallyport/store/memory";
import { defineTool } from "sallyport/tools";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { writeLocalAccess } from "../../src/cli/connect.ts";
import { cliPlace } from "../cli/cli-process.ts";
import { startMcp } from "./cli-world.ts";
import { CLIENT, handshake, type McpClient, META, mcpClient, type Wire } from "./world.ts";

type Role = "agent" | "operator" | "auditor" | "local";

/** A server with one question of the agent `helper` and one of the agent `other`. */
async function inboxWorld() {
  const store = memoryStore();
  const ran: number[] = [];
  const refund = defineTool({
    name: "billing.refund",
    description: "Refunds an invoice.",
    input: z.object({ cents: z.int() }),
    safety: { effect: "external" },
    execute({ input }) {
      ran.push(input.cents);
      return { text: "refunded" };
    },
  });
  const gate = createGate({ store, checkpoint: "inbox", tools: [refund] });
  const server = await createServer({ store, gates: { default: gate } });
  onTestFinished(async () => {
    await server.close();
    await gate.close();
  });
  const ask = async (agent: string, cents: number) => {
    const secret = await server.makeToken({ subject: agent, roles: ["agent"] });
    const { sessions, interactions } = createClient({ url: server.url, token: secret });
    const { id } = await sessions.open({});
    const call = { id, callId: "c1", tool: "billing.refund", input: { cents } };
    const asked = await sessions.call(call);
    if (asked.answer !== "pending") throw new Error(asked.answer);
    const { interactionId, decisionId } = asked;
    const { hash } = await interactions.get({ id: interactionId });
    return { sessionId: id, interactionId, decisionId, hash };
  };
  const token = (...roles: Role[]) => server.makeToken({ subject: "helper", roles });
  const link = (...roles: ("reviewer" | "auditor")[]) =>
    server.signInLink({ subject: "person:ada", roles });
  const asToken = async (...roles: Role[]) =>
    createClient({ url: server.url, token: await token(...roles) });
  const asPerson = async () => createClient(await signIn({ link: await link("reviewer") }));
  return { gate, server, ran, token, link, asToken, asPerson, ask };
}

type Api = ReturnType<typeof createClient>;

/** Serves the inbox with this credential; `approving` as `--approve` does. */
function serve(api: Api, approving = false) {
  const calls = api as unknown as Record<
    string,
    Record<string, (input: object) => Promise<unknown>>
  >;
  const input = new PassThrough();
  const output = new PassThrough();
  const served = serveInbox({
    input,
    output,
    async call(route, given) {
      const [noun = "", verb = ""] = route.split(".");
      return calls[noun]?.[verb]?.(given);
    },
    ...(approving
      ? {
          async describe(id) {
            const { type, hash, displayText } = await api.interactions.get({ id });
            return { type, hash, text: displayText, whyNot: "" };
          },
        }
      : {}),
  });
  const client = mcpClient(input, output);
  onTestFinished(async () => {
    client.end();
    await served.catch(() => {});
  });
  return { client, served };
}

async function toolNames(client: McpClient): Promise<readonly string[]> {
  const { tools } = (await client.request("tools/list"))["result"] as { tools: { name: string }[] };
  return tools.map(({ name }) => name);
}

/** The form that the client is asked to show. */
async function formOf(client: McpClient) {
  await expect.poll(() => client.heard.length).toBeGreaterThan(0);
  const { id, method, params } = client.heard.shift() ?? ({} as Wire);
  expect(method).toBe("elicitation/create");
  const { message } = params as { message: string };
  const answer = (result: object) => client.send({ jsonrpc: "2.0", id, result });
  return { message, answer };
}

/** What each request of a stateless client carries that can show forms. */
const ABLE = { ...META, "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } };

const accepted = (hash: string) => ({ action: "accept", content: { hash: hash.slice(0, 8) } });

test("mcp inbox: a token that reads what all agents do is refused before anything is served; an agent's own is not", async () => {
  const { asToken } = await inboxWorld();
  for (const roles of [["local"], ["operator"], ["auditor"], ["operator", "auditor"]] as const) {
    const { client: unserved, served } = serve(await asToken(...roles));
    unserved.end();
    await expect(served, roles.join()).rejects.toMatchObject({ code: "not_allowed" });
  }
  const { client } = serve(await asToken("agent"));
  await handshake(client);
  expect(await toolNames(client)).toContain("inbox_list");
});

test("mcp inbox: an agent sees the questions and decisions of its own sessions alone, and works on tasks", async () => {
  const { gate, ask, asToken } = await inboxWorld();
  const own = await ask("helper", 5);
  const foreign = await ask("other", 7);
  const { client } = serve(await asToken("agent"));
  await handshake(client);
  const names = await toolNames(client);
  expect(names).toContain("inbox_get");
  expect(names.filter((name) => /preview|approve|reject|settle/.test(name))).toEqual([]);
  const listed = await client.call("inbox_list", { sessionId: own.sessionId });
  expect(listed.text).toContain(own.interactionId);
  for (const [name, input] of [
    ["inbox_list", {}],
    ["inbox_list", { sessionId: foreign.sessionId }],
    ["inbox_get", { id: foreign.interactionId }],
    ["decision_status", { id: foreign.decisionId }],
  ] as const) {
    const answer = await client.call(name, input);
    expect(answer.isError, name).toBe(true);
    expect(answer.text).not.toContain("refund");
  }
  const status = await client.call("decision_status", { id: own.decisionId });
  expect(JSON.parse(status.text)).toMatchObject({ state: "pending_ml" });
  const { id } = await gate.tasks.add({ subject: "Count", by: "ada" });
  const claimed = JSON.parse((await client.call("task_claim", { id, leaseMs: 60_000 })).text);
  expect(claimed).toMatchObject({ id, status: "claimed", claimer: "helper" });
  const { fence } = claimed;
  const done = await client.call("task_complete", { id, fence, result: "3" }, { _meta: META });
  expect(JSON.parse(done.text)).toMatchObject({ status: "completed" });
  const again = await client.call("task_complete", { id, fence, result: "4" });
  expect(again.text).toMatch(/^already_completed: /);
  expect(await client.request("tools/call", { name: "approve" })).toMatchObject({
    error: { code: -32602 },
  });
});

test("mcp inbox: a person's own session sees every question and what it would do, and approves nothing unless that is switched on", async () => {
  const { ask, asPerson, ran } = await inboxWorld();
  const { interactionId: id, hash } = await ask("other", 7);
  const { client } = serve(await asPerson());
  await handshake(client);
  expect(JSON.parse((await client.call("inbox_list")).text).items).toHaveLength(1);
  expect((await client.call("inbox_get", { id })).text).toContain("billing.refund");
  expect((await client.call("inbox_preview", { id })).text).toContain("safetyClass");
  expect(await toolNames(client)).not.toContain("inbox_approve");
  const asked = { name: "inbox_approve", arguments: { id, hash } };
  expect(await client.request("tools/call", asked)).toMatchObject({ error: { code: -32602 } });
  expect(ran).toEqual([]);
});

test("mcp inbox: an approval is refused for another hash, a client without forms, a declined form and what was mistyped", async () => {
  const { gate, ask, asPerson, ran } = await inboxWorld();
  const { interactionId: id, hash } = await ask("other", 7);
  const without = serve(await asPerson(), true).client;
  await without.request("initialize", { ...CLIENT, capabilities: { elicitation: { url: {} } } });
  expect((await without.call("inbox_approve", { id, hash })).text).toContain("shows no forms");
  const { client } = serve(await asPerson(), true);
  await handshake(client);
  const other = { id, hash: "0".repeat(64) };
  const wrong = await client.call("inbox_approve", other, { _meta: ABLE });
  expect(wrong.text).toContain("not the hash of this question");
  expect(client.heard).toEqual([]);
  for (const [reply, said] of [
    [{ action: "cancel" }, "did not accept"],
    [{ action: "decline", content: { hash: hash.slice(0, 8) } }, "did not accept"],
    [{ action: "accept", content: { hash: "00000000" } }, "not the beginning"],
    [{ action: "accept", content: { hash: "" } }, "not the beginning"],
    [{ action: "accept" }, "not the beginning"],
  ] as const) {
    const answer = client.call("inbox_approve", { id, hash });
    (await formOf(client)).answer(reply);
    expect(await answer).toMatchObject({ isError: true });
    expect((await answer).text).toContain(said);
  }
  const begun = client.start("tools/call", { name: "inbox_approve", arguments: { id, hash } });
  await formOf(client);
  const params = { requestId: begun };
  client.send({ jsonrpc: "2.0", method: "notifications/cancelled", params });
  expect(await client.answerTo(begun)).toMatchObject({ result: { isError: true } });
  expect(ran).toEqual([]);
  expect((await gate.interactions.get(id)).status).toBe("open");
});

test("mcp inbox: a stateless client gets the form as a round of input, which counts once and for that question alone", async () => {
  const { ask, asPerson, ran } = await inboxWorld();
  const { interactionId: id, hash } = await ask("other", 7);
  const second = await ask("helper", 5);
  const { client } = serve(await asPerson(), true);
  const call = async (input: object, more: object = {}) => {
    const params = { name: "inbox_approve", arguments: input, _meta: ABLE, ...more };
    const { result } = await client.request("tools/call", params);
    return result as Record<string, unknown> & { requestState?: string };
  };
  expect(await call({ id, hash }, { _meta: META })).toMatchObject({ isError: true });
  const first = await call({ id, hash });
  expect(first).toMatchObject({ resultType: "input_required" });
  const { requestState } = first;
  const inputResponses = { approval: accepted(hash) };
  const forged = { requestState: "guessed", inputResponses };
  expect(await call({ id, hash }, forged)).toMatchObject({ isError: true });
  const other = { id: second.interactionId, hash: second.hash };
  const swapped = { approval: accepted(second.hash) };
  const elsewhere = { requestState, inputResponses: swapped };
  expect(await call(other, elsewhere)).toMatchObject({ isError: true });
  expect(await call({ id, hash }, { requestState, inputResponses })).toMatchObject({
    isError: true,
  });
  expect(ran).toEqual([]);
  const round = await call({ id, hash });
  const yes = { requestState: round.requestState, inputResponses };
  expect(await call({ id, hash }, yes)).not.toHaveProperty("isError");
  expect(await call({ id, hash }, yes)).toMatchObject({ isError: true });
  expect(ran).toEqual([7]);
});

test("sallyport mcp --serve-inbox: an agent's token lists, reads and completes its own as a process; this machine's token is refused and says what to pass", async () => {
  const { gate, server, ask, token } = await inboxWorld();
  const place = cliPlace({ SALLYPORT_URL: server.url });
  const own = await ask("helper", 5);
  await ask("other", 7);
  writeLocalAccess(place.folder, { url: server.url, token: await token("local"), pid: 1 });
  const local = place.run("--data", place.folder, "mcp", "--serve-inbox");
  const agent = await token("agent");
  const voter = place.run("mcp", "--serve-inbox", "--approve", "--token", agent);
  const flags = ["--serve-inbox", "--url", server.url, "--token", agent];
  const { client } = startMcp(place, flags);
  await handshake(client);
  const { sessionId, interactionId: id, decisionId } = own;
  const { items } = JSON.parse((await client.call("inbox_list", { sessionId })).text);
  expect(items).toHaveLength(1);
  expect((await client.call("inbox_list")).isError).toBe(true);
  expect((await client.call("inbox_get", { id })).text).toContain("billing.refund");
  expect((await client.call("decision_status", { id: decisionId })).text).toContain("pending_ml");
  const task = await gate.tasks.add({ subject: "Count", by: "ada" });
  const { fence } = JSON.parse((await client.call("task_claim", { id: task.id })).text);
  const done = await client.call("task_complete", { id: task.id, fence, result: "3" });
  expect(JSON.parse(done.text)).toMatchObject({ status: "completed" });
  const refused = await local;
  expect(refused).toMatchObject({ code: expect.any(Number), out: "" });
  expect(refused.code).not.toBe(0);
  expect(refused.err).toContain("sallyport tokens make");
  expect(refused.err).toContain("--link");
  expect((await voter).code).not.toBe(0);
  expect((await voter).err).toContain("sign-in link");
});

test("sallyport mcp --serve-inbox --approve: a person's yes to the form that shows the call executes it once", async () => {
  const { server, ask, link, ran } = await inboxWorld();
  const { interactionId: id, hash } = await ask("other", 7);
  const place = cliPlace();
  const flags = ["--serve-inbox", "--approve", "--link", await link("reviewer")];
  const { client } = startMcp(place, ["--url", server.url, ...flags]);
  await handshake(client);
  const answer = client.call("inbox_approve", { id, hash });
  const form = await formOf(client);
  expect(form.message).toContain("billing.refund");
  expect(form.message).toContain('{"cents":7}');
  expect(form.message).toContain(hash);
  form.answer(accepted(hash));
  expect(await answer).toMatchObject({ isError: false });
  const again = client.call("inbox_approve", { id, hash });
  await Promise.race([again, formOf(client).then(({ answer: say }) => say(accepted(hash)))]);
  expect((await again).isError).toBe(true);
  expect(ran).toEqual([7]);
});
