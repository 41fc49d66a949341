// What stands between a reviewer and a right answer: the time until Approve, a key meant for something else, a question that
// changes its place, and what the gate and the agent say about a call. In a real browser.

import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { axeFindings } from "./axe.ts";
import { type ConsoleWorld, closeContext, openConsole, propose } from "./console-world.ts";
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
const approve = () => button("Approve").and(page.locator(":enabled"));
const item = (id: string) => page.locator(`article[data-item="${id}"]`);
const statusOf = async (id: string) => (await world.gate.interactions.get(id)).status;

async function three(prefix: string): Promise<readonly [string, string, string]> {
  const session = await world.session("agent:stock");
  const one = (n: number) => propose(session, "stock.set", { sku: `${prefix}${n}`, quantity: n });
  return [await one(1), await one(2), await one(3)];
}

async function cancel(...ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    if ((await statusOf(id)) === "open") {
      await world.gate.interactions.cancel(id, { by: "person:bob", reason: "over" });
    }
  }
}

test("a second press of the key does not approve the question that the page moved on to; a moment later it does", async () => {
  const [first, second, third] = await three("k");
  await page.goto(`${world.server.url}/inbox/${first}`);
  await approve().waitFor();
  await page.keyboard.press("a");
  await item(second).waitFor();
  await approve().waitFor();
  await page.keyboard.press("a");
  // Neither does the second half of a double click.
  await approve().dispatchEvent("click", { detail: 2 });
  await page.waitForTimeout(200);
  expect(await statusOf(second)).toBe("open");
  await page.waitForTimeout(600);
  await page.keyboard.press("a");
  await item(third).waitFor();
  await expect.poll(() => statusOf(second)).toBe("resolved");
  await cancel(third);
});

test("a question that the reviewer opened is approved by the first key press, without a wait", async () => {
  const [first, second, third] = await three("o");
  await page.goto(`${world.server.url}/inbox/${first}`);
  await approve().waitFor();
  await page.keyboard.press("j");
  await item(second).waitFor();
  await approve().waitFor();
  await page.keyboard.press("a");
  await expect.poll(() => statusOf(second)).toBe("resolved");
  await cancel(first, third);
});

test("a question that came back changed takes the place of the one it came from", async () => {
  const ids = await three("p");
  const [, middle] = ids;
  await page.goto(`${world.server.url}/inbox/${middle}`);
  await approve().waitFor();
  const places = () =>
    page
      .locator("li[data-id]")
      .evaluateAll((rows) => rows.map((row) => row.getAttribute("data-id")));
  await expect.poll(places).toEqual([...ids]);
  world.stock.set("p2", 77);
  await approve().click();
  await page.getByText("It changed since you saw it.").first().waitFor();
  const next = (await world.gate.interactions.get(middle)).supersededBy;
  await expect.poll(places).toEqual([ids[0], next, ids[2]]);
  // Also once the whole list is read again.
  await page.evaluate(() => dispatchEvent(new Event("online")));
  expect(await places()).toEqual([ids[0], next, ids[2]]);
  await cancel(ids[0], next, ids[2]);
});

test("warnings of the gate, the amount and the agent's counter-check are shown as what they are", async () => {
  const session = await world.session("agent:printer");
  const check = {
    step: "1",
    hiddenAssumptions: ["the printer has paper"],
    failureScenarios: ["old labels stay on the shelves"],
    verdict: "A_holds",
    reason: "nobody works in the hall now",
  };
  const id = await propose(session, "labels.reprint", { hall: "2", _reverse_thinking: check });
  const refund = await propose(session, "billing.refund", {
    customer: "Ana Ruiz",
    invoice: "INV-7",
    cents: 129_900,
  });
  for (const theme of ["light", "dark"] as const) {
    for (const size of [
      { width: 1_280, height: 800 },
      { width: 360, height: 740 },
    ]) {
      const other = await world.signIn({ theme, size, to: `/decisions/${id}` });
      const warnings = other.getByRole("list", { name: "Warnings" });
      await warnings.getByText("has neither a dry run nor an undo.").waitFor();
      expect(await warnings.innerText()).not.toContain("prefer a tool");
      const said = other.getByRole("region", { name: "Counter-check" });
      await said.getByText("keeps to its plan").waitFor();
      await said.getByText("old labels stay on the shelves").waitFor();
      await said.getByText("the printer has paper").waitFor();
      expect(await jsonOnScreen(other)).toEqual([]);
      await other.locator("#main").evaluate((main) => main.scrollTo(0, main.scrollHeight));
      expect(await axeFindings(other, theme)).toEqual([]);
      await closeContext(other);
    }
  }
  await page.goto(`${world.server.url}/decisions/${refund}`);
  await page.locator("[data-amount]").getByText("€1,299.00").waitFor();
  await cancel(id, refund);
});

test("a bar of the overview opens the calls of its time", async () => {
  const session = await world.session("agent:bars");
  await session.call({ callId: "look", tool: "stock.look", input: { sku: "nut-m8" } });
  await page.goto(`${world.server.url}/overview`);
  const bar = page.locator("[data-bar]").last();
  const from = (await bar.getAttribute("data-bar")) ?? "";
  await bar.click();
  await page.waitForURL("**/decisions?**");
  expect(new URL(page.url()).searchParams.get("from")?.replaceAll('"', "")).toBe(from);
  await page.locator("li[data-call]").filter({ hasText: "stock.look" }).first().waitFor();
});

test("the page of tools says how many calls were denied, by every tool, check and agent", async () => {
  for (const name of ["agent:one", "agent:two"]) {
    const session = await world.session(name);
    // Without the counter-check that this tool needs.
    await session.call({ callId: "no", tool: "labels.reprint", input: { hall: "2" } });
  }
  await page.goto(`${world.server.url}/tools`);
  await page.getByText("denied since the server was started").click();
  const agents = page.getByRole("table", { name: "Denied by agent" });
  for (const name of ["agent:one", "agent:two"]) {
    await agents.getByRole("row", { name: `${name} 1` }).waitFor();
  }
  const tools = page.getByRole("table", { name: "Denied by tool" });
  await tools.getByRole("row", { name: "labels.reprint 2" }).waitFor();
  const checks = page.getByRole("table", { name: "Denied by check" });
  await checks.getByRole("row", { name: /reverse-thinking 2/ }).waitFor();
  expect(await axeFindings(page)).toEqual([]);
});

test("evidence that the gate did not see itself is called claimed, not proved", async () => {
  const promise = { id: "p", statement: "It works.", evidence: [{ name: "walk" }] };
  const run = await world.gate.runs.start({
    feature: "Claims",
    lead: "agent:lead",
    promise,
    documents: "",
    evidenceFolder: "",
    budget: 3,
  });
  await page.route(`**/v1/runs/${run.id}`, async (route) => {
    const answer = await route.fetch();
    const body = await answer.json();
    const claim = {
      promiseId: "p",
      need: "walk",
      command: "",
      exitCode: 0,
      keyOutput: "",
      conclusion: "I walked",
      green: true,
      sessionId: run.id,
      at: new Date().toISOString(),
    };
    await route.fulfill({ json: { ...body, evidence: [claim] } });
  });
  await page.goto(`${world.server.url}/runs/${run.id}`);
  await page.getByText("I walked").waitFor();
  await page.getByText("claimed", { exact: true }).waitFor();
  expect(await page.getByText("proved", { exact: true }).count()).toBe(0);
});
