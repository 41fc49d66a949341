// Rules, grants and runs in a real browser: two people, two windows, and neither loosens anything alone.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ConsoleWorld, openConsole, propose } from "./console-world.ts";

let world: ConsoleWorld;
let ada: Page;
let bob: Page;

beforeAll(async () => {
  world = await openConsole();
  const roles = ["reviewer", "operator", "admin"] as const;
  ada = await world.signIn({ subject: "person:ada", roles, to: "/rules" });
  bob = await world.signIn({ subject: "person:bob", roles, to: "/rules" });
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  expect(world.problems).toEqual([]);
});

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const rules = (page: Page) => page.locator("li[data-rule]");

test("a rule is replayed before it is proposed, waits for another admin, and is counted in both windows [T41]", async () => {
  const session = await world.session("agent:stock");
  for (const [quantity, yes] of [
    [5, true],
    [40, false],
  ] as const) {
    const id = await propose(session, "stock.set", { sku: "tape", quantity });
    const { hash } = await world.gate.interactions.get(id);
    if (yes) await world.gate.interactions.approve(id, { hash, by: "person:cyd" });
    else await world.gate.interactions.reject(id, { hash, by: "person:cyd", reason: "too many" });
  }
  await ada.keyboard.press("8");
  await button(ada, "Propose a rule").click();
  const dialog = ada.getByRole("dialog");
  await dialog.getByLabel("Tool").selectOption("stock.set");
  // Begins with the newest input that was asked for, as narrow as it can be.
  const inputs = dialog.getByLabel("Input: a condition for each property");
  await expect.poll(() => inputs.inputValue()).toContain('"equals": 40');
  await inputs.fill('{"sku": {"equals": "tape"}, "quantity": {"atMost": 50}}');
  await dialog.getByLabel("Why is no approval needed?").fill("tape is cheap");
  expect(await button(ada, "Propose").isEnabled()).toBe(false);
  await button(ada, "Replay").click();
  await dialog.getByText("Of 2 decisions it would have approved 2, 1 of which were").waitFor();
  await dialog.getByText("too many").waitFor();
  await inputs.fill('{"sku": {"equals": "tape"}, "quantity": {"atMost": 10}}');
  // Another rule has not been looked at yet.
  expect(await button(ada, "Propose").isEnabled()).toBe(false);
  await button(ada, "Replay").click();
  await dialog.getByText("Of 2 decisions it would have approved 1.").waitFor();
  await button(ada, "Propose").click();
  await dialog.waitFor({ state: "detached" });
  await ada.getByText("You proposed this rule: another admin must confirm it.").waitFor();
  const waits = await session.call({
    callId: "t-1",
    tool: "stock.set",
    input: { sku: "tape", quantity: 3 },
  });
  expect(waits.answer).toBe("pending");
  await rules(bob).getByText("quantity is at most 10").waitFor();
  await button(bob, "Confirm: no one is asked from now on").click();
  for (const page of [ada, bob]) await rules(page).getByText("active", { exact: true }).waitFor();
  const passes = await session.call({
    callId: "t-2",
    tool: "stock.set",
    input: { sku: "tape", quantity: 3 },
  });
  expect(passes.answer).toBe("done");
  for (const page of [ada, bob]) await rules(page).getByText("used 1 time").waitFor();
  await button(bob, "Revoke").click();
  await bob.getByLabel("Reason (recorded in the audit log)").fill("enough");
  await bob.keyboard.press("Enter");
  for (const page of [ada, bob]) {
    await page.getByText("1 expired or revoked").click();
    await rules(page).getByText("“enough”").waitFor();
  }
  const [rule] = await world.gate.standingRules.list();
  expect(rule).toMatchObject({
    status: "revoked",
    madeBy: "person:ada",
    confirmedBy: "person:bob",
    endedBy: "person:bob",
    uses: 1,
  });
});

test("a finding that stopped a session is chosen from the trail and overridden; a run updates by itself [I-59]", async () => {
  const session = await world.session("agent:floor");
  const finding = {
    severity: "soft-deny",
    policy: "freeze",
    message: "No changes today.",
  } as const;
  await world.store.gateLedger.record({
    traceId: "trace-9",
    point: "pre-tool",
    sessionId: session.id,
    actor: "agent:floor",
    allowed: false,
    findings: [finding, { ...finding, severity: "hard-deny", message: "Never." }],
    overridden: [],
  });
  await button(ada, "Override a finding").click();
  const dialog = ada.getByRole("dialog");
  await dialog.getByLabel("Session").selectOption(session.id);
  await dialog.getByText("No changes today.").waitFor();
  expect(await dialog.getByText("Never.").count()).toBe(0);
  await dialog.getByLabel("Reason (recorded in the audit log)").fill("agreed with the shift");
  await button(ada, "Override").click();
  for (const page of [ada, bob]) await page.getByText("“agreed with the shift”").waitFor();
  expect(await world.store.grants.listFor(session.id)).toMatchObject([
    { finding: { policy: "freeze", message: "No changes today." }, by: "person:ada" },
  ]);
  await bob.getByRole("link", { name: "Delegations" }).click();
  const run = await world.gate.runs.start({
    feature: "Sort the returns",
    lead: "agent:lead",
    promise: { id: "p", statement: "The shelf is empty.", evidence: [] },
    documents: "",
    evidenceFolder: "",
    budget: 4,
  });
  const step = bob.locator(`li[data-run="${run.id}"] [aria-current=step]`);
  await expect.poll(() => step.textContent()).toBe("discuss");
  await world.gate.runs.enter(run.id, "spec", { actor: "agent:lead" });
  await expect.poll(() => step.textContent()).toBe("spec");
});
