// E-mail, through nodemailer, to a real SMTP server in another process.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import path from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { install } from "../../scripts/install.mjs";
import { email } from "../../src/notify/index.ts";
import { CANARY, openNotifyWorld } from "./notify-world.ts";

const tools = path.resolve(import.meta.dirname, "../../tools/notify");
await install(tools, "a mail server and webhook checks", process.env);
const nodemailer = createRequire(path.join(tools, "package.json"))("nodemailer");

async function startSmtp() {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, "smtp-child.ts")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => child.once("close", resolve));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => String((await lines.next()).value);
  const port = Number(await next());
  return { port, mail: async () => JSON.parse(await next()) as { to: string[]; text: string } };
}

test("a mail has a link and a message id that stays, neither input nor approval; the decision is a mail of its own", async () => {
  const { port, mail } = await startSmtp();
  const world = openNotifyWorld();
  const transport = nodemailer.createTransport({ host: "127.0.0.1", port, secure: false });
  const ops = email({
    transport,
    from: "gate@shop.example",
    to: ["ada@shop.example", "ben@shop.example"],
  });
  const notifier = world.notifier({ channels: { ops }, routes: [{ to: ["ops"] }] });
  const id = await world.ask();
  expect(await notifier.round()).toMatchObject({ sent: 1 });
  const first = await mail();
  const [notice] = await world.notices.about(id);
  expect(first.to).toEqual(["ada@shop.example", "ben@shop.example"]);
  expect(first.text).toContain(`Message-ID: <${notice?.id}@shop.example>`);
  expect(first.text.replaceAll("=\r\n", "")).toContain(`https://gate.example.com/inbox/${id}`);
  expect(first.text).toContain("Auto-Submitted: auto-generated");
  expect(first.text).not.toContain(CANARY);
  expect(first.text).not.toContain("approve");
  await world.approve(id);
  await notifier.round();
  expect((await mail()).text.replaceAll("=\r\n", "")).toContain("approved by person:ada");
});

test("a mail server that does not answer is tried again", async () => {
  const world = openNotifyWorld();
  const transport = nodemailer.createTransport({ host: "127.0.0.1", port: 1, secure: false });
  const ops = email({ transport, from: "gate@shop.example", to: ["ada@shop.example"] });
  const notifier = world.notifier({ channels: { ops }, routes: [{ to: ["ops"] }] });
  await world.ask();
  expect(await notifier.round()).toMatchObject({ failed: 1 });
  expect(await world.notices.list({ state: "waiting", limit: 5 })).toMatchObject([{ attempts: 1 }]);
});

test.each([
  ["gate@shop.example", []],
  ["gate", ["ada@shop.example"]],
  ["gate@shop.example", ["ada@shop.example, eve@evil.example"]],
  ["gate@shop.example", ["ada@shop.example\r\nBcc: eve@evil.example"]],
])("from %j to %j is refused", (from, to) => {
  const transport = { sendMail: async () => undefined };
  expect(() => email({ transport, from, to })).toThrow("plain address");
});
