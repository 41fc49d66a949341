// Foreign pages in the browser of a signed-in person: no request of theirs has an effect, and none can frame the console (T16).

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ConsoleWorld, openConsole, propose } from "./console-world.ts";

let world: ConsoleWorld;
let page: Page;
let foreign: Server;
let id: string;

beforeAll(async () => {
  world = await openConsole();
  page = await world.signIn({ roles: ["reviewer", "operator", "admin"] });
  id = await propose(await world.session("agent:stock"), "stock.set", {
    sku: "bolt-m8",
    quantity: 1,
  });
  foreign = createServer((_, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end("<!doctype html><title>another page</title><body></body>");
  });
  await new Promise<void>((resolve) => foreign.listen(0, "127.0.0.1", resolve));
});

afterAll(async () => {
  foreign.close();
  await world[Symbol.asyncDispose]();
});

/** Everything that a page can send without being asked. */
async function attack(victim: string, hash: string): Promise<number> {
  return page.evaluate(
    async ([server, question, seen]) => {
      const changes: readonly (readonly [string, object])[] = [
        ["/v1/switch/stop", { reason: "x" }],
        [`/v1/interactions/${question}/approve`, { id: question, hash: seen }],
        [`/v1/interactions/${question}/reject`, { id: question, hash: seen }],
        ["/v1/interactions/approve-batch", { items: [{ id: question, hash: seen }] }],
        ["/v1/tokens", { subject: "eve", roles: ["admin"] }],
        ["/v1/tasks", { subject: "planted" }],
        ["/v1/me/sign-out", {}],
      ];
      let sent = 0;
      for (const [path, body] of changes) {
        for (const type of [
          "text/plain",
          "application/json",
          "application/x-www-form-urlencoded",
        ]) {
          for (const mode of ["no-cors", "cors"] as const) {
            sent += 1;
            const text = JSON.stringify(body);
            const headers = { "Content-Type": type };
            await fetch(server + path, {
              method: "POST",
              mode,
              credentials: "include",
              headers,
              body: text,
            }).catch(() => {});
          }
        }
        // A form whose field, read as JSON, is the body.
        const frame = document.createElement("iframe");
        frame.name = `f${sent}`;
        const form = document.createElement("form");
        form.method = "post";
        form.enctype = "text/plain";
        form.target = frame.name;
        form.action = server + path;
        const field = document.createElement("input");
        field.name = JSON.stringify(body).replace(/}$/, ',"x":"');
        field.value = '"}';
        form.append(field);
        document.body.append(frame, form);
        form.submit();
        const picture = document.createElement("img");
        picture.src = server + path;
        document.body.append(picture);
        navigator.sendBeacon(server + path, JSON.stringify(body));
        sent += 3;
      }
      await new Promise((resolve) => setTimeout(resolve, 500));
      return sent;
    },
    [victim, id, hash] as const,
  );
}

test("forms, fetches, beacons and images of other pages change nothing [T16]", async () => {
  const { hash } = await world.gate.interactions.get(id);
  const { seq } = await world.gate.audit.head();
  const { port } = foreign.address() as AddressInfo;
  let sent = 0;
  // The same machine under another port is the same site to a browser, under another name it is not.
  for (const name of ["127.0.0.1", "localhost"]) {
    await page.goto(`http://${name}:${port}/`);
    sent += await attack(world.server.url, hash);
  }
  expect(sent).toBeGreaterThan(100);
  expect((await world.gate.audit.head()).seq).toBe(seq);
  expect(await world.gate.killSwitch.isStopped()).toBe(false);
  expect((await world.gate.interactions.get(id)).status).toBe("open");
  expect(world.effects).toEqual([]);
  // The person is still signed in and nothing was lost.
  await page.goto(`${world.server.url}/inbox`);
  await page.locator(`li[data-id="${id}"]`).waitFor();
});

test("no page can frame the console, and opening a sign-in link does not use it up [T16]", async () => {
  const { port } = foreign.address() as AddressInfo;
  await page.goto(`http://127.0.0.1:${port}/`);
  for (const path of ["/inbox", "/signin", "/v1/me"]) {
    await page.evaluate(async (address) => {
      const frame = document.createElement("iframe");
      frame.src = address;
      document.body.append(frame);
      await new Promise((resolve) => frame.addEventListener("load", resolve));
    }, world.server.url + path);
  }
  const inside = page.frames().slice(1);
  expect(inside).toHaveLength(3);
  for (const frame of inside) {
    expect(frame.url()).toMatch(/^chrome-error:/);
    expect(await frame.getByText("Sallyport").count()).toBe(0);
  }
  const link = await world.server.signInLink({
    tenant: "acme",
    subject: "person:new",
    roles: ["reviewer"],
  });
  for (const method of ["GET", "HEAD", "OPTIONS", "GET"]) await fetch(link, { method });
  const fresh = await (await world.browser.newContext()).newPage();
  await fresh.goto(link);
  await fresh.getByRole("button", { name: "Sign in" }).click();
  await fresh.waitForURL(`${world.server.url}/inbox**`);
});
