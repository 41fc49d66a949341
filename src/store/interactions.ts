import type { SessionId } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { encoded } from "../model/field.ts";
import {
  factorFor,
  INTERACTIONS,
  type Interaction,
  type InteractionDraft,
  type InteractionId,
  type InteractionStatus,
  missingFactors,
  type Vote,
} from "../model/interaction.ts";
import { checkName, foldName, isName } from "../model/names.ts";
import type { Verdict } from "../model/verdict.ts";
import type { JsonValue } from "../util/json.ts";
import { type Confirmations, engineConfirmations } from "./confirmations.ts";
import { checkReason } from "./decision-rows.ts";
import { type By, MAX_LIST, reviewMove } from "./decisions.ts";
import { type Along, along, NOW, type Step } from "./engine.ts";
import {
  type Closing,
  checkQuestion,
  closingEvent,
  closingStep,
  interactionOf,
  openingOf,
  rowOfClosing,
  told,
  type Write,
  whyClosed,
  whyNotAnswered,
} from "./interaction-rows.ts";
import { LOST_MS } from "./left-behind.ts";
import { readable } from "./readable.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/**
 * Durable questions to people. Every call is one transaction with its audit entries; each question is closed exactly once,
 * by the store's clock. Throws not_found for an unknown id, already_answered with who was first and what was decided for a
 * closed one, approval_void for another hash or a deadline that is over.
 */
export interface InteractionStore extends Confirmations {
  /** Under an id of the caller's choice. Throws already_exists when there is one: the first question stays. */
  open(id: InteractionId, draft: InteractionDraft, by: By): Promise<Interaction>;
  get(id: InteractionId): Promise<Interaction>;
  /** Oldest first. */
  list(query: InteractionQuery): Promise<readonly Interaction[]>;
  /** Undefined when there is none. */
  peek(id: InteractionId): Promise<Interaction | undefined>;
  /** The answer to an `ask_user` or a `connection_lost`. */
  answer(id: InteractionId, answer: GivenAnswer, look?: Look): Promise<Interaction>;
  /** A yes to a confirmation. With the last one that is required the decision is approved, in the same transaction. */
  approve(id: InteractionId, yes: GivenVerdict, look?: Look): Promise<Interaction>;
  /** A no to a confirmation, and so to its decision. */
  reject(id: InteractionId, no: GivenVerdict, look?: Look): Promise<Interaction>;
  /** Throws illegal_transition for a `connection_lost`: only what was found out closes it. */
  cancel(id: InteractionId, reason: string, by: By, look?: Look): Promise<Interaction>;
  handOver(
    id: InteractionId,
    to: string,
    reason: string,
    by: By,
    look?: Look,
  ): Promise<Interaction>;
  /** One more remark; a reviewer's gives the turn to the agent, the agent's gives it back. */
  remark(
    id: InteractionId,
    text: string,
    from: "people" | "agent",
    by: By,
    look?: Look,
  ): Promise<Interaction>;
  /** Open ones whose deadline is over, and open ones that should have been escalated by now. */
  overdue(limit: number, after?: number): Promise<readonly Interaction[]>;
  toEscalate(limit: number, after?: number): Promise<readonly Interaction[]>;
  /**
   * Silence means no; false when it was closed before. The decision behind it is rejected in the same transaction. False for
   * a `connection_lost`: silence does not say what happened, so that stays open.
   */
  expire(id: InteractionId): Promise<boolean>;
  /**
   * A `connection_lost` that was not answered in time gets another deadline and goes to everyone who may answer it; false
   * when its time is not over, or it was answered.
   */
  askAgain(id: InteractionId): Promise<boolean>;
  /** Once; false when it was done before, or the question is closed. */
  escalate(id: InteractionId): Promise<boolean>;
}

/**
 * Looks at the very version that the change is written over, and throws when it must not be: what is true of an older one
 * (who may decide, whose it is) says nothing. Shape: callback, synchronous.
 */
export type Look = (now: Interaction) => void;

export interface InteractionQuery {
  readonly status?: InteractionStatus;
  readonly sessionId?: SessionId;
  readonly assignedTo?: string;
  /** Only those opened after this one (`ord`). */
  readonly after?: number;
  readonly limit: number;
}

export interface GivenAnswer {
  /** The hash of what was seen. */
  readonly hash: string;
  readonly by: string;
  readonly answer: JsonValue;
  readonly reason?: string;
}

export interface GivenVerdict {
  readonly hash: string;
  readonly verdict: Verdict;
  readonly by: string;
  /** The factor that a yes is meant for; the first open one when left out. */
  readonly factor?: string;
}

/** Somebody else changed the question between look and write: look again, so often at most. */
const TRIES = 64;

/** Questions over any engine. The WHERE decides who was first, and the store's clock whether it was in time. */
export function engineInteractions(engine: TenantEngine): InteractionStore {
  async function peek(id: InteractionId): Promise<Interaction | undefined> {
    const row = isName(id) ? await engine.get(INTERACTIONS, id) : undefined;
    return row === undefined ? undefined : interactionOf(row);
  }

  async function get(id: InteractionId): Promise<Interaction> {
    const found = await peek(id);
    if (found !== undefined) return found;
    const hint = "It was never asked here. Take it off the screen; it cannot be answered.";
    throw new SallyportError("not_found", { id: String(id), hint });
  }

  /** One change of an open question. `look` may refuse it, before anything else is said; `make` says what to write, or nothing. */
  async function change(
    id: InteractionId,
    make: (now: Interaction) => Write | undefined,
    look: Look = () => {},
  ): Promise<Interaction> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const before = await get(id);
      look(before);
      if (before.status !== "open") throw whyClosed(before);
      const write = make(before);
      if (write === undefined) return before;
      const { set, where = {}, also = [], event } = write;
      const own: Step = {
        op: "update",
        table: INTERACTIONS,
        id,
        where: { status: "open", version: before.version, ...where },
        set: { version: { plus: 1 }, updated_at: NOW, ...set },
      };
      const mine: Along = { step: own, event: () => told(event, before) };
      const result = await engine.commit(along([mine, ...also]));
      if (result.committed) return interactionOf(result.rows[0] ?? {});
      const after = await get(id);
      if (after.status !== "open") throw whyClosed(after);
      if (after.version === before.version) {
        throw whyNotAnswered(after, result.step, where["hash"]);
      }
    }
    throw new SallyportError("concurrent_modification", { id });
  }

  /** The hash that was seen, in time; both checked by the write itself. */
  const seen = (hash: string) => ({ hash, due_at: { atLeast: NOW } });

  return {
    ...engineConfirmations(engine),
    peek,
    get,
    async open(id, draft, { actor }) {
      checkName("interaction id", id);
      checkName("actor", actor);
      checkQuestion(draft);
      const result = await engine.commit(along([openingOf(id, draft, actor)]));
      if (result.committed) return interactionOf(result.rows[0] ?? {});
      const hint = "It was asked before; the first question stays. Look at it instead.";
      throw new SallyportError("already_exists", { id, hint });
    },
    async list({ status, sessionId, assignedTo, after, limit }) {
      const where = {
        ...(status === undefined ? {} : { status }),
        ...(sessionId === undefined ? {} : { session_id: sessionId }),
        ...(assignedTo === undefined ? {} : { assigned_to: assignedTo }),
      };
      const query = { where, limit: Math.min(limit, MAX_LIST) };
      const from = after === undefined ? {} : { afterOrd: after };
      return readable(engine, INTERACTIONS, { ...query, ...from }, interactionOf);
    },
    answer: (id, { hash, by, answer, reason = "" }, look) =>
      change(
        id,
        () => {
          checkName("by", by);
          checkReason(reason);
          encoded("answer", answer);
          return closing({ outcome: "answered", by, reason, answer }, seen(hash));
        },
        look,
      ),
    approve: (id, yes, look) => change(id, (now) => votes(now, yes), look),
    reject: (id, no, look) =>
      change(
        id,
        ({ decisionId }) => ({
          ...closing({ outcome: "rejected", by: no.by, reason: no.verdict.reason }, seen(no.hash)),
          also: [reviewMove("business", decisionId, no.verdict)],
        }),
        look,
      ),
    cancel: (id, reason, { actor: by }, look) =>
      change(
        id,
        (now) => {
          checkName("actor", by);
          checkReason(reason);
          if (now.type === "connection_lost") throw staysOpen(now);
          return silence(now, { outcome: "canceled", by, reason });
        },
        look,
      ),
    handOver: (id, to, reason, { actor: by }, look) =>
      change(
        id,
        () => {
          checkName("to", to);
          checkName("actor", by);
          checkReason(reason);
          const data = { to, reason: reason.toWellFormed() };
          const event = { type: "interaction.handed_over", actor: by, data };
          return { set: { assigned_to: to }, event };
        },
        look,
      ),
    remark: (id, text, from, { actor: by }, look) =>
      change(
        id,
        ({ remarks }) => {
          checkName("actor", by);
          checkReason(text);
          const next = from === "people" ? "agent" : "people";
          const type = from === "people" ? "interaction.asked_back" : "interaction.replied";
          const all = encoded("remarks", [...remarks, { by, text }]);
          const event = { type, actor: by, data: { text: text.toWellFormed() } };
          return { set: { remarks: all, waits_for: next }, event };
        },
        look,
      ),
    async overdue(limit, afterOrd = 0) {
      const query = { where: { due_at: OVER }, afterOrd, limit };
      return readable(engine, INTERACTIONS, query, interactionOf);
    },
    async toEscalate(limit, afterOrd = 0) {
      const query = { where: { escalate_at: { atMost: NOW } }, afterOrd, limit };
      return readable(engine, INTERACTIONS, query, interactionOf);
    },
    async expire(id) {
      const { decisionId, status, type } = await get(id);
      if (status !== "open" || type === "connection_lost") return false;
      const reason = "Nobody answered in time, and silence means no.";
      return closes(id, { outcome: "expired", by: "deadline", reason }, decisionId);
    },
    async askAgain(id) {
      const before = await get(id);
      const event = { type: "interaction.asked_again", actor: "deadline", data: {} };
      const result = await engine.commit({
        steps: [
          {
            op: "update",
            table: INTERACTIONS,
            id,
            where: { status: "open", type: "connection_lost", due_at: OVER },
            set: {
              deadline: { nowPlusMs: LOST_MS },
              due_at: { nowPlusMs: LOST_MS },
              assigned_to: "",
              version: { plus: 1 },
              updated_at: NOW,
            },
          },
        ],
        events: [{ ...told(event, before), facts: { deadline: { left: "deadline" } } }],
      });
      return result.committed;
    },
    async escalate(id) {
      const before = await get(id);
      const to = before.escalation?.to ?? "";
      const result = await engine.commit({
        steps: [
          {
            op: "update",
            table: INTERACTIONS,
            id,
            where: { status: "open", escalated: 0, escalate_at: { atMost: NOW } },
            set: {
              assigned_to: to,
              escalated: 1,
              escalate_at: null,
              version: { plus: 1 },
              updated_at: NOW,
            },
          },
        ],
        events: [told({ type: "interaction.escalated", actor: "deadline", data: { to } }, before)],
      });
      return result.committed;
    },
  };

  /** Only when the deadline is really over by the store's clock; a person may be answering at this very moment. */
  async function closes(id: string, how: Closing, decisionId: string): Promise<boolean> {
    const late = closingStep(id, how, { due_at: OVER });
    const moves = decisionId === "" ? [] : [reviewMove("business", decisionId, noOf(how))];
    return (await engine.commit(along([late, ...moves]))).committed;
  }
}

const OVER = { atMost: { nowPlusMs: -1 } } as const;

function staysOpen({ id, type }: Interaction): SallyportError {
  const hint =
    "What became of the call is still open. Say whether it happened; give it up if nobody can tell.";
  return new SallyportError("illegal_transition", { id, type, hint });
}

function closing(how: Closing, where: NonNullable<Write["where"]>): Write {
  return { where, set: rowOfClosing(how), event: closingEvent(how) };
}

/** Canceling a confirmation rejects its decision: nothing stays in review that no one will be asked about. */
function silence(now: Interaction, how: Closing): Write {
  const write = closing(how, {});
  if (now.decisionId === "") return write;
  return { ...write, also: [reviewMove("business", now.decisionId, noOf(how))] };
}

function noOf({ by, reason }: Closing) {
  return {
    approved: false,
    score: 0,
    severity: "block",
    reason,
    validator: by,
    policyVersion: "",
  } as const;
}

/** One more yes; the one that completes the requirement approves the decision in the same transaction. */
function votes(
  now: Interaction,
  { by, hash, verdict, factor: named }: GivenVerdict,
): Write | undefined {
  checkName("by", by);
  // `deadline` is what was shown, `due_at` what the sweep reads: moving one of the columns makes nothing last longer.
  const where = { hash, due_at: { atLeast: NOW }, deadline: { atLeast: NOW } };
  // The same person on two screens: the second click changes nothing.
  if (now.votes.some((vote) => foldName(vote.by) === foldName(by))) return undefined;
  const factor = factorFor(by, now.requires, now.votes, named);
  if (factor === undefined) {
    const hint = "Your yes is not among those still missing. Leave it to the others.";
    throw new SallyportError("not_allowed", { id: now.id, by, hint });
  }
  const vote: Vote = { by, factor: factor.name };
  const all = [...now.votes, vote];
  const missing = missingFactors(now.requires, all);
  if (missing.length > 0) {
    const data = { factor: factor.name, missing: missing.map(({ name }) => name) };
    return {
      where,
      set: { votes: encoded("votes", all) },
      event: { type: "interaction.voted", actor: by, data },
    };
  }
  const whole = closing({ outcome: "approved", by, reason: verdict.reason }, where);
  const { decisionId: id } = now;
  return {
    ...whole,
    set: { ...whole.set, votes: encoded("votes", all) },
    also: [reviewMove("business", id, verdict)],
  };
}
