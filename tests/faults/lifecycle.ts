/**
 * One lifecycle of an agent and a person over a store that may fail at any moment. Both believe what errors say: what is
 * called safe is repeated, everything else is left alone. Every answer and every refusal is a line, so that a checker can
 * compare them with the store afterwards.
 */

import { createGate } from "../../src/gate/create-gate.ts";
import { isSallyportError, SallyportError } from "../../src/model/errors.ts";
import type { InteractionId } from "../../src/model/interaction.ts";
import type { Store } from "../../src/store/store.ts";
import { look, partsFor, requestOf, type Wanted } from "./production/parts.ts";

export type Action = "call" | "approve" | "reject" | "rollback" | "ask" | "answer" | "settle";

export interface Told {
  readonly id: string;
  readonly did: Action;
  readonly told: string;
}

/** The store refused an attempt, in these words. */
export interface Refused {
  readonly id: string;
  readonly did: Action | "open";
  readonly refused: string;
  readonly retry: string;
  readonly hint: string;
}

export type Line = { readonly opened: true } | Told | Refused;

/** A step of the story: a thing that is wanted, and what the person does about it. */
export interface Step extends Wanted {
  readonly person?: "approves" | "rejects" | "approves and undoes";
  /** Asked for twice under one key. */
  readonly again?: boolean;
}

/** Keyed, probed and plain tools, with keys of the agent's and without, with and without a person. */
const STORY: readonly Omit<Step, "id">[] = [
  { kind: "plain", lane: "ask", mode: "ok", unkeyed: true, person: "approves and undoes" },
  { kind: "plain", lane: "free", mode: "ok", unkeyed: true },
  { kind: "plain", lane: "free", mode: "ok", again: true },
  { kind: "keyed", lane: "free", mode: "ok", unkeyed: true },
  { kind: "probed", lane: "ask", mode: "ok", unkeyed: true, person: "approves" },
  { kind: "plain", lane: "ask", mode: "ok", unkeyed: true, person: "rejects" },
  { kind: "keyed", lane: "free", mode: "refuse" },
  { kind: "plain", lane: "free", mode: "cut", unkeyed: true },
  { kind: "plain", lane: "ask", mode: "cut", unkeyed: true, person: "approves" },
];

export function storyOf(name: string): readonly Step[] {
  return STORY.map((step, n) => ({ ...step, id: `${name}-${n}` }));
}

export const SESSION = "life";
/** Long enough for a busy machine: a store that confirms an intent later than this has the call given up. */
export const LEASE_MS = 1_500;
/** How often something that is called safe to repeat is tried. */
const ATTEMPTS = 3;
const AGENT = "agent:life";
const PERSON = "person:ada";

export interface Life {
  readonly store: Store;
  readonly tenant: string;
  readonly productionPort: number;
  readonly story: readonly Step[];
  say(line: Line): void;
}

export async function liveThrough({ store, tenant, productionPort, story, say }: Life) {
  const parts = partsFor(productionPort, LEASE_MS, { reversible: true });
  const gate = createGate({ ...parts, store, tenant });
  const { interactions } = gate;
  const session = gate.sessions.open({ id: SESSION, agent: AGENT });

  /** Undefined when the store refused it for good, or left open whether it was written. */
  async function believing<Answer>(
    id: string,
    did: Action,
    work: () => Promise<Answer>,
    toldOf: (answer: Answer) => readonly string[],
  ): Promise<Answer | undefined> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const answer = await work();
        for (const told of toldOf(answer)) say({ id, did, told });
        return answer;
      } catch (error) {
        const line = refusal(id, did, error);
        say(line);
        if (line.retry !== "safe" || attempt === ATTEMPTS) return undefined;
      }
    }
  }

  /** A look writes nothing, so it may be repeated whatever the error. */
  async function looking<Answer>(work: () => Promise<Answer>): Promise<Answer | undefined> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await work();
      } catch (error) {
        if (!isSallyportError(error)) throw error;
        if (attempt === ATTEMPTS) return undefined;
      }
    }
  }

  async function decide({ id, person }: Step, interactionId: InteractionId): Promise<void> {
    const question = await looking(() => interactions.get(interactionId));
    if (question === undefined) return;
    const { hash } = question;
    const by = { hash, by: PERSON };
    if (person === "rejects") {
      const no = () => interactions.reject(interactionId, by);
      await believing(id, "reject", no, ({ status }) => [status]);
      return;
    }
    const yes = () => interactions.approve(interactionId, by);
    const approved = await believing(id, "approve", yes, ({ answers }) =>
      answers.map(({ answer }) => answer),
    );
    const [done] = approved?.answers ?? [];
    if (done?.answer === "unknown") await settleLost(id);
    if (person !== "approves and undoes" || done?.answer !== "done") return;
    const { operationId } = done;
    const undo = () => session.rollback(PERSON, { operationId });
    await believing(id, "rollback", undo, (report) =>
      Object.entries(report).flatMap(([outcome, entries]) => entries.map(() => outcome)),
    );
  }

  async function settleLost(id: string): Promise<void> {
    const open = (await looking(() => interactions.list({ status: "open" }))) ?? [];
    const lost = open.find(({ type, callId }) => type === "connection_lost" && callId === id);
    if (lost === undefined) return;
    const { hash } = lost;
    const happened = await look(productionPort, id);
    const found = happened ? { happened } : ({ happened, otherwise: "repeat" } as const);
    const say = () => interactions.settle(lost.id, { hash, by: PERSON, ...found });
    await believing(id, "settle", say, ({ answer }) => [answer]);
  }

  for (const step of story) {
    const { id } = step;
    const call = () => session.call(requestOf(step));
    for (let times = step.again ? 2 : 1; times > 0; times -= 1) {
      const answer = await believing(id, "call", call, (given) => [given.answer]);
      if (answer?.answer === "pending") await decide(step, answer.interactionId);
      if (answer?.answer === "unknown") await settleLost(id);
    }
  }
  const id = QUESTION;
  const question = { callId: id, text: "Which colour?" };
  const asked = await believing(
    id,
    "ask",
    () => session.ask(question),
    ({ answer }) => [answer],
  );
  if (asked === undefined) return;
  const { interactionId } = asked;
  const { hash } = (await looking(() => interactions.get(interactionId))) ?? {};
  if (hash === undefined) return;
  const given = { hash, by: PERSON, answer: "blue" };
  await believing(
    id,
    "answer",
    () => interactions.answer(interactionId, given),
    ({ status }) => [status],
  );
}

/** The call id of the one question that the agent asks. */
export const QUESTION = "question";

/** Throws on what is no refusal: nothing but our own errors may come out. */
export function refusal(id: string, did: Refused["did"], error: unknown): Refused {
  if (!(error instanceof SallyportError)) throw error;
  const { code: refused, retry } = error;
  return { id, did, refused, retry, hint: String(error.details.hint ?? "") };
}
