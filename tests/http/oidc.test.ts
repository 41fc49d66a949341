// Sign-in for teams, against a provider that really signs: the code flow with PKCE, state and nonce.

import { generateKeyPairSync } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { signIn } from "../../src/client/index.ts";
import { createServer, type OidcOptions } from "../../src/http/index.ts";
import { clientOf, newSession, openHttp, raw } from "./http-world.ts";
import { providerProcess } from "./oidc-process.ts";
import { startProvider } from "./oidc-provider.ts";

async function opened() {
  const provider = await startProvider("gate");
  onTestFinished(() => provider.close());
  const world = await openHttp({
    server: {
      oidc: {
        issuer: provider.issuer,
        clientId: "gate",
        identify({ sub, groups }) {
          const isReviewer = Array.isArray(groups) && groups.includes("reviewers");
          if (groups === "agents")
            return { tenant: "acme", subject: "x", roles: ["agent"], owner: "" };
          if (!isReviewer) return undefined;
          return { tenant: "acme", subject: `person:${sub}`, roles: ["reviewer"], owner: "" };
        },
      },
    },
  });
  const { url } = world.server;
  /** As a browser walks: to us, to the provider, back to us. */
  async function begin() {
    const start = await raw(`${url}/signin/oidc`);
    const memory = String(start.headers["set-cookie"]).split(";")[0] ?? "";
    const there = await raw(String(start.headers.location));
    return { start, memory, back: String(there.headers.location) };
  }
  const finish = (back: string, cookie: string) => raw(back, { headers: { cookie } });
  return { ...world, provider, begin, finish };
}

test("OIDC: a person is signed in with the role their claims give", async () => {
  const { begin, finish, server } = await opened();
  const { start, memory, back } = await begin();
  expect(start.status).toBe(303);
  const asked = new URL(String(start.headers.location));
  expect(asked.searchParams.get("code_challenge_method")).toBe("S256");
  expect(String(start.headers["set-cookie"])).toMatch(/HttpOnly; SameSite=Lax/);
  const done = await finish(back, memory);
  expect(done.status).toBe(200);
  const session = (done.headers["set-cookie"] ?? []).find((one) => one.includes("Strict")) ?? "";
  const cookie = session.split(";")[0] ?? "";
  expect((await raw(`${server.url}/v1/me`, { headers: { cookie } })).status).toBe(401);
  const key = /<meta name="sallyport-key" content="([\w-]+)">/.exec(done.text)?.[1] ?? "";
  const me = await raw(`${server.url}/v1/me`, { headers: { cookie, "x-sallyport-key": key } });
  expect(JSON.parse(me.text)).toMatchObject({
    subject: "person:ada",
    roles: ["reviewer"],
    kind: "session",
  });
});

test("OIDC: a response is accepted once, from the browser that asked, with the state that was sent", async () => {
  const { begin, finish } = await opened();
  const mine = await begin();
  const other = await begin();
  expect((await finish(mine.back, "")).status).toBe(401);
  expect((await finish(mine.back, other.memory)).status).toBe(401);
  const swapped = new URL(mine.back);
  swapped.searchParams.set("state", new URL(other.back).searchParams.get("state") ?? "");
  expect((await finish(swapped.href, mine.memory)).status).toBe(401);
  const noCode = new URL(mine.back);
  noCode.searchParams.delete("code");
  expect((await finish(noCode.href, mine.memory)).status).toBe(401);
  expect((await finish(mine.back, mine.memory)).status).toBe(200);
  expect((await finish(mine.back, mine.memory)).status).toBe(401);
});

test("OIDC: forged id tokens are refused: key, signature, audience, issuer, nonce, age [T19]", async () => {
  const { begin, finish, provider } = await opened();
  const now = Math.floor(Date.now() / 1_000);
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const forgeries = [
    { key: privateKey },
    { alg: "none" },
    { claims: { aud: "another" } },
    { claims: { iss: "https://evil.example" } },
    { claims: { nonce: "another" } },
    { claims: { exp: now - 600, iat: now - 1_200 } },
    { claims: { aud: ["gate", "another"], azp: "another" } },
    { claims: { auth_time: now - 3_600 } },
    { claims: { auth_time: undefined } },
  ];
  for (const forge of forgeries) {
    provider.forge = forge;
    const { memory, back } = await begin();
    const done = await finish(back, memory);
    expect(done.status, JSON.stringify(Object.keys(forge))).toBe(401);
    expect(done.headers["set-cookie"]).toBeUndefined();
  }
  expect(provider.exchanged).toHaveLength(forgeries.length);
});

test("OIDC: a person without a role is not signed in, and no one signs in as an agent", async () => {
  const { begin, finish, provider, store } = await opened();
  for (const groups of [["others"], "reviewers-not-a-list", "agents", undefined]) {
    provider.claims = { sub: "eve", groups };
    const { memory, back } = await begin();
    expect((await finish(back, memory)).status).toBe(403);
  }
  expect(await store.tenant("acme").tokens.list({ kind: "session", limit: 10 })).toEqual([]);
});

test("OIDC: an unreachable provider is a refusal, and the next attempt works", async () => {
  const { server, provider } = await opened();
  await provider.close();
  const away = await raw(`${server.url}/signin/oidc`);
  expect(away.status).toBe(401);
});

/** Walks as a browser does; answers the status, and who is signed in. */
async function walk(url: string) {
  const start = await raw(`${url}/signin/oidc`);
  const memory = String(start.headers["set-cookie"]).split(";")[0] ?? "";
  const there = await raw(String(start.headers.location));
  const done = await raw(String(there.headers.location), { headers: { cookie: memory } });
  if (done.status !== 200) return { status: done.status };
  const session = (done.headers["set-cookie"] ?? []).find((one) => one.includes("Strict")) ?? "";
  const key = /<meta name="sallyport-key" content="([\w-]+)">/.exec(done.text)?.[1] ?? "";
  const headers = { cookie: session.split(";")[0] ?? "", "x-sallyport-key": key };
  const me = JSON.parse((await raw(`${url}/v1/me`, { headers })).text);
  return { status: 200, subject: me.subject, roles: me.roles, headers };
}

test("OIDC: groups of a provider in another process become roles; who is in none, or in two that exclude each other, stays out", async () => {
  const provider = await providerProcess("gate");
  const groups = {
    roles: { sre: ["operator"], finance: ["reviewer"], root: ["admin"], revision: ["auditor"] },
    subject: "email",
  } as const;
  const { issuer } = provider;
  const { server } = await openHttp({ server: { oidc: { issuer, clientId: "gate", groups } } });
  const person = { sub: "7", email: "ada@shop.example", email_verified: true };
  const signInAs = async (claims: object) => {
    await provider.claim({ ...person, ...claims });
    return walk(server.url);
  };
  expect(await signInAs({ groups: ["sre", "finance", "lunch"] })).toMatchObject({
    subject: "person:ada@shop.example",
    roles: ["operator", "reviewer"],
  });
  const outside: readonly object[] = [
    { groups: ["lunch"] },
    { groups: [] },
    {},
    { groups: "finance" },
    { groups: ["constructor", "__proto__"] },
    { groups: ["root", "revision"] },
    { groups: ["finance"], email_verified: false },
    { groups: ["finance"], email: "" },
  ];
  for (const claims of outside) {
    expect((await signInAs(claims)).status, JSON.stringify(claims)).toBe(403);
  }
});

test("OIDC: a server refuses groups that name no role of people, and a provider without either mapping", async () => {
  const { store, gates } = await openHttp();
  const base = { issuer: "http://127.0.0.1:9", clientId: "gate" };
  const wrong: readonly OidcOptions[] = [
    base,
    { ...base, groups: { roles: { bots: ["agent"] } } },
    { ...base, groups: { roles: { none: [] } } },
    { ...base, groups: { roles: {} }, identify: () => undefined },
  ];
  for (const oidc of wrong) {
    await expect(createServer({ store, gates, oidc })).rejects.toThrow(TypeError);
  }
});

test("OIDC: `presence: not_asked` serves a provider that does not say when a person signed in", async () => {
  const provider = await startProvider("gate");
  onTestFinished(() => provider.close());
  const groups = { roles: { reviewers: ["reviewer"] } } as const;
  const oidc = {
    issuer: provider.issuer,
    clientId: "gate",
    groups,
    presence: "not_asked",
  } as const;
  const { server } = await openHttp({ server: { oidc } });
  provider.forge = { claims: { auth_time: undefined } };
  expect((await walk(server.url)).status).toBe(200);
});

test("a person signs out everywhere, an admin signs a person out, and every device notices [T19]", async () => {
  const world = await openHttp();
  const first = await world.client("acme", "reviewer", "person:ada");
  const other = await newSession(world.server, { subject: "person:ada", roles: ["reviewer"] });
  const second = clientOf(world.server.url, other);
  const unused = await world.server.signInLink({ subject: "Person:Ada", roles: ["reviewer"] });
  const ben = await world.client("acme", "reviewer", "person:ben");
  expect(await second.me.signOutEverywhere({})).toEqual({ ended: 3 });
  for (const client of [first, second]) {
    await expect(client.me.get({})).rejects.toMatchObject({ code: "unauthenticated" });
  }
  await expect(signIn({ link: unused })).rejects.toMatchObject({ code: "unauthenticated" });
  expect(await ben.me.get({})).toMatchObject({ subject: "person:ben" });
  const admin = await world.client("acme", "admin");
  expect(await admin.people.signOut({ subject: "PERSON:ben", reason: "left" })).toEqual({
    ended: 1,
  });
  await expect(ben.me.get({})).rejects.toMatchObject({ code: "unauthenticated" });
  expect(await admin.me.get({})).toMatchObject({ subject: "person:admin" });
});
