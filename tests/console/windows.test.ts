// Two windows on one server: both stay current without a reload, and neither shows anything false.

import { afterAll, beforeAll, expect, test } from "vitest";
import { type ConsoleWorld, openConsole, propose, seen } from "./console-world.ts";

let world: ConsoleWorld;

beforeAll(async () => {
  world = await openConsole();
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  expect(world.problems).toEqual([]);
});

test("two windows stay current without reload, a reload shows the full list, and the second approver learns who was first [R14 R15]", async () => {
  const [ada, bob] = await Promise.all([
    world.signIn({ subject: "person:ada" }),
    world.signIn({ subject: "person:bob" }),
  ]);
  const session = await world.session("agent:stock");
  const ids: string[] = [];
  for (let i = 0; i < 5; i += 1)
    ids.push(await propose(session, "stock.set", { sku: `w-${i}`, quantity: i }));
  const rows = (page: typeof ada) => page.locator("li[data-id]");
  for (const page of [ada, bob]) await expect.poll(() => rows(page).count()).toBe(5);
  await bob.reload();
  await expect.poll(() => rows(bob).count()).toBe(5);
  await bob.getByText("live", { exact: true }).waitFor();

  // Both look at the same one; Ada is faster, and Bob's page says so instead of moving on to something else.
  const [first = ""] = ids;
  await bob.locator(`li[data-id="${first}"]`).getByRole("button").click();
  await bob.locator(`article[data-item="${first}"]`).getByText("Approve").waitFor();
  await ada.locator(`li[data-id="${first}"]`).getByRole("button").click();
  await ada.getByRole("button", { name: "Approve" }).and(ada.locator(":enabled")).click();
  await ada.getByText("Approved. ").waitFor();
  await expect.poll(() => rows(bob).count()).toBe(4);
  await bob
    .locator(`article[data-item="${first}"]`)
    .getByText("person:ada approved this")
    .waitFor();
  expect(await bob.getByRole("button", { name: "Approve" }).count()).toBe(0);

  // The same question from two windows at the same moment: one effect, and the loser learns it.
  const [, second = ""] = ids;
  for (const page of [ada, bob]) {
    await page.locator(`li[data-id="${second}"]`).getByRole("button").click();
    await page.getByRole("button", { name: "Approve" }).and(page.locator(":enabled")).waitFor();
  }
  await Promise.all([ada.keyboard.press("a"), bob.keyboard.press("a")]);
  for (const page of [ada, bob]) await expect.poll(() => rows(page).count()).toBe(3);
  expect(world.effects.filter((effect) => effect === "set w-1 1")).toHaveLength(1);
  const told = await Promise.all([ada, bob].map((page) => page.getByText("Approved. ").count()));
  const { answeredBy } = await world.gate.interactions.get(second);
  expect(told[answeredBy === "person:ada" ? 0 : 1]).toBe(1);

  // The kill switch shows in the other window too.
  await world.gate.killSwitch.stop("drill", { actor: "person:ops" });
  for (const page of [ada, bob]) await page.getByText("Everything is paused").waitFor();
  await world.gate.killSwitch.resume("over", { actor: "person:ops" });
  for (const page of [ada, bob]) {
    await page.getByText("Everything is paused").waitFor({ state: "detached" });
  }
});

test("changes made while the server was unreachable appear when it is back", async () => {
  const page = await world.signIn({ subject: "person:eve" });
  const session = await world.session("agent:away");
  const before = await page.locator("li[data-id]").count();
  await world.server.close();
  await page.getByText("not live", { exact: true }).waitFor();
  const id = await propose(session, "stock.set", { sku: "away", quantity: 1 });
  expect(await page.locator("li[data-id]").count()).toBe(before);
  await world.restart();
  await page.locator(`li[data-id="${id}"]`).waitFor();
  await page.getByText("live", { exact: true }).waitFor();
});

test("a question that could not be read when its event came is shown all the same [R13]", async () => {
  const page = await world.signIn({ subject: "person:fay" });
  await page.getByText("live", { exact: true }).waitFor();
  let refused = 0;
  await page.route(/\/v1\/interactions\/[^/?]+$/, (route) => {
    refused += 1;
    return route.fulfill({ status: 400, json: { error: { code: "invalid_input" } } });
  });
  const session = await world.session("agent:unread");
  const id = await propose(session, "stock.set", { sku: "unread", quantity: 1 });
  await page.locator(`li[data-id="${id}"]`).waitFor();
  expect(refused, "void: nothing was refused").toBeGreaterThan(0);
});

test("a list that was read before a question was asked does not hide it [R13]", async () => {
  const page = await world.signIn({ subject: "person:gus" });
  const { promise: asked, resolve: letThrough } = Promise.withResolvers<void>();
  const { promise: held, resolve: isHeld } = Promise.withResolvers<void>();
  let lists = 0;
  // The first list is read with the page, the second when the feed is open.
  await page.route(/\/v1\/interactions\?/, async (route) => {
    lists += 1;
    const response = await route.fetch();
    if (lists === 2) {
      isHeld();
      await asked;
    }
    await route.fulfill({ response });
  });
  await page.reload();
  await held;
  await page.getByText("live", { exact: true }).waitFor();
  const session = await world.session("agent:late");
  const id = await propose(session, "stock.set", { sku: "late", quantity: 1 });
  // The event comes while the old list is still on its way.
  await page.waitForTimeout(500);
  letThrough();
  await page.locator(`li[data-id="${id}"]`).waitFor();
  await page.waitForTimeout(200);
  expect(await page.locator(`li[data-id="${id}"]`).count()).toBe(1);
});

test("a person who may not decide sees why, and no buttons", async () => {
  const session = await world.session("agent:stock");
  const id = await propose(session, "stock.set", { sku: "mine", quantity: 1 });
  const page = await world.signIn({
    subject: "person:aud",
    roles: ["auditor"],
    to: `/inbox/${id}`,
  });
  await page.getByText("Only a reviewer decides").waitFor();
  await seen(page);
  expect(await page.getByRole("button", { name: "Approve" }).isEnabled()).toBe(false);
  expect(await page.getByRole("button", { name: "Pause" }).isEnabled()).toBe(false);
  await page.keyboard.press("a");
  await page.keyboard.press("r");
  expect(await page.getByRole("dialog").count()).toBe(0);
  expect((await world.gate.interactions.get(id)).status).toBe("open");
});

test("an expired sign-in says so, and signing out ends it", async () => {
  const page = await world.signIn({ subject: "person:zoe" });
  await page.keyboard.press("?");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL("**/signin");
  await page.goto(`${world.server.url}/inbox`);
  await page.getByRole("heading", { name: "You are not signed in" }).waitFor();
});
