// The OpenAI Agents SDK in a story, one process per command: `start`, `resume`, `force` (says approved without asking), `decide`.

import { createRequire } from "node:module";
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
const isSub = process.env["HOW"] === "sub-agent";
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
      refuses ? { failsByThrowing: true } : {},
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

/** Hands the conversation over to the one that refunds. */
class HandingOver extends ScriptedModel {
  override async getResponse() {
    const call = { type: "function_call", callId: "h-1", status: "completed", arguments: "{}" };
    return {
      usage: new Usage(),
      output: [{ ...call, name: "transfer_to_general_purpose" }],
    } as never;
  }
}

const own = new Agent({ name: isSub ? SUB_AGENT : AGENT, model: new ScriptedModel(), tools });
const agent = isSub ? new Agent({ name: AGENT, model: new HandingOver(), handoffs: [own] }) : own;

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
  const isStreamed = process.env["HOW"] === "streamed run";
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
  await proceed(state);
}
