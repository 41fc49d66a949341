// The decision as a sentence, a change and a proof; undo where the regret is; a pause with a size. In a real browser.

import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { axeFindings } from "./axe.ts";
import { type ConsoleWorld, closeContext, openConsole, propose, seen } from "./console-world.ts";
import { jsonOnScreen } from "./json-on-screen.ts";

let world: ConsoleWorld;
let page: Page;

beforeAll(async () => {
  world = await openConsole();
});

beforeEach(async () => {
  page = await world.signIn({ size: { width: 1_280, height: 800 } });
});

afterEach(() => closeContext(page));

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  expect(world.problems).toEqual([]);
});

const button = (name: string) => page.getByRole("button", { name, exact: true });
const item = (id: string) => page.locator(`article[data-item="${id}"]`);
const ready = (name: string) => button(name).and(page.locator(":enabled")).first();
const refund = (customer: string, cents: number) => ({ customer, invoice: "INV-2041", cents });

async function cancel(...ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await world.gate.interactions.cancel(id, { by: "person:bob", reason: "over" });
  }
}

test("the sentence of the tool is the heading and the name of the row, and why, change and Approve need no scrolling [W10]", async () => {
  const session = await world.session("agent:support");
  const id = await propose(session, "billing.refund", refund("Ana Ruiz", 12_900));
  await page.goto(`${world.server.url}/inbox/${id}`);
  const sentence = "Refund 129.00 EUR to Ana Ruiz";
  await page.getByRole("heading", { level: 1, name: sentence }).waitFor();
  await page
    .getByRole("list", { name: "Questions" })
    .getByRole("button", { name: sentence })
    .waitFor();
  await item(id).getByText("It changes money.").waitFor();
  for (const place of [
    ready("Approve"),
    item(id).getByText("charged twice").first(),
    item(id).getByText("Why you"),
  ]) {
    await place.waitFor();
    const box = await place.boundingBox();
    expect((box?.y ?? 801) + (box?.height ?? 0)).toBeLessThanOrEqual(800);
  }
  // The input is one key away, the proof too.
  const input = item(id).getByRole("figure", { name: "Input of billing.refund" });
  expect(await input.isVisible()).toBe(false);
  await page.keyboard.press("i");
  await input.waitFor();
  expect(await item(id).getByText("Policy", { exact: true }).isVisible()).toBe(false);
  await page.keyboard.press(".");
  await item(id).getByText("Policy", { exact: true }).waitFor();
  expect(await jsonOnScreen(page)).toEqual([]);
  expect(await axeFindings(page)).toEqual([]);
  await cancel(id);
});

test("a title that was altered on its way is noticed: no approval [W10]", async () => {
  const session = await world.session("agent:support");
  const id = await propose(session, "billing.refund", refund("Mallory", 480_000));
  await page.route(`**/v1/interactions/${id}/shown`, async (route) => {
    const answer = await route.fetch();
    const body = (await answer.text()).replaceAll("Refund 4800.00 EUR", "Refund 4.80 EUR");
    await route.fulfill({ response: answer, body });
  });
  await page.goto(`${world.server.url}/inbox/${id}`);
  await page.getByRole("heading", { level: 1, name: "Refund 4.80 EUR" }).waitFor();
  await page.getByText("This page does not show what the approval would be bound to").waitFor();
  await seen(page);
  expect(await button("Approve").isDisabled()).toBe(true);
  await cancel(id);
});

test("undo from the toast: a, z, Enter, and the world is as before [W11]", async () => {
  const session = await world.session("agent:support");
  const id = await propose(session, "billing.refund", refund("Ben Okafor", 4_500));
  await page.goto(`${world.server.url}/inbox/${id}`);
  await ready("Approve").waitFor();
  await page.keyboard.press("a");
  await page.getByText("Approved. Refund 45.00 EUR to Ben Okafor").waitFor();
  expect(world.effects).toContain("refund Ben Okafor 4500");
  await page.keyboard.press("z");
  const dialog = page.getByRole("dialog", { name: "Undo this call?" });
  await dialog.getByText("Cancel the refund of 45.00 EUR").first().waitFor();
  await dialog.getByRole("button", { name: "Undo" }).and(page.locator(":enabled")).waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await page.keyboard.press("Enter");
  await page.getByText("Undone.").first().waitFor();
  expect(world.effects).toContain("cancel refund Ben Okafor");
  await page.goto(`${world.server.url}/decisions/${id}`);
  await item(id).getByText("Undone", { exact: true }).waitFor();
  expect(await button("Undo").count()).toBe(0);
});

test("undo of what somebody else changed since says so and does nothing [W11]", async () => {
  const session = await world.session("agent:stock");
  const id = await propose(session, "stock.set", { sku: "bolt-m8", quantity: 60 });
  await page.goto(`${world.server.url}/inbox/${id}`);
  await ready("Approve").click();
  await page.getByText("Approved. bolt-m8: 120 → 60").waitFor();
  world.stock.set("bolt-m8", 61);
  await page.goto(`${world.server.url}/decisions/${id}`);
  await button("Undo").click();
  await page.getByRole("dialog").getByText("Changed since", { exact: true }).waitFor();
  expect(await page.getByRole("dialog").getByRole("button", { name: "Undo" }).isDisabled()).toBe(
    true,
  );
  expect(world.stock.get("bolt-m8")).toBe(61);
  world.stock.set("bolt-m8", 120);
});

test("a yes to what changed bounces: the page becomes the new question with what was seen and what is now [W4]", async () => {
  const session = await world.session("agent:stock");
  world.stock.set("drift", 80);
  const id = await propose(session, "stock.set", { sku: "drift", quantity: 50 });
  await page.goto(`${world.server.url}/inbox/${id}`);
  await ready("Approve").waitFor();
  world.stock.set("drift", 33);
  await page.keyboard.press("a");
  await page.getByText("Not run. It changed since you saw it").waitFor();
  const next = (await world.gate.interactions.get(id)).supersededBy ?? "";
  await page.waitForURL(`**/inbox/${next}`);
  const changed = page.getByRole("table", { name: "What was approved, and what would happen now" });
  await changed.getByRole("row", { name: /impact.before.quantity 80 33/ }).waitFor();
  expect(await jsonOnScreen(page)).toEqual([]);
  expect(world.stock.get("drift")).toBe(33);
  await ready("Approve").click();
  await expect.poll(() => world.stock.get("drift")).toBe(50);
});

test("a pause of one agent says who, why and how many wait; its approval is kept, another agent's call runs [W9]", async () => {
  const [bad, good] = await Promise.all([world.session("agent:bad"), world.session("agent:good")]);
  const kept = await propose(bad, "stock.set", { sku: "p-1", quantity: 1 });
  const ran = await propose(good, "stock.set", { sku: "p-2", quantity: 2 });
  await page.goto(`${world.server.url}/inbox/${kept}`);
  await ready("Approve").waitFor();
  await page.keyboard.press("p");
  const dialog = page.getByRole("dialog", { name: "Pause" });
  // Prefilled from the page.
  expect(await dialog.getByLabel("Agent").inputValue()).toBe("agent:bad");
  await dialog.getByText("1 waiting.").waitFor();
  await dialog.getByLabel("Reason (recorded in the audit log)").fill("prices are wrong");
  expect(await axeFindings(page)).toEqual([]);
  await page.keyboard.press("Enter");
  const banner = page.getByRole("alert").filter({ hasText: "agent:bad is paused" });
  await banner.getByText("by person:ada").waitFor();
  await banner.getByText("“prices are wrong”").waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await ready("Approve").waitFor();
  await page.keyboard.press("a");
  await page.getByText("Approved. Work is paused: it runs after Resume").waitFor();
  await page.goto(`${world.server.url}/inbox/${ran}`);
  await ready("Approve").click();
  await expect.poll(() => world.stock.get("p-2")).toBe(2);
  expect(world.stock.get("p-1")).toBeUndefined();
  expect((await world.gate.decisions.get(kept)).state).toBe("approved");
  await banner.getByRole("button", { name: "Resume" }).click();
  await page.getByLabel("Reason (recorded in the audit log)").fill("fixed");
  await page.keyboard.press("Enter");
  await banner.waitFor({ state: "detached" });
  await expect.poll(() => world.stock.get("p-1")).toBe(1);
  expect((await world.gate.decisions.get(kept)).state).toBe("executed");
});

test("a link to a decision survives the sign-in: signed out, sign in by another link, same item [W14]", async () => {
  const session = await world.session("agent:support");
  const id = await propose(session, "billing.refund", refund("Ana Ruiz", 700));
  const context = await world.browser.newContext({ locale: "en-GB" });
  const fresh = await context.newPage();
  await fresh.goto(`${world.server.url}/inbox/${id}`);
  await fresh.getByRole("heading", { name: "A decision waits for you" }).waitFor();
  // Nothing of its content is told to somebody who has not signed in.
  expect(await fresh.locator("body").innerText()).not.toContain("Ana Ruiz");
  const link = await world.server.signInLink({
    tenant: "acme",
    subject: "person:eve",
    roles: ["reviewer"],
  });
  await fresh.goto(link);
  await fresh.getByRole("button", { name: "Sign in" }).click();
  await fresh.waitForURL(`**/inbox/${id}`);
  await fresh.getByRole("heading", { level: 1, name: "Refund 7.00 EUR to Ana Ruiz" }).waitFor();
  await context.close();
  await cancel(id);
});

test("decisions are found by words, the address holds the search, and the overview counts them [W12 W13]", async () => {
  const session = await world.session("agent:finder");
  const id = await propose(session, "billing.refund", {
    customer: "Zoe Quill",
    invoice: "INV-777001",
    cents: 1_234,
  });
  const { hash } = await world.gate.interactions.get(id);
  await world.gate.interactions.reject(id, { hash, by: "person:bob", reason: "already paid back" });
  await session.call({ callId: "no", tool: "no.such_tool", input: {} });
  await page.goto(`${world.server.url}/decisions`);
  await page.getByLabel("Search decisions").fill("777001");
  const row = page.locator(`[data-call="${id}"]`);
  await row.getByText("Rejected").waitFor();
  await row.getByText("already paid back").waitFor();
  await expect.poll(() => page.locator("[data-call]").count()).toBe(1);
  expect(new URL(page.url()).searchParams.get("text")).toMatch(/777001/);
  // Another browser with the same address shows the same list.
  const other = await world.signIn({
    subject: "person:bob",
    to: new URL(page.url()).pathname + new URL(page.url()).search,
  });
  await other.locator(`[data-call="${id}"]`).waitFor();
  expect(await other.locator("[data-call]").count()).toBe(1);
  await closeContext(other);
  expect(await axeFindings(page)).toEqual([]);
  await page.goto(`${world.server.url}/decisions?tab=refused`);
  await page.getByText("no.such_tool").first().waitFor();
  await page.goto(`${world.server.url}/overview`);
  const agents = page.getByRole("table", { name: "By agent" });
  await agents.getByRole("row", { name: "agent:finder 2 1 1 0 0" }).waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await agents.getByRole("link", { name: "agent:finder" }).click();
  await page.waitForURL("**/decisions?agent=*");
  await expect.poll(() => page.locator("[data-call]").count()).toBe(2);
});
