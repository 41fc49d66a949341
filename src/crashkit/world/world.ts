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
import type { Effect, Kind } from "../evidence.ts";

export const KINDS = ["keyed", "probed", "plain"] as const satisfies readonly Kind[];

/** What happens right after an effect, once per key: the line is cut, or production itself dies before it answers. */
export type Fault = "none" | "cut" | "die";

/** A question to production, as the tools send it. */
export interface Sent {
  readonly ask: "do" | "probe" | "version";
  readonly kind: Kind;
  readonly key: string;
  readonly fence: number;
  /** The bytes of the tool's input. */
  readonly input: string;
  readonly fault: Fault;
}

/** The input of all tools: which step of which run, whether it takes that step back, and whether production refuses it. */
export interface Target {
  readonly run: string;
  readonly step: number;
  readonly undo: boolean;
  readonly refuse: boolean;
}

/** An effect with what it was about. */
export interface LedgerLine extends Target, Effect {}

/** A probed target was asked under this fence: what comes under an older one is late, also after it died in between. */
export interface FenceLine {
  readonly key: string;
  readonly seenFence: number;
}

/** Happened already, or nothing did: `text` says what. */
export interface WorldAnswer {
  readonly text: string;
  readonly refused: boolean;
  readonly happened: boolean;
}

export function isEffect(line: LedgerLine | FenceLine): line is LedgerLine {
  return "applied" in line;
}

export interface World {
  readonly port: number;
  readonly ledgerFile: string;
  /** How often it died and was started again. */
  readonly deaths: () => number;
  readonly ledger: () => readonly LedgerLine[];
  stop(): Promise<void>;
}

/** Production stays up: when it dies it comes back at the same address, with everything it has written down. */
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
    if (child.stdout === null) throw new Error("the world has no way to tell its port");
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

export interface WorldLine {
  readonly port: number;
  /** What shall go wrong with the effect that is asked for now. */
  fault(): Fault;
  /** Points inside a call, which only the tool itself can come past. */
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

/** What the policy of the built-in world lets through. */
export const FREE = "world.free_";

/** Of each kind one tool that people are asked about, one that the policy lets through, and one that takes both back. */
export function worldTools(line: WorldLine): readonly Tool[] {
  return KINDS.flatMap((kind) => [
    toolOf(kind, `world.${kind}`, line),
    toolOf(kind, `${FREE}${kind}`, line),
    toolOf(kind, `world.undo_${kind}`, line),
  ]);
}

function toolOf(kind: Kind, name: string, line: WorldLine): Tool {
  const isUndo = name.includes("undo");
  const sent = (input: unknown, ask: Sent["ask"], key = "", fence = 0): Sent => {
    return {
      ask,
      kind,
      key,
      fence,
      input: canonicalJson(input as JsonObject),
      fault: ask === "do" ? line.fault() : "none",
    };
  };
  return defineTool({
    name,
    description: `Changes something in production that is ${kind}.`,
    input: INPUT,
    safety: { effect: "external", reversible: !isUndo },
    idempotency: kind === "keyed" ? "keyed" : "none",
    dryRun: ({ input }) => `would do ${canonicalJson(input as JsonObject)}`,
    stateVersion: async ({ input }) => (await ask(line.port, sent(input, "version"))).text,
    async execute({ input, idempotencyKey, fence }) {
      line.at("S6.request");
      const { text, refused } = await ask(
        line.port,
        sent(input, "do", idempotencyKey, fence),
      ).catch((cause) => {
        line.at("S6.effect");
        throw new SallyportError("outcome_unknown", { tool: name }, cause);
      });
      return { text, isError: refused };
    },
    ...(isUndo
      ? {}
      : {
          undo: ({ input }) => ({
            tool: `world.undo_${kind}`,
            input: { ...(input as JsonObject), undo: true },
          }),
        }),
    ...(kind === "probed"
      ? {
          async probe({ input, idempotencyKey, fence }) {
            const asked = sent(input, "probe", idempotencyKey, fence);
            const { happened, text } = await ask(line.port, asked);
            return happened ? { happened, result: { text, isError: false } } : { happened: false };
          },
        }
      : {}),
  });
}

function ask(port: number, sent: Sent): Promise<WorldAnswer> {
  return new Promise((resolve, reject) => {
    // A connection for each question: a killed process leaves none behind that another would take for alive.
    const options = { host: "127.0.0.1", port, method: "POST", agent: false } as const;
    const asked = request(options, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      response.on("error", reject).on("end", () => resolve(JSON.parse(body)));
    });
    asked.on("error", reject).end(JSON.stringify(sent));
  });
}
