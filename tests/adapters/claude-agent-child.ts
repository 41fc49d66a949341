// Claude Code in a story, through its SDK, one process per command: `start`, `resume`, `force` (continues without asking the gate)
// and `decide`. The program is the published one; only its model is scripted.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { continueQuery, gateClaude, gated, resume } from "sallyport/claude-agent";
import { type ScriptedRequest, startScriptedModel } from "../support/scripted-model.ts";
import {
  AGENT,
  decide,
  input,
  inputOf,
  LOST,
  loadState,
  lookup,
  openGate,
  type Refund,
  type Report,
  RUN,
  refund,
  refundPromises,
  refuse,
  report,
  STILL_WAITS,
  saveState,
  toldIn,
  type Wish,
} from "./world.ts";

const hosts = createRequire(new URL("../../tools/hosts/package.json", import.meta.url));
const { createSdkMcpServer, query, tool } = hosts("@anthropic-ai/claude-agent-sdk");

const [command = "", given = "[]", reason = ""] = process.argv.slice(2);
await using gate = openGate();
const say = (result: unknown) => ({
  content: [{ type: "text", text: typeof result === "string" ? result : JSON.stringify(result) }],
});
const own = [
  tool("lookup", "Reads an invoice.", input.shape, async (asked: Refund) => say(lookup(asked))),
  gated(
    tool("refund", "Pays an invoice back.", input.shape, async (asked: Refund) => {
      refuse(asked);
      return say(refund(asked));
    }),
    refundPromises(),
  ),
];
if (process.env["GATE"] === "fails") await gate.close();
const { hooks, tools } = gateClaude(gate, own, {
  agent: AGENT,
  run: RUN,
  readOnly: ["lookup", "Agent", "Read"],
  hostTools: ["Bash", "Edit"],
  ...(process.env["PERMIT_MS"] === undefined ? {} : { permitMs: Number(process.env["PERMIT_MS"]) }),
});

const LEDGER = path.resolve("ledger.txt");
const wishes: readonly Wish[] = command === "start" ? JSON.parse(given) : [];
const SUB = "You refund for billing.";

/** All that the model saw, the notes of the hooks among it. */
let seen = "";

/** First its calls, repeated when the answer asks for it; then the answers as text. */
function script({ results, prompt }: ScriptedRequest) {
  seen = [prompt, ...results.map(({ text }) => text)].join("\n");
  if (process.env["HOW"] === "sub-agent" && !prompt.includes(SUB)) {
    const task = { description: "refund", prompt: SUB, subagent_type: "general-purpose" };
    const input = { ...task, run_in_background: false };
    if (results.length === 0) return { calls: [{ id: "toolu_sub", name: "Agent", input }] };
  }
  // A file is read before it is edited.
  if (wishes[0]?.tool === "edit" && results.length === 0) {
    return { calls: [{ id: "toolu_0", name: "Read", input: { file_path: LEDGER } }] };
  }
  const own = results.filter(({ id }) => id !== "toolu_0");
  if (own.length === 0 && wishes.length > 0) return { calls: wishes.map(callOf) };
  const told = new Map(own.map(({ id, text }) => [wishIdOf(id), firstLine(text)]));
  const again = [...told].filter(([, text]) => /Make this one again/.test(text));
  const wish = (id: string): Wish => ({ id, tool: "refund", cents: id === "2" ? 50 : 999 });
  if (again.length > 0)
    return { calls: again.map(([id]) => ({ ...callOf(wish(id)), id: `toolu_again_${id}` })) };
  return { text: JSON.stringify(Object.fromEntries(told)) };
}

function callOf(wish: Wish) {
  const id = `toolu_${wish.id}`;
  if (wish.tool === "write") {
    return { id, name: "Write", input: { file_path: LEDGER, content: "INV-1 1\n" } };
  }
  if (wish.tool === "edit") return { id, name: "Edit", input: editOf(wish) };
  return wish.tool === "bash"
    ? { id, name: "Bash", input: { command: bash(wish), description: "refund" } }
    : { id, name: `mcp__sallyport__${wish.tool}`, input: inputOf(wish) };
}

/** The same effect by a tool of Claude Code itself. */
function bash({ id, cents }: Wish): string {
  const effect = `echo INV-${id} ${cents} >> ledger.txt`;
  if (cents === 555) return "echo the invoice is closed >&2; exit 3";
  // Long enough to be cut off.
  return cents === LOST ? `${effect}; sleep 60` : effect;
}

const editOf = ({ id, cents }: Wish) => ({
  file_path: LEDGER,
  old_string: "nothing yet",
  new_string: `INV-${id} ${cents}`,
});

/** `toolu_again_2` is the second try of wish 2. */
function wishIdOf(id: string): string {
  return id.split("_").at(-1) ?? "";
}

/** Claude Code adds reminders of its own below the result. */
function firstLine(text: string): string {
  return text.split("\n\n<system-reminder>\n<")[0] ?? "";
}

interface Saved {
  readonly session: string;
  readonly deferred: { readonly id: string };
}

/** What a message of the SDK has, as far as the stories read it. */
interface Message {
  readonly type: string;
  readonly session_id: string;
  /** Not of an interrupted query. */
  readonly result?: string;
  readonly deferred_tool_use?: { readonly id: string };
}

interface Query extends AsyncIterable<Message> {
  interrupt(): Promise<void>;
}

/** As soon as the effect is there: the process dies, or its user interrupts the command. */
async function cutOff(how: string, interrupt: () => unknown): Promise<void> {
  while (!existsSync(LEDGER)) await setTimeout(20);
  if (how === "killed") process.kill(process.pid, "SIGKILL");
  await interrupt();
}

async function run(saved?: Saved): Promise<Report & { readonly saved?: Saved }> {
  await using model = await startScriptedModel(script);
  const options = {
    hooks,
    mcpServers: { sallyport: createSdkMcpServer({ name: "sallyport", tools }) },
    model: "claude-sonnet-4-5",
    settingSources: [],
    cwd: process.cwd(),
    env: {
      ...process.env,
      HOME: process.cwd(),
      ANTHROPIC_BASE_URL: model.url,
      ANTHROPIC_API_KEY: "none",
      DISABLE_AUTOUPDATER: "1",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    },
  };
  let asked: Query | undefined;
  const ask = (prompt: unknown, more = {}): Query => {
    asked = query({ prompt, options: { ...options, ...more } }) as Query;
    return asked;
  };
  const messages: AsyncIterable<Message> =
    saved === undefined
      ? ask("Refund what is due.")
      : continueQuery((prompt) => ask(prompt, { resume: saved.session }));
  const { CUT_OFF } = process.env;
  if (CUT_OFF !== undefined) void cutOff(CUT_OFF, () => asked?.interrupt());
  for await (const message of messages) {
    if (message.type !== "result") continue;
    const { deferred_tool_use: deferred, session_id: session, result } = message;
    if (deferred === undefined) return { paused: [], told: toldIn(result ?? "") };
    return { paused: [wishIdOf(deferred.id)], told: {}, saved: { session, deferred } };
  }
  throw new Error("Claude Code ended without a result");
}

async function proceed(saved?: Saved): Promise<void> {
  const { paused, told, saved: next } = await run(saved);
  saveState(next ?? null);
  report(process.env["SEEN"] === undefined ? { paused, told } : { paused, told: { seen } });
}

if (command === "decide") await decide(gate, given, { reason });
if (command === "start") await proceed();
if (command === "resume") {
  const saved = loadState<Saved | null>();
  const runs = saved === null ? [] : [{ ...saved, run: RUN }];
  const continued = await resume(gate, runs, (ready) => proceed(ready));
  if (continued.length === 0) report(STILL_WAITS);
}
if (command === "force") await proceed(loadState<Saved>());
