import type { Kind, LedgerEntry } from "../../src/crashkit/evidence.ts";
import { SallyportError } from "../../src/model/errors.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { canonicalJson } from "../../src/util/canonical-json.ts";
import { sha256Hex } from "../../src/util/hash.ts";
import type { JsonObject } from "../../src/util/json.ts";
import type { Faults } from "./faults.ts";
import type { Luck } from "./luck.ts";
import type { Owner, RunQueue } from "./run-queue.ts";
import type { Client } from "./sim-server.ts";

export const KINDS = ["keyed", "probed", "plain"] as const satisfies readonly Kind[];

export interface Job extends JsonObject {
  /** What it was asked for as: the same through every retry, edit and review anew. */
  readonly order: string;
  readonly item: string;
  readonly undo: boolean;
  /** Production will not have it. */
  readonly refuse: boolean;
}

interface Request {
  readonly kind: Kind;
  readonly key: string;
  readonly fence: number;
  readonly input: Job;
}

/** A request that was sent and has neither arrived nor got lost. */
interface Flight extends Request {
  /** Decides now: it arrives, or it never will. */
  decide(): void;
}

export interface WorldParts {
  readonly queue: RunQueue;
  readonly faults: Faults;
  readonly luck: Luck;
  now(): number;
  /** A request leaves its process. */
  onSend(key: string, fence: number): void;
}

/**
 * Production: a ledger of what arrived, outside of what can crash. A keyed target takes each key once; a probed one can be
 * asked, and refuses an older fence than it has seen; a plain one does every request.
 */
export class SimWorld {
  readonly ledger: LedgerEntry[] = [];
  /** For each key that arrived, the order behind it. */
  readonly orders = new Map<string, string>();
  readonly #versions = new Map<string, number>();
  readonly #fences = new Map<string, number>();
  /** Keys that a keyed target has said no to: what it answered under a key stands. */
  readonly #refused = new Set<string>();
  readonly #flights = new Set<Flight>();
  readonly #wire: Owner = { name: "wire" };
  readonly #queue: RunQueue;
  readonly #faults: Faults;
  readonly #luck: Luck;
  readonly #parts: Pick<WorldParts, "now" | "onSend">;

  constructor(parts: WorldParts) {
    this.#queue = parts.queue;
    this.#faults = parts.faults;
    this.#luck = parts.luck;
    this.#parts = parts;
  }

  /** Of each kind one tool that people are asked about, one that the policy lets through, and one that takes both back. */
  toolsOf(client: Client): readonly Tool[] {
    return KINDS.flatMap((kind) => [
      this.#tool(kind, `world.${kind}`, client),
      this.#tool(kind, `world.free_${kind}`, client),
      this.#tool(kind, `world.undo_${kind}`, client),
    ]);
  }

  /** What a person finds in production: requests on their way have arrived by then, or never will. */
  happened(key: string): boolean {
    for (const flight of this.#flights) if (flight.key === key) flight.decide();
    return this.ledger.some((line) => line.applied && line.key === key);
  }

  #tool(kind: Kind, name: string, client: Client): Tool {
    const isUndo = name.includes("undo");
    return defineTool({
      name,
      description: `Changes something in production that is ${kind}.`,
      input: INPUT,
      safety: { effect: "external", reversible: !isUndo },
      idempotency: kind === "keyed" ? "keyed" : "none",
      dryRun: ({ input }) => `would change ${(input as Job).item}`,
      stateVersion: ({ input }) => this.#look(client, (input as Job).item),
      execute: ({ input, idempotencyKey: key, fence }) =>
        this.#request(client, { kind, key, fence, input: input as Job }),
      ...(isUndo
        ? {}
        : {
            undo: ({ input }) => ({
              tool: `world.undo_${kind}`,
              input: { ...(input as Job), undo: true, refuse: false },
            }),
          }),
      ...(kind === "probed"
        ? { probe: ({ idempotencyKey, fence }) => this.#probe(client, idempotencyKey, fence) }
        : {}),
    });
  }

  async #look(client: Client, item: string): Promise<string> {
    await this.#queue.turn(client, `looks at ${item}`, this.#faults.delayMs("look is slow"));
    if (this.#faults.strikes("look fails")) throw new Error("nobody there");
    return `v${this.#versions.get(item) ?? 0}`;
  }

  async #probe(client: Client, key: string, fence: number) {
    await this.#queue.turn(client, `probes ${key}`, this.#faults.delayMs("probe is slow"));
    if (this.#faults.strikes("probe fails")) throw new Error("nobody there");
    this.#fences.set(key, Math.max(fence, this.#fences.get(key) ?? 0));
    return this.happened(key)
      ? ({ happened: true, result: { text: "it was done", isError: false } } as const)
      : ({ happened: false } as const);
  }

  #request(client: Client, request: Request): Promise<{ text: string; isError: boolean }> {
    const faults = this.#faults;
    return new Promise((resolve, reject) => {
      const { key, fence } = request;
      this.#parts.onSend(key, fence);
      const label = `asks for ${key} (${fence})`;
      const lose = () => reject(new SallyportError("outcome_unknown", { key }));
      const reply = (text: string, answer: () => void) =>
        this.#queue.park(client, `hears of ${key}: ${text}`, answer);
      let isOver = false;
      const arrive = (): boolean => {
        if (isOver) return false;
        isOver = true;
        this.#flights.delete(flight);
        return true;
      };
      const run = () => {
        if (!arrive()) return void reply("lost", lose);
        if (faults.strikes("tool cannot be reached")) {
          const fail = () => reject(new Error("connection refused"));
          return void reply("nothing", fail);
        }
        if (faults.strikes("tool hangs")) return;
        if (faults.strikes("tool never gets it")) return void reply("lost", lose);
        const isRefused = request.input.refuse || this.#refuses(request);
        const text = isRefused ? "refused" : this.#do(request);
        if (text === "done" && faults.strikes("tool does it and its answer is lost")) {
          return void reply("lost", lose);
        }
        // A newer fence may have done it, so this refusal does not say that it did not happen.
        if (text === "late") return void reply(text, () => reject(new Error("an older fence")));
        reply(text, () => resolve({ text, isError: text !== "done" }));
      };
      const later = () => {
        const isRefused = request.input.refuse || this.#refused.has(request.key);
        if (arrive() && this.#luck.percent(50) && !isRefused) this.#do(request);
      };
      const flight: Flight = { ...request, decide: later };
      this.#flights.add(flight);
      this.#queue.park(client, label, run, {
        delayMs: faults.delayMs("tool is slow"),
        // Sent before its process died: it may arrive all the same.
        orphan: () => this.#queue.park(this.#wire, `${label} (nobody waits)`, later),
      });
    });
  }

  #refuses(request: Request): boolean {
    const { kind, key } = request;
    if (this.#refused.has(key)) return true;
    if (this.#knows(request) || !this.#faults.strikes("tool refuses")) return false;
    if (kind === "keyed") this.#refused.add(key);
    return true;
  }

  /** A keyed target that is asked again answers as it did the first time. */
  #knows({ kind, key }: Request): boolean {
    return kind === "keyed" && this.ledger.some((line) => line.applied && line.key === key);
  }

  #do(request: Request): "done" | "late" {
    const { kind, key, fence, input } = request;
    const newest = this.#fences.get(key) ?? 0;
    const isLate = kind === "probed" && fence < newest;
    this.#fences.set(key, Math.max(fence, newest));
    const applied = !isLate && !this.#knows(request);
    const inputSha256 = sha256Hex(canonicalJson(input));
    if (!input.undo) this.orders.set(key, input.order);
    this.ledger.push({ kind, key, fence, inputSha256, applied, at: this.#parts.now() });
    if (applied) this.#versions.set(input.item, (this.#versions.get(input.item) ?? 0) + 1);
    return isLate ? "late" : "done";
  }
}

const INPUT: JsonObject = {
  type: "object",
  properties: {
    order: { type: "string" },
    item: { type: "string" },
    undo: { type: "boolean" },
    refuse: { type: "boolean" },
  },
  required: ["order", "item", "undo", "refuse"],
  additionalProperties: false,
};
