// Sign-in for teams, against a provider that really signs: the code flow with PKCE, state and nonce.

import { generateKeyPairSync } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { openHttp, raw } from "./http-world.ts";
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
