import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import path from "node:path";
import { createInterface } from "node:readline";
import { SallyportError } from "../../model/errors.ts";
import { defineTool } from "../../tools/define-tool.ts";
import type { Tool } from "../../tools/tool.ts";
import { canonicalJson } from "../../util/canonical-json.ts";
import type { JsonObject } from "../../util/json.ts";
import { followLines, startChild } from "../child.ts";
import type { Kind, LedgerEntry } from "../evidence.ts";

export const KINDS = ["keyed", "probed", "plain"] as const satisfies readonly Kind[];

/** What happens right after an effect, once per key: the connection is cut, or production dies before it answers. */
export type Fault = "none" | "cut" | "die";

/** A request of a tool to production. */
export interface Sent {
  readonly ask: "do" | "probe" | "version";
  readonly kind: Kind;
  readonly key: string;
  readonly fence: number;
  /** The bytes of the tool's input. */
  readonly input: string;
  readonly fault: Fault;
}

/** The input of all tools: which step of which run, whether it undoes that step, and whether production refuses it. */
export interface Target {
  readonly run: string;
  readonly step: number;
  readonly undo: boolean;
  readonly refuse: boolean;
}

/** An effect with its target. */
export interface LedgerLine extends Target, LedgerEntry {}

/** A probed target has seen this fence: requests with an older one are late, also after a restart. */
export interface FenceLine {
  readonly key: string;
  readonly seenFence: number;
}

export interface WorldAnswer {
  readonly text: string;
  readonly refused: boolean;
  /** Refused because a newer attempt took over, which may have done it. */
  readonly late: boolean;
  readonly happened: boolean;
}

export function isEffect(line: LedgerLine | FenceLine): line is LedgerLine {
  return "applied" in line;
}

export interface World {
  readonly port: number;
  readonly ledgerFile: string;
  /** How often it died and was restarted. */
  readonly deaths: () => number;
  readonly ledger: () => readonly LedgerLine[];
  stop(): Promise<void>;
}

/** Production stays up: when it dies it restarts at the same address with its whole ledger. */
export async function startWorld(folder: string, cache: string, slowMs = 0): Promise<World> {
  const ledgerFile = path.join(folder, "ledger.jsonl");
  const lines = followLines<LedgerLine | FenceLine>(ledgerFile);
  let deaths = 0;
  let isOver = false;
  let running: ChildProcess;
  const start = async (port: number): Promise<number> => {
    const args = [ledgerFile, String(port), String(slowMs)];
    const child = startChild({ beside: import.meta.filename, name: "world-process", args, cache });
    running = child;
    child.stderr?.pipe(process.stderr);
    child.once("exit", () => {
      if (isOver) return;
      deaths += 1;
      void start(chosen);
    });
    if (child.stdout === null) throw new Error("the world has no standard output");
    const [line] = await once(createInterface(child.stdout), "line");
    return Number(line);
  };
  let chosen = 0;
  chosen = await start(0);
  return {
    port: chosen,
    ledgerFile,
    deaths: () => deaths,
    ledger: () => lines.read().filter(isEffect),
    async stop() {
      isOver = true;
      const gone = once(running, "exit");
      running.stdin?.end();
      await gone;
    },
  };
}

interface WorldLine {
  readonly port: number;
  /** The fault of the current request. */
  fault(): Fault;
  /** Called at the points inside a call. */
  at(point: "S6.request" | "S6.effect"): void;
}

const INPUT: JsonObject = {
  type: "object",
  properties: {
    run: { type: "string" },
    step: { type: "integer" },
    undo: { type: "boolean" },
    refuse: { type: "boolean" },
  },
  required: ["run", "step", "undo", "refuse"],
  additionalProperties: false,
};

/** The prefix of the tools that the policy of the built-in world allows. */
export const FREE = "world.free_";

/** The tool of external executors: the gate does not execute it, a process with a permit does. */
export const OUTSIDE = "world.outside";

/** For each kind one tool that needs an approval, one that the policy allows, and one that undoes both. */
export function worldTools(line: WorldLine): readonly Tool[] {
  const outside = defineTool({
    name: OUTSIDE,
    description: "Changes something in production, by an external executor.",
    input: INPUT,
    safety: { effect: "external" },
    execution: "external",
  });
  const own = KINDS.flatMap((kind) => [
    toolOf(kind, `world.${kind}`, line),
    toolOf(kind, `${FREE}${kind}`, line),
    toolOf(kind, `world.undo_${kind}`, line),
  ]);
  return [...own, outside];
}

function toolOf(kind: Kind, name: string, line: WorldLine): Tool {
  const isUndo = name.includes("undo");
  const send = (given: unknown, ask: Sent["ask"], key = "", fence = 0) => {
    const fault = ask === "do" ? line.fault() : "none";
    const input = canonicalJson(given as JsonObject);
    return post(line.port, { ask, kind, key, fence, input, fault });
  };
  return defineTool({
    name,
    description: `Changes something in production that is ${kind}.`,
    input: INPUT,
    safety: { effect: "external", reversible: !isUndo },
    idempotency: kind === "keyed" ? "keyed" : "none",
    dryRun: ({ input }) => `would do ${canonicalJson(input as JsonObject)}`,
    stateVersion: async ({ input }) => (await send(input, "version")).text,
    async execute({ input, idempotencyKey, fence }) {
      line.at("S6.request");
      const answer = await send(input, "do", idempotencyKey, fence).catch((cause) => {
        line.at("S6.effect");
        throw new SallyportError("outcome_unknown", { tool: name }, cause);
      });
      // A refused fence does not mean that nothing happened: the newer attempt may have done it.
      if (answer.late) throw new SallyportError("outcome_unknown", { tool: name });
      return { text: answer.text, isError: answer.refused };
    },
    ...(!isUndo && {
      undo: ({ input }) => ({
        tool: `world.undo_${kind}`,
        input: { ...(input as JsonObject), undo: true },
      }),
    }),
    ...(kind === "probed" && {
      async probe({ input, idempotencyKey, fence }) {
        const { happened, text } = await send(input, "probe", idempotencyKey, fence);
        return happened ? { happened, result: { text, isError: false } } : { happened: false };
      },
    }),
  });
}

export function post(port: number, sent: Sent): Promise<WorldAnswer> {
  return new Promise((resolve, reject) => {
    // One connection per request: a killed process leaves none behind that seems alive.
    const options = { host: "127.0.0.1", port, method: "POST", agent: false } as const;
    const asked = request(options, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      response.on("error", reject).on("end", () => resolve(JSON.parse(body)));
    });
    asked.on("error", reject).end(JSON.stringify(sent));
  });
}
