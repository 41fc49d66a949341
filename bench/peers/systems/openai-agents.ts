import {
  Agent,
  type Model,
  type ModelResponse,
  RunState,
  run,
  setTracingDisabled,
  tool,
  Usage,
} from "@openai/agents";
import Sqlite from "better-sqlite3";
import { z } from "zod";
import { type Effect, fileIn, type OpenPeer } from "../peer.ts";

setTracingDisabled(true);

/**
 * The SDK pauses and gives the host a text to keep; the host brings the database. Ours is one table with one commit when a run
 * waits, one when a person answers and one when it ends, and of two answers it accepts one.
 */
export const openaiAgents: OpenPeer = async ({ dir, effect }) => {
  const db = new Sqlite(fileIn(dir));
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.pragma("busy_timeout = 5000");
  db.exec("CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, status TEXT, state TEXT)");
  const insert = db.prepare("INSERT INTO runs VALUES (?, 'pending', ?)");
  const take = db.prepare(
    "UPDATE runs SET status = 'approved' WHERE id = ? AND status = 'pending' RETURNING state",
  );
  const finish = db.prepare("UPDATE runs SET status = 'done', state = ? WHERE id = ?");
  const open = db.prepare("SELECT state FROM runs WHERE id = ? AND status = 'approved'");
  const agent = agentOf(effect);
  let count = 0;

  async function goOn(id: string, text: string): Promise<"executed"> {
    const state = await RunState.fromString(agent, text);
    for (const item of state.getInterruptions()) state.approve(item);
    const result = await run(agent, state);
    finish.run(String(result.finalOutput), id);
    return "executed";
  }

  return {
    async propose({ invoice, cents }) {
      count += 1;
      const id = `${process.pid}-${count}`;
      const result = await run(agent, JSON.stringify({ invoice, cents }));
      insert.run(id, result.state.toString());
      return id;
    },
    async approve(id) {
      const row = take.get(id) as { state: string } | undefined;
      return row === undefined ? "already answered" : goOn(id, row.state);
    },
    /** The host finds a row that was approved and never finished; the state in it is from before the call. */
    async recover(id) {
      const row = open.get(id) as { state: string } | undefined;
      return row === undefined ? "nothing, still open" : goOn(id, row.state);
    },
    close: async () => {
      db.close();
    },
  };
};

function agentOf(effect: Effect) {
  const refund = tool({
    name: "refund",
    description: "Pays an invoice back.",
    needsApproval: true,
    parameters: z.object({ invoice: z.string(), cents: z.number().int() }),
    execute: (input) => effect.run(input),
  });
  return new Agent({ name: "peers", model: scripted, tools: [refund] });
}

/** Asks for the tool first and is content once it has a result. */
const scripted: Model = {
  async getResponse({ input }): Promise<ModelResponse> {
    const items = typeof input === "string" ? [] : input;
    const isOver = items.some(({ type }) => type === "function_call_result");
    return { usage: new Usage(), output: [isOver ? message() : call(asked(input))] };
  },
  // biome-ignore lint/correctness/useYield: nothing here streams
  async *getStreamedResponse() {
    throw new Error("not used");
  },
};

type Output = ModelResponse["output"][number];

function asked(input: string | readonly unknown[]): string {
  if (typeof input === "string") return input;
  const [first] = input as readonly { content?: string }[];
  return typeof first?.content === "string" ? first.content : '{"invoice":"INV-1","cents":1}';
}

const call = (args: string): Output => ({
  type: "function_call",
  callId: "c1",
  name: "refund",
  status: "completed",
  arguments: args,
});

const message = (): Output => ({
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text: "done" }],
});
