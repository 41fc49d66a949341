// A run that one can read and take back: its calls, its sub-agents, its phases, and what stops them. In a real browser.

import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Session } from "../../src/gate/session.ts";
import { axeFindings } from "./axe.ts";
import { type ConsoleWorld, closeContext, openConsole, propose } from "./console-world.ts";
import { jsonOnScreen } from "./json-on-screen.ts";

let world: ConsoleWorld;
let page: Page;

beforeAll(async () => {
  world = await openConsole();
});

afterEach(() => closeContext(page));

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  expect(world.problems).toEqual([]);
});

const WIDE = { width: 1_280, height: 800 };
const button = (name: string) => page.getByRole("button", { name, exact: true });
const row = (text: string) => page.locator("li[data-call]").filter({ hasText: text });

async function approved(session: Session, tool: string, input: object): Promise<string> {
  const id = await propose(session, tool, input);
  const { hash } = await world.gate.interactions.get(id);
  await world.gate.interactions.approve(id, { hash, by: "person:bob" });
  return id;
}

async function clean(theme: "light" | "dark"): Promise<void> {
  expect(await axeFindings(page, theme)).toEqual([]);
  expect(await jsonOnScreen(page)).toEqual([]);
}

/** A run whose plan a person approved, with a sub-agent at work in it. */
async function running(feature: string) {
  const promise = { id: "labels", statement: "Every shelf has a label.", evidence: [] };
  const { id } = await world.gate.runs.start({
    feature,
    lead: "agent:lead",
    promise,
    documents: "",
    evidenceFolder: "",
    budget: 6,
  });
  for (const phase of ["spec", "plan"] as const) {
    await world.gate.runs.enter(id, phase, { actor: "agent:lead" });
  }
  return { id, promise };
}

async function delegated(feature: string) {
  const { id, promise } = await running(feature);
  const files = ["sql:shop/shelf"];
  const { interactionId } = await world.gate.runs.proposePlan(id, files);
  const { hash } = await world.gate.interactions.get(interactionId);
  const reviewer = await world.client("reviewer", "person:bob");
  await reviewer.interactions.answer({ id: interactionId, hash, answer: "approve" });
  await world.gate.runs.enter(id, "execute", { actor: "agent:lead" });
  const lead = world.gate.sessions.open({ id, agent: "agent:lead" });
  const answer = await lead.delegate({
    agent: "agent:labeller",
    role: "code",
    task: "Label shelf 9.",
    capsule: "Shelf 9 is for bolts.",
    promise: promise.id,
    planFiles: files,
    tools: ["shelf.*"],
  });
  if (answer.answer !== "delegated") throw new Error(JSON.stringify(answer));
  const { session } = await world.gate.delegations.attach(answer.delegation.id, answer.token);
  return { id, delegationId: answer.delegation.id, session };
}

test("a run lists each call once with its sentence, reviews, person, outcome and result; no two rows are the same", async () => {
  const session = await world.session("agent:reader");
  await session.call({ callId: "look", tool: "stock.look", input: { sku: "nut-m8" } });
  const id = await approved(session, "stock.set", { sku: "nut-m8", quantity: 12 });
  await session.call({ callId: "no", tool: "no.such", input: {} });
  const open = await propose(session, "billing.refund", {
    customer: "Ana Ruiz",
    invoice: "INV-1",
    cents: 100,
  });
  for (const theme of ["light", "dark"] as const) {
    for (const size of [WIDE, { width: 360, height: 740 }]) {
      page = await world.signIn({ theme, size, to: `/sessions/${session.id}` });
      await row("Refund 1.00 EUR to Ana Ruiz").getByText("Needs approval").waitFor();
      const done = row("nut-m8: 80 → 12");
      await done.getByText("approved by person:bob").waitFor();
      await done.getByText("✓ technical").waitFor();
      await done.getByText("✓ business").waitFor();
      await row("no.such").getByText("Refused by a check").waitFor();
      const texts = await page.locator("li[data-call]").allInnerTexts();
      expect(texts).toHaveLength(4);
      expect(new Set(texts).size).toBe(4);
      await page.getByRole("list", { name: "Totals" }).getByText("1 refused by a check").waitFor();
      await done.getByRole("button", { name: "Input and result" }).click();
      await done.getByRole("figure", { name: "Input of stock.set" }).waitFor();
      await done.getByText("nut-m8 is 12 now").waitFor();
      await clean(theme);
      if (theme === "light" && size === WIDE) continue;
      await closeContext(page);
      page = await world.signIn();
    }
  }
  await page.goto(`${world.server.url}/sessions/${session.id}`);
  await row("nut-m8: 80 → 12").getByRole("link").click();
  await page.waitForURL(`${world.server.url}/decisions/${id}`);
  await world.gate.interactions.cancel(open, { by: "person:bob", reason: "over" });
});

test("undoing a run: the plan says beforehand what changed since, and the report agrees", async () => {
  page = await world.signIn({ size: WIDE });
  const session = await world.session("agent:undo");
  world.stock.set("u1", 1).set("u2", 2).set("u3", 3);
  for (const [sku, quantity] of [
    ["u1", 10],
    ["u2", 20],
    ["u3", 30],
  ] as const) {
    await approved(session, "stock.set", { sku, quantity });
  }
  world.stock.set("u2", 99);
  await page.goto(`${world.server.url}/sessions/${session.id}`);
  await button("Undo run").click();
  const plan = page.getByRole("list", { name: "Plan" });
  await plan
    .getByRole("listitem")
    .filter({ hasText: "u2" })
    .getByText("Changed since", { exact: true })
    .waitFor();
  await clean("light");
  await button("Undo 2 calls").click();
  const report = page.getByRole("list", { name: "Report" });
  await report.getByText("changed since, not touched").waitFor();
  expect(await report.getByText("undone", { exact: true }).count()).toBe(2);
  expect(["u1", "u2", "u3"].map((sku) => world.stock.get(sku))).toEqual([1, 99, 3]);
  await button("Close").click();
  await row("u3: 3 → 30").getByText("Undone", { exact: true }).waitFor();
  await row("u2: 2 → 20").getByText("Ran", { exact: true }).waitFor();
  // Pausing and sending the address on are on the same page.
  await button("Pause run").click();
  const dialog = page.getByRole("dialog");
  expect(await dialog.getByLabel("What", { exact: true }).inputValue()).toBe("session");
  await page.keyboard.press("Escape");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await button("Copy link").click();
  await page.getByText("Link copied.").waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(page.url());
});

test("someone who may not undo a run sees why, and no button; neither on the decision", async () => {
  const session = await world.session("agent:other");
  const id = await approved(session, "stock.set", { sku: "gated", quantity: 3 });
  page = await world.signIn({ subject: "person:cleo", roles: ["reviewer"], size: WIDE });
  await page.goto(`${world.server.url}/sessions/${session.id}`);
  await page.getByText("Only operators can undo a run.").waitFor();
  expect(await button("Undo run").count()).toBe(0);
  await row("gated").getByText("Ran").first().waitFor();
  expect(await button("Undo").count()).toBe(0);
  await page.goto(`${world.server.url}/decisions/${id}`);
  await page.getByText("An operator can undo this.").waitFor();
  expect(await button("Undo").count()).toBe(0);
});

test("the work of a sub-agent is shown, planned and undone from its own page, one call and all of it", async () => {
  page = await world.signIn({ size: WIDE });
  const { id, delegationId, session } = await delegated("Labels for hall 2");
  for (const words of ["bolts", "nuts"]) {
    await approved(session, "shelf.label", { shelf: "9", words });
  }
  expect(world.labels.get("9")).toBe("nuts");
  await page.goto(`${world.server.url}/runs/${id}`);
  await page.getByRole("heading", { level: 1, name: "Labels for hall 2" }).waitFor();
  expect(await page.getByRole("list", { name: "Phases" }).innerText()).toContain("execute");
  await page.getByRole("link", { name: "agent:labeller" }).click();
  await page.getByRole("heading", { name: "Session of agent:labeller" }).waitFor();
  await page.getByText("Label shelf 9.").first().waitFor();
  await row('Label shelf 9 "nuts"').getByRole("button", { name: "Undo" }).click();
  await page.getByRole("dialog").getByText('Undo: Label shelf 9 "bolts"').waitFor();
  await button("Undo 1 call").click();
  await page.getByRole("list", { name: "Report" }).getByText("undone", { exact: true }).waitFor();
  expect(world.labels.get("9")).toBe("bolts");
  await button("Close").click();
  await page.goto(`${world.server.url}/delegations`);
  const hand = page.getByRole("listitem").filter({ hasText: "Label shelf 9." }).last();
  await hand.getByRole("button", { name: "Revoke" }).click();
  await page.getByLabel("Why?").fill("wrong hall");
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await hand.getByText("revoked").waitFor();
  expect((await world.gate.delegations.get(delegationId)).state).toBe("revoked");
  await hand.getByRole("button", { name: "Undo its work" }).click();
  const plan = page.getByRole("list", { name: "Plan" });
  await plan.getByText('Undo: Label shelf 9 "empty"').waitFor();
  await clean("light");
  await button("Undo 1 call").click();
  await page.getByRole("list", { name: "Report" }).getByText("undone", { exact: true }).waitFor();
  expect(world.labels.get("9")).toBe("empty");
});

test("the page of a run leads to the plan that waits, and stops the run with a reason", async () => {
  const { id } = await running("Labels for hall 3");
  const { interactionId } = await world.gate.runs.proposePlan(id, ["sql:shop/shelf"]);
  for (const theme of ["light", "dark"] as const) {
    page = await world.signIn({ theme, size: { width: 360, height: 740 }, to: `/runs/${id}` });
    await page.getByText("Its plan waits for approval").waitFor();
    await clean(theme);
    await closeContext(page);
  }
  page = await world.signIn({ size: WIDE, to: `/runs/${id}` });
  await page.getByText("Its plan waits for approval").click();
  await page.waitForURL(`${world.server.url}/inbox/${interactionId}`);
  await page.goBack();
  await button("Stop").click();
  await page.getByLabel("Why?").fill("no budget");
  await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
  await page.getByText("stopped").first().waitFor();
  await page.getByText("no budget").first().waitFor();
  expect((await world.gate.runs.get(id as never)).status).toBe("stopped");
});

test("a call that runs is canceled from the page of its run", async () => {
  page = await world.signIn({ size: WIDE });
  const agent = await world.client("agent", "agent:scan");
  const { id } = await agent.sessions.open({});
  const call = agent.sessions.call({ id, callId: "scan", tool: "scanner.run", input: {} });
  await page.goto(`${world.server.url}/sessions/${id}`);
  const running = row("scanner.run");
  await running.getByText("began").waitFor();
  await running.getByRole("button", { name: "Cancel" }).click();
  const answer = await call;
  expect(answer.answer).toBe("failed");
  expect(answer.text).toContain("person:ada canceled it");
  await running.getByText("Failed").first().waitFor();
});
