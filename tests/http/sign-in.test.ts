// People sign in with a link that works once. From then on a request needs both halves of the session: the strict cookie, and
// the key that only the signed-in page has.

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { createClient, signIn } from "../../src/client/index.ts";
import { bearer, credentials, newSession, openHttp, raw } from "./http-world.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };

async function signedIn(options: Parameters<typeof openHttp>[0] = {}) {
  const world = await openHttp(options);
  const { server } = world;
  const link = await server.signInLink({ subject: "person:ada" });
  const secret = new URL(link).searchParams.get("link") ?? "";
  const use = () =>
    raw(`${server.url}/signin`, {
      method: "POST",
      headers: { ...FORM, origin: server.url },
      body: new URLSearchParams({ link: secret }).toString(),
    });
  return { ...world, link, secret, use };
}

/** The key as the signed-in page gets it. */
function keyIn(page: string): string {
  return /<meta name="sallyport-key" content="([\w-]{43})">/.exec(page)?.[1] ?? "";
}

async function browser(options: Parameters<typeof openHttp>[0] = {}) {
  const world = await signedIn(options);
  const { headers, text } = await world.use();
  const [cookie = ""] = String(headers["set-cookie"]).split(";");
  const key = keyIn(text);
  const own = { cookie, "x-sallyport-key": key };
  const look = (path: string, extra: Record<string, string> = {}) =>
    raw(`${world.server.url}${path}`, { headers: { ...own, ...extra } });
  const send = (path: string, body: object, extra: Record<string, string> = {}) =>
    raw(`${world.server.url}${path}`, {
      method: "POST",
      headers: {
        ...own,
        origin: world.server.url,
        "content-type": "application/json",
        ...extra,
      },
      body: JSON.stringify(body),
    });
  return { ...world, cookie, key, own, look, send };
}

test("a link signs its person in, once", async () => {
  const { use, server } = await signedIn();
  const first = await use();
  expect(first.status).toBe(200);
  expect(first.headers["cache-control"]).toBe("no-store");
  const cookie = String(first.headers["set-cookie"]);
  expect(cookie).toMatch(/HttpOnly; SameSite=Strict/);
  const own = { cookie: cookie.split(";")[0] ?? "", "x-sallyport-key": keyIn(first.text) };
  const me = await raw(`${server.url}/v1/me`, { headers: own });
  expect(me.text).not.toContain(own["x-sallyport-key"]);
  expect(JSON.parse(me.text)).toMatchObject({
    subject: "person:ada",
    tenant: "acme",
    kind: "session",
    roles: ["reviewer", "operator", "admin"],
  });
  const second = await use();
  expect(second.status).toBe(401);
  expect(second.headers["set-cookie"]).toBeUndefined();
});

test("opening a link, as mail scanners do, does not use it up [T16]", async () => {
  const { link, use } = await signedIn();
  for (const method of ["GET", "HEAD", "OPTIONS", "GET"]) await raw(link, { method });
  const page = await raw(link);
  expect(page.text).toContain('<form method="post" action="/signin">');
  expect(page.headers["content-security-policy"]).toContain("frame-ancestors 'none'");
  expect((await use()).status).toBe(200);
});

test("of fifty concurrent uses of a link one signs in", async () => {
  const { use } = await signedIn();
  const answers = await Promise.all(Array.from({ length: 50 }, use));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
});

test("an expired link is refused", async () => {
  const { use } = await signedIn({ server: { signIn: { linkMs: 1 } } });
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect((await use()).status).toBe(401);
});

test("cookies, links and bearer tokens are not accepted in place of each other", async () => {
  const { server, cookie, key, secret, token } = await browser();
  const [name = "", value = ""] = cookie.split(/=(.*)/);
  const unused = new URL(await server.signInLink({ subject: "x" })).searchParams.get("link") ?? "";
  const wrong = [
    { authorization: `Bearer ${value}` },
    { authorization: `Bearer ${value}`, "x-sallyport-key": key },
    { authorization: `Bearer ${key}` },
    { authorization: `Bearer ${secret}` },
    { authorization: `Bearer ${unused}` },
    { cookie: `${name}=${unused}`, "x-sallyport-key": key },
    { cookie: `${name}=${await token("acme", "admin")}`, "x-sallyport-key": key },
    { cookie: `${name}=${value}; ${name}=${value}`, "x-sallyport-key": key },
  ];
  for (const headers of wrong) {
    expect((await raw(`${server.url}/v1/me`, { headers })).status).toBe(401);
  }
});

test("only a link signs in: a token or a cookie in its place is refused and stays valid", async () => {
  const { server, token, cookie, look } = await browser();
  const admin = await token("acme", "admin");
  for (const text of [admin, cookie.split(/=(.*)/)[1] ?? ""]) {
    const sent = await raw(`${server.url}/signin`, {
      method: "POST",
      headers: { ...FORM, origin: server.url },
      body: new URLSearchParams({ link: text }).toString(),
    });
    expect(sent.status).toBe(401);
  }
  expect((await raw(`${server.url}/v1/me`, { headers: bearer(admin) })).status).toBe(200);
  expect((await look("/v1/me")).status).toBe(200);
});

test("the cookie alone reads nothing and decides nothing, nor does the key alone, nor another session's key [H1]", async () => {
  const { server, cookie, key, look, send } = await browser();
  const other = await newSession(server, { subject: "person:ada" });
  const strange = [
    { "x-sallyport-key": "" },
    { "x-sallyport-key": key.slice(1) },
    { "x-sallyport-key": key.toLowerCase() },
    { "x-sallyport-key": "A".repeat(43) },
    { "x-sallyport-key": credentials(other)["x-sallyport-key"] ?? "" },
    { cookie: "" },
    { cookie: credentials(other)["cookie"] ?? "" },
  ];
  const reads = ["/v1/me", "/v1/interactions", "/v1/decisions", "/v1/audit/export", "/v1/events"];
  for (const headers of strange) {
    for (const path of reads) {
      expect((await look(path, headers)).status, JSON.stringify({ path, headers })).toBe(401);
    }
    expect((await send("/v1/switch/stop", { reason: "x" }, headers)).status).toBe(401);
  }
  const alone = await raw(`${server.url}/v1/me`, { headers: { cookie } });
  expect(alone.status).toBe(401);
  expect(alone.text).not.toContain("person:ada");
  expect(await look("/v1/switch")).toMatchObject({
    status: 200,
    text: '{"stopped":false,"by":"","reason":"","at":""}',
  });
});

test("a change needs the server's own origin as well [T16]", async () => {
  const { send, server, own, look } = await browser();
  const body = { reason: "drill" };
  expect((await send("/v1/switch/stop", body, { origin: "http://evil.example" })).status).toBe(403);
  expect((await send("/v1/switch/stop", body, { origin: "null" })).status).toBe(403);
  const noOrigin = await raw(`${server.url}/v1/switch/stop`, {
    method: "POST",
    headers: { ...own, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(noOrigin.status).toBe(403);
  expect(JSON.parse((await look("/v1/switch")).text)).toEqual({
    stopped: false,
    by: "",
    reason: "",
    at: "",
  });
  expect((await send("/v1/switch/stop", body)).status).toBe(200);
});

test("the page that keeps the key may run its one script and no other [H1]", async () => {
  const { use } = await signedIn();
  const { text, headers } = await use();
  const policy = String(headers["content-security-policy"]);
  const script = /<script>(.*)<\/script>/s.exec(text)?.[1] ?? "";
  const hash = createHash("sha256").update(script).digest("base64");
  expect(policy).toContain(`script-src 'self' 'sha256-${hash}';`);
  expect(policy).not.toContain("unsafe");
  expect(script).not.toContain(keyIn(text));
});

test("a program gets the key as JSON, and nothing when the link was used before", async () => {
  const { link, server } = await signedIn();
  const { url, session } = await signIn({ link });
  const client = createClient({ url, session });
  expect(await client.me.get()).toMatchObject({ subject: "person:ada", kind: "session" });
  await expect(signIn({ link })).rejects.toMatchObject({ code: "unauthenticated" });
  await expect(signIn({ link: `${server.url}/signin` })).rejects.toThrow(TypeError);
  await client.signOut();
  await expect(client.me.get()).rejects.toMatchObject({ code: "unauthenticated" });
});

test("signing out ends the session for good", async () => {
  const { send, look } = await browser();
  const out = await send("/v1/me/sign-out", {});
  expect(out.status).toBe(200);
  expect(String(out.headers["set-cookie"])).toContain("Max-Age=0");
  expect((await look("/v1/me")).status).toBe(401);
});

test("a sign-in survives a restart of the server", async () => {
  const { store, gates, server, token } = await browser();
  const admin = await token("acme", "admin");
  const again = await import("../../src/http/index.ts").then(({ createServer }) =>
    createServer({ store, gates }),
  );
  try {
    expect((await raw(`${again.url}/v1/me`, { headers: bearer(admin) })).status).toBe(200);
    expect(again.url).not.toBe(server.url);
  } finally {
    await again.close();
  }
});
