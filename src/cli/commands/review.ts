import { createInterface } from "node:readline/promises";
import { Command } from "commander";
import type { Client } from "../../client/index.ts";
import { forPeople, SallyportError } from "../../model/errors.ts";
import { errorText } from "../../util/error-text.ts";
import { NOTHING_CONFIGURED, readConfigured } from "../config-file.ts";
import { asPerson, isServerNamed } from "../connect.ts";
import { hasStore, OPTION, type StoreFlags, storePlaceOf, withFlags } from "../open-store.ts";
import { describeItem, type Item, printable, readInbox, readItem } from "../render.ts";
import { isServed, serve } from "../serve.ts";

/** The inbox in the terminal: one question at a time, facts first. Enter alone leaves it for later. */
export function reviewCommand(): Command {
  return new Command("review")
    .description("Go through the inbox, one question at a time. Also works without a server.")
    .option("--config <module>", "without a server: tools, reviews and rules, as for serve")
    .option("--tenant <name>", "without a server: the tenant; `default` when nothing is said")
    .option("--as <person>", "without a server: who decides", "person:you")
    .option(...OPTION.state)
    .option(...OPTION.epochFile)
    .action(withFlags<Reviewing>(reviewAnywhere));
}

interface Reviewing extends StoreFlags {
  readonly config?: string;
  readonly tenant?: string;
  readonly as: string;
}

/** On the server that is named or runs over the data folder; otherwise over the store itself. */
async function reviewAnywhere(flags: Reviewing): Promise<void> {
  const near = storePlaceOf(flags);
  const isElsewhere = flags.link !== undefined || isServerNamed(flags) || isServed(near.data);
  if (isElsewhere || !hasStore(near)) return asPerson(flags, review);
  // An agent can start commands too, but seldom has a terminal. Where a server runs, the sign-in link tells people apart.
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    const hint =
      'Without a server, "sallyport review" needs a terminal. Start "sallyport serve" and pass its sign-in link with --link.';
    throw new SallyportError("not_allowed", { what: "review", hint });
  }
  const terms = { source: "folder", otherwise: NOTHING_CONFIGURED } as const;
  const { config, place, tenant } = await readConfigured(flags, terms);
  const served = await serve({
    ...place,
    tenant,
    listen: { port: 0, host: "127.0.0.1" },
    person: flags.as,
    upkeepMs: 5_000,
    onProblem: (error) => process.stderr.write(`${printable(errorText(error))}\n`),
    parts: () => config,
    anchors: "on",
  });
  try {
    await asPerson({ ...flags, link: served.link }, review);
  } finally {
    await served.close();
  }
}

async function review(client: Client): Promise<void> {
  const terminal = createInterface({ input: process.stdin });
  // Lines are read on demand, so that lines piped in early are not lost.
  const lines = terminal[Symbol.asyncIterator]();
  const ask: Ask = async (prompt) => {
    process.stdout.write(prompt);
    const { value, done } = await lines.next();
    return done === true ? QUIT : value.trim();
  };
  try {
    await goThrough(client, ask);
  } finally {
    terminal.close();
  }
}

/** The typed line; the end of input means quit. */
type Ask = (prompt: string) => Promise<string>;

const QUIT = "q";

async function goThrough(client: Client, ask: Ask): Promise<void> {
  const items = await readInbox(client);
  if (items.length === 0) return say("Nothing waits for you.");
  for (const [index, { id }] of items.entries()) {
    try {
      const item = await readItem(client, id);
      const { text, whyNot } = await describeItem(client, item);
      say(`\n[${index + 1} of ${items.length}] ${text}`);
      const answer = await ask(QUESTIONS[item.type](item));
      if (answer === QUIT) return;
      if (answer === "") continue;
      if (answer === "a" && item.type === "confirm" && whyNot !== "") {
        say(`Not approved. ${whyNot}`);
        continue;
      }
      say(await decide(client, item, answer, ask));
    } catch (error) {
      // Someone else was first, or it expired: print that and continue with the next one.
      say(printable(errorText(error)));
    }
  }
}

const QUESTIONS: Readonly<Record<Item["type"], (item: Item) => string>> = {
  confirm: () => "a approve, r reject, b ask back, Enter later, q quit > ",
  ask_user: ({ choices }) =>
    choices.length === 0
      ? "your answer (Enter later, q quit) > "
      : `${choices.map(printable).join(" | ")} > `,
  connection_lost: () => "h it happened, n not, give up, t not, try again, Enter later, q quit > ",
};

async function decide(
  client: Client,
  { id, hash, type }: Item,
  answer: string,
  ask: Ask,
): Promise<string> {
  if (type === "ask_user") {
    await client.interactions.answer({ id, hash, answer });
    return "answered";
  }
  if (type === "connection_lost") {
    if (answer === "h")
      return reported(await client.interactions.settle({ id, hash, happened: true }));
    const next = ({ n: "give_up", t: "repeat" } as const)[answer];
    if (next === undefined) return "left open";
    return reported(
      await client.interactions.settle({ id, hash, happened: false, otherwise: next }),
    );
  }
  if (answer === "a") {
    const { answers, missing } = await client.interactions.approve({ id, hash });
    if (missing.length > 0)
      return `counted; still missing: ${missing.map((one) => printable(one.name)).join(", ")}`;
    return answers.map(reported).join("\n");
  }
  if (answer === "r" || answer === "b") {
    const text = await ask(answer === "r" ? "why? > " : "what do you want to know? > ");
    if (answer === "b") await client.interactions.askBack({ id, text });
    else await client.interactions.reject({ id, hash, reason: text });
    return answer === "b" ? "asked back; it stays open" : "rejected";
  }
  return "left open";
}

function reported({ answer, text }: { readonly answer: string; readonly text: string }): string {
  return printable(`${answer}: ${forPeople(text)}`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
