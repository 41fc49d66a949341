// R13 to R15 and R20 on the server's side: what a screen shows is what the store says, however the line behaves.

import { expect, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { createServer } from "../../src/http/index.ts";
import { clientOf, credentials, type HttpWorld, newSession, openHttp, raw } from "./http-world.ts";

async function asked(world: HttpWorld, count: number) {
  const agent = await world.client("acme", "agent");
  const { id } = await agent.sessions.open({});
  const questions: { id: string; hash: string; decisionId: string }[] = [];
  for (let i = 0; i < count; i += 1) {
    const input = { key: `k${i}`, value: i };
    const answer = await agent.sessions.call({ id, callId: `c-${i}`, tool: "world.set", input });
    if (answer.answer !== "pending") throw new Error(answer.text);
    const { hash } = await world.gates.acme.interactions.get(answer.interactionId);
    questions.push({ id: answer.interactionId, hash, decisionId: answer.decisionId });
  }
  return questions;
}

test("an approval whose response is lost stays in the list until it is stored, and its repetition gets the answer [R13]", async () => {
  const world = await openHttp();
  const [question] = await asked(world, 1);
  const token = await world.pass("acme", "reviewer");
  let lost = 0;
  // The line breaks before the request leaves, then right after the server has done it, then it holds.
  const lossy: typeof fetch = async (...request) => {
    const isApproval = String(request[0]).endsWith("/approve");
    if (isApproval && lost === 0) {
      lost += 1;
      throw new TypeError("the line broke before");
    }
    const response = await fetch(...request);
    if (isApproval && lost === 1) {
      lost += 1;
      throw new TypeError("the line broke after");
    }
    return response;
  };
  const reviewer = clientOf(world.server.url, token, { fetch: lossy });
  const done = await reviewer.interactions.approve({ id: question!.id, hash: question!.hash });
  expect(lost).toBe(2);
  expect(done.answers).toMatchObject([{ answer: "done" }]);
  expect(world.worlds.acme.effects).toHaveLength(1);
  expect((await reviewer.interactions.list()).items).toEqual([]);
});

test("a refused approval leaves the question in the list [R13]", async () => {
  const world = await openHttp();
  const [question] = await asked(world, 1);
  const reviewer = await world.client("acme", "reviewer");
  const wrong = reviewer.interactions.approve({ id: question!.id, hash: "0".repeat(64) });
  await expect(wrong).rejects.toMatchObject({ code: "approval_void" });
  expect((await reviewer.interactions.list()).items.map(({ id }) => id)).toEqual([question!.id]);
  expect(world.worlds.acme.effects).toEqual([]);
});

test("a new client gets the whole list, page by page, each question once, and then what is new [R14]", async () => {
  const world = await openHttp();
  const questions = await asked(world, 23);
  const reviewer = await world.client("acme", "reviewer");
  const { seq } = await reviewer.audit.head();
  const seen: string[] = [];
  for await (const { id } of reviewer.all((cursor) =>
    reviewer.interactions.list({ limit: 5, ...(cursor === undefined ? {} : { cursor }) }),
  )) {
    seen.push(id);
    // New questions arrive between the pages.
    if (seen.length === 7) await asked(world, 2);
  }
  expect(seen.slice(0, 23)).toEqual(questions.map(({ id }) => id));
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen).toHaveLength(25);
  const stop = new AbortController();
  const seenInFeed: string[] = [];
  for await (const event of reviewer.events({ after: seq, signal: stop.signal })) {
    if (event.type === "interaction.opened") seenInFeed.push(event.subject);
    if (seenInFeed.length === 2) break;
  }
  stop.abort();
  expect(seenInFeed).toEqual(seen.slice(23));
});

test("two concurrent approvals: it runs once, and the second learns who was first [R15]", async () => {
  const world = await openHttp();
  const questions = await asked(world, 5);
  const [one, two] = await Promise.all([
    world.client("acme", "reviewer", "person:ada"),
    world.client("acme", "reviewer", "person:bob"),
  ]);
  for (const { id, hash } of questions) {
    const results = await Promise.allSettled([
      one.interactions.approve({ id, hash }),
      two.interactions.approve({ id, hash }),
    ]);
    const refused = results.filter((result) => result.status === "rejected");
    expect(refused).toHaveLength(1);
    expect(refused[0]?.reason).toMatchObject({ code: "already_answered" });
  }
  expect(world.worlds.acme.effects).toHaveLength(5);
  // The same surface again, with the same key: the same answer.
  const [late] = await asked(world, 1);
  const body = { id: late!.id, hash: late!.hash };
  const first = await one.interactions.approve(body, { idempotencyKey: "click-1" });
  const again = await one.interactions.approve(body, { idempotencyKey: "click-1" });
  expect(again).toEqual(first);
  expect(world.worlds.acme.effects).toHaveLength(6);
});

test("after each click every surface shows what the store says [R20]", async () => {
  const world = await openHttp();
  const questions = await asked(world, 4);
  const second = await createServer({ store: world.store, gates: world.gates });
  try {
    const person = { tenant: "acme", subject: "person:reviewer", roles: ["reviewer"] } as const;
    const [here, there] = [
      clientOf(world.server.url, await newSession(world.server, person)),
      clientOf(second.url, await newSession(second, person)),
    ];
    const clicks = [
      (q: { id: string; hash: string }) => here.interactions.approve(q),
      (q: { id: string; hash: string }) => there.interactions.reject({ ...q, reason: "no" }),
      (q: { id: string; hash: string }) => here.interactions.reject(q),
      (q: { id: string; hash: string }) => there.interactions.approve(q),
    ];
    for (const [index, click] of clicks.entries()) {
      const { id, hash, decisionId } = questions[index]!;
      await click({ id, hash });
      const stored = await world.store.tenant("acme").interactions.get(id);
      const { state } = await world.store.tenant("acme").decisions.get(decisionId);
      for (const surface of [here, there]) {
        expect(await surface.interactions.get({ id })).toMatchObject({
          status: stored.status,
          outcome: stored.outcome,
        });
        expect(await surface.decisions.get({ id: decisionId })).toMatchObject({ state });
        const { items } = await surface.interactions.list();
        expect(items.map((item) => item.id)).toEqual(
          questions.slice(index + 1).map((item) => item.id),
        );
      }
    }
  } finally {
    await second.close();
  }
});

test("no agent's token approves, by any path, body or header [R1 R18 T6]", async () => {
  const world = await openHttp();
  const [question] = await asked(world, 1);
  const { id, hash } = question!;
  const tokens = [
    await world.pass("acme", "agent"),
    await world.pass("acme", "agent", "agent:other"),
  ];
  const verbs = [
    "approve",
    "reject",
    "edit",
    "answer",
    "settle",
    "hand-over",
    "ask-back",
    "cancel",
  ];
  const tricks: Record<string, string>[] = [
    {},
    { "x-role": "reviewer" },
    { "x-sallyport-role": "reviewer", "x-sallyport-subject": "person:ada" },
    { "x-forwarded-user": "person:ada" },
    { "x-http-method-override": "POST" },
    { cookie: "sallyport=1" },
    { "x-original-url": `/v1/interactions/${id}/approve` },
  ];
  let tried = 0;
  for (const token of tokens) {
    for (const verb of verbs) {
      for (const trick of tricks) {
        for (const extra of [{}, { by: "person:ada" }, { approved: true, role: "reviewer" }]) {
          const body = JSON.stringify({
            hash,
            inputs: {},
            answer: "yes",
            happened: true,
            to: "x",
            text: "x",
            reason: "x",
            ...extra,
          });
          const headers = { ...credentials(token), ...trick };
          const { status } = await raw(`${world.server.url}/v1/interactions/${id}/${verb}`, {
            method: "POST",
            headers,
            body,
          });
          tried += 1;
          expect(status).toBe(403);
        }
      }
    }
    const batch = {
      method: "POST",
      headers: credentials(token),
      body: JSON.stringify({ items: [{ id, hash }] }),
    };
    expect((await raw(`${world.server.url}/v1/interactions/approve-batch`, batch)).status).toBe(
      403,
    );
  }
  expect(tried).toBeGreaterThan(300);
  expect(world.worlds.acme.effects).toEqual([]);
});

test("no one approves their own request or their agent's; the name comes from the token alone", async () => {
  const world = await openHttp();
  const agentToken = await world.server.makeToken({
    subject: "agent:bobs",
    roles: ["agent"],
    owner: "person:bob",
  });
  const agent = createClient({ url: world.server.url, token: agentToken });
  const { id } = await agent.sessions.open({});
  const answer = await agent.sessions.call({
    id,
    callId: "c",
    tool: "world.set",
    input: { key: "a", value: 1 },
  });
  if (answer.answer !== "pending") throw new Error(answer.text);
  const { hash } = await world.gates.acme.interactions.get(answer.interactionId);
  const bob = await world.client("acme", "reviewer", "person:bob");
  await expect(bob.interactions.approve({ id: answer.interactionId, hash })).rejects.toMatchObject({
    code: "not_allowed",
  });
  const named = await raw(`${world.server.url}/v1/interactions/${answer.interactionId}/approve`, {
    method: "POST",
    headers: credentials(await world.pass("acme", "reviewer", "person:bob")),
    body: JSON.stringify({ hash, by: "person:ada" }),
  });
  expect(named.status).toBe(422);
  const ada = await world.client("acme", "reviewer", "person:ada");
  const done = await ada.interactions.approve({ id: answer.interactionId, hash });
  expect(done.interaction.answeredBy).toBe("person:ada");
});

test("the id in the path counts: another in the body is refused", async () => {
  const world = await openHttp();
  const [one, two] = await asked(world, 2);
  const headers = credentials(await world.pass("acme", "reviewer"));
  const body = JSON.stringify({ id: two!.id, hash: one!.hash });
  const sent = await raw(`${world.server.url}/v1/interactions/${one!.id}/approve`, {
    method: "POST",
    headers,
    body,
  });
  expect(sent.status).toBe(422);
  expect(world.worlds.acme.effects).toEqual([]);
});

test("a batch decides exactly the listed items, with a veto for each", async () => {
  const world = await openHttp();
  const questions = await asked(world, 4);
  const reviewer = await world.client("acme", "reviewer");
  const [a, b, c] = questions;
  const { items } = await reviewer.interactions.approveBatch({
    items: [a!, b!, { ...c!, hash: "0".repeat(64) }].map(({ id, hash }) => ({ id, hash })),
    veto: [b!.id],
  });
  expect(items.map(({ outcome }) => outcome)).toEqual(["approved", "rejected", "refused"]);
  expect(world.worlds.acme.effects).toHaveLength(1);
  expect((await reviewer.interactions.list()).items).toHaveLength(2);
});

test("an edit is shown again and runs only after that is approved", async () => {
  const world = await openHttp({
    port: { review: [{ requires: [{ name: "review", count: 1 }], editorMayApprove: true }] },
  });
  const [question] = await asked(world, 1);
  const reviewer = await world.client("acme", "reviewer");
  const { id, hash } = question!;
  const bad = await reviewer.interactions.edit({ id, hash, inputs: { "0": { key: 1 } } });
  expect(bad).toMatchObject({ edited: false });
  const edited = await reviewer.interactions.edit({
    id,
    hash,
    inputs: { "0": { key: "z", value: 9 } },
  });
  if (!edited.edited) throw new Error(edited.text);
  expect(world.worlds.acme.effects).toEqual([]);
  const { interaction } = edited;
  const done = await reviewer.interactions.approve({ id: interaction.id, hash: interaction.hash });
  expect(done.answers).toMatchObject([{ answer: "done" }]);
  expect(world.worlds.acme.values.get("z")).toBe(9);
});

test("a question of an agent is answered, and the agent finds the answer; reviewers may ask back", async () => {
  const world = await openHttp();
  const agent = await world.client("acme", "agent");
  const reviewer = await world.client("acme", "reviewer");
  const { id } = await agent.sessions.open({ id: "run" });
  expect(id).toBe("agent:one:run");
  const first = await agent.sessions.ask({
    id,
    callId: "q-1",
    text: "Which carrier?",
    choices: ["north", "south"],
  });
  expect(first.answer).toBe("pending");
  const [question] = (await reviewer.interactions.list()).items;
  await reviewer.interactions.askBack({ id: question!.id, text: "What is in it?" });
  const [back] = (await agent.sessions.askedBack({ id })).items;
  expect(back?.remarks.at(-1)).toMatchObject({ text: "What is in it?" });
  await agent.sessions.reply({ id, interactionId: question!.id, text: "Books." });
  const wrong = reviewer.interactions.answer({
    id: question!.id,
    hash: question!.hash,
    answer: "west",
  });
  await expect(wrong).rejects.toMatchObject({ code: "invalid_input" });
  await reviewer.interactions.answer({ id: question!.id, hash: question!.hash, answer: "north" });
  const again = await agent.sessions.ask({
    id,
    callId: "q-1",
    text: "Which carrier?",
    choices: ["north", "south"],
  });
  expect(again).toMatchObject({ answer: "answered", value: "north" });
});
