// Who uses the deployment while its processes are killed. Everybody only ever sends the same thing again.

import { setTimeout } from "node:timers/promises";
import { isSallyportError, type SallyportError } from "../../src/client/index.ts";
import type { Asked } from "../faults/accounts.ts";
import { requestOf, type Wanted } from "../faults/production/parts.ts";
import type { Dice } from "../support/dice.ts";
import type { Send } from "./retrying-client.ts";

/** What everybody knows at the end, from the answers they got and nothing else. */
export interface Known {
  readonly asked: Asked[];
  /** By question: who was told that their yes or no counts. */
  readonly decided: Map<string, { readonly by: string; readonly outcome: "approved" | "rejected" }>;
  /** Tasks whose completion was acknowledged, with the result that was. */
  readonly completed: Map<string, string>;
  /** Tasks that were acknowledged. */
  readonly added: Set<string>;
  /** Unexplained errors. */
  readonly unexplained: string[];
  approvals: number;
  claims: number;
}

export interface Hours {
  isOpen(): boolean;
}

export function nothingKnown(): Known {
  const lists = { asked: [], decided: new Map(), completed: new Map(), added: new Set<string>() };
  return { ...lists, unexplained: [], approvals: 0, claims: 0 };
}

const WANTS = [
  ...(["keyed", "probed", "plain"] as const).flatMap((kind) => [
    { kind, lane: "free", mode: "ok" } as const,
    { kind, lane: "ask", mode: "ok" } as const,
  ]),
  { kind: "keyed", lane: "free", mode: "refuse" },
  { kind: "keyed", lane: "ask", mode: "refuse" },
  { kind: "plain", lane: "never", mode: "ok" },
] as const satisfies readonly Omit<Wanted, "id">[];

/** Requests one thing after the other, and stays with each until it gets the outcome (or that a person must decide). */
export async function agent(name: string, send: Send, known: Known, hours: Hours, dice: Dice) {
  let session = "";
  for (let n = 0; hours.isOpen(); n += 1) {
    // A session of an agent is not listed beyond a thousand calls.
    if (n % 500 === 0) {
      const id = `run-${n}`;
      session = (await send((client, how) => client.sessions.open({ id }, how))).id;
    }
    const wanted: Wanted = { id: `${name}-${n}`, ...dice.pick(WANTS) };
    // Servers die and start beside each other: an intent may be confirmed after its lease. Such a call says that it was not made.
    const one: Asked = { ...wanted, session, told: [], mayBeTooLate: true };
    known.asked.push(one);
    const { callId, key = "", tool } = requestOf(wanted);
    const input = { id: wanted.id, mode: wanted.mode };
    await tried(known, `call ${one.id}`, async () => {
      const { answer } = await send(
        (client, how) => client.sessions.call({ id: session, callId, tool, input }, how),
        key,
      );
      one.told.push(answer);
    });
    await setTimeout(dice.below(30));
  }
}

/** Looks into the inbox and decides what is there: mostly yes, sometimes no. */
export async function reviewer(name: string, send: Send, known: Known, hours: Hours, dice: Dice) {
  while (hours.isOpen()) {
    const { items } = await send((client, how) => client.interactions.list({ limit: 20 }, how));
    const open = items.filter(({ type }) => type === "confirm");
    for (const { id, hash } of open.slice(0, 5)) {
      const outcome = dice.below(10) === 0 ? "rejected" : "approved";
      const verb = outcome === "approved" ? "approve" : "reject";
      await tried(known, `${verb} ${id}`, async () => {
        try {
          await send(async ({ interactions }, how) => {
            await interactions[verb]({ id, hash }, how);
          });
          known.decided.set(id, { by: name, outcome });
        } catch (error) {
          if (!isSallyportError(error, "already_answered")) throw error;
          // Told who was first: that may be oneself, when the first sending broke off after it was written.
          const { by, outcome: stood } = (error as SallyportError).details;
          if (by === name && stood === outcome) known.decided.set(id, { by: name, outcome });
        }
      });
      known.approvals += 1;
    }
    await setTimeout(open.length === 0 ? 50 : 5);
  }
}

/** Adds tasks, claims what is there under a short lease, and completes it. */
export async function taskWorker(name: string, send: Send, known: Known, hours: Hours, dice: Dice) {
  for (let n = 0; hours.isOpen(); n += 1) {
    await tried(known, "task", async () => {
      const subject = `${name} ${n}`;
      try {
        await send((client, how) => client.tasks.add({ subject }, how));
        known.added.add(subject);
      } catch (error) {
        // The error itself says that it is unknown whether it was added.
        if (!isSallyportError(error, "outcome_unknown")) throw error;
      }
      const terms = { leaseMs: 2_000 };
      const { task } = await send((client, how) => client.tasks.claimNext(terms, how));
      if (task === null) return;
      known.claims += 1;
      const { id, fence = 0 } = task;
      const result = `${name} ${crypto.randomUUID()}`;
      try {
        await send((client, how) => client.tasks.complete({ id, fence, result }, how));
        known.completed.set(id, result);
      } catch (error) {
        // The claim ran out while servers were down, or the first sending got through.
        const codes = ["claim_lost", "already_completed", "not_claimable"] as const;
        if (!codes.some((code) => isSallyportError(error, code))) throw error;
      }
    });
    await setTimeout(dice.below(60));
  }
}

async function tried(known: Known, what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    known.unexplained.push(`${what}: ${error}`);
  }
}
