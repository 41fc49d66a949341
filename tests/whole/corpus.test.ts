// Rows of the regression corpus that need more than one way in: transports, sockets, streams, and whose hand an approver is.

import { connect as connectSocket } from "node:net";
import { type GatePolicy, isSallyportError } from "sallyport";
import { createClient } from "sallyport/client";
import { expect, test, vi } from "vitest";
import { main } from "../../src/cli/main.ts";
import { child, codes, openBox, put, startRun } from "../delegation/port-delegation.ts";
import { credentials, type HttpWorld, openHttp, raw } from "../http/http-world.ts";
import { CONSENT } from "../support/odd-calls.ts";
import { openGate, request, rules } from "../support/port-world.ts";

const SET = { tool: "world.set", input: { key: "a", value: 1 } } as const;
const allowSet = rules({ id: "set", effect: "allow", tool: "world.set", reason: "a test" });

/** Each way an agent reaches the gate; all of them lead to one effect. */
const TRANSPORTS: Readonly<Record<string, (world: HttpWorld) => Promise<string>>> = {
  async library({ gates }) {
    const session = gates.acme.sessions.open({ agent: "agent:one" });
    return (await session.call(request(SET.tool, SET.input))).answer;
  },
  async HTTP(world) {
    const agent = await world.client("acme", "agent");
    const { id } = await agent.sessions.open({});
    return (await agent.sessions.call({ id, callId: "c", ...SET })).answer;
  },
  async "HTTP, several in one request"(world) {
    const agent = await world.client("acme", "agent");
    const { id } = await agent.sessions.open({});
    const { results } = await agent.sessions.callAll({ id, calls: [{ callId: "c", ...SET }] });
    return results[0]?.answer.answer ?? "nothing";
  },
  async "command line"(world) {
    const agent = await world.client("acme", "agent");
    const { id } = await agent.sessions.open({});
    const token = await world.pass("acme", "agent");
    const said: string[] = [];
    const out = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
      said.push(String(text));
      return true;
    });
    try {
      const how = ["--json", "--url", world.server.url, "--token", token];
      const what = ["--call-id", "c", "--tool", SET.tool, "--input", JSON.stringify(SET.input)];
      await main([...how, "sessions", "call", id, ...what]);
    } finally {
      out.mockRestore();
    }
    return (JSON.parse(said.join("")) as { answer: string }).answer;
  },
};

/** A policy that counts who comes by, and can be closed at any moment. */
function openDoor() {
  const seen: string[] = [];
  const state = { closed: false };
  const door: GatePolicy = {
    name: "door",
    points: ["pre-tool"],
    check({ tool = "" }) {
      seen.push(tool);
      const message = "closed today";
      return state.closed ? [{ severity: "hard-deny", policy: "door", message }] : [];
    },
  };
  return { seen, state, door };
}

test.each(Object.keys(TRANSPORTS))("%s: the same gate, open and closed [R3]", async (name) => {
  const { seen, state, door } = openDoor();
  const world = await openHttp({ port: { policy: allowSet, gatePolicies: [door] } });
  const go = TRANSPORTS[name] as (typeof TRANSPORTS)[string];
  for (const closed of [true, false]) {
    state.closed = closed;
    const before = seen.length;
    expect(await go(world)).toBe(closed ? "denied" : "done");
    expect(seen.length, "asked for this very call").toBeGreaterThan(before);
    expect(world.worlds.acme.effects).toHaveLength(closed ? 0 : 1);
  }
});

test("sub-agent: the same gate, open and closed [R3]", async () => {
  const { seen, state, door } = openDoor();
  const { gate, effects } = openBox({ gatePolicies: [door] });
  const { session: lead } = await startRun(gate, ["a"]);
  const { session } = await child(gate, lead, codes());
  for (const closed of [true, false]) {
    state.closed = closed;
    const before = seen.length;
    expect((await session.call(put("a"))).answer).toBe(closed ? "denied" : "done");
    expect(seen.length).toBeGreaterThan(before);
    expect(effects).toHaveLength(closed ? 0 : 1);
  }
});

test("over HTTP no field, header, query or _meta counts as consent [R1]", async () => {
  const world = await openHttp();
  const agent = await world.client("acme", "agent");
  const { id } = await agent.sessions.open({});
  const token = await world.pass("acme", "agent");
  const at = `${world.server.url}/v1/sessions/${id}/calls`;
  let pending = 0;
  let refused = 0;
  for (const [index, [name, value]] of Object.entries(CONSENT).entries()) {
    const field = { [name]: value };
    const call = { callId: `c-${index}`, tool: "world.blind", input: { key: "a" } };
    const ways: readonly {
      readonly url?: string;
      readonly body: object;
      readonly headers?: object;
    }[] = [
      { body: { ...call, ...field } },
      { body: { ...call, _meta: field } },
      { body: { ...call, input: { ...call.input, ...field, nested: [{ _meta: field }] } } },
      { body: call, headers: { [headerOf(name)]: "true", "x-approved-by": "person:ada" } },
      { url: `${at}?${encodeURIComponent(name)}=true`, body: call },
    ];
    for (const { url = at, body, headers = {} } of ways) {
      const sent = await raw(url, {
        method: "POST",
        headers: { ...credentials(token), ...(headers as Record<string, string>) },
        body: JSON.stringify(body),
      });
      if (sent.status === 200) {
        expect(JSON.parse(sent.text), name).toMatchObject({ answer: "pending" });
        pending += 1;
      } else {
        expect(sent.status, `${name}: ${sent.text}`).toBe(422);
        refused += 1;
      }
    }
  }
  expect(pending, "void: nothing was asked for").toBeGreaterThan(40);
  expect(refused, "void: no strange field was sent").toBeGreaterThan(20);
  expect(world.worlds.acme.effects).toEqual([]);
});

function headerOf(name: string): string {
  return `x-${name.toLowerCase().replaceAll(/[^a-z-]/g, "-")}`;
}

test("over HTTP pending questions survive a loss of every connection and can be answered [R11]", async () => {
  const world = await openHttp();
  const agent = await world.client("acme", "agent");
  const reviewer = await world.client("acme", "reviewer");
  const { id } = await agent.sessions.open({});
  for (let n = 0; n < 5; n += 1) {
    await agent.sessions.call({
      id,
      callId: `c-${n}`,
      tool: "world.set",
      input: { key: `k${n}`, value: n },
    });
  }
  const before = await world.gates.acme.interactions.list();
  expect(before).toHaveLength(5);
  const { hostname, port } = new URL(world.server.url);
  const tokens = [await world.pass("acme", "agent"), await world.pass("acme", "reviewer")];
  // Streams that listen, requests that are half sent, and approvals cut off before their answer is read.
  for (let times = 0; times < 3; times += 1) {
    const lines = tokens.flatMap((token) => [
      `GET /v1/events HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`,
      `POST /v1/sessions/${id}/calls HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"callId":`,
    ]);
    const sockets = await Promise.all(lines.map((text) => sent(Number(port), hostname, text)));
    for (const socket of sockets) socket.resetAndDestroy();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await world.gates.acme.interactions.list()).toEqual(before);
  }
  expect(world.worlds.acme.effects).toEqual([]);
  for (const { id: question, hash } of before)
    await reviewer.interactions.approve({ id: question, hash });
  expect(world.worlds.acme.effects).toHaveLength(5);
});

function sent(port: number, host: string, text: string) {
  const socket = connectSocket(port, host);
  socket.on("error", () => {});
  return new Promise<typeof socket>((resolve) => {
    socket.once("connect", () => socket.write(text, () => resolve(socket)));
  });
}

test("a requester and its automation cannot approve each other's requests [R19]", async () => {
  const people = [
    { id: "person:cider", agents: ["agent:author", "bot:workflow"] },
    // On the list by itself, and still the automation of a requester.
    { id: "bot:workflow" },
    { id: "person:ada" },
  ];
  const { gate, effects } = openGate({ people });
  const askers = [
    { agent: "agent:author" },
    { agent: "agent:other", owner: "person:cider" },
    { agent: "bot:workflow" },
    { agent: "agent:other", delegatedBy: ["agent:author"] },
  ];
  let refused = 0;
  for (const asker of askers) {
    const answer = await gate.sessions.open(asker).call(request("world.blind", { key: "a" }));
    const id = answer.answer === "pending" ? answer.interactionId : "";
    const { hash } = await gate.interactions.get(id);
    for (const by of [
      "person:cider",
      "bot:workflow",
      "agent:author",
      "BOT:Workflow",
      "bot:unknown",
    ]) {
      const approved = gate.interactions.approve(id, { hash, by });
      await expect(approved, `${JSON.stringify(asker)} by ${by}`).rejects.toMatchObject({
        code: "not_allowed",
      });
      await expect(
        gate.interactions.edit(id, { hash, by, inputs: { 0: {} } }),
      ).rejects.toMatchObject({ code: "not_allowed" });
      refused += 2;
    }
    expect(effects).toEqual([]);
    expect(await gate.interactions.get(id)).toMatchObject({ status: "open", votes: [] });
  }
  expect(refused).toBe(40);
  const [first] = await gate.interactions.list();
  await gate.interactions.approve(first?.id ?? "", { hash: first?.hash ?? "", by: "person:ada" });
  expect(effects).toHaveLength(1);
});

test("over HTTP an identity that acts for another gets no right to approve [R19]", async () => {
  const world = await openHttp();
  const admin = await world.client("acme", "admin");
  for (const role of ["reviewer", "operator", "admin", "auditor"] as const) {
    const made = admin.tokens.make({
      subject: "bot:workflow",
      roles: [role as "auditor"],
      owner: "person:cider",
    });
    await expect(made, role).rejects.toMatchObject({ code: "invalid_input" });
    const own = world.server.makeToken({
      subject: "bot:workflow",
      roles: [role],
      owner: "person:cider",
    });
    expect(
      isSallyportError(await own.catch((error: unknown) => error), "invalid_input"),
      role,
    ).toBe(true);
  }
  const made = await admin.tokens.make({
    subject: "bot:workflow",
    roles: ["agent"],
    owner: "person:cider",
  });
  const bot = createClient({ url: world.server.url, token: made.secret });
  const { id } = await bot.sessions.open({});
  const asked = await bot.sessions.call({ id, callId: "c", ...SET });
  const question = asked.answer === "pending" ? asked.interactionId : "";
  const { hash } = await world.gates.acme.interactions.get(question);
  await expect(bot.interactions.approve({ id: question, hash })).rejects.toMatchObject({
    code: "not_allowed",
  });
  const cider = await world.client("acme", "reviewer", "person:cider");
  await expect(cider.interactions.approve({ id: question, hash })).rejects.toMatchObject({
    code: "not_allowed",
  });
  expect(world.worlds.acme.effects).toEqual([]);
});

test("a valid token of another tenant gets nothing of this one from any stream, live or stored [R29]", async () => {
  const world = await openHttp();
  const agent = await world.client("acme", "agent", "agent:canary-acme");
  const { id } = await agent.sessions.open({});
  const make = (n: number) => agent.sessions.call({ id, callId: `canary-acme-${n}`, ...SET });
  await make(0);
  const heads = await world.store.tenant("acme").audit.head();
  for (const role of ["agent", "reviewer", "operator", "auditor", "admin"] as const) {
    const headers = credentials(await world.pass("bolt", role));
    const exported = await raw(`${world.server.url}/v1/audit/export`, { headers });
    expect(exported.text, role).not.toContain("canary-acme");
    for (const query of [
      "",
      "?after=0",
      `?session=${id}`,
      `?after=${heads.seq - 1}`,
      "?tenant=acme",
    ]) {
      const stop = new AbortController();
      const signal = stop.signal;
      const answer = await fetch(`${world.server.url}/v1/events${query}`, {
        headers: { ...headers, "x-tenant": "acme" },
        signal,
      });
      const heard: string[] = [];
      const reading = (async () => {
        for await (const piece of answer.body ?? []) heard.push(new TextDecoder().decode(piece));
      })().catch(() => {});
      await make(heard.length + 1);
      await new Promise((resolve) => setTimeout(resolve, 15));
      stop.abort();
      await reading;
      // An id that was sent in the query may come back in a refusal; nothing else of it may.
      expect(heard.join("").replaceAll(id, ""), `${role} ${query}`).not.toContain("canary-acme");
    }
  }
});
