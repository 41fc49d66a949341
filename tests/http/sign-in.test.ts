// People sign in with a link that works once; from then on a strict cookie says who they are, and a token in the page that
// the page is ours.

import { expect, test } from "vitest";
import { bearer, openHttp, raw } from "./http-world.ts";

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

async function browser(options: Parameters<typeof openHttp>[0] = {}) {
  const world = await signedIn(options);
  const { headers } = await world.use();
  const [cookie = ""] = String(headers["set-cookie"]).split(";");
  const me = await raw(`${world.server.url}/v1/me`, { headers: { cookie } });
  const { csrf } = JSON.parse(me.text) as { csrf: string };
  const send = (path: string, body: object, extra: Record<string, string> = {}) =>
    raw(`${world.server.url}${path}`, {
      method: "POST",
      headers: {
        cookie,
        origin: world.server.url,
        "content-type": "application/json",
        "x-sallyport-csrf": csrf,
        ...extra,
      },
      body: JSON.stringify(body),
    });
  return { ...world, cookie, csrf, me, send };
}

test("a link signs its person in, once", async () => {
  const { use, server } = await signedIn();
  const first = await use();
  expect(first.status).toBe(303);
  const cookie = String(first.headers["set-cookie"]);
  expect(cookie).toMatch(/HttpOnly; SameSite=Strict/);
  const me = await raw(`${server.url}/v1/me`, { headers: { cookie: cookie.split(";")[0] ?? "" } });
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

test("T16 looking at a link, as scanners of mail do, uses nothing up", async () => {
  const { link, use } = await signedIn();
  for (const method of ["GET", "HEAD", "OPTIONS", "GET"]) await raw(link, { method });
  const page = await raw(link);
  expect(page.text).toContain('<form method="post" action="/signin">');
  expect(page.headers["content-security-policy"]).toContain("frame-ancestors 'none'");
  expect((await use()).status).toBe(303);
});

test("of fifty who use one link at once, one is signed in", async () => {
  const { use } = await signedIn();
  const answers = await Promise.all(Array.from({ length: 50 }, use));
  expect(answers.filter(({ status }) => status === 303)).toHaveLength(1);
});

test("a link that is too old is none", async () => {
  const { use } = await signedIn({ server: { signIn: { linkMs: 1 } } });
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect((await use()).status).toBe(401);
});

test("a cookie is no bearer token, a link neither, and a bearer token no cookie", async () => {
  const { server, cookie, secret, token } = await browser();
  const [name = "", value = ""] = cookie.split(/=(.*)/);
  const unused = new URL(await server.signInLink({ subject: "x" })).searchParams.get("link") ?? "";
  const wrong = [
    { authorization: `Bearer ${value}` },
    { authorization: `Bearer ${secret}` },
    { authorization: `Bearer ${unused}` },
    { cookie: `${name}=${unused}` },
    { cookie: `${name}=${await token("acme", "admin")}` },
    { cookie: `${name}=${value}; ${name}=${value}` },
  ];
  for (const headers of wrong) {
    expect((await raw(`${server.url}/v1/me`, { headers })).status).toBe(401);
  }
});

test("only a link signs in: a token or a cookie in its place is refused and stays what it is", async () => {
  const { server, token, cookie } = await browser();
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
  expect((await raw(`${server.url}/v1/me`, { headers: { cookie } })).status).toBe(200);
});

test("T16 what changes something needs the page's own token and our origin", async () => {
  const { send, server, cookie, csrf } = await browser();
  const body = { reason: "drill" };
  const without = { "x-sallyport-csrf": "" };
  expect((await send("/v1/switch/stop", body, without)).status).toBe(403);
  expect(
    (await send("/v1/switch/stop", body, { "x-sallyport-csrf": csrf.toUpperCase() })).status,
  ).toBe(403);
  expect((await send("/v1/switch/stop", body, { origin: "http://evil.example" })).status).toBe(403);
  expect((await send("/v1/switch/stop", body, { origin: "null" })).status).toBe(403);
  const noOrigin = await raw(`${server.url}/v1/switch/stop`, {
    method: "POST",
    headers: { cookie, "content-type": "application/json", "x-sallyport-csrf": csrf },
    body: JSON.stringify(body),
  });
  expect(noOrigin.status).toBe(403);
  expect(JSON.parse((await raw(`${server.url}/v1/switch`, { headers: { cookie } })).text)).toEqual({
    stopped: false,
  });
  expect((await send("/v1/switch/stop", body)).status).toBe(200);
});

test("deciding needs a sign-in that is not old, looking does not", async () => {
  const { send, server, cookie } = await browser({ server: { signIn: { freshMs: -1 } } });
  const old = await send("/v1/interactions/x/approve", { hash: "h" });
  expect(old.status).toBe(401);
  expect(JSON.parse(old.text)).toMatchObject({ details: { what: "freshness" } });
  expect((await raw(`${server.url}/v1/interactions`, { headers: { cookie } })).status).toBe(200);
});

test("signing out ends the cookie for good", async () => {
  const { send, server, cookie } = await browser();
  const out = await send("/v1/me/sign-out", {});
  expect(out.status).toBe(200);
  expect(String(out.headers["set-cookie"])).toContain("Max-Age=0");
  expect((await raw(`${server.url}/v1/me`, { headers: { cookie } })).status).toBe(401);
});

test("a sign-in outlives a restart of the server, because it is in the store", async () => {
  const { store, ports, server, token } = await browser();
  const admin = await token("acme", "admin");
  const again = await import("../../src/http/index.ts").then(({ createServer }) =>
    createServer({ store, ports }),
  );
  try {
    expect((await raw(`${again.url}/v1/me`, { headers: bearer(admin) })).status).toBe(200);
    expect(again.url).not.toBe(server.url);
  } finally {
    await again.close();
  }
});
