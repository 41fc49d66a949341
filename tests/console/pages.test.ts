// Every page in both themes, wide and at 360 pixels: no finding of axe (WCAG 2.2 AA), nothing wider than the screen, and a picture
// of each for people to look at (SCREENSHOTS names the folder).

import { mkdirSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SCALE } from "../support/scale.ts";
import { axeFindings } from "./axe.ts";
import { type Busy, fillWorld } from "./busy-world.ts";
import { type ConsoleWorld, closeContext, openConsole } from "./console-world.ts";
import { jsonOnScreen } from "./json-on-screen.ts";

const SHOTS = process.env["SCREENSHOTS"] ?? path.join(tmpdir(), "sallyport-screenshots");
/** The pictures of the guide: each page once, and more of what people look at longest. `SCREENSHOTS` writes them anew. */
const GUIDE = path.resolve(import.meta.dirname, "../../docs/guide/screenshots");
const MORE: Readonly<Record<string, readonly string[]>> = {
  inbox: ["light", "dark", "narrow"],
  decision: ["light", "narrow"],
  session: ["light", "dark"],
  audit: ["dark"],
  bundle: ["dark"],
  decisions: ["dark"],
};

function guidePictures(): readonly string[] {
  const pictures = Object.keys(pages()).flatMap((what) =>
    (MORE[what] ?? ["light"]).map((view) => `${what}-${view}.png`),
  );
  return [...pictures, "edit-light.png", "propose-light.png"].toSorted();
}

let world: ConsoleWorld;
let busy: Busy;

beforeAll(async () => {
  mkdirSync(SHOTS, { recursive: true });
  world = await openConsole();
  busy = await fillWorld(world);
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  expect(world.problems).toEqual([]);
});

/** Each page with something that is there only once it has been read. */
function pages(): Readonly<Record<string, readonly [to: string, there: string]>> {
  const { ids, sessionId, runId, talkId } = busy;
  return {
    inbox: ["/inbox", "40 waiting"],
    decision: [`/decisions/${ids.diff}`, "Exactly this will run"],
    blind: [`/decisions/${ids.blind}`, "Effect unknown:"],
    bundle: [`/decisions/${ids.bundle}`, "3 of 3"],
    long: [`/decisions/${ids.long}`, "more bytes not opened yet"],
    sessions: ["/sessions", "agent:buyer"],
    session: [`/sessions/${sessionId}`, "Timeline (from the audit log)"],
    tasks: ["/tasks", "Count the bolts"],
    delegations: ["/delegations", "Labels for the new shelves"],
    run: [`/runs/${runId}`, "Ran alone"],
    conversations: ["/conversations", "waits for a person"],
    conversation: [`/conversations/${talkId}`, "Correct their number"],
    rules: ["/rules", "The hall manager agreed by phone."],
    tools: ["/tools", "carrier.book"],
    audit: ["/audit", "Verify the trail"],
    overview: ["/overview", "What came of calls"],
    decisions: ["/decisions", "Refused by checks"],
  };
}

const WIDE = { width: 1_280, height: 800 };
const NARROW = { width: 360, height: 740 };
const VIEWS = [
  { name: "light", theme: "light", size: WIDE },
  { name: "dark", theme: "dark", size: WIDE },
  { name: "narrow", theme: "light", size: NARROW },
  { name: "narrow-dark", theme: "dark", size: NARROW },
] as const;

/** In `npm test` both themes and both sizes, but not all of their combinations. */
const isEach = SCALE !== "test" || process.env["SCREENSHOTS"] !== undefined;
const SEEN = VIEWS.filter(({ name }) => isEach || /^(?:light|narrow-dark)$/.test(name));

for (const { name, theme, size } of SEEN) {
  test(`every page passes axe, fits ${size.width} pixels and shows no JSON outside of code: ${theme}`, async () => {
    const page = await world.signIn({ theme, size });
    for (const [what, [to, there]] of Object.entries(pages())) {
      await page.goto(world.server.url + to);
      await page.getByText(there).first().waitFor();
      await page.getByText("live", { exact: true }).waitFor();
      expect(await axeFindings(page, theme), what).toEqual([]);
      expect(await jsonOnScreen(page), what).toEqual([]);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(width, what).toBeLessThanOrEqual(size.width);
      await picture(page, `${what}-${name}.png`);
    }
    await closeContext(page);
  }, 200_000);
}

async function picture(page: Page, file: string): Promise<void> {
  const folder = path.resolve(SHOTS);
  if (folder === GUIDE && !guidePictures().includes(file)) return;
  await page.screenshot({ path: path.join(folder, file) });
}

test("the guide has a picture of every page, and no others", () => {
  expect(readdirSync(GUIDE).toSorted()).toEqual(guidePictures());
});

test("dialogs pass axe in both themes, and everything in them is reached by keyboard", async () => {
  for (const theme of ["light", "dark"] as const) {
    const page = await world.signIn({ theme, to: `/inbox/${busy.ids.diff}` });
    await page.getByRole("button", { name: "Approve" }).and(page.locator(":enabled")).waitFor();
    for (const key of ["e", "r", "h", "b", "?"]) {
      await page.keyboard.press(key);
      await page.getByRole("dialog").waitFor();
      expect(await axeFindings(page, theme), key).toEqual([]);
      if (key === "e") await picture(page, `edit-${theme}.png`);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    await page.goto(`${world.server.url}/rules`);
    for (const name of ["Propose a rule", "Override a finding"]) {
      await page.getByRole("button", { name }).and(page.locator(":enabled")).click();
      await page.getByRole("dialog").getByRole("textbox").first().waitFor();
      const look = page.getByRole("button", { name: "Replay", exact: true });
      if ((await look.count()) > 0) {
        await look.click();
        await page.getByRole("region", { name: "Replay on past decisions" }).waitFor();
        await picture(page, `propose-${theme}.png`);
      }
      expect(await axeFindings(page, theme), name).toEqual([]);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    await closeContext(page);
  }
});

test("the inbox is navigated by keyboard, filtered and searched; single-letter shortcuts can be switched off", async () => {
  const page = await world.signIn();
  const rows = page.locator("li[data-id]");
  const current = page.locator("li[data-id]:has([aria-current=true])");
  await expect.poll(() => rows.count()).toBe(40);
  await current.waitFor();
  const first = await current.getAttribute("data-id");
  await page.keyboard.press("j");
  await expect.poll(() => current.getAttribute("data-id")).not.toBe(first);
  await page.keyboard.press("k");
  await expect.poll(() => current.getAttribute("data-id")).toBe(first);
  await page.keyboard.press("/");
  await page.keyboard.type("part-003");
  await expect.poll(() => rows.count()).toBe(1);
  await page.keyboard.press("Escape");
  await page.getByLabel("Search the inbox").fill("");
  await page.getByLabel("Kind").selectOption("ask_user");
  // Two that an agent asks, and the plan of a conversation.
  await expect.poll(() => rows.count()).toBe(3);
  await page.getByLabel("Kind").selectOption("");
  await page.getByLabel("Risk").selectOption("irreversible");
  await expect.poll(() => rows.count()).toBeLessThan(20);
  await page.getByLabel("Risk").selectOption("");
  await page.keyboard.press("Escape");
  const chosen = page.locator("li[data-id] input:checked");
  await page.keyboard.press("X");
  // Everything reversible and nothing else, to be decided as a list with a veto for each.
  await expect.poll(() => chosen.count()).toBeGreaterThan(15);
  for (const box of await chosen.all()) {
    expect(await box.locator("xpath=..").getAttribute("data-class")).toBe("reversible");
  }
  await page.keyboard.press("X");
  await expect.poll(() => chosen.count()).toBe(0);
  await page.keyboard.press("?");
  await page.getByLabel("Single letters are commands").uncheck();
  await page.keyboard.press("Escape");
  const before = await current.getAttribute("data-id");
  await page.keyboard.press("j");
  await page.keyboard.press("X");
  await page.keyboard.press("r");
  expect(await current.getAttribute("data-id")).toBe(before);
  expect(await page.getByRole("dialog").count()).toBe(0);
});
