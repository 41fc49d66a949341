// What `npm start` shows by itself besides its three agents: a plan that waits, sub-agents, and a conversation to answer.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { axeFindings } from "./axe.ts";
import { launchBrowser } from "./browser.ts";
import { jsonOnScreen } from "./json-on-screen.ts";
import { type Started, startDemo } from "./started.ts";

/** Three seconds on a quiet machine; tests share theirs. */
const LINK_MS = 10_000;

const folder = mkdtempSync(path.join(tmpdir(), "sallyport-demo-"));
let started: Started;
let browser: Browser;
let page: Page;
const problems: string[] = [];

beforeAll(async () => {
  const data = path.join(folder, "data");
  const before = await startDemo(data, "--empty");
  expect(await before.stop()).toBe(0);
  started = await startDemo(data);
  browser = await launchBrowser();
  const context = await browser.newContext({
    viewport: { width: 1_280, height: 800 },
    locale: "en-GB",
  });
  page = await context.newPage();
  page.on("pageerror", (error) => problems.push(error.message));
  await page.goto(started.link);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`${started.url}/inbox**`);
}, 90_000);

afterAll(async () => {
  await browser.close();
  const code = await started.stop();
  rmSync(folder, { recursive: true, force: true });
  expect(code).toBe(0);
  expect(started.problems()).toBe("");
  expect(problems).toEqual([]);
});

async function clean(): Promise<void> {
  expect(await axeFindings(page)).toEqual([]);
  expect(await jsonOnScreen(page)).toEqual([]);
}

test("npm start prints its link as quickly with the story as without", () => {
  console.info(`demo with its story: link after ${Math.round(started.linkMs)} ms`);
  expect(started.linkMs).toBeLessThan(LINK_MS);
});

test("delegations show a sub-agent at work and one below it that has reported; its own page lists what it did", async () => {
  await page.goto(`${started.url}/delegations`);
  const scout = page.getByRole("listitem").filter({ hasText: "agent:scout" }).first();
  await scout.getByText("active").first().waitFor();
  await scout.getByText("agent:shelf-counter").waitFor();
  await scout.getByText("promise kept").waitFor();
  await clean();
  await scout.getByRole("link", { name: "session" }).first().click();
  await page.getByRole("heading", { name: "Session of agent:scout" }).waitFor();
  await page.locator("li[data-call]").getByText("Ran alone").first().waitFor();
});

test("a run waits for its plan in the phase of planning; approved there, the plan names its files", async () => {
  await page.goto(`${started.url}/delegations`);
  await page.getByRole("link", { name: "Shelf labels for hall 2" }).click();
  await page.getByRole("heading", { level: 1, name: "Shelf labels for hall 2" }).waitFor();
  await page.getByRole("list", { name: "Phases" }).waitFor();
  expect(await page.locator("[aria-current=step]").innerText()).toBe("plan");
  await clean();
  await page.getByRole("link", { name: "Its plan waits for approval" }).click();
  await page.getByText("sql:warehouse/labels").first().waitFor();
  await page.getByRole("button", { name: "approve", exact: true }).click();
  await page.getByText("Answered.").waitFor();
  const { items } = await started.client.runs.list();
  await page.goto(`${started.url}/runs/${items[0]?.id}`);
  await page.getByText("sql:warehouse/shelves").waitFor();
});

test("a conversation waits; its plan and its call are decided on its page, and it goes on by itself to its end", async () => {
  await page.goto(`${started.url}/conversations`);
  await page.getByRole("link", { name: "Look how many desk lamps there are" }).click();
  await page.getByRole("list", { name: "Steps" }).waitFor();
  await clean();
  const waits = page.getByRole("region", { name: "What it waits for" });
  await waits
    .getByRole("button")
    .filter({ hasText: /accept/i })
    .first()
    .click();
  await waits.getByRole("heading", { name: "Take 10 × LAMP-01 out of stock" }).waitFor();
  await page.getByText("✓ done").waitFor();
  await clean();
  await waits.getByRole("button", { name: "Approve" }).and(page.locator(":enabled")).click();
  await page.getByText("This conversation has ended").waitFor();
  const { items } = await started.client.calls.list({ text: "for the fair" });
  expect(items).toMatchObject([{ outcome: "ran", by: "person:you" }]);
});
