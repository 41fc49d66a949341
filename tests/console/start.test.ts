// `npm start`, and then everything a person does with it, in a real browser with two windows. Neither is ever reloaded: what
// one does, the other shows, and the API says the same.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { record } from "../support/record.ts";
import { launchBrowser } from "./browser.ts";
import { type Started, startDemo } from "./started.ts";

/** Three seconds on a quiet machine; tests share theirs. */
const LINK_MS = 10_000;

const folder = mkdtempSync(path.join(tmpdir(), "sallyport-start-"));
const data = path.join(folder, "data");
let started: Started;
let browser: Browser;
/** Both of the same person. `first` acts, `second` watches. */
let first: Page;
let second: Page;
const problems: string[] = [];

beforeAll(async () => {
  // Without agents: what they had asked for in another session would be picked up below.
  const before = await startDemo(data, "--empty");
  expect(await before.stop()).toBe(0);
  started = await startDemo(data, "--quiet", "--every", "200");
  browser = await launchBrowser();
}, 90_000);

afterAll(async () => {
  await browser.close();
  const code = await started.stop();
  rmSync(folder, { recursive: true, force: true });
  expect(code).toBe(0);
  expect(started.problems()).toBe("");
  expect(problems).toEqual([]);
});

async function both(look: (page: Page) => Promise<unknown>): Promise<void> {
  await Promise.all([look(first), look(second)]);
}

/** By a link of the page itself: nothing is loaded again. */
async function turnTo(name: string): Promise<void> {
  await both(async (page) => {
    await page.getByRole("link", { name, exact: true }).first().click();
    await page.getByRole("heading", { name, exact: true }).waitFor();
  });
}

type Item = Awaited<ReturnType<Started["client"]["interactions"]["list"]>>["items"][number];

/** The agents continue while fewer than twelve wait; one of each kind comes sooner or later. */
async function waiting(tool: string): Promise<Item> {
  let found: Item | undefined;
  await expect
    .poll(
      async () => {
        const { items } = await started.client.interactions.list();
        found = items.find(({ type, pendingTool }) => (pendingTool?.tool_name ?? type) === tool);
        if (found === undefined) await makeRoom();
        return found;
      },
      { timeout: 100_000, message: `${tool} is asked for` },
    )
    .toBeDefined();
  return found as unknown as Item;
}

/** Rejects what this test does not need, so that the agents continue. */
async function makeRoom(kept = ""): Promise<void> {
  const { items } = await started.client.interactions.list();
  for (const { id } of items.filter((item) => item.id !== kept).slice(0, 6)) {
    await first.evaluate(async (question) => {
      const headers = {
        "Content-Type": "application/json",
        "X-Sallyport-Key": localStorage.getItem("sallyport-key") ?? "",
      };
      const body = JSON.stringify({ reason: "later" });
      const place = `/v1/interactions/${question}/cancel`;
      await fetch(place, { method: "POST", headers, body });
    }, id);
  }
}

/** Opens a question in both windows. */
async function open(id: string): Promise<void> {
  await both(async (page) => {
    await page.locator(`li[data-id="${id}"]`).getByRole("button").click();
    await page.locator(`article[data-item="${id}"]`).waitFor();
  });
}

async function approve(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Approve" }).and(page.locator(":enabled")).click();
  await page.getByText("Approved. ").waitFor();
}

/** The question has left both lists, and the window that only watched shows how it ended. */
async function closed(id: string, words: string): Promise<void> {
  await both((page) => page.locator(`li[data-id="${id}"]`).waitFor({ state: "detached" }));
  await second
    .locator(`article[data-item="${id}"]`)
    .getByText(words, { exact: true })
    .first()
    .waitFor();
}

async function inputsOf(decisionId: string): Promise<readonly unknown[]> {
  const { sessionId } = await started.client.decisions.get({ id: decisionId });
  const { items } = await started.client.operations.list({ sessionId, limit: 500 });
  return items
    .filter((one) => one.decisionId === decisionId && one.status === "success")
    .map(({ input }) => JSON.parse(input));
}

function skuOf(input: unknown): unknown {
  return (input as { sku?: string }).sku;
}

test("the link of a second start comes quickly and signs in once, into two windows [R20]", async () => {
  record({
    goal: "start",
    what: "npm start, second time, until the sign-in link",
    figures: { "link ms": Math.round(started.linkMs) },
  });
  expect(started.linkMs).toBeLessThan(LINK_MS);
  const context = await browser.newContext({
    viewport: { width: 1_400, height: 900 },
    locale: "en-GB",
  });
  first = await context.newPage();
  await first.goto(started.link);
  await first.getByRole("button", { name: "Sign in" }).click();
  await first.waitForURL(`${started.url}/inbox**`);
  second = await context.newPage();
  await second.goto(`${started.url}/inbox`);
  await both(async (page) => {
    page.setDefaultTimeout(60_000);
    page.on("pageerror", (error) => problems.push(error.message));
    await page.getByText("live", { exact: true }).waitFor();
    await page.evaluate(() => Object.assign(window, { wasLoaded: "once" }));
  });
  const third = await context.newPage();
  await third.goto(started.link);
  await third.getByRole("button", { name: "Sign in" }).click();
  await third.getByText("The link was already used").waitFor();
  await third.close();
});

test("approves: it is executed once, and both windows show it [R13 R20]", async () => {
  const { id } = await waiting("stock.adjust");
  await open(id);
  await approve(first);
  await closed(id, "Executed");
  const { state, calls } = await started.client.decisions.get({ id });
  expect(state).toBe("executed");
  expect(await inputsOf(id)).toEqual([calls?.[0]?.input]);
});

test("edits and approves: exactly the edited input runs [R20]", async () => {
  const { id } = await waiting("stock.adjust");
  await open(id);
  await first.keyboard.press("e");
  // Another article than the one before, so that both can be undone.
  const { items } = await started.client.decisions.list({ state: ["executed"] });
  const taken = new Set(items.flatMap(({ calls }) => calls ?? []).map(({ input }) => skuOf(input)));
  const sku = ["CABLE-3M", "LAMP-01"].find((one) => !taken.has(one)) ?? "";
  const edited = { sku, by: 7, why: "counted again" };
  await first
    .getByRole("textbox", { name: "Input of stock.adjust" })
    .fill(JSON.stringify(edited, null, 2));
  await first.getByRole("button", { name: "Check and preview" }).click();
  await closed(id, "Rejected");
  await first.getByText("what the agent asked for").waitFor();
  const next = (await first.locator("article[data-item]").getAttribute("data-item")) ?? "";
  expect(next).not.toBe(id);
  await second.locator(`li[data-id="${next}"]`).getByRole("button").click();
  await approve(first);
  await closed(next, "Executed");
  expect(await inputsOf(next)).toEqual([edited]);
  expect(await inputsOf(id)).toEqual([]);
});

test("rejects: nothing runs, and the reason is kept [R20]", async () => {
  const { id } = await waiting("carriers.book");
  await open(id);
  await first.keyboard.press("r");
  await first.getByLabel("Reason (shown to the agent)").fill("the ramp is closed today");
  await first.keyboard.press("Enter");
  await closed(id, "Rejected");
  await second.getByText("the ramp is closed today").first().waitFor();
  const { state, bizVerdict } = await started.client.decisions.get({ id });
  expect([state, bizVerdict.reason]).toEqual(["rejected_ml", "the ramp is closed today"]);
  expect(await inputsOf(id)).toEqual([]);
});

test("answers an agent's question [R20]", async () => {
  const { id } = await waiting("ask_user");
  await open(id);
  await first.getByRole("button", { name: "lower shelf", exact: true }).click();
  await first.getByText("Answered. Your answer was sent to the agent.").waitFor();
  await both((page) => page.locator(`li[data-id="${id}"]`).waitFor({ state: "detached" }));
  await second.locator(`article[data-item="${id}"]`).getByText("lower shelf").first().waitFor();
  expect(await started.client.interactions.get({ id })).toMatchObject({
    outcome: "answered",
    answer: "lower shelf",
    answeredBy: "person:you",
  });
});

test("rolls back a session: its calls are undone, newest first [R20]", async () => {
  await turnTo("Sessions");
  const { items } = await started.client.decisions.list({ state: ["executed"] });
  const { sessionId = "" } = items.find(({ calls }) => calls?.[0]?.tool === "stock.adjust") ?? {};
  await both(async (page) => {
    await page.getByRole("link", { name: new RegExp(sessionId) }).click();
    await page.getByRole("heading", { name: "Session of agent:counter" }).waitFor();
  });
  await first.getByRole("button", { name: "Undo run" }).click();
  await first.getByRole("button", { name: "Undo 2 calls" }).click();
  const report = first.getByRole("list", { name: "Report" });
  await expect.poll(() => report.getByText("undone", { exact: true }).count()).toBe(2);
  await first.getByRole("button", { name: "Close", exact: true }).click();
  const badges = (page: Page) =>
    page.locator("li[data-call]").getByText("Undone", { exact: true }).count();
  await both((page) => expect.poll(() => badges(page), { timeout: 100_000 }).toBe(2));
  const done = await started.client.operations.list({ sessionId, limit: 500 });
  expect(done.items.filter(({ status }) => status === "rolled_back")).toHaveLength(2);
  const undone = done.items.filter(({ undoOf, status }) => undoOf !== "" && status === "success");
  expect(undone.map(({ input }) => JSON.parse(input).by)).toContain(-7);
});

test("watches the task board while an agent works on a person's task [R20]", async () => {
  await turnTo("Tasks");
  await both((page) => page.evaluate(noteColumns));
  await first.getByRole("button", { name: "Add a task" }).click();
  await first.getByLabel("What needs to be done? One line.").fill("Count MON-27");
  await first.keyboard.press("Enter");
  const ours = async () => {
    const { items } = await started.client.tasks.list({ limit: 500 });
    return items.findLast(({ subject, description }) => subject === "Count MON-27" && !description);
  };
  let asked = "";
  await expect
    .poll(
      async () => {
        const { items } = await started.client.interactions.list();
        const isOurs = (text = "") => text.includes("Count MON-27");
        asked = items.find(({ pendingTool }) => isOurs(pendingTool?.args_json))?.id ?? "";
        await makeRoom(asked);
        return asked;
      },
      { timeout: 100_000, interval: 200, message: "the task's call is asked for" },
    )
    .not.toBe("");
  // Being asked for is not being done.
  const { id = "", status } = (await ours()) ?? {};
  expect(status).toBe("claimed");
  await both((page) =>
    page.getByRole("region", { name: "In progress" }).locator(`li[data-task="${id}"]`).waitFor(),
  );
  await first
    .getByRole("link", { name: /^Inbox/ })
    .first()
    .click();
  await first.locator(`li[data-id="${asked}"]`).getByRole("button").click();
  await approve(first);
  await first.getByRole("link", { name: "Tasks", exact: true }).click();
  await expect
    .poll(ours, { timeout: 100_000, interval: 200 })
    .toMatchObject({ status: "completed", claimer: "agent:counter" });
  await both(async (page) => {
    await page.getByRole("region", { name: "Done" }).locator(`li[data-task="${id}"]`).waitFor();
    const columns = await page.evaluate((task) => (window as Noted).noted?.[task] ?? [], id);
    // The agent may claim it before the board has shown it under "To do".
    expect(columns.filter((column) => column !== "To do")).toEqual(["In progress", "Done"]);
  });
});

type Noted = typeof window & { noted?: Record<string, string[]> };

/** Runs in the page: which columns each card was in, one after the other. */
function noteColumns(): void {
  const noted: Record<string, string[]> = {};
  Object.assign(window, { noted });
  const look = () => {
    for (const card of document.querySelectorAll<HTMLElement>("li[data-task]")) {
      const task = card.dataset["task"] ?? "";
      const columns = noted[task] ?? [];
      noted[task] = columns;
      const column = card.closest("section")?.getAttribute("aria-label") ?? "";
      if (columns.at(-1) !== column) columns.push(column);
    }
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
}

test("verifies the audit in both windows, against the anchors that npm start makes [M5 W6 R20]", async () => {
  await turnTo("Audit");
  await both(async (page) => {
    await page.getByRole("button", { name: "Verify" }).click();
    await page.getByText("The chain is intact").waitFor();
  });
  const { ok, entries, anchors } = await started.client.audit.verify();
  expect(ok).toBe(true);
  expect(anchors).toBeGreaterThan(0);
  expect(entries).toBeGreaterThan(50);
});

test("stops everything: both windows show it, and no agent's call runs until resumed [R20 T38]", async () => {
  await first.getByRole("button", { name: "Pause" }).click();
  await first.getByLabel("What", { exact: true }).selectOption("all");
  await first.getByLabel("Reason (recorded in the audit log)").fill("drill");
  await first.getByRole("button", { name: "Pause all" }).click();
  const banner = (page: Page) => page.getByText("Everything is paused");
  await both((page) => banner(page).waitFor());
  expect(await started.client.switch.get()).toMatchObject({ stopped: true });
  const { seq } = await started.client.audit.head();
  await makeRoom();
  // The buyer looks at the stock in each of its turns; even that is an effect that must not start.
  const refused = async () => {
    const { items } = await started.client.audit.entries({ after: seq, limit: 500 });
    expect(items.map(({ type }) => type)).not.toContain("operation.started");
    return items.filter(({ type }) => type === "decision.staged").length;
  };
  await expect.poll(refused, { timeout: 100_000 }).toBeGreaterThan(2);
  await second.getByRole("button", { name: "Resume" }).click();
  await second.getByLabel("Reason (recorded in the audit log)").fill("over");
  await second.keyboard.press("Enter");
  await both((page) => banner(page).waitFor({ state: "detached" }));
  expect(await started.client.switch.get()).toMatchObject({ stopped: false });
  await both(async (page) => {
    expect(await page.evaluate(() => (window as { wasLoaded?: string }).wasLoaded)).toBe("once");
  });
});
