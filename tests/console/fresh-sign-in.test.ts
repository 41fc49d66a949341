// L3: a window that was left open may not approve what cannot be undone; signing in again happens on the same page.

import { expect, test } from "vitest";
import { openConsole, propose } from "./console-world.ts";

const MINUTE = 60_000;

test("after fifteen minutes an irreversible approval asks for a new sign-in, keeps the page, and then works [L3]", async () => {
  let late = 0;
  await using world = await openConsole({ clock: { now: () => Date.now() + late } });
  const page = await world.signIn({ subject: "person:ada" });
  const session = await world.session("agent:stock");
  const order = { supplier: "north", sku: "bolt-m8", quantity: 3 };
  const id = await propose(session, "orders.place", order);
  await page.locator(`li[data-id="${id}"]`).getByRole("button").click();
  late = 16 * MINUTE;
  const approve = async () => {
    const yes = page.getByRole("button", { name: "Approve" }).and(page.locator(":enabled"));
    await yes.first().click();
    const confirm = page.getByRole("dialog").getByRole("button", { name: "Approve" });
    if ((await confirm.count()) > 0) await confirm.click();
  };
  await approve();
  await page.getByText("this needs a sign-in of the last 15 minutes").waitFor();
  expect(world.effects).toEqual([]);
  late = 0;
  const link = await world.server.signInLink({ subject: "person:ada", roles: ["reviewer"] });
  await page.getByLabel("Paste a sign-in link").fill(link);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("You are signed in. Try again now.").waitFor();
  await approve();
  await expect.poll(() => world.effects).toEqual(["order bolt-m8 3"]);
  expect(world.problems).toEqual([]);
});
