import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import type { Client } from "../../client/index.ts";
import { SallyportError } from "../../model/errors.ts";
import { asPerson, connect, type Shared } from "../connect.ts";
import { print, shortId, visible } from "../render.ts";

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
    .argument("<number>", "its number in `sallyport interactions list`, or the end of its id")
    .option("--yes", "do not ask")
    .action(async (which: string, { yes }: { readonly yes?: boolean }) => {
      const done = await asPerson(shared(), (client) => approve(client, which, yes === true));
      print(done.answer, shared(), done.text);
    });
  program
    .command("undo")
    .description("Undo what one decision executed. Shows what that would change, and asks.")
    .argument("<decision>", "the end of its id, as `find` prints it")
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

async function approve(client: Client, which: string, isSure: boolean) {
  const { items } = await client.interactions.list({ limit: 500 });
  const place = /^\d{1,3}$/.test(which) ? items[Number(which) - 1] : undefined;
  const item = place ?? items.find(({ id }) => id.endsWith(which));
  if (item === undefined || item.type !== "confirm") {
    const hint = `Nothing that waits for approval is "${which}". Run sallyport interactions list.`;
    throw new SallyportError("not_found", { id: which, hint });
  }
  const { id, hash, pendingTool, chain } = item;
  const text = `${pendingTool?.summary ?? ""}\n${pendingTool?.tool_name ?? ""} ${pendingTool?.args_json ?? ""}\nasked by ${chain[0] ?? ""}`;
  if (!isSure) await confirmed(`${text}\nApprove?`);
  const answer = await client.interactions.approve({ id, hash });
  const [first] = answer.answers;
  const came =
    first === undefined ? "Recorded; others must approve too." : `${first.answer}: ${first.text}`;
  return { answer, text: came };
}

async function undo(client: Client, which: string, isSure: boolean) {
  const { items } = await client.calls.list({ text: which, outcome: ["ran", "failed"], limit: 50 });
  const found = items.filter(({ id, kind }) => kind === "decision" && id.endsWith(which));
  const [call, ...more] = found;
  if (call === undefined || more.length > 0) {
    const hint =
      call === undefined
        ? "Nothing that ran has this id."
        : "Several have this end: give more of it.";
    throw new SallyportError("not_found", { id: which, hint });
  }
  const { items: done } = await client.operations.list({ sessionId: call.sessionId, limit: 500 });
  const own = done.filter(
    ({ decisionId, status }) => decisionId === call.id && status === "success",
  );
  const reports = [];
  for (const { id } of own) {
    const { items: plan } = await client.sessions.rollbackPlan({
      id: call.sessionId,
      operationId: id,
    });
    const [step] = plan;
    const text = `${step?.title || call.title}\nundo: ${step?.undoTitle || step?.undoTool || "none"} ${JSON.stringify(step?.undoInput ?? null)}\n${step?.reason ?? ""}`;
    if (!isSure) await confirmed(`${text}\nUndo it?`);
    reports.push(await client.operations.undo({ id }));
  }
  const undone = reports.reduce((sum, report) => sum + report.undone.length, 0);
  return { answer: { reports }, text: `${undone} of ${own.length} undone.` };
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
