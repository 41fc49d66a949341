// Agents and reviewers of one process that works over a store which fails now and then.

import { setTimeout } from "node:timers/promises";
import { isSallyportError } from "../../src/model/errors.ts";
import type { Port } from "../../src/port/create-sallyport.ts";
import { startUpkeep } from "../../src/port/upkeep.ts";
import type { Dice } from "../support/dice.ts";
import type { Asked } from "./accounts.ts";
import { requestOf, type Wanted } from "./production/parts.ts";

/** What a caller may be told while the store is away, and then sends the same thing again. */
const AGAIN = ["store_unavailable", "store_busy", "commit_unknown"] as const;

export interface LoadOptions {
  readonly port: Port;
  /** So that two loads over one store do not share names. */
  readonly name: string;
  readonly agents: number;
  readonly reviewers: number;
  readonly wants: readonly Omit<Wanted, "id">[];
  readonly pauseMs: number;
  readonly dice: Dice;
}

export interface Load {
  readonly asked: readonly Asked[];
  /** How often somebody was told that the store is away, by code. */
  readonly refused: Record<string, number>;
  readonly unexplained: string[];
  /** When the last call was answered, by the monotonic clock. */
  lastAnswerAt(): number;
  approvals(): number;
  /** Lets everybody finish what they are at; upkeep goes on until `end`. */
  stop(): Promise<void>;
  end(): Promise<void>;
}

export function startLoad(options: LoadOptions): Load {
  const { port, name, agents, reviewers, wants, pauseMs, dice } = options;
  const asked: Asked[] = [];
  const refused: Record<string, number> = {};
  const unexplained: string[] = [];
  let isOpen = true;
  let [answeredAt, approvals] = [0, 0];

  /** True when it was done or cannot be; false when it has to be sent again. */
  async function attempt(what: string, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      answeredAt = performance.now();
      return true;
    } catch (error) {
      const code = AGAIN.find((one) => isSallyportError(error, one));
      if (code === undefined) unexplained.push(`${what}: ${error}`);
      else refused[code] = (refused[code] ?? 0) + 1;
      return code === undefined;
    }
  }

  async function agent(number: number): Promise<void> {
    for (let n = 0; isOpen; n += 1) {
      const id = `${name}-${number}-${n}`;
      const session = `${name}-${number}-${Math.floor(n / 500)}`;
      const one: Asked = { id, session, told: [], ...dice.pick(wants) };
      asked.push(one);
      const open = port.sessions.open({ id: session, agent: `agent:${name}-${number}` });
      const call = async () => {
        one.told.push((await open.call(requestOf(one))).answer);
      };
      while (!(await attempt(id, call))) await setTimeout(20);
      await setTimeout(dice.below(2 * pauseMs));
    }
  }

  async function reviewer(number: number): Promise<void> {
    const by = `person:${name}-${number}`;
    while (isOpen) {
      await attempt("inbox", async () => {
        const open = await port.interactions.list({ limit: 50 });
        const [first] = open.filter(({ type }) => type === "confirm").slice(dice.below(5));
        if (first === undefined) return;
        const { id, hash } = first;
        const verb = dice.below(6) === 0 ? "reject" : "approve";
        await port.interactions[verb](id, { hash, by }).catch((error) => {
          if (!isSallyportError(error, "already_answered")) throw error;
        });
        approvals += 1;
      });
      await setTimeout(pauseMs);
    }
  }

  const upkeep = startUpkeep({
    port,
    everyMs: 200,
    onError: (error) => void attempt("upkeep", () => Promise.reject(error)),
  });
  const everybody = [
    ...Array.from({ length: agents }, (_, n) => agent(n)),
    ...Array.from({ length: reviewers }, (_, n) => reviewer(n)),
  ];
  return {
    asked,
    refused,
    unexplained,
    lastAnswerAt: () => answeredAt,
    approvals: () => approvals,
    async stop() {
      isOpen = false;
      await Promise.all(everybody);
    },
    end: () => upkeep.stop(),
  };
}

/** Every kind, with and without a person, and some that production refuses. */
export const EVERYTHING = [
  ...(["keyed", "probed", "plain"] as const).flatMap((kind) => [
    { kind, lane: "free", mode: "ok" } as const,
    { kind, lane: "ask", mode: "ok" } as const,
  ]),
  { kind: "keyed", lane: "free", mode: "refuse" },
  { kind: "plain", lane: "never", mode: "ok" },
] as const satisfies readonly Omit<Wanted, "id">[];
