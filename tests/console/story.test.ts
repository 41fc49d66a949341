// What people do in the console, in a real browser, from the sign-in link to the kill switch.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { closeContext, type ConsoleWorld, openConsole, propose } from "./console-world.ts";

let world: ConsoleWorld;
let page: Page;

beforeAll(async () => {
  world = await openConsole();
  page = await world.signIn();
}, 60_000);

afterAll(async () => {
  expect(world.problems).toEqual([]);
  await world[Symbol.asyncDispose]();
});

const row = (id: string) => page.locator(`li[data-id="${id}"]`);
const item = (id: string) => page.locator(`article[data-item="${id}"]`);

test("a question appears by itself, facts first, and is approved by keyboard; the card goes when the store says so", async () => {
  const session = await world.session("agent:stock");
  const id = await propose(session, "stock.set", { sku: "bolt-m8", quantity: 100 });
  await row(id).waitFor();
  await row(id).getByText("bolt-m8: 120 → 100").waitFor();
  await item(id).getByText("-quantity: 120").waitFor();
  await item(id).getByText("this page shows the very bytes that are hashed").waitFor();
  await page.getByRole("button", { name: "Approve" }).and(page.locator(":enabled")).waitFor();
  await page.keyboard.press("a");
  await page.getByText("Approved and carried out.").waitFor();
  await row(id).waitFor({ state: "detached" });
  expect(world.stock.get("bolt-m8")).toBe(100);
  expect((await world.port.decisions.get(id)).state).toBe("executed");
});
