import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import type { Client } from "../../client/index.ts";
import { SallyportError } from "../../model/errors.ts";
import { asPerson, connect, type Shared } from "../connect.ts";
import { describeItem, print, readInbox, readItem, shortId, visible } from "../render.ts";

/** The commands that people use every day: short words, short ids, sentences instead of records. */
export function addPeopleCommands(program: Command): void {
  const shared = () => program.opts<Shared>();
  program
    .command("find")
    .description("Find calls by words: a customer, an invoice, a reason, an id. Newest first.")
    .argument("<words...>", "every word must begin a word of the call")
    .option("--limit <count>", "how many", "20")
    .action(async (words: readonly string[], { limit }: { readonly limit: string }) => {
      const asked = { text: words.join(" "), limit: Number(limit) };
      const answer = await connect(shared()).calls.list(asked);
      print(answer, shared(), callLines(answer.items));
    });
  program
    .command("approve")
    .description("Show one waiting call, ask, and approve exactly what was shown.")
    .argument("<number>", "its # in `sallyport interactions list`, or the end of its id")
    .option("--yes", "do not ask; not with a number")
    .action(async (which: string, { yes }: { readonly yes?: boolean }) => {
      const done = await asPerson(shared(), (client) => approve(client, which, yes === true));
      print(done.answer, shared(), done.text);
    });
  program
    .command("undo")
    .description(
      "Undo what one call, or one decision, executed. Shows what that would change, and asks.",
    )
    .argument("<call>", "the end of its id, as `find` prints it")
    .option("--yes", "do not ask")
    .action(async (which: string, { yes }: { readonly yes?: boolean }) => {
      const done = await asPerson(shared(), (client) => undo(client, which, yes === true));
      print(done.answer, shared(), done.text);
    });
  program
    .command("tail")
    .description("Print one line for each thing that happens, until you stop it.")
    .action(async () => {
      for await (const { seq, type, actor, subject } of connect(shared()).events({})) {
        process.stdout.write(
          `#${seq} ${visible(type)} ${visible(shortId(subject))} ${visible(actor)}\n`,
        );
      }
    });
}

type Found = Awaited<ReturnType<Client["calls"]["list"]>>["items"][number];

const WIDTH = 100;

function callLines(calls: readonly Found[]): string {
  if (calls.length === 0) return "Nothing found. Words match from their beginning.";
  return calls
    .map(({ id, at, outcome, title, agent, by, reason }) => {
      const who = by === "" ? "" : ` by ${by}`;
      const why = reason === "" ? "" : `: ${reason}`;
      const line = `${shortId(id)}  ${at.slice(0, 16).replace("T", " ")}  ${title}  (${agent})  ${outcome.replace("_", " ")}${who}${why}`;
      return line
        .split("\n")
        .map((part) => part.trim())
        .join(" ")
        .slice(0, WIDTH);
    })
    .join("\n");
}

/** The whole question is printed, and only what is printed can be approved, as in `review`. */
async function approve(client: Client, which: string, isSure: boolean) {
  const isPlace = /^\d{1,3}$/.test(which);
  if (isPlace && isSure) {
    const hint =
      "Numbers change when other questions come or go. With --yes give the end of the id.";
    throw new SallyportError("invalid_input", { what: "number", hint });
  }
  const items = await readInbox(client);
  const found = isPlace
    ? items.slice(Number(which) - 1, Number(which))
    : items.filter(({ id }) => id.endsWith(which));
  const { id } = onlyOne(found, which, "Run sallyport interactions list.");
  const item = await readItem(client, id);
  if (item.type !== "confirm") {
    const hint = "It is a question, not a call. Answer it with sallyport review.";
    throw new SallyportError("illegal_transition", { id, hint });
  }
  const { text, whyNot } = await describeItem(client, item);
  process.stdout.write(`${text}\n`);
  if (whyNot !== "") {
    throw new SallyportError("not_allowed", { id, hint: `Not approved. ${whyNot}` });
  }
  if (!isSure) await confirmed("Approve?");
  const answer = await client.interactions.approve({ id, hash: item.hash });
  const came = answer.answers.map((one) => `${one.answer}: ${one.text}`).join("\n");
  return {
    answer,
    text: answer.answers.length === 0 ? "Recorded; others must approve too." : came,
  };
}

/** Everything that would be undone is printed before the one question; the newest call is undone first. */
async function undo(client: Client, which: string, isSure: boolean) {
  const call = onlyOne(await callsEndingWith(client, which), which, "Look with sallyport find.");
  const own = call.kind === "decision" ? await operationsOf(client, call) : [call.id];
  const lines: string[] = [];
  for (const operationId of own) {
    const plan = await client.sessions.rollbackPlan({ id: call.sessionId, operationId });
    for (const step of plan.items) {
      const undone = `undo: ${step.undoTitle || step.undoTool || "none"} ${JSON.stringify(step.undoInput)}`;
      lines.push(step.title || call.title, undone, ...(step.reason === "" ? [] : [step.reason]));
    }
  }
  process.stdout.write(`${visible(lines.join("\n") || "There is nothing to undo.")}\n`);
  if (own.length === 0) return { answer: undefined, text: "0 of 0 undone." };
  if (!isSure) await confirmed("Undo it?");
  const answer = await client.sessions.rollback({ id: call.sessionId, only: own });
  return { answer, text: `${answer.undone.length} of ${own.length} undone.` };
}

/** Limit for a server whose pages never end. */
const MOST_PAGES = 100;

/** Words are searched from their beginning, but ids are shown by their end. */
async function callsEndingWith(client: Client, end: string): Promise<readonly Found[]> {
  const found: Found[] = [];
  let at: { readonly cursor?: string } = {};
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const query = { outcome: ["ran", "failed"] as const, limit: 100, ...at };
    const { items, next } = await client.calls.list({ ...query, outcome: [...query.outcome] });
    found.push(...items.filter(({ id }) => id.endsWith(end)));
    if (next === null || next === at.cursor) break;
    at = { cursor: next };
  }
  return found;
}

async function operationsOf(client: Client, { id, sessionId }: Found): Promise<string[]> {
  const own: string[] = [];
  let at: { readonly cursor?: string } = {};
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const { items, next } = await client.operations.list({ sessionId, limit: 100, ...at });
    const done = items.filter((one) => one.decisionId === id && one.status === "success");
    own.push(...done.map((one) => one.id));
    if (next === null || next === at.cursor) break;
    at = { cursor: next };
  }
  return own;
}

function onlyOne<Item extends { readonly id: string }>(
  found: readonly Item[],
  which: string,
  next: string,
): Item {
  const [only, ...more] = found;
  if (only === undefined) {
    throw new SallyportError("not_found", { id: which, hint: `Nothing has this end. ${next}` });
  }
  if (more.length === 0) return only;
  const hint = `${found.length} ids end with "${which}": give more of the one you mean.`;
  throw new SallyportError("invalid_input", { what: "id", hint });
}

/** Throws not_allowed unless a person at a terminal says yes. */
async function confirmed(text: string): Promise<void> {
  const isTerminal = process.stdin.isTTY === true;
  process.stdout.write(`${visible(text)} `);
  if (isTerminal) {
    const lines = createInterface({ input: process.stdin, output: process.stdout });
    const answer = await lines.question("[y/N] ");
    lines.close();
    if (/^y(es)?$/i.test(answer.trim())) return;
  }
  const hint = isTerminal ? "Not confirmed: nothing was done." : "Not a terminal: add --yes.";
  throw new SallyportError("not_allowed", { what: "confirmation", hint });
}
