// H3: no one can act as another person. Programs get tokens, people sign in, and where there are two admins, an invitation
// needs both.

import { expect, test } from "vitest";
import { type Client, createClient, signIn } from "../../src/client/index.ts";
import { manualClock } from "../../src/util/clock.ts";
import { clientOf, type HttpWorld, newSession, openHttp } from "./http-world.ts";

async function code(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error === undefined ? "done" : String((error as { code?: unknown }).code);
}

async function admins(world: HttpWorld, ...names: readonly string[]): Promise<readonly Client[]> {
  const made: Client[] = [];
  for (const name of names) made.push(await world.client("acme", "admin", name));
  return made;
}

async function question(world: HttpWorld, tool = "world.set") {
  const agent = await world.client("acme", "agent");
  const { id: session } = await agent.sessions.open({});
  const input = { key: "a", value: 1 };
  const asked = await agent.sessions.call({ id: session, callId: "c", tool, input });
  if (asked.answer !== "pending") throw new Error(asked.text);
  const { hash } = await world.gates.acme.interactions.get(asked.interactionId);
  return { id: asked.interactionId, hash };
}

test("an admin makes tokens for programs only: no role of people, no person's name in any spelling [H3]", async () => {
  const world = await openHttp({ port: { people: [{ id: "listed" }] } });
  const [mallory] = await admins(world, "person:mallory");
  await world.client("acme", "reviewer", "ben");
  for (const role of ["reviewer", "operator", "admin", "local"]) {
    const made = mallory!.tokens.make({ subject: "agent:x", roles: [role as "agent"] });
    expect(await code(made), role).toBe("invalid_input");
  }
  const people = [
    "person:mallory",
    "Person:Mallory",
    "person:new",
    "PERSON :new",
    "per\u200bson:new",
    "ben",
    "BEN",
    "b\u200ben",
    "listed",
    "Listed ",
  ];
  for (const subject of people) {
    for (const role of ["agent", "auditor"] as const) {
      const made = mallory!.tokens.make({ subject, roles: [role] });
      expect(await code(made), subject).toBe("not_allowed");
    }
  }
  expect(await code(mallory!.tokens.make({ subject: "agent:x", roles: ["agent"] }))).toBe("done");
});

test("a bearer token neither approves, rejects, votes, settles, grants, proposes nor administers, whatever its roles [H3]", async () => {
  const world = await openHttp();
  const { id, hash } = await question(world);
  const token = await world.server.makeToken({
    subject: "person:ben",
    roles: ["reviewer", "operator", "admin"],
  });
  const puppet = createClient({ url: world.server.url, token });
  const { seq } = await world.store.tenant("acme").audit.head();
  const finding = { policy: "p", message: "m" };
  const rule = { tool: "world.set", pattern: { key: { any: true } }, reason: "r", forMs: 60_000 };
  const tries: readonly (() => Promise<unknown>)[] = [
    () => puppet.interactions.approve({ id, hash }),
    () => puppet.interactions.approveBatch({ items: [{ id, hash }] }),
    () => puppet.interactions.reject({ id, hash }),
    () => puppet.interactions.edit({ id, hash, inputs: {} }),
    () => puppet.interactions.settle({ id, hash, happened: true }),
    () => puppet.interactions.answer({ id, hash, answer: "x" }),
    () => puppet.interactions.handOver({ id, to: "person:eve" }),
    () => puppet.interactions.cancel({ id, reason: "x" }),
    () => puppet.interactions.askBack({ id, text: "x" }),
    () => puppet.grants.give({ sessionId: "s", finding, reason: "x" }),
    () => puppet.standingRules.propose(rule),
    () => puppet.standingRules.confirm({ id: "x" }),
    () => puppet.reviewers.restore({ id: "x", reason: "x" }),
    () => puppet.tokens.make({ subject: "agent:x", roles: ["agent"] }),
    () => puppet.tokens.list(),
    () => puppet.people.invite({ subject: "person:eve", roles: ["admin"] }),
    () => puppet.people.confirm({ id: "x" }),
    () => puppet.me.link(),
  ];
  for (const one of tries) expect(await code(one()), String(one)).toBe("not_allowed");
  await expect(puppet.interactions.approve({ id, hash })).rejects.toThrow(/--link/);
  expect((await world.store.tenant("acme").audit.head()).seq).toBe(seq);
  expect(world.worlds.acme.effects).toEqual([]);
  // It still stops, resumes and reads.
  expect(await puppet.switch.stop({ reason: "drill" })).toEqual({ stopped: true });
  expect(await puppet.switch.resume({ reason: "over" })).toEqual({ stopped: false });
});

test("with one admin an invitation is a link; a person who is known already is not invited again [H3]", async () => {
  const world = await openHttp();
  const [ada] = await admins(world, "person:ada");
  const invited = await ada!.people.invite({ subject: "person:ben", roles: ["reviewer"] });
  if (invited.state !== "ready") throw new Error("it waits");
  const { url, session } = await signIn({ link: invited.link });
  const ben = createClient({ url, session });
  expect(await ben.me.get()).toMatchObject({ subject: "person:ben", roles: ["reviewer"] });
  for (const subject of [
    "person:ben",
    "Person:Ben",
    "person:ben\u200b",
    "person:ada",
    "PERSON:ADA",
  ]) {
    const again = ada!.people.invite({ subject, roles: ["admin"] });
    expect(await code(again), subject).toBe("not_allowed");
  }
  await world.client("acme", "agent");
  const program = ada!.people.invite({ subject: "Agent:One", roles: ["reviewer"] });
  expect(await code(program)).toBe("not_allowed");
});

test("an admin alone adds no second admin, and so signs in neither as a known nor as a listed person [H3]", async () => {
  const world = await openHttp({ port: { people: [{ id: "person:listed" }] } });
  const [mallory] = await admins(world, "person:mallory");
  await world.client("acme", "reviewer", "person:ben");
  for (const roles of [["admin"], ["reviewer", "operator", "admin"]] as const) {
    const puppet = mallory!.people.invite({ subject: "person:puppet", roles: [...roles] });
    await expect(puppet).rejects.toMatchObject({ code: "not_allowed", details: { what: "roles" } });
  }
  for (const subject of ["person:listed", "person:ben"]) {
    const again = mallory!.people.invite({ subject, roles: ["reviewer"] });
    expect(await code(again), subject).toBe("not_allowed");
  }
  // The server's operator lets the second one in; then it takes both.
  await admins(world, "person:ada");
  const invited = await mallory!.people.invite({ subject: "person:third", roles: ["admin"] });
  expect(invited.state).toBe("waits");
});

test("with two admins neither of them alone can sign in as the person they invite [H3]", async () => {
  const world = await openHttp();
  const [ada, ben] = await admins(world, "person:ada", "person:ben");
  const invited = await ada!.people.invite({ subject: "person:cyn", roles: ["reviewer"] });
  if (invited.state !== "waits") throw new Error("one admin was enough");
  const { id, code: half } = invited;
  // The inviter does not confirm, under another spelling either, and the invited person does not.
  expect(await code(ada!.people.confirm({ id }))).toBe("not_allowed");
  const twin = await world.client("acme", "admin", "Person:Ada");
  expect(await code(twin.people.confirm({ id }))).toBe("not_allowed");
  expect(
    await code((await world.client("acme", "admin", "PERSON:cyn")).people.confirm({ id })),
  ).toBe("not_allowed");
  expect((await ada!.people.list()).items).toMatchObject([
    { id, subject: "person:cyn", invitedBy: "person:ada", isOpen: true },
  ]);
  const { link } = await ben!.people.confirm({ id });
  expect(await code(ben!.people.confirm({ id }))).toBe("illegal_transition");
  // The link without the code, with another code; the code alone is no link.
  expect(await code(signIn({ link }))).toBe("unauthenticated");
  expect(await code(signIn({ link, code: "ABCD-EFGH-JKMN" }))).toBe("unauthenticated");
  const { url, session } = await signIn({ link, code: half.toLowerCase().replaceAll("-", " ") });
  const cyn = createClient({ url, session });
  expect(await cyn.me.get()).toMatchObject({ subject: "person:cyn", roles: ["reviewer"] });
  expect(await code(signIn({ link, code: half }))).toBe("unauthenticated");
  const listed = JSON.stringify([
    await ada!.people.list(),
    await ada!.tokens.list({ kind: "link" }),
    await ada!.audit.entries({ limit: 500 }),
  ]);
  expect(listed).not.toContain(half);
});

test("a known person is invited again by two admins, and is signed out everywhere first [H3]", async () => {
  const world = await openHttp();
  const [ada, ben] = await admins(world, "person:ada", "person:ben");
  const before = await world.client("acme", "reviewer", "person:cyn");
  const unused = await before.me.link();
  const invited = await ada!.people.invite({ subject: "person:cyn", roles: ["operator"] });
  if (invited.state !== "waits") throw new Error("one admin was enough");
  expect(await before.me.get()).toMatchObject({ subject: "person:cyn" });
  const { link, ended } = await ben!.people.confirm({ id: invited.id });
  expect(ended).toBe(2);
  expect(await code(before.me.get())).toBe("unauthenticated");
  expect(await code(signIn({ link: unused.link }))).toBe("unauthenticated");
  const { url, session } = await signIn({ link, code: invited.code });
  const now = await createClient({ url, session }).me.get();
  expect(now).toMatchObject({ subject: "person:cyn", roles: ["operator"] });
  const { items } = await ada!.audit.entries({ limit: 500 });
  const why = items.filter(({ type }) => type === "token.ended").map(({ data }) => data);
  expect(why.filter((data) => JSON.stringify(data).includes("invited again"))).toHaveLength(2);
});

test("ending the other admin's sessions does not make an admin the only one [H3]", async () => {
  const world = await openHttp();
  const [ada] = await admins(world, "person:ada", "person:ben");
  for (const { id, subject } of (await ada!.tokens.list({ kind: "session" })).items) {
    if (subject === "person:ben") await ada!.tokens.revoke({ id });
  }
  const invited = await ada!.people.invite({ subject: "person:puppet", roles: ["admin"] });
  expect(invited.state).toBe("waits");
});

test("a person makes sign-in links only for themselves [H3]", async () => {
  const world = await openHttp();
  const ben = await world.client("acme", "reviewer", "person:ben");
  const { link } = await ben.me.link();
  const { url, session } = await signIn({ link });
  const there = createClient({ url, session });
  expect(await there.me.get()).toMatchObject({ subject: "person:ben", roles: ["reviewer"] });
  expect(await code(ben.me.link({ subject: "person:ada" } as never))).toBe("invalid_input");
  // With the same key the link is not shown again.
  const how = { idempotencyKey: "k" };
  expect((await ben.me.link({}, how)).link).not.toBe("");
  expect((await ben.me.link({}, how)).link).toBe("");
});

test("one admin cannot be both of two approvers, nor confirm their own rule [H3]", async () => {
  const world = await openHttp({
    port: {
      people: ["ada", "ben", "cyn", "mallory"].map((name) => ({ id: `person:${name}` })),
    },
  });
  const mallory = clientOf(
    world.server.url,
    await newSession(world.server, { subject: "person:mallory", roles: ["reviewer", "admin"] }),
  );
  const { id, hash } = await question(world);
  for (const subject of ["person:ben", "person:cyn"]) {
    const roles = ["reviewer"] as const;
    expect(await code(mallory.tokens.make({ subject, roles: roles as never }))).not.toBe("done");
    expect(await code(mallory.people.invite({ subject, roles: [...roles] }))).toBe("not_allowed");
  }
  expect((await world.gates.acme.interactions.get(id)).votes).toEqual([]);
  expect(hash).not.toBe("");
});

const MINUTE = 60_000;

test("fifteen minutes after signing in, irreversible approvals, rules and administration need a new sign-in; the rest still works [L3]", async () => {
  const clock = manualClock(Date.parse("2026-11-16T08:00:00.000Z"));
  const world = await openHttp({ clock });
  const person = {
    tenant: "acme",
    subject: "person:ada",
    roles: ["reviewer", "operator", "admin"],
  } as const;
  const ada = clientOf(world.server.url, await newSession(world.server, person));
  const undoable = await question(world);
  const forGood = await question(world, "world.blind");
  clock.advance(15 * MINUTE + 1);
  const stale = [
    () => ada.interactions.approve(forGood),
    () => ada.interactions.approveBatch({ items: [undoable, forGood] }),
    () => ada.interactions.settle({ ...forGood, happened: false, otherwise: "repeat" }),
    () =>
      ada.standingRules.propose({
        tool: "world.set",
        pattern: { key: { any: true } },
        reason: "r",
        forMs: MINUTE,
      }),
    () => ada.standingRules.confirm({ id: "x" }),
    () =>
      ada.grants.give({
        sessionId: "s",
        finding: { policy: "house", message: "no" },
        reason: "r",
      }),
    () => ada.tokens.make({ subject: "agent:x", roles: ["agent"] }),
    () => ada.people.invite({ subject: "person:new", roles: ["reviewer"] }),
    () => ada.me.link(),
  ];
  for (const [index, one] of stale.entries()) {
    await expect(one(), `${index}`).rejects.toMatchObject({
      code: "unauthenticated",
      details: { what: "freshness" },
    });
  }
  expect(world.worlds.acme.effects).toEqual([]);
  // Looking, a no, and a yes to what can be undone need a live session only.
  expect((await ada.interactions.list()).items).toHaveLength(2);
  const done = await ada.interactions.approve(undoable);
  expect(done.answers).toMatchObject([{ answer: "done" }]);
  const again = clientOf(world.server.url, await newSession(world.server, person));
  const { answers } = await again.interactions.approve(forGood);
  expect(answers).toMatchObject([{ answer: "done" }]);
});
