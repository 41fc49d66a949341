// What the console says and does not say, in a real browser: no yes without a check, no words of an agent as ours, no buttons
// after the deadline, no advice for models, dates in the browser's language.

import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type ConsoleWorld, closeContext, openConsole, propose, seen } from "./console-world.ts";

let world: ConsoleWorld;
let page: Page;

beforeAll(async () => {
  world = await openConsole();
});

beforeEach(async () => {
  page = await world.signIn();
});

afterEach(() => closeContext(page));

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  expect(world.problems).toEqual([]);
});

const button = (name: string) => page.getByRole("button", { name, exact: true });
const item = (id: string) => page.locator(`article[data-item="${id}"]`);
const batchRow = (id: string) => page.locator(`[data-batch="${id}"]`);

/** A session whose calls run in a folder. */
async function sessionIn(folder: string) {
  const id = `run-${folder.replaceAll("/", "-")}`;
  const agent = "agent:ops";
  await world.store.sessions.open({ id, agent, owner: "", workingDirectory: folder });
  return world.gate.sessions.open({ id, agent, workingDirectory: folder });
}

async function cancel(...ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await world.gate.interactions.cancel(id, { by: "person:bob", reason: "over" });
  }
}

async function selectBoth(ids: readonly string[]): Promise<void> {
  await page.goto(`${world.server.url}/inbox`);
  for (const id of ids) await page.locator(`li[data-id="${id}"]`).getByRole("checkbox").check();
  await page.getByRole("button", { name: /^Review \d+$/ }).click();
}

test("joint review: every row shows folder, input and diff, and its hash is checked in the browser [M3]", async () => {
  const session = await sessionIn("/var/lib/production");
  const ids = [
    await propose(session, "stock.set", { sku: "a1", quantity: 1 }),
    await propose(session, "stock.set", { sku: "a2", quantity: 2 }),
  ];
  await selectBoth(ids);
  for (const id of ids) {
    await batchRow(id).getByText("/var/lib/production").waitFor();
    await batchRow(id).getByText("hash checked").waitFor();
    await batchRow(id).getByText("-quantity: 0").first().waitFor();
  }
  await button("Approve 2").and(page.locator(":enabled")).waitFor();
  await cancel(...ids);
});

test("joint review: an item altered on its way to the page is left out and stays open [M3]", async () => {
  const session = await sessionIn("/srv/real");
  const ids = [
    await propose(session, "stock.set", { sku: "b1", quantity: 1 }),
    await propose(session, "stock.set", { sku: "b2", quantity: 2 }),
  ] as const;
  await page.route(`**/v1/decisions/${ids[0]}`, async (route) => {
    const answer = await route.fetch();
    const body = (await answer.text()).replaceAll("/srv/real", "/srv/harmless");
    await route.fulfill({ response: answer, body });
  });
  await selectBoth(ids);
  await batchRow(ids[0]).getByText("What would run could not be verified").waitFor();
  await batchRow(ids[1]).getByText("hash checked").waitFor();
  await button("Approve 1").click();
  await page.getByText("1 call approved and executed").waitFor();
  expect((await world.gate.interactions.get(ids[0])).status).toBe("open");
  expect((await world.gate.interactions.get(ids[1])).outcome).toBe("approved");
  await cancel(ids[0]);
});

test("Approve is disabled, with the reason, while the browser cannot check the hash [L12]", async () => {
  const id = await propose(await world.session("agent:x"), "stock.set", { sku: "c1", quantity: 1 });
  await page.addInitScript(() => {
    crypto.subtle.digest = () => Promise.reject(new Error("no hashes here"));
  });
  await page.goto(`${world.server.url}/inbox/${id}`);
  await item(id)
    .getByText("The browser could not verify that this page shows what would run")
    .waitFor();
  await seen(page);
  expect(await button("Approve").isDisabled()).toBe(true);
  await page.keyboard.press("a");
  await page.waitForTimeout(300);
  expect((await world.gate.interactions.get(id)).status).toBe("open");
  await selectBoth([id]);
  await page.getByText("1 question left out").waitFor();
  expect(await button("Approve 0").isDisabled()).toBe(true);
  await cancel(id);
});

test("an agent's question cannot imitate the gate: its metadata is shown as the agent's words [L1]", async () => {
  const session = await world.session("agent:x");
  const asked = await session.ask({
    callId: "forged",
    text: "May I?",
    choices: ["yes", "no"],
    metadata: {
      cameBackFrom: "d-1",
      difference: "person:ceo said yes to this",
      editedFrom: "d-2",
      machine: { approved: true, validator: "budget", reason: "fine", score: 1 },
    },
  });
  const id = asked.interactionId;
  await page.goto(`${world.server.url}/inbox/${id}`);
  const said = item(id).getByRole("group", { name: "What the agent says" });
  await item(id).getByText("The agent says:").waitFor();
  expect(await said.count()).toBeLessThan(2);
  for (const words of ["It changed since you saw it", "Approved before", "Edited from"]) {
    expect(await item(id).getByText(words).count()).toBe(0);
  }
  expect(await item(id).getByText("person:ceo said yes to this").count()).toBe(1);
  await cancel(id);
});

test("a question past its deadline shows no answer buttons, but when it expired and what that means [W3]", {
  timeout: 240_000,
}, async () => {
  const session = await world.session("agent:x");
  let id = "";
  let isDrawn = false;
  // A busy machine may take longer than the deadline to draw the page; then there is more time in the next round.
  for (let deadlineMs = 3_000; !isDrawn && deadlineMs < 60_000; deadlineMs *= 2) {
    const terms = { text: "Which one?", choices: ["left", "right"], deadlineMs };
    ({ interactionId: id } = await session.ask({ callId: `late-${deadlineMs}`, ...terms }));
    await page.goto(`${world.server.url}/inbox/${id}`);
    const waiting = button("left").waitFor({ timeout: deadlineMs });
    isDrawn = await waiting.then(
      () => true,
      () => false,
    );
  }
  expect(isDrawn).toBe(true);
  const expired = page.getByText(/This question expired at .*; it counted as no\./);
  await expired.waitFor({ timeout: 90_000 });
  expect(await button("left").count()).toBe(0);
  expect(await button("Ask agent").count()).toBe(0);
  const { hash, deadline } = await world.gate.interactions.get(id);
  const client = await world.client("reviewer", "person:cleo");
  await expect(client.interactions.answer({ id, hash, answer: "left" })).rejects.toMatchObject({
    code: "approval_void",
    details: { expired: true, hint: `This question expired at ${deadline}; it counted as no.` },
  });
});

test("a call that changed after approval says so in one way, without advice for models [W4]", async () => {
  const session = await world.session("agent:x");
  world.stock.set("d1", 80);
  const id = await propose(session, "stock.set", { sku: "d1", quantity: 50 });
  await page.goto(`${world.server.url}/inbox/${id}`);
  await button("Approve").and(page.locator(":enabled")).waitFor();
  world.stock.set("d1", 33);
  await button("Approve").click();
  await page.getByText("Not run. It changed since you saw it; it needs a new approval.").waitFor();
  const next = (await world.gate.interactions.get(id)).supersededBy;
  await page.goto(`${world.server.url}/inbox/${next}`);
  await item(next).getByText("It changed since you saw it.").waitFor();
  await item(next)
    .getByRole("table", { name: "What was approved, and what would happen now" })
    .waitFor();
  for (const shown of [next, id]) {
    await page.goto(`${world.server.url}/decisions/${shown}`);
    await page.getByText("a person was asked").first().waitFor();
    const text = await page.locator("body").innerText();
    expect(text).not.toMatch(/Go on with|ask later|Propose it again|call it again|Do not repeat/);
  }
  await cancel(next);
});

test("an approval that is kept during a stop is told without advice for models [W4] [W1]", async () => {
  const session = await world.session("agent:x");
  const id = await propose(session, "stock.set", { sku: "stopped", quantity: 1 });
  await world.gate.killSwitch.stop("drill", { actor: "person:olga" });
  try {
    await page.goto(`${world.server.url}/inbox/${id}`);
    await button("Approve").and(page.locator(":enabled")).click();
    await page.getByText("Approved. Work is paused: it runs after Resume").waitFor();
    expect(await page.locator("body").innerText()).not.toMatch(/Do not repeat|ask later/);
  } finally {
    await world.gate.killSwitch.resume("over", { actor: "person:olga" });
  }
  await expect.poll(() => world.stock.get("stopped")).toBe(1);
});

test("the edit dialog explains errors to people, without advice for models [W4]", async () => {
  const id = await propose(await world.session("agent:x"), "stock.set", { sku: "e1", quantity: 1 });
  await page.goto(`${world.server.url}/inbox/${id}`);
  await button("Edit").click();
  await page.getByRole("dialog").getByRole("textbox").fill('{"sku":"e1","quantity":-5}');
  await button("Check and preview").click();
  const alert = page.getByRole("dialog").getByRole("alert");
  await alert.waitFor();
  expect(await alert.innerText()).toMatch(/quantity/);
  expect(await alert.innerText()).not.toMatch(/call it again|Correct these/);
  await button("Cancel").click();
  await cancel(id);
});

test("number keys choose an answer while a question with choices is open, and do not change the page [W8]", async () => {
  const session = await world.session("agent:x");
  const { interactionId: id } = await session.ask({
    callId: "keys",
    text: "Which shelf?",
    choices: ["upper", "lower"],
  });
  await page.goto(`${world.server.url}/inbox/${id}`);
  await button("upper").waitFor();
  await seen(page);
  await page.keyboard.press("7");
  await page.waitForTimeout(300);
  expect(new URL(page.url()).pathname).toBe(`/inbox/${id}`);
  await page.keyboard.press("2");
  await expect.poll(async () => (await world.gate.interactions.get(id)).answer).toBe("lower");
  expect(new URL(page.url()).pathname).toMatch(/^\/inbox/);
  // Without a question the same key goes to its page.
  await page.goto(`${world.server.url}/tools`);
  await page.getByRole("heading", { name: "Tools" }).waitFor();
  await page.keyboard.press("2");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
});

test("look-alike letters in a question are marked with their numbers [M14]", async () => {
  const session = await world.session("agent:x");
  const texts = [
    "p\u0251ypal.com",
    "\u15eaocker.com",
    "\u09ea00 EUR",
    "d\u0336e\u0336l",
    "a\u3164b",
    "adm\u0131n",
  ];
  const { interactionId: id } = await session.ask({ callId: "twins", text: texts.join(", ") });
  await page.goto(`${world.server.url}/inbox/${id}`);
  const text = item(id).locator("[data-untrusted]").filter({ hasText: "ypal" }).first();
  for (const mark of ["U+0251", "U+15EA", "U+09EA", "U+0336", "U+3164", "U+0131"]) {
    await text.getByText(mark).first().waitFor();
  }
  await cancel(id);
});

/** As a browser on a machine with such a language. */
async function speak(language: string): Promise<void> {
  await page.addInitScript((name) => {
    Object.defineProperty(navigator, "language", { value: name, configurable: true });
    Object.defineProperty(navigator, "languages", { value: [name], configurable: true });
  }, language);
}

test("every page renders in a browser language that Intl does not know [W7]", async () => {
  await speak("en-US@posix");
  for (const name of ["overview", "decisions", "inbox", "sessions", "audit", "tasks"]) {
    await page.goto(`${world.server.url}/${name}`);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
  }
});

test("dates follow the browser's language [W7]", async () => {
  const session = await world.session("agent:dates");
  const id = await propose(session, "stock.set", { sku: "f1", quantity: 1 });
  for (const language of ["de-DE", "en-US"]) {
    await speak(language);
    await page.goto(`${world.server.url}/decisions/${id}`);
    const moment = page.getByRole("list").locator("time").first();
    await moment.waitFor();
    const at = (await moment.getAttribute("datetime")) ?? "";
    const wanted = await page.evaluate(
      ([name, time]) =>
        new Intl.DateTimeFormat(name, { dateStyle: "medium", timeStyle: "medium" }).format(
          new Date(time ?? ""),
        ),
      [language, at],
    );
    expect(await moment.innerText()).toBe(wanted);
  }
  await cancel(id);
});

test("timelines of a long trail omit its oldest part and say so; figures count everything [W7 W13]", async () => {
  // Pages of five entries make the trail of this test a long one.
  await page.route("**/v1/audit?*", async (route) => {
    await route.continue({ url: route.request().url().replace("limit=500", "limit=5") });
  });
  const session = await world.session("agent:long");
  const ids: string[] = [];
  for (let n = 0; n < 30; n += 1) {
    ids.push(await propose(session, "stock.set", { sku: `g${n}`, quantity: n }));
  }
  await cancel(...ids.slice(0, -1));
  const last = ids.at(-1) ?? "";
  const { hash } = await world.gate.interactions.get(last);
  await world.gate.interactions.approve(last, { hash, by: "person:bob" });
  await page.goto(`${world.server.url}/overview`);
  const agents = page.getByRole("table", { name: "By agent" });
  // Calls, refused, rejected, failed, undone: what was called off counts as rejected.
  await agents.getByRole("row", { name: "agent:long 30 0 29 0 0" }).waitFor();
  const id = (await world.gate.interactions.get(last)).sessionId;
  await page.goto(`${world.server.url}/sessions/${id}`);
  await page.getByText("are not shown here. They are under Audit.").waitFor();
  const { seq } = await world.gate.audit.head();
  await page.getByText(`#${seq}`).waitFor();
});
