// What people do in the console, in a real browser, from the sign-in link to the kill switch.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type ConsoleWorld, openConsole, propose } from "./console-world.ts";

let world: ConsoleWorld;
let page: Page;

beforeAll(async () => {
  world = await openConsole();
  page = await world.signIn();
});

beforeEach(async () => {
  await page.goto(`${world.server.url}/inbox`);
  await page.getByText("live", { exact: true }).waitFor();
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  expect(world.problems).toEqual([]);
});

const row = (id: string) => page.locator(`li[data-id="${id}"]`);
const item = (id: string) => page.locator(`article[data-item="${id}"]`);
const button = (name: string) => page.getByRole("button", { name, exact: true });
/** A button that can be pressed. */
const ready = (name: string) => button(name).and(page.locator(":enabled")).first().waitFor();
const says = (text: string) => page.getByText(text).first().waitFor();

async function open(id: string): Promise<void> {
  await row(id).getByRole("button").click();
  await item(id).waitFor();
}

test("a question appears by itself, facts first, is approved by keyboard, and disappears once that is stored [R13 R20]", async () => {
  const session = await world.session("agent:stock");
  const id = await propose(session, "stock.set", { sku: "bolt-m8", quantity: 100 });
  await row(id).getByText("bolt-m8: 120 → 100").waitFor();
  await item(id).getByText("-quantity: 120").waitFor();
  await item(id).getByText("Exactly this will run").waitFor();
  await ready("Approve");
  await page.keyboard.press("a");
  await says("Approved. ");
  await row(id).waitFor({ state: "detached" });
  expect(world.stock.get("bolt-m8")).toBe(100);
  expect((await world.gate.decisions.get(id)).state).toBe("executed");
});

test("the card stays until the server has accepted, and a refusal is shown [R13]", async () => {
  const session = await world.session("agent:stock");
  const id = await propose(session, "stock.set", { sku: "nut-m8", quantity: 7 });
  await open(id);
  await page.route("**/approve", (route) => route.abort());
  await ready("Approve");
  await button("Approve").click();
  await says("The server cannot be reached");
  expect(await row(id).count()).toBe(1);
  expect(world.stock.get("nut-m8")).toBe(80);
  await page.unroute("**/approve");
  await ready("Approve");
  await button("Approve").click();
  await row(id).waitFor({ state: "detached" });
  expect(world.stock.get("nut-m8")).toBe(7);
});

test("an irreversible call asks for confirmation", async () => {
  const session = await world.session("agent:buyer");
  const id = await propose(session, "orders.place", { supplier: "Ohm", sku: "fuse", quantity: 5 });
  await open(id);
  await ready("Approve");
  await page.keyboard.press("a");
  expect(world.effects).not.toContain("order fuse 5");
  await page.getByRole("dialog").getByRole("button", { name: "Approve for good" }).click();
  await row(id).waitFor({ state: "detached" });
  expect(world.effects).toContain("order fuse 5");
});

test("rejecting returns the reason to the agent, and nothing runs", async () => {
  const session = await world.session("agent:buyer");
  const id = await propose(session, "orders.place", {
    supplier: "Ohm",
    sku: "cable",
    quantity: 900,
  });
  await open(id);
  await page.keyboard.press("r");
  await page.getByLabel("Reason (shown to the agent)").fill("far too many");
  await page.keyboard.press("Enter");
  await row(id).waitFor({ state: "detached" });
  const decision = await world.gate.decisions.get(id);
  expect(decision.state).toBe("rejected_ml");
  expect(decision.bizVerdict.reason).toBe("far too many");
  expect(world.effects.join()).not.toContain("cable");
});

test("an edited input is checked and shown again before approval, and exactly that runs", async () => {
  const session = await world.session("agent:stock");
  const id = await propose(session, "stock.set", { sku: "bolt-m8", quantity: 9000 });
  await open(id);
  await page.keyboard.press("e");
  const field = page.getByRole("textbox", { name: "Input of stock.set" });
  await field.fill('{"sku":"bolt-m8","quantity":90000}');
  await button("Check and preview").click();
  // The schema says no more than 10,000: refused, nothing lost.
  await page.getByRole("dialog").getByRole("alert").waitFor();
  await field.fill('{"sku":"bolt-m8","quantity":90}');
  await page.getByRole("dialog").getByRole("cell", { name: "90", exact: true }).waitFor();
  await button("Check and preview").click();
  await row(id).waitFor({ state: "detached" });
  await says("what the agent asked for");
  await says("+quantity: 90");
  expect(world.stock.get("bolt-m8")).toBe(100);
  await ready("Approve");
  await page.keyboard.press("a");
  await says("Approved. ");
  await expect.poll(() => world.stock.get("bolt-m8")).toBe(90);
  expect((await world.gate.decisions.get(id)).state).toBe("rejected_ml");
});

test("an agent's question is answered with one of the choices or free text", async () => {
  const session = await world.session("agent:floor");
  await session.ask({ callId: "q-1", text: "Which gate?", choices: ["north", "south"] });
  await says("Which gate?");
  await page.getByRole("button", { name: /Which gate/ }).click();
  await button("south").click();
  await says("Answered. Your answer was sent to the agent.");
  const first = await session.ask({
    callId: "q-1",
    text: "Which gate?",
    choices: ["north", "south"],
  });
  expect(first).toMatchObject({ answer: "answered", value: "south", by: "person:ada" });
  await session.ask({ callId: "q-2", text: "What is the code of the day?" });
  await page.getByRole("button", { name: /code of the day/ }).click();
  await page.getByLabel("Your answer").fill("four owls");
  await page.keyboard.press("Enter");
  await expect
    .poll(() => session.ask({ callId: "q-2", text: "What is the code of the day?" }))
    .toMatchObject({ answer: "answered", value: "four owls" });
});

test("the agent is asked back and replies, and the question is reassigned; it stays open", async () => {
  const session = await world.session("agent:stock");
  const id = await propose(session, "stock.set", { sku: "bolt-m8", quantity: 1 });
  await open(id);
  await button("Ask agent").click();
  await page.getByLabel("What do you want to know?").fill("Why only one?");
  await page.keyboard.press("Enter");
  await expect.poll(async () => (await session.askedBack()).length).toBe(1);
  await session.reply(id, "Somebody counted.");
  await page.goto(`${world.server.url}/inbox/${id}`);
  await item(id).getByText("Somebody counted.").first().waitFor();
  await item(id).getByText("agent says").waitFor();
  await button("Reassign").click();
  await page.getByLabel("Assign to a person or group").fill("person:bob");
  await page.keyboard.press("Enter");
  await says("Reassigned to person:bob.");
  expect(await world.gate.interactions.get(id)).toMatchObject({
    status: "open",
    assignedTo: "person:bob",
  });
  await world.gate.interactions.cancel(id, { by: "person:bob", reason: "over" });
});

test("an unknown outcome is a question: a person checks and says what happened", async () => {
  const session = await world.session("agent:floor");
  const id = await propose(session, "carrier.book", { carrier: "Hermes", pallets: 2 });
  await page.goto(`${world.server.url}/inbox/${id}`);
  await ready("Approve");
  await page.keyboard.press("a");
  await page.getByRole("dialog").getByRole("button", { name: "Approve for good" }).click();
  await says("Approved, but the outcome is unknown.");
  await page.getByRole("button", { name: /Outcome unknown/ }).click();
  await says("Outcome unknown: check the target");
  await button("It happened").click();
  await page.getByLabel("How do you know? (recorded in the audit log)").fill("called them");
  await page.keyboard.press("Enter");
  await expect.poll(async () => (await world.gate.decisions.get(id)).state).toBe("executed");
  expect(world.effects.filter((effect) => effect === "book Hermes")).toHaveLength(1);
});

test("a batch decides exactly the listed items, with a veto", async () => {
  const session = await world.session("agent:stock");
  const [a, b, c] = [
    await propose(session, "stock.set", { sku: "a", quantity: 1 }),
    await propose(session, "stock.set", { sku: "b", quantity: 2 }),
    await propose(session, "stock.set", { sku: "c", quantity: 3 }),
  ];
  for (const id of [a, b]) await row(id!).getByRole("checkbox").check();
  await page.getByRole("button", { name: /^Review \d+$/ }).click();
  await ready("Approve 2");
  await page.getByRole("dialog").getByRole("checkbox").nth(1).uncheck();
  await button("Approve 1, reject 1").click();
  await says("1 call approved and executed, 1 rejected.");
  expect([world.stock.get("a"), world.stock.get("b"), world.stock.get("c")]).toEqual([
    1,
    undefined,
    undefined,
  ]);
  expect((await world.gate.decisions.get(b!)).state).toBe("rejected_ml");
  expect((await world.gate.interactions.get(c!)).status).toBe("open");
  await world.gate.interactions.cancel(c!, { by: "person:bob", reason: "over" });
});

test("a session is rolled back, and the report says what was undone and what was not", async () => {
  const session = await world.session("agent:rollback");
  for (const [tool, input] of [
    ["stock.set", { sku: "bolt-m8", quantity: 11 }],
    ["stock.set", { sku: "nut-m8", quantity: 12 }],
    ["orders.place", { supplier: "Ohm", sku: "tape", quantity: 1 }],
  ] as const) {
    const id = await propose(session, tool, input);
    const { hash } = await world.gate.interactions.get(id);
    await world.gate.interactions.approve(id, { hash, by: "person:bob" });
  }
  expect(world.stock.get("bolt-m8")).toBe(11);
  await page.getByRole("link", { name: "Sessions" }).click();
  await page.getByRole("link", { name: /agent:rollback/ }).click();
  await button("Undo run").click();
  const plan = page.getByRole("list", { name: "Plan" });
  // Before and after of each undo, as things are now; the order has none.
  await plan
    .getByText(/nut-m8: 12 → \d+/)
    .first()
    .waitFor();
  await plan.getByText("Irreversible").first().waitFor();
  await button("Undo 2 calls").click();
  const report = page.getByRole("list", { name: "Report" });
  const count = (text: string) => report.getByText(text, { exact: true }).count();
  await report.waitFor();
  expect([await count("undone"), await count("irreversible")]).toEqual([2, 1]);
  expect([world.stock.get("bolt-m8"), world.stock.get("nut-m8")]).toEqual([90, 7]);
  await button("Close").click();
});

test("a session opened inside the server's program is listed too", async () => {
  const session = world.gate.sessions.open({ id: "inside", agent: "agent:inside" });
  await page.getByRole("link", { name: "Sessions" }).click();
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  const id = await propose(session, "stock.set", { sku: "inside", quantity: 1 });
  await page.getByRole("link", { name: /agent:inside/ }).click();
  await page.getByRole("heading", { name: "Session of agent:inside" }).waitFor();
  await page.getByText("a person was asked").waitFor();
  await world.gate.interactions.cancel(id, { by: "person:bob", reason: "over" });
});

test("the task board updates by itself and can be edited", async () => {
  const task = await world.tasks.add({ subject: "Count the bolts" });
  await page.getByRole("link", { name: "Tasks" }).click();
  const column = (name: string) => page.getByRole("region", { name });
  await column("To do").getByText("Count the bolts").waitFor();
  const claimed = await world.tasks.claim({
    id: task.id,
    claimer: "agent:counter",
    leaseMs: 60_000,
  });
  await column("In progress").getByText("agent:counter").waitFor();
  await world.tasks.complete({ id: task.id, fence: claimed.fence!, result: "312" });
  await column("Done").getByText("312").waitFor();
  await button("Add a task").click();
  await page.getByLabel("What needs to be done? One line.").fill("Sweep the floor");
  await page.keyboard.press("Enter");
  await column("To do").getByText("Sweep the floor").waitFor();
  expect((await world.tasks.list()).map(({ subject }) => subject)).toContain("Sweep the floor");
});

test("audit page: without anchors the verification says that the tail is not covered, and is not green [W6]", async () => {
  await page.getByRole("link", { name: "Audit" }).click();
  await button("Verify").click();
  await says("without an anchor it cannot be known whether entries are missing at the end");
  await says("end not covered");
  expect(await page.getByText("intact and covered").count()).toBe(0);
  const { seq } = await world.gate.audit.head();
  await says(`#${seq}`);
});

test("pausing everything holds in every window until resumed, and keeps what is approved", async () => {
  const session = await world.session("agent:stock");
  const id = await propose(session, "stock.set", { sku: "bolt-m8", quantity: 0 });
  await button("Pause").click();
  await page.getByLabel("What", { exact: true }).selectOption("all");
  await page.getByLabel("Reason (recorded in the audit log)").fill("drill");
  await button("Pause all").click();
  await says("Everything is paused");
  await says("by person:ada");
  expect(await world.gate.killSwitch.isStopped()).toBe(true);
  await page.goto(`${world.server.url}/inbox/${id}`);
  await ready("Approve");
  await page.keyboard.press("a");
  await says("Approved. Work is paused: it runs after Resume");
  expect(world.stock.get("bolt-m8")).toBe(90);
  expect((await world.gate.decisions.get(id)).state).toBe("approved");
  await button("Resume").click();
  await page.getByLabel("Reason (recorded in the audit log)").fill("over");
  await page.keyboard.press("Enter");
  await page.getByText("Everything is paused").waitFor({ state: "detached" });
  expect(await world.gate.killSwitch.isStopped()).toBe(false);
  await expect.poll(() => world.stock.get("bolt-m8")).toBe(0);
});
