// Tokens of programs: how long they live, and how they are replaced without an interruption.

import { expect, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { memoryEngine } from "../../src/store/memory/index.ts";
import { manualClock } from "../../src/util/clock.ts";
import { systemRandom } from "../../src/util/random.ts";
import { openHttp } from "./http-world.ts";

const HOUR = 3_600_000;
const code = (work: Promise<unknown>) =>
  work.then(
    () => "done",
    (error: unknown) => String((error as { code?: unknown }).code),
  );

async function opened() {
  const clock = manualClock(Date.parse("2026-11-18T08:00:00.000Z"));
  const engine = memoryEngine({ clock, random: systemRandom });
  const world = await openHttp({
    engine,
    clock,
    server: { signIn: { tokenMs: 48 * HOUR, sessionMs: 1_000 * HOUR, freshMs: 1_000 * HOUR } },
  });
  const admin = await world.client("acme", "admin");
  const as = (token: string) => createClient({ url: world.server.url, token });
  return { ...world, clock, admin, as };
}

const AGENT = {
  subject: "agent:stock",
  roles: ["agent" as const],
  owner: "person:ada",
  note: "the stock bot",
  taskRoles: ["stock"],
};

test("a rotated token keeps its identity; the old secret works until the overlap is over [T19]", async () => {
  const { admin, as, clock } = await opened();
  const made = await admin.tokens.make({ ...AGENT, lifeMs: 24 * HOUR });
  const { token, secret } = await admin.tokens.rotate({
    id: made.token.id,
    overlapMs: HOUR,
    lifeMs: 24 * HOUR,
  });
  expect(token).toMatchObject({ ...AGENT, isLive: true, madeBy: "person:admin" });
  expect(token.id).not.toBe(made.token.id);
  for (const one of [made.secret, secret]) {
    expect(await as(one).me.get({})).toMatchObject({ subject: "agent:stock", roles: ["agent"] });
  }
  clock.advance(HOUR + 1);
  await expect.poll(() => code(as(made.secret).me.get({}))).toBe("unauthenticated");
  expect(await code(as(secret).me.get({}))).toBe("done");
  const { items } = await admin.audit.entries({ limit: 50 });
  const rotated = items.find(({ type }) => type === "token.rotated");
  expect(rotated).toMatchObject({
    subject: made.token.id,
    actor: "person:admin",
    data: JSON.stringify({ overlap_ms: HOUR }),
  });
  expect(JSON.stringify(items)).not.toContain(secret);
});

test("an overlap never lengthens the life of the old secret, and 0 ends it immediately", async () => {
  const { admin, as, clock } = await opened();
  const short = await admin.tokens.make({ ...AGENT, lifeMs: HOUR });
  await admin.tokens.rotate({ id: short.token.id, overlapMs: 5 * HOUR });
  clock.advance(HOUR + 1);
  await expect.poll(() => code(as(short.secret).me.get({}))).toBe("unauthenticated");
  const now = await admin.tokens.make(AGENT);
  await admin.tokens.rotate({ id: now.token.id, overlapMs: 0 });
  clock.advance(1);
  await expect.poll(() => code(as(now.secret).me.get({}))).toBe("unauthenticated");
});

test("only a live token of a program is rotated, by an admin who signed in", async () => {
  const { admin, as, clock, server, store } = await opened();
  const made = await admin.tokens.make(AGENT);
  expect(await code(as(made.secret).tokens.rotate({ id: made.token.id }))).toBe("not_allowed");
  const sessions = await admin.tokens.list({ kind: "session" });
  const own = sessions.items.at(-1)?.id ?? "";
  expect(await code(admin.tokens.rotate({ id: own }))).toBe("not_allowed");
  const local = await server.makeToken({ subject: "local:x", roles: ["local"] });
  const listed = await store.tenant("acme").tokens.list({ kind: "token", limit: 50 });
  const localId = listed.find(({ subject }) => subject === "local:x")?.id ?? "";
  expect([local === "", await code(admin.tokens.rotate({ id: localId }))]).toEqual([
    false,
    "not_allowed",
  ]);
  expect(await code(admin.tokens.rotate({ id: "tok_none" }))).toBe("not_found");
  await admin.tokens.revoke({ id: made.token.id });
  expect(await code(admin.tokens.rotate({ id: made.token.id }))).toBe("illegal_transition");
  const old = await admin.tokens.make({ ...AGENT, lifeMs: HOUR });
  clock.advance(HOUR + 1);
  expect(await code(admin.tokens.rotate({ id: old.token.id }))).toBe("illegal_transition");
});

test("http.signIn.tokenMs is the longest life of a token, made or rotated", async () => {
  const { admin } = await opened();
  expect(await code(admin.tokens.make({ ...AGENT, lifeMs: 49 * HOUR }))).toBe("invalid_input");
  const made = await admin.tokens.make({ ...AGENT, lifeMs: 48 * HOUR });
  const longer = admin.tokens.rotate({ id: made.token.id, lifeMs: 49 * HOUR });
  expect(await code(longer)).toBe("invalid_input");
  const { items } = await admin.tokens.list({});
  const { expiresAt = "", createdAt = "" } = items.find(({ id }) => id === made.token.id) ?? {};
  expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(48 * HOUR);
});

test("two rotations of one token at the same time: both new secrets work, and the old one ends once", async () => {
  const { admin, as } = await opened();
  const made = await admin.tokens.make({ ...AGENT, lifeMs: 24 * HOUR });
  const twice = await Promise.all(
    [1, 2].map(() => admin.tokens.rotate({ id: made.token.id, overlapMs: HOUR })),
  );
  for (const { secret } of twice) expect(await code(as(secret).me.get({}))).toBe("done");
});
