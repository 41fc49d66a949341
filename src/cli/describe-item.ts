import { z } from "zod";
import type { AnswerOf, Client } from "../client/index.ts";
import { pageOf } from "../http/wire/common.ts";
import { decisionInFull } from "../http/wire/decision.ts";
import { interaction, preview as wirePreview } from "../http/wire/interaction.ts";
import { type Preview, previewHash } from "../model/approval.ts";
import { SallyportError } from "../model/errors.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonValue } from "../util/json.ts";
import { quoted, quotedJson, shown } from "./render.ts";

export type Item = AnswerOf<"interactions.get">;
type Decision = AnswerOf<"decisions.get">;
type WirePreview = NonNullable<AnswerOf<"interactions.shown">["preview"]>;

export interface Described {
  readonly text: string;
  /** Why a yes cannot be given here; empty when what is printed is what would run. */
  readonly whyNot: string;
}

/** A server that never comes to an end is not waited for. */
const MOST_PAGES = 100;

/** Everything that waits for a person, page by page. Throws internal_error when the server's answer is no inbox. */
export async function readInbox(client: Client): Promise<readonly Item[]> {
  const all: Item[] = [];
  let at: { readonly cursor?: string } = {};
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const query = { limit: 100, ...at };
    const { items, next } = parsed(pageOf(interaction), await client.interactions.list(query));
    all.push(...items);
    if (next === null || next === at.cursor) break;
    at = { cursor: next };
  }
  return all;
}

/** The whole question: lists cut what is long. Throws internal_error like `readInbox`. */
export async function readItem(client: Client, id: string): Promise<Item> {
  return parsed(interaction, await client.interactions.get({ id }));
}

/** The server may be a proxy, another version or an impostor: nothing is printed of an answer with another shape. */
function parsed<Value>(schema: z.ZodType<Value>, answer: unknown): Value {
  const result = schema.safeParse(answer);
  if (result.success) return result.data;
  const hint = "The server's answer has another shape than this version of sallyport expects.";
  throw new SallyportError("internal_error", { hint });
}

/** More lines than this push the facts off the screen; longer ones are read in the console. */
const MOST_LINES = 200;

/** One question for a terminal: what would run, where, and what its dry run says, then who asks. */
export async function describeItem(client: Client, item: Item): Promise<Described> {
  const lines = [quoted(item.displayText)];
  let whyNot = "";
  if (item.type === "confirm") {
    const facts = await confirmFacts(client, item);
    lines.push(...facts.lines);
    whyNot = facts.whyNot;
  } else if (item.pendingTool !== undefined) {
    const { summary, args_json } = item.pendingTool;
    lines.push(`  ${quoted(summary)}`, `  input: ${quotedJson(args_json)}`);
  }
  for (const { by, text } of item.remarks) lines.push(`  remark by ${shown(by)}: ${quoted(text)}`);
  lines.push(`  asked by ${item.chain.map(shown).join(" < ")}, until ${shown(item.deadline)}`);
  return { text: lines.join("\n"), whyNot };
}

const shownAnswer = z.object({ preview: wirePreview.nullable() });

interface Facts {
  readonly lines: readonly string[];
  readonly whyNot: string;
}

async function confirmFacts(client: Client, item: Item): Promise<Facts> {
  let decision: Decision;
  let preview: WirePreview | null;
  try {
    decision = parsed(decisionInFull, await client.decisions.get({ id: item.decisionId }));
    preview = parsed(shownAnswer, await client.interactions.shown({ id: item.id })).preview;
  } catch (error) {
    const whyNot = `What would run could not be read: ${shown(errorText(error))}`;
    return { lines: [`  ${whyNot}`], whyNot };
  }
  if (preview === null) {
    const whyNot = "There is no preview of what would run.";
    return { lines: [`  ${whyNot}`], whyNot };
  }
  const lines = decision.calls === null ? rawLines(decision) : callLines(decision, preview);
  const count = lines.join("\n").split("\n").length;
  if (count > MOST_LINES) {
    const whyNot = `It has ${count} lines; only the first ${MOST_LINES} are here. Read it in the console.`;
    const head = lines.join("\n").split("\n").slice(0, MOST_LINES);
    return { lines: [...head, `  … ${whyNot}`], whyNot };
  }
  if (!isBound(item.hash, decision, preview)) {
    const whyNot = "What is printed here is not what a yes would be bound to. Tell your operator.";
    return { lines: [...lines, `  ${whyNot}`], whyNot };
  }
  return { lines: [...lines, `  class: ${shown(preview.safetyClass)}`], whyNot: "" };
}

function callLines({ calls, targets }: Decision, { dryRun }: WirePreview): readonly string[] {
  const runs = Array.isArray(dryRun) ? dryRun : [];
  return (calls ?? []).flatMap(({ tool, input, workingDirectory }, index) => [
    `  tool: ${shown(tool)}`,
    `  input: ${quotedJson(JSON.stringify(input))}`,
    ...runLines(runs[index]),
    `  folder: ${workingDirectory === "" ? "(none)" : shown(workingDirectory)}`,
    ...targetLines(targets[index]),
  ]);
}

function targetLines(targets: Decision["targets"][number] | undefined): readonly string[] {
  if (targets == null) return ["  target: (the tool does not say)"];
  return targets.map(({ kind, target, access, reason }) => {
    const how = [
      access === undefined ? "" : `${access}s`,
      kind === "unresolved" ? "NOT RESOLVED" : "",
    ];
    const why = reason === undefined ? "" : `, ${shown(reason)}`;
    return `  target: ${shown(target)} (${[kind, ...how].filter((word) => word !== "").join(", ")}${why})`;
  });
}

/** The tool's dry run: its summary, and its preview or diff behind the mark of foreign text. */
function runLines(run: JsonValue | undefined): readonly string[] {
  const look = typeof run === "object" && run !== null && !Array.isArray(run) ? run : {};
  if (run === undefined || "unavailable" in look) {
    return [`  dry run: CANNOT BE INSPECTED ${shown(look["unavailable"] ?? "")}`.trimEnd()];
  }
  const { summary, preview, impact } = look;
  return [
    `  dry run: ${quoted(summary ?? "")}`,
    ...(preview === undefined || preview === summary || preview === ""
      ? []
      : [`  preview: ${quoted(preview)}`]),
    ...(impact === undefined || JSON.stringify(impact) === "{}"
      ? []
      : [`  impact: ${quotedJson(JSON.stringify(impact))}`]),
  ];
}

function rawLines({ sourceTool, raw }: Decision): readonly string[] {
  const about = `  payload of ${shown(sourceTool)}, ${raw?.bytes ?? 0} bytes:`;
  if (raw?.text == null) return [`${about} CANNOT BE INSPECTED, it is no text`];
  return [`${about} ${quoted(raw.text)}`];
}

/** Computed here from what is printed, so that a yes cannot go to something else. */
function isBound(hash: string, { calls, raw }: Decision, preview: WirePreview): boolean {
  if (previewHash(preview as unknown as Preview) !== hash) return false;
  const action =
    calls === null
      ? Buffer.from(raw?.base64 ?? "", "base64")
      : canonicalJson({ v: 1, calls: calls as unknown as JsonValue });
  return sha256Hex(action) === preview.actionHash;
}
