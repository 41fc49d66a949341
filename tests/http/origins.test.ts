// T16 and T17: pages of others, names of others, and frames around us get nothing.

import { connect } from "node:net";
import { expect, test } from "vitest";
import { createServer, PATHS, type RouteName } from "../../src/http/index.ts";
import { bearer, openHttp, raw } from "./http-world.ts";

test("foreign Host and foreign Origin are each refused on reads, writes and streams [T17]", async () => {
  const { server, token, store } = await openHttp();
  const { port, origin } = new URL(server.url);
  const admin = await token("acme", "admin");
  const hosts = [
    "evil.example",
    `evil.example:${port}`,
    "127.0.0.1",
    `127.0.0.1:${Number(port) + 1}`,
    `127.0.0.2:${port}`,
    `127.1:${port}`,
    `2130706433:${port}`,
    `0.0.0.0:${port}`,
    `localhost.:${port}`,
    `127.0.0.1.:${port}`,
    `localhost.evil.example:${port}`,
    `127.0.0.1.nip.io:${port}`,
    `127.0.0.1:${port}.evil.example`,
    `[::]:${port}`,
    `[::ffff:127.0.0.1]:${port}`,
    `[0:0:0:0:0:0:0:1]:${port}`,
    `user@127.0.0.1:${port}`,
    `127.0.0.1:${port}@evil.example`,
    `127.0.0.1:0${port}`,
    `127.0.0.1:${port}/`,
    `127.0.0.1:${port},evil.example`,
    `evil.example,127.0.0.1:${port}`,
    `127.0.0.1: ${port}`,
    "localhost",
    "::1",
  ];
  const origins = [
    "null",
    "",
    "http://evil.example",
    `http://evil.example:${port}`,
    `https://127.0.0.1:${port}`,
    `http://127.0.0.1:${Number(port) + 1}`,
    "http://127.0.0.1",
    `http://localhost.:${port}`,
    `http://127.0.0.1:${port}.evil.example`,
    `http://127.0.0.1:${port}/`,
    `HTTP://127.0.0.1:${port}`,
    `http://127.0.0.1:${port},http://evil.example`,
    `http://user@127.0.0.1:${port}`,
    `ws://127.0.0.1:${port}`,
    "file://",
    "chrome-extension://abcdefgh",
    `http://[::ffff:127.0.0.1]:${port}`,
    "about:blank",
    "*",
  ];
  const targets = [
    { method: "GET", path: "/v1/me" },
    { method: "POST", path: "/v1/switch/stop", body: '{"reason":"rebound"}' },
    { method: "GET", path: "/v1/events" },
    { method: "GET", path: "/healthz" },
    { method: "POST", path: "/signin", body: "link=x" },
  ];
  const accepted: string[] = [];
  let cases = 0;
  for (const { path, ...what } of targets) {
    for (const headers of [
      ...hosts.map((host) => ({ host })),
      ...origins.map((one) => ({ origin: one })),
      ...hosts.slice(0, 4).map((host) => ({ host, origin: `http://${host}` })),
      { host: "evil.example", "x-forwarded-host": `127.0.0.1:${port}` },
      { origin: "http://evil.example", "x-forwarded-origin": origin },
    ]) {
      cases += 1;
      const sent = { ...what, headers: { ...bearer(admin), ...headers } };
      // A stream that is accepted does not end.
      const streams = new Promise<{ status: number }>((resolve) => {
        setTimeout(() => resolve({ status: 200 }), 5_000).unref();
      });
      const answer = raw(`${server.url}${path}`, sent).catch(() => ({ status: 400 }));
      const { status } = await (path === "/v1/events" ? Promise.race([answer, streams]) : answer);
      if (status !== 403 && status !== 400)
        accepted.push(`${path} ${JSON.stringify(headers)} ${status}`);
      if (accepted.length > 3) break;
    }
  }
  expect(accepted).toEqual([]);
  expect(cases).toBeGreaterThanOrEqual(200);
  expect(await store.tenant("acme").killSwitch.isStopped()).toBe(false);
  console.info(`host and origin: ${cases} foreign variants, 0 accepted`);
});

test("the server's own names are served [T17]", async () => {
  const { server, token } = await openHttp();
  const { port } = new URL(server.url);
  const headers = bearer(await token("acme", "admin"));
  for (const host of [
    `127.0.0.1:${port}`,
    `localhost:${port}`,
    `LOCALHOST:${port}`,
    `[::1]:${port}`,
  ]) {
    const sent = await raw(`${server.url}/v1/me`, { headers: { ...headers, host } });
    expect(sent.status, host).toBe(200);
  }
  const page = { ...headers, origin: `http://localhost:${port}` };
  expect((await raw(`${server.url}/v1/me`, { headers: page })).status).toBe(200);
});

test("two Host headers, no Host header and WebSockets are refused [T17]", async () => {
  const { server, token } = await openHttp();
  const { port } = new URL(server.url);
  const admin = await token("acme", "admin");
  const send = (lines: readonly string[]) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), "127.0.0.1", () =>
        socket.end(`${lines.join("\r\n")}\r\n\r\n`),
      );
      let text = "";
      socket.on("data", (chunk) => {
        text += chunk.toString("latin1");
      });
      socket.on("close", () => resolve(text));
      socket.on("error", reject);
    });
  const auth = `Authorization: Bearer ${admin}`;
  const own = `Host: 127.0.0.1:${port}`;
  const twice = await send([
    "GET /v1/me HTTP/1.1",
    own,
    "Host: evil.example",
    auth,
    "Connection: close",
  ]);
  expect(twice).toMatch(/^HTTP\/1\.1 (?:400|403)/);
  const none = await send(["GET /v1/me HTTP/1.1", auth, "Connection: close"]);
  expect(none).toMatch(/^HTTP\/1\.1 (?:400|403)/);
  const old = await send(["GET /v1/me HTTP/1.0", auth]);
  expect(old).toMatch(/^HTTP\/1\.1 (?:400|403)/);
  const upgrade = [
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
  ];
  const socket = await send([
    "GET /v1/events HTTP/1.1",
    own,
    "Origin: http://evil.example",
    auth,
    ...upgrade,
  ]);
  expect(socket).not.toContain("101");
});

test("beyond loopback the server needs its addresses and a sign-in method [T17]", async () => {
  const { store, gates } = await openHttp();
  const identify = () => undefined;
  const wrong = [
    { host: "0.0.0.0" },
    { host: "::" },
    { host: "192.168.1.10" },
    { host: "0.0.0.0", remote: { origins: [], auth: "tokens" } },
    { host: "0.0.0.0", remote: { origins: ["http://gate.example.com"], auth: "tokens" } },
    { host: "0.0.0.0", remote: { origins: ["https://gate.example.com/path"], auth: "tokens" } },
    { host: "0.0.0.0", remote: { origins: ["gate.example.com"], auth: "tokens" } },
    { host: "0.0.0.0", remote: { origins: ["https://gate.example.com"], auth: "none" } },
    { host: "0.0.0.0", remote: { origins: ["https://gate.example.com"], auth: "oidc" } },
  ];
  for (const options of wrong) {
    const opening = createServer({ store, gates, ...(options as object) });
    await expect(opening, JSON.stringify(options)).rejects.toThrow(TypeError);
  }
  const remote = { origins: ["https://gate.example.com"], auth: "oidc" } as const;
  const oidc = { issuer: "https://id.example.com", clientId: "gate", identify };
  const server = await createServer({ store, gates, remote, oidc });
  try {
    expect(server.url).toBe("https://gate.example.com");
    expect(await server.signInLink({ subject: "person:ada" })).toContain(
      "https://gate.example.com/signin",
    );
  } finally {
    await server.close();
  }
});

test("nothing is changed by GET, HEAD or OPTIONS, on any path [T16]", async () => {
  const { server, token, store } = await openHttp();
  const headers = bearer(await token("acme", "admin"));
  const before = await store.tenant("acme").audit.head();
  for (const name of Object.keys(PATHS) as RouteName[]) {
    const path = PATHS[name].split(" ")[1]?.replaceAll(/:\w+/g, "x") ?? "";
    if (name === "events.follow") continue;
    for (const method of ["GET", "HEAD", "OPTIONS"])
      await raw(`${server.url}${path}`, { method, headers });
  }
  expect(await store.tenant("acme").audit.head()).toEqual(before);
});

test("forms and images of other pages change nothing: content type, origin and cookie block them [T16]", async () => {
  const { server, token, store } = await openHttp();
  const admin = await token("acme", "admin");
  const types = [
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain",
    "text/plain; charset=application/json",
    "",
  ];
  for (const type of types) {
    const { status } = await raw(`${server.url}/v1/switch/stop`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${admin}`,
        ...(type === "" ? {} : { "content-type": type }),
      },
      body: '{"reason":"form"}',
    });
    expect(status, type).toBe(422);
  }
  for (const site of ["cross-site", "same-site"]) {
    const headers = { ...bearer(admin), "sec-fetch-site": site };
    const sent = { method: "POST", headers, body: '{"reason":"fetch"}' };
    expect((await raw(`${server.url}/v1/switch/stop`, sent)).status).toBe(403);
  }
  expect(await store.tenant("acme").killSwitch.isStopped()).toBe(false);
});

test("every response forbids framing, scripts and cross-origin use [T16]", async () => {
  const { server, token } = await openHttp();
  const headers = bearer(await token("acme", "auditor"));
  for (const path of [
    "/",
    "/signin",
    "/v1/me",
    "/v1/nothing",
    "/v1/audit/export",
    "/healthz",
    "/metrics",
  ]) {
    const sent = await raw(`${server.url}${path}`, { headers });
    expect(sent.headers["content-security-policy"], path).toContain("frame-ancestors 'none'");
    expect(sent.headers["x-content-type-options"], path).toBe("nosniff");
    expect(sent.headers["access-control-allow-origin"], path).toBeUndefined();
    if (sent.headers["content-type"]?.startsWith("text/html")) {
      expect(sent.headers["content-security-policy"]).toContain(
        "require-trusted-types-for 'script'",
      );
    } else {
      expect(sent.headers["content-security-policy"]).toContain("sandbox");
    }
  }
});
