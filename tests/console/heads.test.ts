// The inbox lists heads; what is decided together is shown whole.

import { afterAll, beforeAll, expect, test } from "vitest";
import { type ConsoleWorld, openConsole, propose } from "./console-world.ts";

let world: ConsoleWorld;

beforeAll(async () => {
  world = await openConsole();
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  expect(world.problems).toEqual([]);
});

test("decide together: an input truncated in the list is shown in full before approval [M11]", {
  timeout: 100_000,
}, async () => {
  const session = await world.session("agent:stock");
  const sku = `${"x".repeat(9_000)}-the-end`;
  const id = await propose(session, "stock.set", { sku, quantity: 1 });
  // Loaded after it was asked, so that the page has it from the list and not from the feed.
  const page = await world.signIn();
  await page.goto(`${world.server.url}/inbox`);
  await page.locator(`li[data-id="${id}"]`).getByRole("checkbox").check();
  await page.getByRole("button", { name: /^Review \d+$/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Show everything first" }).click();
  await dialog.getByText("-the-end").first().waitFor();
  await page.getByRole("button", { name: "Approve 1", exact: true }).click();
  await page.getByText("1 call approved and executed").first().waitFor();
  expect(world.stock.get(sku)).toBe(1);
});
