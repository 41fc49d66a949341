// Claude Code in a story, through its SDK, one process per command: `start`, `resume`, `force` (continues without asking the gate)
// and `decide`. The program is the published one; only its model is scripted.

import { createRequire } from "node:module";
import path from "node:path";
import { continueQuery, gateClaude, gated, resume } from "sallyport/claude-agent";
import { type ScriptedRequest, startScriptedModel } from "../support/scripted-model.ts";
import {
  AGENT,
  decide,
  input,
  inputOf,
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
  readOnly: ["lookup", "Agent"],
  hostTools: ["Bash"],
});

const wishes: readonly Wish[] = command === "start" ? JSON.parse(given) : [];
const SUB = "You refund for billing.";

/** First its calls, repeated when the answer asks for it; then the answers as text. */
function script({ results, prompt }: ScriptedRequest) {
  if (process.env["HOW"] === "sub-agent" && !prompt.includes(SUB)) {
    const task = { description: "refund", prompt: SUB, subagent_type: "general-purpose" };
    const input = { ...task, run_in_background: false };
    if (results.length === 0) return { calls: [{ id: "toolu_sub", name: "Agent", input }] };
  }
  if (results.length === 0) return { calls: wishes.map(callOf) };
  const told = new Map(results.map(({ id, text }) => [wishIdOf(id), firstLine(text)]));
  const again = [...told].filter(([, text]) => /Make this one again/.test(text));
  const wish = (id: string): Wish => ({ id, tool: "refund", cents: id === "2" ? 50 : 999 });
  if (again.length > 0)
    return { calls: again.map(([id]) => ({ ...callOf(wish(id)), id: `toolu_again_${id}` })) };
  return { text: JSON.stringify(Object.fromEntries(told)) };
}

function callOf(wish: Wish) {
  const id = `toolu_${wish.id}`;
  if (wish.tool === "write") {
    const file_path = path.resolve("ledger.txt");
    return { id, name: "Write", input: { file_path, content: "INV-1 1\n" } };
  }
  return wish.tool === "bash"
    ? { id, name: "Bash", input: { command: bash(wish), description: "refund" } }
    : { id, name: `mcp__sallyport__${wish.tool}`, input: inputOf(wish) };
}

/** The same effect by a tool of Claude Code itself. */
function bash({ id, cents }: Wish): string {
  return cents === 555
    ? "echo the invoice is closed >&2; exit 3"
    : `echo INV-${id} ${cents} >> ledger.txt`;
}

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
  readonly result: string;
  readonly deferred_tool_use?: { readonly id: string };
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
  const messages: AsyncIterable<Message> =
    saved === undefined
      ? query({ prompt: "Refund what is due.", options })
      : continueQuery((prompt) =>
          query({ prompt, options: { ...options, resume: saved.session } }),
        );
  for await (const message of messages) {
    if (message.type !== "result") continue;
    const { deferred_tool_use: deferred, session_id: session, result } = message;
    if (deferred === undefined) return { paused: [], told: toldIn(result) };
    return { paused: [wishIdOf(deferred.id)], told: {}, saved: { session, deferred } };
  }
  throw new Error("Claude Code ended without a result");
}

async function proceed(saved?: Saved): Promise<void> {
  const { paused, told, saved: next } = await run(saved);
  saveState(next ?? null);
  report({ paused, told });
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
