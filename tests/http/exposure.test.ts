// How far a server is reached: hosts, TLS, proxies. Every address here is on loopback.

import { randomBytes } from "node:crypto";
import { request as tlsRequest } from "node:https";
import { connect } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { createServer } from "../../src/http/index.ts";
import { testCertificate } from "../support/certificate.ts";
import { openHttp, raw } from "./http-world.ts";

test("a server on another loopback address is reached under that address alone [T17]", async () => {
  const { server } = await openHttp({ server: { host: "127.0.0.7" } });
  expect(server.url).toMatch(/^http:\/\/127\.0\.0\.7:\d+$/);
  expect((await raw(`${server.url}/healthz`)).status).toBe(200);
  const { port } = new URL(server.url);
  const foreign = await raw(`${server.url}/healthz`, { headers: { host: `127.0.0.8:${port}` } });
  expect(foreign.status).toBe(403);
});

test.each(["0.0.0.0", "::", "10.1.2.3", "128.0.0.1", "127.0.0.1.example.com", "1270.0.0.1"])(
  "%s is refused without addresses and a sign-in method [T17]",
  async (host) => {
    const { store, gates } = await openHttp();
    await expect(createServer({ store, gates, host })).rejects.toThrow(TypeError);
  },
);

test("TLS by certificate: https alone, secure cookies, and a renewed certificate for new connections", async () => {
  const first = testCertificate("first");
  const world = await openHttp({ server: { tls: first } });
  const { server } = world;
  expect(server.url).toMatch(/^https:\/\/127\.0\.0\.1:/);
  expect(await fetchTls(`${server.url}/healthz`, first.cert)).toMatchObject({ status: 200 });
  const link = await server.signInLink({ subject: "person:ada" });
  expect(link).toMatch(/^https:/);
  const { port } = new URL(server.url);
  await expect(raw(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow();
  expect(await commonName(Number(port))).toBe("first");
  const second = testCertificate("second");
  server.replaceCertificate(second);
  expect(await commonName(Number(port))).toBe("second");
  expect(() => server.replaceCertificate({ cert: "x", key: "y" })).toThrow();
  expect(await commonName(Number(port)), "a bad one changes nothing").toBe("second");
  const used = await fetchTls(`${server.url}/signin`, second.cert, {
    method: "POST",
    headers: { origin: server.url, accept: "application/json" },
    body: new URLSearchParams({ link: new URL(link).searchParams.get("link") ?? "" }).toString(),
  });
  expect(used.status).toBe(200);
  expect(String(used.cookie)).toMatch(/^__Host-sallyport_\d+=.*; Secure/);
});

test("a server without TLS refuses a certificate", async () => {
  const { server } = await openHttp();
  expect(() => server.replaceCertificate(testCertificate("x"))).toThrow(/plain HTTP/);
});

/** Sends unknown tokens under changing claims about the caller's address; answers how many were looked up. */
async function lookedUp(url: string, forwarded: (index: number) => string): Promise<number> {
  let count = 0;
  for (let index = 0; index < 12; index += 1) {
    const half = randomBytes(32).toString("base64url");
    const authorization = `Bearer sallyport_YWNtZQ.${half}`;
    const headers = { authorization, "x-forwarded-for": forwarded(index) };
    const { status } = await raw(`${url}/v1/me`, { headers });
    if (status === 401) count += 1;
    else expect(status).toBe(429);
  }
  return count;
}

const STRANGERS = { limits: { strangerRate: { perSecond: 0.001, burst: 3 } } };

test("X-Forwarded-For of a stranger is ignored: a caller cannot be many callers [T17]", async () => {
  const { server } = await openHttp({ server: STRANGERS });
  expect(await lookedUp(server.url, (index) => `10.0.0.${index}`)).toBe(3);
});

test("behind a trusted proxy each caller has its own limit, and what a caller wrote itself is ignored [T17]", async () => {
  const trustedProxies = ["127.0.0.0/8", "10.9.0.0/16", "fd00::/8"];
  const { server } = await openHttp({ server: { ...STRANGERS, trustedProxies } });
  expect(await lookedUp(server.url, (index) => `10.0.0.${index}`)).toBe(12);
  const one = "10.0.0.99";
  expect(await lookedUp(server.url, (index) => `10.3.3.${index}, ${one}`), "invented").toBe(3);
  expect(await lookedUp(server.url, () => `${one}, 10.9.1.1, 127.0.0.5`), "two proxies").toBe(0);
  expect(await lookedUp(server.url, () => "nonsense"), "the proxy itself").toBe(3);
});

test.each(["proxy", "10.0.0.0/33", "10.0.0.0/x", "::/129", "10.0.0.0/8/8", ""])(
  "trustedProxies refuses %j with what to write",
  async (one) => {
    const { store, gates } = await openHttp();
    const opening = createServer({ store, gates, trustedProxies: [one] });
    await expect(opening).rejects.toThrow(/write an address, or a network/);
  },
);

async function commonName(port: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => {
    resolve(String(socket.getPeerCertificate().subject.CN));
    socket.end();
  });
  socket.on("error", reject);
  onTestFinished(() => void socket.destroy());
  return promise;
}

function fetchTls(
  url: string,
  ca: string,
  { method = "GET", headers = {}, body = "" } = {},
): Promise<{ status: number; cookie: unknown }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; cookie: unknown }>();
  const sent = tlsRequest(url, { method, headers, ca, agent: false }, (answer) => {
    answer.resume();
    resolve({ status: answer.statusCode ?? 0, cookie: answer.headers["set-cookie"]?.[0] });
  });
  sent.on("error", reject);
  sent.end(body);
  return promise;
}
