// Notifications of a real server: a question of an agent reaches a webhook; dead letters on the command line; `notify test`.

import { writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { startReceiver } from "../notify/notify-world.ts";
import { cliPlace } from "./cli-process.ts";

const root = path.resolve(import.meta.dirname, "../..");
const from = (file: string) => pathToFileURL(path.join(root, "src", file)).href;
const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

const config = (url: string) => `
import { defineConfig, env } from "${from("cli/config.ts")}";
import { webhook } from "${from("notify/index.ts")}";
import { defineTool } from "${from("tools/define-tool.ts")}";
const refund = defineTool({
  name: "billing.refund", description: "Pays back.", input: { type: "object" },
  safety: { effect: "external" }, execute: () => "paid",
});
export default defineConfig({
  tools: [refund],
  notify: {
    channels: { hook: webhook({ url: "${url}/hook", secret: env("HOOK_SECRET") }), gone: webhook({ url: "${url}/gone", secret: env("HOOK_SECRET") }) },
    routes: [{ to: ["hook", "gone"], tools: ["billing.*"] }],
  },
  started: (gate) => {
    const asked = gate.sessions.open({ agent: "agent:billing" }).call({ tool: "billing.refund", input: {} });
    return async () => void (await asked);
  },
});
`;

test("a server tells a webhook about a question; what failed for good is listed and tried again", async () => {
  let isBack = false;
  const receiver = await startReceiver(({ path: place }) => ({
    status: place === "/gone" && !isBack ? 404 : 200,
  }));
  const place = cliPlace({ HOOK_SECRET: SECRET });
  writeFileSync(path.join(place.folder, "sallyport.config.mjs"), config(receiver.url));
  const server = await place.start("serve");
  const paths = () => receiver.received.map((one) => one.path).toSorted();
  await expect.poll(paths, { timeout: 20_000 }).toEqual(["/gone", "/hook"]);
  const hook = receiver.received.find((one) => one.path === "/hook");
  expect(JSON.parse(hook?.body ?? "")).toMatchObject({
    type: "sallyport.asked",
    items: [{ tools: ["billing.refund"], url: expect.stringContaining(`${server.url}/inbox/`) }],
  });
  const listed = async () => {
    const { out } = await place.run("--json", "notices", "list");
    return (JSON.parse(out) as { items: { id: string; problem: string }[] }).items;
  };
  // The answer of the receiver is recorded after it was sent.
  const dead = { channel: "gone", problem: "the receiver answered 404" };
  await expect.poll(listed, { timeout: 20_000 }).toMatchObject([dead]);
  const [item] = await listed();
  isBack = true;
  const refused = await place.run("notices", "retry", item?.id ?? "");
  expect(refused.err, "the machine's own token is no operator").toContain("not_allowed");
  expect(await server.stop()).toBe(0);
});

test("notify test reaches each channel, and its exit code says whether all answered", async () => {
  const receiver = await startReceiver(({ path: place }) => ({
    status: place === "/gone" ? 404 : 200,
  }));
  const place = cliPlace({ HOOK_SECRET: SECRET });
  writeFileSync(path.join(place.folder, "sallyport.config.mjs"), config(receiver.url));
  const one = await place.run("notify", "test", "hook");
  expect([one.code, one.out]).toEqual([0, "hook: sent\n"]);
  const all = await place.run("notify", "test");
  expect(all.code).not.toBe(0);
  expect(all.out).toContain("gone: failed: the receiver answered 404");
  const none = await place.run("notify", "test", "nobody");
  expect(none.err).toContain("The channels are hook, gone");
});
