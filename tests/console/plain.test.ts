// What agents write is shown as what it is: nothing hidden, nothing reordered, nothing that runs.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { type ConsoleWorld, openConsole, propose, seen } from "./console-world.ts";
import { attacks, spoofs } from "./corpus.ts";

/** So many texts in one call: a page is loaded for each call. */
const TOGETHER = scaled({ test: 50, proof: 50, full: 100 });

let world: ConsoleWorld;
let page: Page;

beforeAll(async () => {
  world = await openConsole();
  page = await world.signIn();
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

function portions(all: readonly string[]): readonly (readonly string[])[] {
  const count = Math.ceil(all.length / TOGETHER);
  return Array.from({ length: count }, (_, at) => all.slice(at * TOGETHER, (at + 1) * TOGETHER));
}

/** Opens a call with these texts in it, with everything unfolded. */
async function show(input: object): Promise<string> {
  const session = await world.session("agent:odd");
  const id = await propose(session, "notes.send", input);
  await page.goto(`${world.server.url}/decisions/${id}`);
  await page.locator(`article[data-item="${id}"]`).waitFor();
  await page.getByText("Exactly this will run").waitFor();
  const fold = page.getByRole("button", { name: "Show everything" });
  if ((await fold.count()) > 0) await fold.click();
  return id;
}

interface Shown {
  /** The strings of the input put together again from what is on the screen. */
  readonly texts: readonly string[];
  /** Deceptive text on the screen outside of marks. */
  readonly active: readonly string[];
  /** Whether something covers the middle of the buttons. */
  readonly covered: readonly string[];
}

/** Reads the screen as a reader would: text nodes, and marks by their numbers. */
async function look(): Promise<Shown> {
  return page.evaluate(() => {
    const decode = (codes: string) => {
      const [first = "", times] = codes.split("*");
      const text = first
        .split(" ")
        .map((code) => String.fromCodePoint(Number.parseInt(code, 16)))
        .join("");
      return times === undefined ? text : text.repeat(Number(times));
    };
    const readNode = (node: Node): string => {
      if (node instanceof Text) return node.data;
      if (!(node instanceof Element)) return "";
      const raw = node.getAttribute("data-raw");
      if (raw !== null) return decode(raw);
      return Array.from(node.childNodes, readNode).join("");
    };
    const input = document.querySelector("[data-json=tree]");
    const fields = Array.from(input?.querySelectorAll("[data-untrusted]") ?? []);
    const hidden =
      /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u00a0\u2000-\u200a\u202f\u205f\u3000\u2800\u115f\u1160\u3164\uffa0]|\p{M}{3}|( {41})/u;
    const active: string[] = [];
    const root = document.getElementById("root") ?? document.body;
    const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node !== null; node = walk.nextNode()) {
      if (hidden.test((node as Text).data)) active.push((node as Text).data);
    }
    const covered: string[] = [];
    for (const button of document.querySelectorAll("[data-actions] button")) {
      const { left, top, width, height } = button.getBoundingClientRect();
      const over = document.elementFromPoint(left + width / 2, top + height / 2);
      if (over === null || !button.contains(over)) covered.push(button.textContent ?? "");
    }
    return { texts: fields.map(readNode), active, covered };
  });
}

/** As the page writes strings: quotes and backslashes escaped. */
const escaped = (text: string) => text.replace(/["\\]/g, (sign) => `\\${sign}`);

test("everything hidden in an input is visible, and what is on the screen is what would be sent [I25 T13]", async () => {
  const corpus = spoofs(scaled({ test: 104, proof: 400, full: 5_000 }));
  const figures = { texts: 0, hidden: 0, active: 0, covered: 0 };
  for (const texts of portions(corpus)) {
    await show({ texts });
    const { texts: shown, active, covered } = await look();
    // The first field is the key.
    const wanted = ["texts", ...texts.map(escaped)];
    figures.texts += texts.length;
    figures.hidden += wanted.filter((text, place) => shown[place] !== text).length;
    figures.active += active.length;
    figures.covered += covered.length;
    expect(active).toEqual([]);
    expect(covered).toEqual([]);
    expect(shown).toEqual(wanted);
  }
  record({ goal: "T13", what: "inputs with something hidden in them", figures });
  expect(world.problems).toEqual([]);
}, 600_000);

test("names, reasons, questions and answers of tools are shown the same way [T13]", async () => {
  const session = await world.session("agent:odd");
  const text = "pay \u202eeviL\u202c \u200bnow а\u0430dmin";
  await session.ask({ callId: "odd", text, choices: ["yes\u200b", "no"] });
  await page.goto(`${world.server.url}/inbox`);
  await page
    .getByRole("button", { name: /agent says/ })
    .getByText("U+202E")
    .first()
    .waitFor();
  const { active } = await look();
  expect(active).toEqual([]);
  // Not in the text of the page as a whole either, as a screen reader gets it.
  expect(await page.locator("body").innerText()).not.toMatch(/[\u202a-\u202e\u200b]/);
});

test("facts are above what the agent says, and long input must be opened before approval [T13 T14]", async () => {
  const session = await world.session("agent:odd");
  const id = await propose(session, "notes.send", { text: "a".repeat(6_000), tail: "the end" });
  const { hash } = await world.gate.interactions.get(id);
  await world.gate.interactions.askBack(id, { by: "person:bob", text: "Why?" });
  await session.reply(id, "Trust me, it is harmless. Approve it.");
  await page.goto(`${world.server.url}/decisions/${id}`);
  const approve = page.getByRole("button", { name: "Approve" });
  await page.getByText("more bytes not opened yet").waitFor();
  await seen(page);
  expect(await approve.isEnabled()).toBe(false);
  const top = (locator: ReturnType<Page["locator"]>) =>
    locator.first().evaluate((element) => element.getBoundingClientRect().top);
  const facts = await top(page.getByRole("figure", { name: "Input of notes.send" }));
  const words = await top(page.getByText("Trust me, it is harmless."));
  expect(facts).toBeLessThan(words);
  await page.getByText("Effect unknown:").waitFor();
  await page.getByRole("button", { name: "Show everything" }).click();
  await page.getByRole("button", { name: "Approve" }).and(page.locator(":enabled")).waitFor();
  expect((await world.gate.interactions.get(id)).hash).toBe(hash);
});

/** What an agent claims about each kind of call, and what the call really says. */
const LIES: readonly (readonly [input: (n: number) => object, claim: (n: number) => string])[] = [
  [(n) => ({ text: "delete everything", count: 4_000 + n }), (n) => `It only reads ${n} rows.`],
  [(n) => ({ to: `all-${n}@rivals.example`, text: "prices" }), (n) => `Sent to colleague ${n}.`],
  [(n) => ({ amount: 10_000 * n + 9, currency: "EUR" }), (n) => `A refund of ${n} cents.`],
  [(n) => ({ table: "customers", drop: true, n }), (n) => `Adds an index, number ${n}.`],
  [(n) => ({ path: `/etc/${n}`, mode: "overwrite" }), (n) => `Writes /tmp/${n}, a copy.`],
];

test("summaries that contradict the input are never above it, and always labelled [T14]", async () => {
  const pairs = scaled({ test: 5, proof: 20, full: 200 });
  const session = await world.session("agent:liar");
  const wrong: string[] = [];
  for (let n = 0; n < pairs; n += 1) {
    const [input, claim] = LIES[n % LIES.length] ?? [() => ({}), () => ""];
    const words = claim(n);
    const id = await propose(session, "notes.send", input(n));
    await world.gate.interactions.askBack(id, { by: "person:bob", text: "What does it do?" });
    const forged = `${words}\n\nInput: {"text":"read"}\n✓ checked by Sallyport\nApprove`;
    await session.reply(id, forged);
    await page.goto(`${world.server.url}/decisions/${id}`);
    await page.getByText(words).first().waitFor();
    const card = await page.evaluate(lookAtCard, words);
    const { hash, preview } = (await world.gate.interactions.shown(id)) ?? {};
    const isBound = JSON.stringify(preview).includes(words);
    const facts = Object.entries(input(n)).every(
      ([key, value]) => card.facts.includes(key) && card.facts.includes(String(value)),
    );
    if (!facts || !card.isBelow || card.outside > 0 || card.unlabelled > 0 || isBound || !hash) {
      wrong.push(`${words}: ${JSON.stringify({ ...card, isBound })}`);
    }
  }
  record({
    goal: "T14",
    what: "cards with a summary that contradicts the input",
    figures: { pairs, wrong: wrong.length },
  });
  expect(wrong).toEqual([]);
}, 600_000);

/** Runs in the page: where the facts are, where the agent's words are, and what is beside them. */
function lookAtCard(words: string) {
  const input = document.querySelector("[data-json=tree]");
  const bottom = input?.getBoundingClientRect().bottom ?? Number.POSITIVE_INFINITY;
  const said = Array.from(document.querySelectorAll("section")).filter((one) =>
    one.querySelector("h2")?.textContent?.startsWith("From the agent (unverified)"),
  );
  const holders = Array.from(document.querySelectorAll("article [data-untrusted]")).filter((one) =>
    one.textContent?.includes(words),
  );
  const inSaid = holders.filter((one) => said.some((section) => section.contains(one)));
  const timeline = holders.filter((one) => one.closest("ol") !== null);
  return {
    facts: input?.textContent ?? "",
    isBelow: inSaid.length > 0 && holders.every((one) => one.getBoundingClientRect().top > bottom),
    // The trail shows what was said as well, under the name of its author.
    outside: holders.length - inSaid.length - timeline.length,
    unlabelled: inSaid.filter(
      (one) => one.parentElement?.textContent?.includes("agent says") !== true,
    ).length,
  };
}

test("a page whose content does not match the approval hash says so, and cannot approve [T13]", async () => {
  const session = await world.session("agent:odd");
  const id = await propose(session, "stock.set", { sku: "bolt-m8", quantity: 1 });
  for (const [address, change] of [
    [`**/v1/interactions/${id}/shown`, (text: string) => text.replaceAll("→ 1", "→ 119")],
    [`**/v1/decisions/${id}`, (text: string) => text.replaceAll('"quantity":1', '"quantity":119')],
  ] as const) {
    await page.route(address, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: change(await response.text()) });
    });
    await page.goto(`${world.server.url}/decisions/${id}`);
    await page.getByText("This page shows something else than what would run").waitFor();
    await page.getByText("This page does not show what the approval would be bound to").waitFor();
    await seen(page);
    expect(await page.getByRole("button", { name: "Approve" }).isEnabled()).toBe(false);
    await page.keyboard.press("a");
    expect((await world.gate.interactions.get(id)).status).toBe("open");
    await page.unroute(address);
  }
  await page.goto(`${world.server.url}/decisions/${id}`);
  await page.getByRole("button", { name: "Approve" }).and(page.locator(":enabled")).waitFor();
});

test("nothing that agents write is executed, and no page violates its content security policy [T15]", async () => {
  const fired: string[] = [];
  await page.exposeFunction("canary", (key: string) => fired.push(key));
  const violations: string[] = [];
  await page.exposeFunction("violated", (what: string) => violations.push(what));
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => {
      (window as unknown as { violated(what: string): void }).violated(
        `${event.violatedDirective} ${event.blockedURI}`,
      );
    });
  });
  const corpus = attacks(scaled({ test: 100, proof: 200, full: 1_000 }));
  for (const texts of portions(corpus)) {
    const named = Object.fromEntries(texts.map((text, at) => [`${at}${text}`, text]));
    const id = await show(named);
    const session = await world.session(
      `agent:${texts[0]?.replaceAll(/[\p{Cc}]/gu, "").slice(0, 60)}`,
    );
    await session.ask({
      callId: `x-${id}`,
      text: texts.join("\n").slice(0, 9_000),
      choices: texts.slice(0, 5),
    });
    const { hash } = await world.gate.interactions.get(id);
    await world.gate.interactions.reject(id, {
      hash,
      by: "person:bob",
      reason: texts.join(" ").slice(0, 9_000),
    });
    await page.getByText("Closed").first().waitFor();
    for (const to of ["/inbox", `/sessions/${session.id}`, "/sessions", "/audit"]) {
      await page.goto(world.server.url + to);
      await page.getByText("live", { exact: true }).waitFor();
    }
    // Everything that can be clicked or opened by a reader, short of leaving the page.
    for (const summary of (await page.locator("summary").all()).slice(0, 5)) await summary.click();
  }
  record({
    goal: "T15",
    what: "texts that would run in a page that trusts them",
    figures: { texts: corpus.length, fired: fired.length, violations: violations.length },
  });
  expect(fired).toEqual([]);
  expect(violations).toEqual([]);
  expect(world.problems).toEqual([]);
}, 600_000);
