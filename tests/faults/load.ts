// Agents and reviewers that go on although the store, or the server before it, fails now and then.

import { setTimeout } from "node:timers/promises";
import type { Gate } from "../../src/gate/create-gate.ts";
import { startUpkeep } from "../../src/gate/upkeep.ts";
import { isSallyportError } from "../../src/model/errors.ts";
import type { CallAnswer, CallRequest } from "../../src/model/operation.ts";
import type { Dice } from "../support/dice.ts";
import type { Asked } from "./accounts.ts";
import { requestOf, type Wanted } from "./production/parts.ts";

/** What a caller may be told while the store is away, and then sends the same thing again. */
const AGAIN = [
  "store_unavailable",
  "store_busy",
  "commit_unknown",
  "partly_written",
  "overloaded",
  "too_fast",
  "still_running",
] as const;

/** How they reach the port: as a library, or over HTTP. */
export interface Door {
  /** Opens a session; gives its whole id and the way to make calls in it. */
  session(agent: number, name: string): Promise<Opened>;
  inbox(after: number): Promise<readonly Question[]>;
  decide(verb: "approve" | "reject", question: Question, reviewer: number): Promise<void>;
}

interface Opened {
  readonly id: string;
  call(request: CallRequest): Promise<CallAnswer["answer"]>;
}

interface Question {
  readonly id: string;
  readonly hash: string;
  readonly type: string;
  readonly ord: number;
}

export interface LoadOptions {
  readonly door: Door;
  /** So that two loads over one store do not share names. */
  readonly name: string;
  readonly agents: number;
  readonly reviewers: number;
  readonly wants: readonly Omit<Wanted, "id">[];
  /** Between the calls of an agent: about so long after an answer, or one each so often whatever the answers take. */
  readonly pace: { readonly pauseMs: number } | { readonly everyMs: number };
  /** Between two looks of a reviewer at the inbox. */
  readonly lookEveryMs?: number;
  readonly mayBeTooLate?: Asked["mayBeTooLate"];
  readonly dice: Dice;
}

export interface Load {
  readonly asked: readonly Asked[];
  /** How often a caller got an error that the store is unavailable, by code. */
  readonly refused: Record<string, number>;
  readonly unexplained: string[];
  /** Of each call that was answered, in milliseconds. */
  readonly latencies: readonly number[];
  /** When the last call was answered, by the monotonic clock. */
  lastAnswerAt(): number;
  decided(): number;
  /** Lets everybody finish what they are at. */
  stop(): Promise<void>;
}

/** Sessions are listed up to a thousand calls. */
const SESSION_CALLS = 500;

export function startLoad(options: LoadOptions): Load {
  const { door, name, agents, reviewers, wants, pace, dice } = options;
  const { lookEveryMs = 10, mayBeTooLate = false } = options;
  const asked: Asked[] = [];
  const latencies: number[] = [];
  const refused: Record<string, number> = {};
  const unexplained: string[] = [];
  let isOpen = true;
  let [answeredAt, decided] = [0, 0];

  /** True when it was done or cannot be; false when it has to be sent again. */
  async function attempt(what: string, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      const code = AGAIN.find((one) => isSallyportError(error, one));
      if (code === undefined) unexplained.push(`${what}: ${error}`);
      else refused[code] = (refused[code] ?? 0) + 1;
      return code === undefined;
    }
  }

  async function insist(what: string, work: () => Promise<void>): Promise<void> {
    while (!(await attempt(what, work))) await setTimeout(20);
  }

  async function agent(number: number): Promise<void> {
    let session: Opened | undefined;
    const start = performance.now() + dice.below("everyMs" in pace ? pace.everyMs : 1);
    for (let n = 0; isOpen; n += 1) {
      if ("everyMs" in pace) {
        await setTimeout(Math.max(0, start + n * pace.everyMs - performance.now()));
      }
      if (n % SESSION_CALLS === 0) {
        await insist("session", async () => {
          session = await door.session(number, `${name}-${number}-${n}`);
        });
      }
      if (session === undefined || !isOpen) return;
      const { id: own, call } = session;
      // In turn, so that a short run has some of each.
      const want = wants[(number + n) % wants.length];
      if (want === undefined) throw new Error("nothing is wanted");
      const one: Asked = {
        id: `${name}-${number}-${n}`,
        session: own,
        mayBeTooLate,
        told: [],
        ...want,
      };
      asked.push(one);
      await insist(one.id, async () => {
        const begun = performance.now();
        one.told.push(await call(requestOf(one)));
        answeredAt = performance.now();
        latencies.push(answeredAt - begun);
      });
      if ("pauseMs" in pace) await setTimeout(dice.below(2 * pace.pauseMs));
    }
  }

  /** Reads every question once and decides most of them, so that some are decided by two people and some by none. */
  async function reviewer(number: number): Promise<void> {
    for (let after = 0; isOpen; await setTimeout(lookEveryMs)) {
      await attempt("inbox", async () => {
        for (const question of await door.inbox(after)) {
          if (question.type === "confirm" && dice.below(3) > 0) await decide(question, number);
          after = question.ord;
        }
      });
    }
  }

  async function decide(question: Question, number: number): Promise<void> {
    try {
      await door.decide(decided % 6 === 5 ? "reject" : "approve", question, number);
      decided += 1;
    } catch (error) {
      if (!isSallyportError(error, "already_answered")) throw error;
    }
  }

  const everybody = [
    ...Array.from({ length: agents }, (_, n) => agent(n)),
    ...Array.from({ length: reviewers }, (_, n) => reviewer(n)),
  ];
  return {
    asked,
    refused,
    unexplained,
    latencies,
    lastAnswerAt: () => answeredAt,
    decided: () => decided,
    async stop() {
      isOpen = false;
      await Promise.all(everybody);
    },
  };
}

/** A port of this process, with its upkeep. */
export function libraryDoor(gate: Gate, onProblem: (error: unknown) => void) {
  const upkeep = startUpkeep({ gate, everyMs: 200, onError: onProblem });
  const door: Door = {
    async session(agent, id) {
      const session = gate.sessions.open({ id, agent: `agent:${agent}` });
      return { id, call: async (request) => (await session.call(request)).answer };
    },
    inbox: (after) => gate.interactions.list({ after, limit: 50 }),
    async decide(verb, { id, hash }, reviewer) {
      await gate.interactions[verb](id, { hash, by: `person:${reviewer}` });
    },
  };
  return { door, stopUpkeep: () => upkeep.stop() };
}

/** An upkeep that meets a store which is away tries again; anything else is a finding. */
export function unlessAway(report: (text: string) => void): (error: unknown) => void {
  return (error) => {
    if (!AGAIN.some((code) => isSallyportError(error, code))) report(`upkeep: ${error}`);
  };
}

/** Every kind, with and without a person, and some that production or the policy refuses. */
export const EVERYTHING = [
  ...(["keyed", "probed", "plain"] as const).flatMap((kind) => [
    { kind, lane: "free", mode: "ok" } as const,
    { kind, lane: "ask", mode: "ok" } as const,
  ]),
  { kind: "keyed", lane: "free", mode: "refuse" },
  { kind: "plain", lane: "never", mode: "ok" },
] as const satisfies readonly Omit<Wanted, "id">[];

/** Two of the calls are cut off by production after they took effect: only a person can tell what became of the plain one. */
export const WITH_CUTS = [
  ...EVERYTHING,
  ...EVERYTHING,
  { kind: "plain", lane: "free", mode: "cut" },
  { kind: "keyed", lane: "free", mode: "cut" },
] as const satisfies readonly Omit<Wanted, "id">[];

/** From the call to its answer, tool included: the gate takes less. */
export function spread(latencies: readonly number[]) {
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  return { "call p50 ms": at(0.5), "call p99 ms": at(0.99), "call max ms": at(1) };
}
