// The OpenAI Agents SDK in a story, one process per command: `start`, `resume`, `force` (says approved without asking), `decide`.

import { createRequire } from "node:module";
import { isSallyportError } from "sallyport";
import { gated, gateTools, resume } from "sallyport/openai-agents";
import {
  AGENT,
  decide,
  input,
  inputOf,
  loadState,
  lookup,
  openGate,
  type Refund,
  RUN,
  refund,
  refundPromises,
  refuse,
  report,
  STILL_WAITS,
  SUB_AGENT,
  saveState,
  toldIn,
  type Wish,
} from "./world.ts";

const frameworks = createRequire(new URL("../../tools/frameworks/package.json", import.meta.url));
const { Agent, RunState, run, setTracingDisabled, tool, Usage } = frameworks("@openai/agents");
setTracingDisabled(true);

const [command = "", given = "[]", reason = ""] = process.argv.slice(2);
const refuses = process.env["REFUSES"] !== undefined;
const how = process.env["HOW"] ?? "run";
const isSub = how === "handoff" || how === "asTool";
const who = isSub ? { agent: SUB_AGENT, delegatedBy: [AGENT] } : { agent: AGENT };
await using gate = openGate();
const tools = gateTools(
  gate,
  [
    tool({ name: "lookup", description: "Reads an invoice.", parameters: input, execute: lookup }),
    gated(
      tool({
        name: "refund",
        description: "Pays an invoice back.",
        parameters: input,
        execute(asked: Refund) {
          refuse(asked);
          return refund(asked);
        },
        // By default the framework hides an exception, and with it why the target refused.
        ...(refuses ? { errorFunction: null } : {}),
      }),
      refundPromises(),
    ),
  ],
  { ...who, run: RUN, readOnly: ["lookup"] },
);

interface Item {
  readonly type: string;
  readonly callId: string;
  readonly output: { readonly text: string } | string;
}

/** First its calls, then in words what it was told about them. */
class ScriptedModel {
  async getResponse({ input: items }: { input: readonly Item[] | string }) {
    const wishes: readonly Wish[] = command === "start" ? JSON.parse(given) : [];
    const results = typeof items === "string" ? [] : items.filter(isOwnResult);
    const told = Object.fromEntries(
      results.map(({ callId, output }) => [callId, JSON.stringify(output)]),
    );
    const calls = wishes.map((wish) => ({
      type: "function_call",
      callId: wish.id,
      name: wish.tool,
      status: "completed",
      arguments: JSON.stringify(inputOf(wish)),
    }));
    const text = { type: "output_text", text: JSON.stringify(told) };
    const say = { type: "message", role: "assistant", status: "completed", content: [text] };
    return { usage: new Usage(), output: results.length > 0 ? [say] : calls };
  }

  async *getStreamedResponse(request: { input: readonly Item[] | string }) {
    const { usage, output } = await this.getResponse(request);
    yield { type: "response_done", response: { id: "r-1", usage, output } };
  }
}

/** Not that of a hand-over. */
function isOwnResult({ type, callId }: Item): boolean {
  return type === "function_call_result" && callId !== "h-1";
}

/** Hands the conversation over to the one that refunds, or calls it, and then says what it was told. */
class Delegating extends ScriptedModel {
  readonly name: string;
  readonly asked: object;
  constructor(name: string, asked: object) {
    super();
    this.name = name;
    this.asked = asked;
  }

  override async getResponse({ input: items }: { input: readonly Item[] | string }) {
    const results = typeof items === "string" ? [] : items;
    if (results.some(({ callId }) => callId === "d-1")) return super.getResponse({ input: items });
    const callId = this.name === "refunds" ? "d-1" : "h-1";
    const call = { type: "function_call", callId, name: this.name, status: "completed" };
    const output = [{ ...call, arguments: JSON.stringify(this.asked) }];
    return { usage: new Usage(), output } as never;
  }
}

const own = new Agent({ name: isSub ? SUB_AGENT : AGENT, model: new ScriptedModel(), tools });
const agents: Record<string, () => typeof own> = {
  handoff: () =>
    new Agent({
      name: AGENT,
      model: new Delegating("transfer_to_general_purpose", {}),
      handoffs: [own],
    }),
  asTool: () =>
    new Agent({
      name: AGENT,
      model: new Delegating("refunds", { input: "Refund what is due." }),
      tools: [own.asTool({ toolName: "refunds", toolDescription: "Refunds." })],
    }),
};
const agent = agents[how]?.() ?? own;

interface Stopped {
  readonly rawItem: { readonly callId: string };
}

/** The calls that a stream shows as waiting for an approval. */
async function followed(
  stream: AsyncIterable<{ readonly name?: string; readonly item: Stopped }>,
): Promise<Stopped[]> {
  const stopped: Stopped[] = [];
  for await (const { name, item } of stream) {
    if (name === "tool_approval_requested") stopped.push(item);
  }
  return stopped;
}

async function proceed(from: unknown): Promise<void> {
  const isStreamed = how === "streamed run";
  const result = await run(agent, from, isStreamed ? { stream: true } : {});
  const stopped: Stopped[] = isStreamed ? await followed(result) : (result.interruptions ?? []);
  saveState(result.state.toString());
  const paused = stopped.map(({ rawItem }) => rawItem.callId);
  report({ paused, told: toldIn(result.finalOutput ?? "") });
}

const saved = () => RunState.fromString(agent, loadState<string>());
if (command === "decide") await decide(gate, given, { reason });
if (command === "start") await proceed("Refund what is due.");
if (command === "resume") {
  const runs = [{ run: RUN, state: await saved() }];
  const continued = await resume(gate, runs, ({ state }) => proceed(state));
  if (continued.length === 0) report(STILL_WAITS);
}
if (command === "force") {
  const state = await saved();
  for (const item of state.getInterruptions()) state.approve(item);
  await proceed(state).catch(stillWaits);
}

/** The run failed, and what is kept of it stays as it was. */
function stillWaits(error: Error & { readonly error?: unknown }): void {
  if (!isSallyportError(error.error, "still_running")) throw error;
  report(STILL_WAITS);
}
