// `serve` beyond one machine: what is refused before anything listens, and TLS by certificate files. Loopback only.

import { existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { connect } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { listenOptions, withListenFlags } from "../../src/cli/listen.ts";
import { testCertificate } from "../support/certificate.ts";
import { cliPlace } from "./cli-process.ts";

test("serve beyond loopback without a public address, or without a sign-in method, is refused, and nothing is created [T17]", async () => {
  const place = cliPlace();
  for (const host of ["0.0.0.0", "::"]) {
    const { code, err } = await place.run("serve", "--host", host);
    expect([code === 0, err]).toEqual([false, expect.stringContaining("http.publicUrl")]);
  }
  const open = ["serve", "--host", "0.0.0.0", "--public-url", "https://gate.example.com"];
  const { code, err } = await place.run(...open);
  expect([code === 0, err]).toEqual([false, expect.stringContaining("needs a sign-in method")]);
  expect(existsSync(path.join(place.data, "sallyport.db"))).toBe(false);
});

test("with a sign-in method a public address is served, and commands on the machine use the local one", async () => {
  const place = cliPlace();
  const config = path.join(place.folder, "sallyport.config.mjs");
  writeFileSync(
    config,
    'export default { tools: [], http: { host: "127.0.0.3", signInBy: "links", trustedProxies: ["127.0.0.0/8"] } };',
  );
  const server = await place.start("serve", "--public-url", "https://gate.example.com/");
  expect(server.url).toBe("https://gate.example.com");
  const { code, out } = await place.run("--json", "me", "get");
  expect([code, JSON.parse(out).subject]).toEqual([0, "local:commands"]);
  expect(await server.stop()).toBe(0);
});

test("serve --tls-cert --tls-key speaks TLS, and reads a renewed certificate on SIGHUP", async () => {
  const place = cliPlace();
  const files = { cert: path.join(place.folder, "c.pem"), key: path.join(place.folder, "k.pem") };
  const write = (name: string) => {
    const made = testCertificate(name);
    writeFileSync(files.cert, made.cert);
    writeFileSync(files.key, made.key);
  };
  write("old");
  const server = await place.start("serve", "--tls-cert", files.cert, "--tls-key", files.key);
  const { protocol, port } = new URL(server.url);
  expect([protocol, await commonName(Number(port))]).toEqual(["https:", "old"]);
  write("renewed");
  server.child.kill("SIGHUP");
  await expect.poll(() => commonName(Number(port)), { timeout: 20_000 }).toBe("renewed");
  writeFileSync(files.cert, "not a certificate");
  server.child.kill("SIGHUP");
  await expect.poll(() => server.said(), { timeout: 20_000 }).toMatch(/PEM|certificate/i);
  expect(await commonName(Number(port))).toBe("renewed");
  expect(await server.stop()).toBe(0);
});

test("a missing certificate file, or one file of two, is named", async () => {
  const place = cliPlace();
  const missing = await place.run("serve", "--tls-cert", "none.pem", "--tls-key", "none.pem");
  expect(missing.err).toContain("http.tls.cert");
  const half = await place.run("serve", "--tls-cert", "none.pem");
  expect(half.err).toContain("TLS needs both files");
});

test("flags take precedence over http of the configuration, and the rest of it stays", () => {
  const http = {
    host: "127.0.0.2",
    port: 1,
    signInBy: "links",
    tls: { cert: "a", key: "b" },
  } as const;
  const flags = {
    port: 2,
    tlsCert: "c",
    trustedProxies: "10.0.0.1, 10.0.0.0/8,",
    publicUrl: "https://g.example",
  };
  expect(withListenFlags(http, flags)).toEqual({
    host: "127.0.0.2",
    port: 2,
    signInBy: "links",
    publicUrl: "https://g.example",
    tls: { cert: "c", key: "b" },
    trustedProxies: ["10.0.0.1", "10.0.0.0/8"],
  });
  const { remote, listenPort } = listenOptions({
    port: 7,
    publicUrl: "https://g.example",
    signInBy: "links",
  });
  expect([listenPort, remote]).toEqual([7, { origins: ["https://g.example"], auth: "tokens" }]);
});

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
