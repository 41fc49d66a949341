// Health, readiness, metrics, limits, the console's files, and an orderly end.

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createServer } from "../../src/http/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { credentials, openHttp, raw } from "./http-world.ts";

test("health: a server whose store is unavailable is alive and not ready", async () => {
  const { server, store } = await openHttp();
  expect((await raw(`${server.url}/healthz`)).status).toBe(200);
  expect((await raw(`${server.url}/readyz`)).status).toBe(200);
  await store.close();
  expect((await raw(`${server.url}/healthz`)).status).toBe(200);
  expect((await raw(`${server.url}/readyz`)).status).toBe(503);
});

test("metrics: for operators, in Prometheus format, without tenant or subject names", async () => {
  const { server, pass } = await openHttp();
  expect((await raw(`${server.url}/metrics`)).status).toBe(401);
  await raw(`${server.url}/v1/me`, { headers: credentials(await pass("acme", "agent")) });
  const { text, headers } = await raw(`${server.url}/metrics`, {
    headers: credentials(await pass("acme", "operator")),
  });
  expect(headers["content-type"]).toContain("version=0.0.4");
  expect(text).toContain('sallyport_requests_total{route="me.get",status="200"} 1');
  expect(text).toMatch(/sallyport_request_seconds_bucket\{route="me.get",le="\+Inf"\} 1/);
  for (const line of text.trim().split("\n"))
    expect(line).toMatch(/^(?:# (?:HELP|TYPE) \w+ .+|\w+(?:\{[^}]*\})? [-+.e\d]+)$/);
  expect(text).not.toMatch(/acme|agent:one/);
});

test("shutdown: requests in progress are answered, new ones are not", async () => {
  const { promise: entered, resolve: enter } = Promise.withResolvers<void>();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const slow = defineTool({
    name: "slow.look",
    description: "Takes its time.",
    input: { type: "object", additionalProperties: false },
    safety: { effect: "read" },
    permissionClass: "readonly",
    async execute() {
      enter();
      await released;
      return "seen";
    },
  });
  const { server, pass } = await openHttp({ port: { tools: [slow] } });
  const headers = credentials(await pass("acme", "agent"));
  const open = await raw(`${server.url}/v1/sessions`, { method: "POST", headers, body: "{}" });
  const { id } = JSON.parse(open.text) as { id: string };
  const body = JSON.stringify({ callId: "c", tool: "slow.look", input: {} });
  const underWay = raw(`${server.url}/v1/sessions/${id}/calls`, { method: "POST", headers, body });
  await entered;
  const closing = server.close();
  await expect(
    raw(`${server.url}/healthz`, { headers: { connection: "close" } }),
  ).rejects.toThrow();
  release();
  expect(JSON.parse((await underWay).text)).toMatchObject({ answer: "done", text: "seen" });
  await closing;
});

test("assets: only files are served, and a missing file is not cached [L12]", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "sallyport-console-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await mkdir(path.join(folder, "assets"));
  await writeFile(path.join(folder, "index.html"), "<p>console</p>");
  await writeFile(path.join(folder, "assets", "app-1.js"), "inside");
  await writeFile(path.join(folder, "assets", "page.html"), "<p>not ours</p>");
  const { store, gates } = await openHttp();
  const server = await createServer({ store, gates, console: folder });
  onTestFinished(() => server.close());
  for (const target of [
    "/assets",
    "/assets/",
    "/assets/gone-1.js",
    "/assets/inbox",
    "/assets/app-1.js.map",
    "/assets/page.html",
    "/assets/index.html",
    "/assets/%2e%2e%2findex.html",
    "/assets/a%20b.js",
  ]) {
    const { status, text, headers } = await raw(`${server.url}${target}`);
    expect([target, status], target).toEqual([target, 404]);
    expect(text, target).not.toContain("<p>");
    expect(headers["cache-control"] ?? "", target).not.toContain("immutable");
  }
  const page = await raw(`${server.url}/inbox`);
  expect(page.headers["cache-control"]).toBe("no-cache");
});

test("console files: served under a policy that runs only them, and nothing outside the folder is", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "sallyport-console-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const files = path.join(folder, "files");
  await mkdir(path.join(files, "assets"), { recursive: true });
  await writeFile(path.join(folder, "secret.js"), "outside");
  await writeFile(path.join(files, "index.html"), "<p>console</p>");
  await writeFile(path.join(files, "assets", "app-1.js"), "inside");
  await writeFile(path.join(files, ".hidden.js"), "hidden");
  const { store, gates } = await openHttp();
  const server = await createServer({ store, gates, console: files });
  onTestFinished(() => server.close());
  const get = (target: string) => raw(`${server.url}${target}`);
  for (const page of ["/", "/inbox", "/decisions/123", "/index.html"]) {
    const sent = await get(page);
    expect(sent.text, page).toBe("<p>console</p>");
    expect(sent.headers["content-security-policy"]).toContain("script-src 'self'");
    expect(sent.headers["content-security-policy"]).toContain("require-trusted-types-for 'script'");
  }
  const asset = await get("/assets/app-1.js");
  expect(asset).toMatchObject({ status: 200, text: "inside" });
  expect(asset.headers["cache-control"]).toContain("immutable");
  const outside = [
    "/../secret.js",
    "/..%2fsecret.js",
    "/%2e%2e/secret.js",
    "/assets/../../secret.js",
    "/assets/..%5c..%5csecret.js",
    "/.hidden.js",
    "//secret.js",
    `/${path.join(folder, "secret.js")}`,
    "/assets/app-1.js%00.js",
  ];
  for (const target of outside)
    expect((await get(target)).text, target).not.toMatch(/outside|hidden$/);
  expect((await get("/v1/unknown")).status).toBe(404);
});

test("tools: one that only rollbacks call is listed for people and not offered to agents", async () => {
  const restore = defineTool({
    name: "orders.restore",
    description: "Restores an order.",
    input: { type: "object" },
    undoOnly: true,
    execute: () => "restored",
  });
  const { server, pass } = await openHttp({ port: { tools: [restore] } });
  const namesFor = async (role: "agent" | "operator") => {
    const headers = credentials(await pass("acme", role));
    const { items } = JSON.parse((await raw(`${server.url}/v1/tools`, { headers })).text);
    return items.map(({ name }: { name: string }) => name);
  };
  expect(await namesFor("operator")).toContain("orders.restore");
  expect(await namesFor("agent")).not.toContain("orders.restore");
});
