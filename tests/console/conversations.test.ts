// A talk with the agent of a server, on the console's own pages: begun, answered by another person, continued, delivered.

import { afterAll, beforeAll, expect, test } from "vitest";
import { createFlow } from "../../src/flow/index.ts";
import { callOf, DONE, PLAN, planOf } from "../flow/flow-world.ts";
import { modelSaying } from "../flow/scripted-model.ts";
import { axeFindings } from "./axe.ts";
import { type ConsoleWorld, closeContext, openConsole } from "./console-world.ts";
import { jsonOnScreen } from "./json-on-screen.ts";

let world: ConsoleWorld;

beforeAll(async () => {
  const set = callOf("stock.set", { sku: "nut-m8", quantity: 70 });
  world = await openConsole({
    flow: ({ gate, store }) =>
      createFlow({
        model: modelSaying(PLAN, planOf("Take ten nuts out of stock"), set, DONE),
        openSession: ({ conversationId, userId }) =>
          gate.sessions.open({ id: `talk.${conversationId}`, agent: "agent:desk", owner: userId }),
        tools: gate.tools,
        states: store.flowStates,
        onProblem: ({ error }) => world.problems.push(String(error)),
        modelRetries: 0,
      }),
  });
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  expect(world.problems).toEqual([]);
});

test("a conversation is begun, its plan and call are decided by someone else, and it is continued until it is delivered", async () => {
  const page = await world.signIn({ size: { width: 1_280, height: 800 }, to: "/conversations" });
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  await page.getByText("Nobody talks with an agent now.").waitFor();
  await page.getByLabel("Begin a conversation").fill("Take ten nuts.");
  await button("Send").click();
  await page.getByRole("heading", { name: "Conversation with person:ada" }).waitFor();
  await page.getByRole("list", { name: "Steps" }).getByText("Take ten nuts out").waitFor();
  // Who began it cannot say yes to it.
  await page.getByText("You requested this yourself").waitFor();
  expect(await button("Continue").isDisabled()).toBe(true);
  const bob = await world.client("reviewer", "person:bob");
  const [plan] = (await bob.interactions.list()).items;
  if (plan === undefined) throw new Error("no question");
  await bob.interactions.answer({ id: plan.id, hash: plan.hash, answer: plan.choices[0] ?? "" });
  await button("Continue").and(page.locator(":enabled")).click();
  await page.getByRole("heading", { name: "nut-m8: 80 → 70" }).waitFor();
  for (const theme of ["light", "dark"] as const) {
    for (const size of [
      { width: 1_280, height: 800 },
      { width: 360, height: 740 },
    ]) {
      const other = await world.signIn({ theme, size, subject: "person:bob" });
      await other.goto(`${world.server.url}/conversations`);
      await other.getByText("waits for a person").waitFor();
      expect(await axeFindings(other, theme)).toEqual([]);
      await other.getByRole("link", { name: "Take ten nuts out of stock" }).click();
      await other.getByRole("button", { name: "Approve" }).and(other.locator(":enabled")).waitFor();
      // The bar with the actions covers what is below it until one scrolls there.
      await other.locator("#main").evaluate((main) => main.scrollTo(0, main.scrollHeight));
      expect(await axeFindings(other, theme)).toEqual([]);
      expect(await jsonOnScreen(other)).toEqual([]);
      const width = await other.evaluate(() => document.documentElement.scrollWidth);
      expect(width).toBeLessThanOrEqual(size.width);
      await closeContext(other);
    }
  }
  const reviewer = await world.signIn({ subject: "person:bob", to: "/conversations" });
  await reviewer.getByRole("link", { name: "Take ten nuts out of stock" }).click();
  await reviewer.getByRole("button", { name: "Approve" }).and(reviewer.locator(":enabled")).click();
  await expect.poll(() => world.stock.get("nut-m8")).toBe(70);
  await button("Continue").and(page.locator(":enabled")).click();
  await page.getByText("All is done.").waitFor();
  await page.getByText("This conversation has ended").waitFor();
  await closeContext(page);
  await closeContext(reviewer);
});
