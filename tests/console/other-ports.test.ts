// H1: browsers send a cookie to every port of a machine. An app of an agent on another loopback port gets the reviewer's cookie
// as soon as the reviewer looks at the app; with it, it reads nothing and decides nothing.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { raw } from "../http/http-world.ts";
import { type ConsoleWorld, openConsole, propose } from "./console-world.ts";

let world: ConsoleWorld;
let page: Page;
let app: Server;
let stolen: string[] = [];
/** What the app sets as its own cookie, when it wants to get in the way. */
let set = "";

beforeAll(async () => {
  world = await openConsole();
  page = await world.signIn({ roles: ["reviewer", "operator", "admin"] });
  // Opened as localhost it moves itself to 127.0.0.1, where the picture is a same-site request.
  app = createServer((request, response) => {
    const { cookie = "", host = "" } = request.headers;
    if (cookie.includes("sallyport_")) stolen.push(cookie);
    if (set !== "") response.setHeader("Set-Cookie", set);
    const { port } = app.address() as AddressInfo;
    response.setHeader("Content-Type", request.url === "/x.png" ? "image/png" : "text/html");
    response.end(
      host.startsWith("localhost")
        ? `<script>location.replace("http://127.0.0.1:${port}/")</script>`
        : '<h1>my app</h1><img src="/x.png">',
    );
  });
  await new Promise<void>((resolve) => app.listen(0, resolve));
});

afterAll(async () => {
  app.close();
  await world[Symbol.asyncDispose]();
});

/** What the app's server does with the cookie: it can send any header. */
async function attack(cookie: string, id: string, hash: string): Promise<readonly number[]> {
  const { url } = world.server;
  const headers = { cookie, origin: url, "content-type": "application/json" };
  const guesses = [
    {},
    { "x-sallyport-key": "" },
    { "x-sallyport-key": cookie.split(".")[1] ?? "" },
    { "x-sallyport-key": "A".repeat(43) },
    { "x-sallyport-csrf": "x", "sec-fetch-site": "same-origin" },
    { authorization: `Bearer ${cookie.split("=")[1]}` },
  ];
  const statuses: number[] = [];
  for (const guess of guesses) {
    const sent = { ...headers, ...guess };
    const reads = ["/v1/me", "/v1/interactions", "/v1/sessions", "/v1/events", "/v1/audit/export"];
    for (const path of reads) statuses.push((await raw(url + path, { headers: sent })).status);
    const post = async (path: string, body: object) => {
      const request = { method: "POST", headers: sent, body: JSON.stringify(body) };
      statuses.push((await raw(url + path, request)).status);
    };
    await post(`/v1/interactions/${id}/approve`, { hash });
    await post("/v1/switch/stop", { reason: "x" });
    await post("/v1/me/link", {});
    await post("/v1/me/sign-out", {});
  }
  return statuses;
}

test.each(["127.0.0.1", "localhost"])(
  "an app on another port, opened as %s, gets the cookie and can neither read nor decide with it [H1]",
  async (name) => {
    const session = await world.session("agent:stock");
    const id = await propose(session, "stock.set", { sku: `by-${name}`, quantity: 1 });
    const { hash } = await world.gate.interactions.get(id);
    const { seq } = await world.gate.audit.head();
    stolen = [];
    await page.goto(`http://${name}:${(app.address() as AddressInfo).port}/`);
    await page.getByRole("heading", { name: "my app" }).waitFor();
    await expect.poll(() => stolen.length).toBeGreaterThan(0);
    const statuses = await attack(stolen[0] ?? "", id, hash);
    expect(statuses).toHaveLength(54);
    expect(
      statuses.every((status) => status === 401),
      String(statuses),
    ).toBe(true);
    expect((await world.gate.audit.head()).seq).toBe(seq);
    expect((await world.gate.interactions.get(id)).status).toBe("open");
    expect(world.effects).toEqual([]);
    // Its own page cannot read the key either: storage belongs to one origin.
    expect(await page.evaluate(() => localStorage.getItem("sallyport-key"))).toBeNull();
    // The reviewer is still signed in.
    await page.goto(`${world.server.url}/inbox`);
    await page.locator(`li[data-id="${id}"]`).waitFor();
  },
  60_000,
);

test("an app that overwrites the cookie signs the reviewer out of the console, and in nowhere else [H1]", async () => {
  const own = await world.signIn({ subject: "person:ben" });
  const { port } = new URL(world.server.url);
  set = `sallyport_${port}=sallyport_YWNtZQ.${"A".repeat(43)}; Path=/`;
  await own.goto(`http://127.0.0.1:${(app.address() as AddressInfo).port}/`);
  set = "";
  await own.goto(`${world.server.url}/inbox`);
  await own.getByRole("heading", { name: "You are not signed in" }).waitFor();
  // A link that is pasted there signs in again, on the same page.
  await own.goto(`${world.server.url}/tools`);
  const link = await world.server.signInLink({ subject: "person:ben", roles: ["reviewer"] });
  await own.getByLabel("Paste a sign-in link").fill(link);
  await own.getByRole("button", { name: "Sign in" }).click();
  await own.getByText("live", { exact: true }).waitFor();
  expect(new URL(own.url()).pathname).toBe("/tools");
  await own.context().close();
});

test("signing out removes the key from the browser [H1]", async () => {
  const own = await world.signIn({ subject: "person:cyn" });
  const key = () => own.evaluate(() => localStorage.getItem("sallyport-key"));
  expect(await key()).toMatch(/^[\w-]{43}$/);
  await own.keyboard.press("?");
  await own.getByRole("button", { name: "Sign out" }).click();
  await own.waitForURL("**/signin");
  expect(await key()).toBeNull();
  await own.context().close();
});

test("the trail is downloaded with the key, and a link for the command line is made on request", async () => {
  const own = await world.signIn({ roles: ["reviewer", "operator"], to: "/audit" });
  const download = own.waitForEvent("download");
  await own.getByRole("button", { name: "Export as JSON Lines" }).click();
  expect((await download).suggestedFilename()).toBe("audit.jsonl");
  await own.keyboard.press("?");
  await own.getByRole("button", { name: "Make a sign-in link" }).click();
  const link = await own.getByLabel("It signs you in once").inputValue();
  expect(link).toContain(`${world.server.url}/signin?link=`);
  await own.context().close();
  expect(world.problems).toEqual([]);
});
