import { isDeepStrictEqual } from "node:util";
import { checkReason, type SessionId, type Verdict } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import {
  checkQuestion,
  factorFor,
  INTERACTION_OUTCOMES,
  INTERACTIONS,
  type Interaction,
  type InteractionDraft,
  type InteractionId,
  type InteractionOutcome,
  type InteractionStatus,
  missingFactors,
  noOf,
  ONE_PERSON,
  type Preview,
  previewHash,
  staysOpen,
  storedPreview,
  wholePreview,
  whyClosed,
  whyNotAnswered,
} from "../model/interaction.ts";
import { checkName, foldName } from "../model/names.ts";
import { damaged, encoded, MAX_LIST, type RecordOf } from "../model/record.ts";
import type { Clock } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { encodeValue } from "../util/value-codec.ts";
import {
  type By,
  type CallKey,
  type CallKeys,
  type Content,
  callKeyStep,
  contentStep,
  engineCallKeys,
  reviewMove,
  shownStep,
} from "./decisions.ts";
import {
  type Along,
  along,
  type Conditions,
  type EventPlan,
  insertStep,
  NOW,
  type Row,
  updateStep,
  type Values,
} from "./engine.ts";
import {
  Definitions,
  getRecord,
  hashOf,
  peekRecord,
  readable,
  type TenantEngine,
} from "./tenant-engine.ts";

/**
 * Durable questions to people. Every call is one transaction with its audit entries; each question is closed exactly once,
 * by the store's clock. Throws not_found for an unknown id, already_answered with who was first and what was decided for a
 * closed one, approval_void for another hash or a deadline that is over.
 */
export interface InteractionStore extends CallKeys {
  /**
   * Opens the confirmation of a decision, once, while the business tier has it. Throws illegal_transition, already_exists
   * when one of the keyed calls led to another decision before, concurrent_modification when `along` does not hold.
   */
  show(showing: Showing, by: By): Promise<Interaction>;
  /** Undefined when nothing was shown under this id. Throws damaged_record. */
  shown(id: InteractionId): Promise<Shown | undefined>;
  /** The question with what it shows, in one read; undefined when there is none. */
  withShown(id: InteractionId): Promise<readonly [Interaction, Shown | undefined] | undefined>;
  /** Under an id of the caller's choice. Throws already_exists when there is one: the first question stays. */
  open(id: InteractionId, draft: InteractionDraft, by: By): Promise<Interaction>;
  get(id: InteractionId): Promise<Interaction>;
  /** Oldest first. */
  list(query: InteractionQuery): Promise<readonly Interaction[]>;
  /** Undefined when there is none. */
  peek(id: InteractionId): Promise<Interaction | undefined>;
  /** The answer to an `ask_user` or a `connection_lost`. */
  answer(id: InteractionId, answer: GivenAnswer, look?: VersionCheck): Promise<Interaction>;
  /** A yes to a confirmation. With the last one that is required the decision is approved, in the same transaction. */
  approve(id: InteractionId, yes: GivenVerdict, look?: VersionCheck): Promise<Interaction>;
  /**
   * The parts of the yes that completes what this version requires, the question's first, to be written with what follows from
   * it; undefined when it is closed, or others have to say yes too. Throws not_allowed.
   */
  completing(now: Interaction, yes: GivenVerdict): readonly Along[] | undefined;
  /** A no to a confirmation, and so to its decision. */
  reject(id: InteractionId, no: GivenVerdict, look?: VersionCheck): Promise<Interaction>;
  /** Throws illegal_transition for a `connection_lost`: only what was found out closes it. */
  cancel(id: InteractionId, reason: string, by: By, look?: VersionCheck): Promise<Interaction>;
  handOver(
    id: InteractionId,
    to: string,
    reason: string,
    by: By,
    look?: VersionCheck,
  ): Promise<Interaction>;
  /** One more remark; a reviewer's gives the turn to the agent, the agent's gives it back. */
  remark(
    id: InteractionId,
    text: string,
    from: "people" | "agent",
    by: By,
    look?: VersionCheck,
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
 * Checks the exact version that the change replaces, and throws when the change is not allowed: facts about an older version
 * (who may decide, whose it is) may be outdated. Shape: callback, synchronous.
 */
export type VersionCheck = (now: Interaction) => void;

export interface Shown {
  readonly preview: Preview;
  readonly hash: string;
  /** Definitions of the tools when it was shown, one per call. */
  readonly definitions: readonly JsonObject[];
}

/** The same as it is stored, with hashes in place of definitions. */
type Found = Omit<Shown, "definitions"> & {
  readonly definitions: readonly (string | JsonObject)[];
};

export interface Showing {
  readonly preview: Preview;
  readonly definitions: readonly JsonObject[];
  readonly question: Omit<InteractionDraft, "type" | "hash" | "decisionId" | "deadlineMs">;
  readonly keys: readonly CallKey[];
  /** For a call without a key of its own. */
  readonly content?: Content;
  /** What it replaces. */
  readonly along?: readonly Along[];
  /** What leads to it and is not written yet: the decision itself and its technical verdict. */
  readonly before?: readonly Along[];
}

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

/** How often a change is retried because the question was changed between the read and the write. */
const TRIES = 64;

/** Questions over any engine. The WHERE decides who was first, and the store's clock whether it was in time. */
export function engineInteractions(engine: TenantEngine, stopwatch?: Clock): InteractionStore {
  const hint =
    "There is no such question in this store, so it cannot be answered. Reload the list.";
  const get = (id: InteractionId) => getRecord(engine, QUESTIONS, id, hint);
  const definitions = new Definitions(engine, stopwatch);

  /** One change of an open question. `look` may refuse it, before any other check; `make` returns what to write, or nothing. */
  async function change(
    id: InteractionId,
    look: VersionCheck | undefined,
    make: (now: Interaction) => Write | undefined,
  ): Promise<Interaction> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const before = await get(id);
      look?.(before);
      if (before.status !== "open") throw whyClosed(before);
      const write = make(before);
      if (write === undefined) return before;
      const { where = {} } = write;
      const result = await engine.commit(along(partsOf(before, write)));
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
    ...engineCallKeys(engine),
    get,
    peek: (id) => peekRecord(engine, QUESTIONS, id),
    async shown(id) {
      const found = await peekRecord(engine, SHOWN, id);
      return found && definitions.filled(found);
    },
    async withShown(id) {
      const [question, found] = (await peekRecord(engine, WITH_SHOWN, id)) ?? [];
      return question && [question, found && (await definitions.filled(found))];
    },
    completing(now, yes) {
      const write = now.status === "open" ? votes(now, yes) : undefined;
      return write?.also === undefined ? undefined : partsOf(now, write);
    },
    show: (showing, by) => show(engine, definitions, showing, by),
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
      const where = definedFields({ status, session_id: sessionId, assigned_to: assignedTo });
      const page = { limit: Math.min(limit, MAX_LIST), ...definedFields({ afterOrd: after }) };
      return readable(engine, INTERACTIONS, { where, ...page }, interactionOf);
    },
    answer: (id, { hash, by, answer, reason = "" }, look) =>
      change(id, look, () => {
        checkName("by", by);
        checkReason(reason);
        encoded("answer", answer);
        return closing({ outcome: "answered", by, reason, answer }, seen(hash));
      }),
    approve: (id, yes, look) => change(id, look, (now) => votes(now, yes)),
    reject: (id, { hash, by, verdict }, look) =>
      change(id, look, ({ decisionId }) => ({
        ...closing({ outcome: "rejected", by, reason: verdict.reason }, seen(hash)),
        also: [reviewMove("business", decisionId, verdict)],
      })),
    cancel: (id, reason, { actor: by }, look) =>
      change(id, look, (now) => {
        checkName("actor", by);
        checkReason(reason);
        if (now.type === "connection_lost") throw staysOpen(now);
        return silence(now, { outcome: "canceled", by, reason });
      }),
    handOver: (id, to, reason, { actor }, look) =>
      change(id, look, () => {
        checkName("to", to);
        checkName("actor", actor);
        checkReason(reason);
        const data = { to, reason: reason.toWellFormed() };
        return {
          set: { assigned_to: to },
          event: { type: "interaction.handed_over", actor, data },
        };
      }),
    remark: (id, text, from, { actor }, look) =>
      change(id, look, ({ remarks }) => {
        checkName("actor", actor);
        checkReason(text);
        const [waitsFor, type] =
          from === "people"
            ? (["agent", "interaction.asked_back"] as const)
            : (["people", "interaction.replied"] as const);
        const all = [...remarks, { by: actor, text }];
        const set = { remarks: encoded("remarks", all), waits_for: waitsFor };
        return { set, event: { type, actor, data: { text: text.toWellFormed() } } };
      }),
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
      const reason = "No one answered in time, and silence means no.";
      return closes(id, { outcome: "expired", by: "deadline", reason }, decisionId);
    },
    async askAgain(id) {
      const event = { type: "interaction.asked_again", actor: "deadline", data: {} };
      const anew = { nowPlusMs: LOST_MS };
      return sweep(await get(id), {
        where: { type: "connection_lost", due_at: OVER },
        set: { deadline: anew, due_at: anew, assigned_to: "" },
        event: { ...event, facts: { deadline: { left: "deadline" } } },
      });
    },
    async escalate(id) {
      const before = await get(id);
      const to = before.escalation?.to ?? "";
      return sweep(before, {
        where: { escalated: 0, escalate_at: { atMost: NOW } },
        set: { assigned_to: to, escalated: 1, escalate_at: null },
        event: { type: "interaction.escalated", actor: "deadline", data: { to } },
      });
    },
  };

  /** A change caused by time; false when its condition does not hold, or no longer holds. */
  async function sweep(before: Interaction, { where, set, event }: Write): Promise<boolean> {
    const isOpen = { status: "open", ...where };
    const step = updateStep(INTERACTIONS, before.id, isOpen, { ...CHANGED, ...set });
    return (await engine.commit({ steps: [step], events: [told(event, before)] })).committed;
  }

  /** Only when the deadline has passed by the store's clock; a person may be answering concurrently. */
  async function closes(id: string, how: Closing, decisionId: string): Promise<boolean> {
    const late = closingStep(id, how, { due_at: OVER });
    const moves = decisionId === "" ? [] : [reviewMove("business", decisionId, noOf(how))];
    return (await engine.commit(along([late, ...moves]))).committed;
  }
}

/** The parts of a change of an open question, of which the first is about the question itself. */
function partsOf(before: Interaction, { set, where = {}, also = [], event }: Write): Along[] {
  const unchanged = { status: "open", version: before.version, ...where };
  const step = updateStep(INTERACTIONS, before.id, unchanged, { ...CHANGED, ...set });
  return [{ step, event: () => told(event, before) }, ...also];
}

/** How long people have to find out about a lost call before they are asked again. Silence does not settle what happened. */
export const LOST_MS = 30 * 24 * 3_600_000;

const CHANGED = { version: { plus: 1 }, updated_at: NOW } as const;

const OVER = { atMost: { nowPlusMs: -1 } } as const;

function closing(how: Closing, where: NonNullable<Write["where"]>): Write {
  return { where, set: rowOfClosing(how), event: closingEvent(how) };
}

/** Canceling a confirmation rejects its decision, which would otherwise stay in review without a question. */
function silence(now: Interaction, how: Closing): Write {
  const write = closing(how, {});
  if (now.decisionId === "") return write;
  return { ...write, also: [reviewMove("business", now.decisionId, noOf(how))] };
}

/** One more yes; the one that completes the requirement approves the decision in the same transaction. */
function votes(
  now: Interaction,
  { by, hash, verdict, factor: named }: GivenVerdict,
): Write | undefined {
  checkName("by", by);
  // `deadline` was shown, `due_at` is read by the sweep: both must match, so changing one of them extends nothing.
  const where = { hash, due_at: { atLeast: NOW }, deadline: { atLeast: NOW } };
  // The same person on two screens: the second click changes nothing.
  if (now.votes.some((vote) => foldName(vote.by) === foldName(by))) return undefined;
  const factor = factorFor(by, now.requires, now.votes, named);
  if (factor === undefined) {
    const hint =
      "Your approval is not one of those that are still missing. Leave it to the others.";
    throw new SallyportError("not_allowed", { id: now.id, by, hint });
  }
  const all = [...now.votes, { by, factor: factor.name }];
  const counted = { votes: encoded("votes", all) };
  const missing = missingFactors(now.requires, all);
  if (missing.length > 0) {
    const data = { factor: factor.name, missing: missing.map(({ name }) => name) };
    return { where, set: counted, event: { type: "interaction.voted", actor: by, data } };
  }
  const whole = closing({ outcome: "approved", by, reason: verdict.reason }, where);
  const also = [reviewMove("business", now.decisionId, verdict, now.sessionId)];
  return { ...whole, set: { ...whole.set, ...counted }, also };
}

/** What a `confirm` shows. */
type ShownFields = Pick<RecordOf<typeof INTERACTIONS>, "preview" | "definitions">;

function rowOfQuestion(draft: InteractionDraft, shown: ShownFields): Values {
  const { escalation, deadlineMs = 0 } = draft;
  const deadline = draft.deadlineAt ?? { nowPlusMs: deadlineMs };
  return INTERACTIONS.row({
    ...draft,
    ...shown,
    status: "open",
    decisionId: draft.decisionId ?? "",
    operationId: draft.operationId ?? "",
    metadata: draft.metadata ?? {},
    // One person is what an absent requirement means.
    requires: isDeepStrictEqual(draft.requires, ONE_PERSON) ? undefined : draft.requires,
    waitsFor: "people",
    assignedTo: draft.assignedTo ?? "",
    deadline,
    dueAt: deadline,
    escalation: {
      at: escalation === undefined ? null : { nowPlusMs: escalation.afterMs },
      to: escalation?.to ?? "",
    },
    escalated: false,
    answeredBy: "",
    supersededBy: "",
    version: 1,
    createdAt: NOW,
    updatedAt: NOW,
  });
}

export interface Closing {
  readonly outcome: InteractionOutcome;
  readonly by: string;
  readonly reason: string;
  readonly answer?: JsonValue;
  readonly supersededBy?: string;
}

/** The columns that are set whenever a question is closed. */
function rowOfClosing(closing: Closing): Values {
  const { outcome, by, reason, answer, supersededBy = "" } = closing;
  const cells = INTERACTIONS.cells({
    status: INTERACTION_OUTCOMES[outcome],
    outcome,
    answer,
    reason: reason === "" ? undefined : reason,
    answeredBy: by,
    supersededBy,
    dueAt: null,
    updatedAt: NOW,
  });
  return { ...cells, escalate_at: null, version: { plus: 1 } };
}

const shownOf = INTERACTIONS.only(
  ...(["preview", "definitions", "hash", "deadline"] as const),
  ...(["decisionId", "sessionId", "chain", "requires", "metadata"] as const),
);
const withoutShown = INTERACTIONS.without("preview", "definitions", "dueAt");

/** Undefined when nothing was shown. Throws damaged_record. */
function shownIn(row: Row): Found | undefined {
  if (row["preview"] === null) return undefined;
  const { preview: stored, definitions, hash, deadline, ...beside } = shownOf(row);
  if (stored === undefined || definitions === undefined) throw damaged(row, "definitions");
  const preview = wholePreview(stored, { ...beside, tenant: String(row["tenant"]) });
  if (deadline === preview.expiresAt) return { preview, hash, definitions };
  const hint = "Its deadline is not the one that was shown. Compare with the audit log.";
  throw new SallyportError("damaged_record", { id: String(row["id"]), column: "deadline", hint });
}

/** Without what it shows, which may be large: `shown` reads that. */
export function interactionOf(row: Row): Interaction {
  const { escalation, ...rest } = withoutShown(row);
  const { at, to } = escalation;
  return { ...rest, escalation: at === undefined ? undefined : { at, to } };
}

const QUESTIONS = { ...INTERACTIONS, read: interactionOf };
const SHOWN = { ...INTERACTIONS, read: shownIn };
const bothOf = (row: Row) => [interactionOf(row), shownIn(row)] as const;
const WITH_SHOWN = { ...INTERACTIONS, read: bothOf };

/** A change of an open question as data, with what must happen in the same transaction. */
interface Write {
  readonly where?: Conditions;
  readonly set: Values;
  readonly event: Pick<EventPlan, "type" | "actor" | "data" | "hashes" | "facts">;
  readonly also?: readonly Along[];
}

export function openingOf(
  id: InteractionId,
  draft: InteractionDraft,
  actor: string,
  shown: ShownFields = { preview: undefined, definitions: undefined },
): Along {
  const { type, sessionId, hash, decisionId = "", operationId = "" } = draft;
  // The preview of a confirmation holds a nonce. The other hashes are made of texts that could be guessed.
  const isGuessable = type !== "confirm";
  return {
    step: insertStep(INTERACTIONS, id, rowOfQuestion(draft, shown)),
    event: (step) => ({
      type: "interaction.opened",
      subject: id,
      session: sessionId,
      actor,
      data: {
        type,
        ...(isGuessable ? {} : { hash }),
        decision: decisionId,
        operation: operationId,
        text: draft.displayText.toWellFormed(),
      },
      ...(isGuessable ? { hashes: { hash } } : {}),
      facts: { deadline: { left: "deadline", step } },
    }),
  };
}

/** Closes an open interaction for which `where` holds too; logged with the session that the row names. */
export function closingStep(id: InteractionId, how: Closing, where: Conditions): Along {
  return {
    step: updateStep(INTERACTIONS, id, { status: "open", ...where }, rowOfClosing(how)),
    event: (step) => ({ ...closingEvent(how), subject: id, session: { left: "session_id", step } }),
  };
}

function closingEvent(how: Closing): Write["event"] {
  const { outcome, by, reason, answer, supersededBy } = how;
  const data = {
    outcome,
    reason: reason.toWellFormed(),
    ...(supersededBy === undefined ? {} : { successor: supersededBy }),
  };
  const event = { type: `interaction.${EVENTS[outcome]}`, actor: by, data };
  return answer === undefined
    ? event
    : { ...event, hashes: { answer: sha256Hex(encodeValue(answer)) } };
}

const EVENTS = {
  answered: "answered",
  approved: "answered",
  rejected: "answered",
  superseded: "superseded",
  expired: "expired",
  canceled: "canceled",
} as const;

function told(event: Write["event"], { id, sessionId }: Interaction): EventPlan {
  return { ...event, subject: id, session: sessionId };
}

async function show(
  { tenant }: TenantEngine,
  known: Definitions,
  { preview, definitions, question, keys, content, before = [], along: others = [] }: Showing,
  { actor }: By,
): Promise<Interaction> {
  checkName("actor", actor);
  const { decisionId: id, expiresAt, safetyClass, machine, deliverables } = preview;
  const [hash, seen] = [previewHash(preview), definedFields({ machine, deliverables })];
  const at = { decisionId: id, deadlineAt: expiresAt };
  const draft = { ...question, type: "confirm", hash, ...at } as const;
  checkQuestion(draft);
  const inReview: Along = {
    step: shownStep(id, machine),
    event: () => ({
      type: "decision.previewed",
      subject: id,
      session: question.sessionId,
      actor,
      data: { hash, expires_at: expiresAt, safety_class: safetyClass, ...seen },
    }),
  };
  const beside = { ...question, decisionId: id, tenant };
  const shown = { preview: storedPreview(preview, beside), definitions: definitions.map(hashOf) };
  const opened = openingOf(id, draft, actor, shown);
  const own = keys.map((key): Along => ({ step: callKeyStep(question.sessionId, id, key) }));
  const asked = content === undefined ? [] : [{ step: contentStep(id, content) }];
  const write = (calls: readonly Along[]) =>
    known.commit(along([...before, inReview, opened, ...calls, ...others]), definitions);
  let result = await write([...own, ...asked]);
  const isMet = !result.committed && result.step === 2 + own.length;
  if (isMet && content?.otherwise === "both") result = await write(own);
  if (result.committed) return interactionOf(result.rows[1] ?? {});
  if (result.step < 2) {
    const hint = "A preview is stored once, while the business tier has the decision.";
    throw new SallyportError("illegal_transition", { id, hint });
  }
  if (result.step < 2 + own.length + asked.length) {
    const first = String(result.current?.["decision_id"]);
    const hint = "The same call was proposed before; look at that one.";
    throw new SallyportError("already_exists", { id: first, hint });
  }
  const hint = "The question that it was to replace has been decided meanwhile.";
  throw new SallyportError("concurrent_modification", { id, hint });
}
