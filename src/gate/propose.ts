// Step "propose": stages the calls as one decision, then takes it through review to its confirmation; limits what one agent may
// have waiting, and reports what waits to the host. Before it: judge has said that a person must be asked. After it: review,
// show, and decide once a person answers.

import {
  type Decision,
  type DecisionId,
  NO_VERDICT,
  TIERS,
  type Tier,
  type Verdict,
} from "../model/decision.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Interaction, Preview } from "../model/interaction.ts";
import type { CallAnswer, CallRequest } from "../model/operation.ts";
import { type By, type Moment, reviewMove } from "../store/decisions.ts";
import type { Along } from "../store/engine.ts";
import type { Showing } from "../store/interactions.ts";
import type { TenantStore } from "../store/store.ts";
import { toIso } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import { whenLate } from "../util/timers.ts";
import { isSettled } from "./answers.ts";
import { countRefusal } from "./breaker.ts";
import type { GateContext } from "./context.ts";
import type { Caller, Ready } from "./judge.ts";
import type { GateOptions, OpenCall } from "./options.ts";
import { reviewTier, storeVerdict } from "./review.ts";
import {
  agentOf,
  type CallProposal,
  contentHash,
  decodeProposal,
  draftOf,
  looksAt,
  plannedPlaces,
  reviewOf,
  showingOf,
} from "./show.ts";

/** Calls to be decided on as a whole. */
export interface Proposal extends CallProposal {
  readonly sessionId: string;
  /** The assignee of what it replaces; empty: as the review rules say. */
  readonly assignedTo?: string;
  /** `review`: when both machine reviews agree it is approved in their name, and no person is asked. */
  readonly lane?: "review";
  /** What the policies said about asking a person; lost when another process continues the proposal. */
  readonly because?: readonly string[];
  /** What it asks for, for retries of the same call; left out for a call with a key of its own. */
  readonly content?: Showing["content"];
  /** What it replaces; written in the transaction that opens its confirmation. */
  readonly along?: (id: DecisionId) => readonly Along[];
}

export type Proposed =
  | { readonly proposed: true; readonly interaction: Interaction; readonly preview: Preview }
  | { readonly proposed: false; readonly id: DecisionId; readonly reason: string };

/** What a caller asks for with these calls. */
export function proposalOf(
  caller: Caller,
  calls: readonly Ready[],
  requests: readonly CallRequest[],
): Proposal {
  return {
    calls: calls.map(({ tool, definition, input, places }, index) => ({
      tool: tool.name,
      definition,
      input,
      workingDirectory: caller.workingDirectory,
      ...plannedPlaces(places),
      callId: requests[index]?.callId ?? "",
      turn: requests[index]?.turn ?? 0,
    })),
    keys: requests.flatMap((request, step) => {
      const key = request.key ?? request.requestKey;
      return key === undefined ? [] : [{ key, step }];
    }),
    sessionId: caller.sessionId,
    chain: caller.chain,
    owner: caller.owner ?? "",
    ...(caller.claim === undefined ? {} : { claim: caller.claim }),
    messageId: requests[0]?.messageId ?? "",
    facts: {},
    because: calls.flatMap(({ decision }) => decision.findings.map(({ message }) => message)),
    editors: [],
    ...metadataOfCalls(caller, requests),
    ...deliverablesOf(calls),
  };
}

/** A session's facts, over which those of its calls go. */
function metadataOfCalls(
  { metadata: ofSession = {} }: Caller,
  requests: readonly CallRequest[],
): Pick<Proposal, "metadata"> {
  const metadata = Object.assign({}, ofSession, ...requests.map((one) => one.metadata ?? {}));
  return Object.keys(metadata).length === 0 ? {} : { metadata };
}

function deliverablesOf(calls: readonly Ready[]): Pick<Proposal, "deliverables"> {
  if (calls.every(({ deliverable }) => deliverable === undefined)) return {};
  return { deliverables: calls.map(({ deliverable = null }) => deliverable) };
}

/** A proposal with what was asked of the store about it. */
export interface Ahead {
  readonly proposal: Proposal;
  /** Of its content. */
  readonly hash: string;
  /** The decision that asked for the same before; left out for calls with keys of their own. */
  readonly last: Promise<DecisionId | undefined> | undefined;
  readonly moment: Promise<Moment>;
}

/** Asks the store for what a proposal needs, so that it shares a round trip with what else is asked about the call. */
export function readAhead(
  { interactions, proposals }: Pick<TenantStore, "interactions" | "proposals">,
  proposal: Proposal,
  requests: readonly CallRequest[],
): Ahead {
  const hash = contentHash(proposal.sessionId, proposal);
  const isOwn = requests.some(({ key }) => key !== undefined);
  const last = isOwn ? undefined : interactions.ofContent(hash);
  const moment = proposals.moment();
  // An error counts for the one who needs the answer.
  for (const one of [last, moment]) one?.catch(() => {});
  return { proposal, hash, last, moment };
}

/**
 * Stage, technical review, business review, preview, confirmation: the one way into the inbox. An earlier `moment` only makes
 * the proposal end earlier, and void when an epoch began since.
 */
export async function propose(
  context: GateContext,
  proposal: Proposal,
  moment?: Promise<Moment>,
): Promise<Proposed> {
  const { store } = context;
  context.at("S1.before");
  const { now, epoch } = await (moment ?? store.proposals.moment());
  const draft = draftOf(proposal.sessionId, proposal, toIso(now));
  const { decision, part } = store.proposals.begin(draft, { actor: agentOf(proposal) });
  const along = proposal.along?.(decision.id);
  const { content, assignedTo = "", because = [], lane } = proposal;
  const terms = { along, assignedTo, epoch, because, ...definedFields({ content, lane }) };
  const underway = new Underway(context, decision, [part]);
  try {
    return await reviewFrom(context, underway, terms);
  } catch (error) {
    // The guard may agree later: it is asked again by the upkeep.
    if (isSallyportError(error, "dependency_denied")) await underway.store();
    // A replacement takes effect with its last write. Until then the replaced one stands, and the proposal may be repeated.
    const isBegun = underway.isStored && along === undefined;
    throw isBegun ? partlyWritten(decision.id, BEGUN, error) : error;
  } finally {
    underway.end();
  }
}

/** For the agent. */
export const BEGUN =
  "The proposal is stored and will be put before people by the next recovery. Do not propose it again; ask for this decision.";

interface ShowingTerms extends Pick<Showing, "content">, Pick<Proposal, "lane"> {
  readonly along?: readonly Along[] | undefined;
  readonly assignedTo?: string;
  readonly because?: readonly string[];
  readonly epoch: string;
}

/**
 * How long a new proposal may be under review before it is stored as it is by then. Prompt validators and dry runs, which only
 * compute or ask a nearby service, need less, and their proposal is written once. What takes longer must not be lost with the
 * process, and people may want to see what it waits for.
 */
const PROMPT_MS = 5;

/**
 * A decision on its way to people. A new one is not stored before it is complete, or takes longer than `PROMPT_MS`; from then
 * on every step of it is stored as it is taken.
 */
class Underway {
  readonly #context: GateContext;
  readonly #end: () => void;
  #decision: Decision;
  #unwritten: readonly Along[];
  #storing: Promise<void> | undefined;
  #isStored: boolean;

  constructor(context: GateContext, decision: Decision, unwritten: readonly Along[] = []) {
    this.#context = context;
    this.#decision = decision;
    this.#unwritten = unwritten;
    this.#isStored = unwritten.length === 0;
    const late = () => void this.store().catch(() => {});
    this.#end = this.#isStored ? () => {} : whenLate(context, PROMPT_MS, late);
  }

  /** With everything that was decided about it, stored or not. */
  get decision(): Decision {
    return this.#decision;
  }

  get isStored(): boolean {
    return this.#isStored;
  }

  /** Stores what there is. Throws what the store throws, to everyone who asks for it. */
  store(): Promise<void> {
    this.end();
    if (this.#unwritten.length > 0) this.#storing = this.#write(this.#unwritten);
    this.#unwritten = [];
    return this.#storing ?? Promise.resolve();
  }

  async #write(parts: readonly Along[]): Promise<void> {
    const { store, at } = this.#context;
    const { techVerdict } = this.#decision;
    await store.proposals.write(parts);
    this.#isStored = true;
    at("S1.after");
    if (techVerdict !== NO_VERDICT) at("S2a.after");
  }

  /** Adds the verdict of a tier. */
  async reviewed(tier: Tier, verdict: Verdict): Promise<void> {
    const { store, at } = this.#context;
    const { id } = this.#decision;
    const { yes, no, field } = TIERS[tier];
    if (this.#unwritten.length > 0) {
      const state = verdict.approved ? yes : no;
      this.#unwritten = [...this.#unwritten, reviewMove(tier, id, verdict)];
      this.#decision = { ...this.#decision, state, [field]: verdict };
      return;
    }
    await this.#storing;
    if (tier === "tech") at("S2a.before");
    this.#decision = await storeVerdict(store, tier, id, verdict);
    if (tier === "tech") at("S2a.after");
  }

  /** Adds the question, which completes it. */
  async shown(showing: Showing, by: By): Promise<Interaction> {
    const { store, at } = this.#context;
    this.end();
    await this.#storing;
    at("S3.before");
    const interaction = await store.interactions.show({ ...showing, before: this.#unwritten }, by);
    this.#unwritten = [];
    this.#isStored = true;
    at("S3.after");
    return interaction;
  }

  /** The review is over: from here on it is not stored by itself. */
  end(): void {
    this.#end();
  }
}

/** From any point of the review up to the confirmation, for a proposal that another process left unfinished. */
export async function reviewOn(context: GateContext, staged: Decision): Promise<Proposed> {
  const epoch = await context.store.epoch.current();
  return reviewFrom(context, new Underway(context, staged), { epoch });
}

async function reviewFrom(
  context: GateContext,
  underway: Underway,
  { along = [], assignedTo = "", because, content, epoch, lane }: ShowingTerms,
): Promise<Proposed> {
  const { id } = underway.decision;
  const { at } = context;
  let decoded: CallProposal | undefined;
  if (underway.decision.state === "pending_tech") {
    await underway.reviewed("tech", await reviewTier(context, "tech", underway.decision));
  }
  const { state, techVerdict } = underway.decision;
  if (state !== "pending_ml") {
    await countNo(techVerdict.reason);
    return refused(techVerdict.reason);
  }
  at("S2b.before");
  const yes = lane === "review" ? "final" : "left_to_a_person";
  const verdict = await reviewTier(context, "business", underway.decision, yes);
  at("S2b.after");
  if (!verdict.approved) {
    await countNo(verdict.reason);
    return refusedBy(verdict);
  }
  const { calls } = proposed();
  const looks = await looksAt(context, underway.decision.sessionId, calls);
  const review = reviewOf(context, calls, looks.dryRun);
  // Review rules that contradict each other: no one could ever approve it, so no one is asked.
  if (!review.possible) return refusedBy({ ...OVERTAKEN, reason: review.problem });
  const terms = { ...review.review, ...(assignedTo === "" ? {} : { assignedTo }) };
  const decision = { ...underway.decision, proposal: proposed() };
  const by = { actor: agentOf(decision.proposal) };
  if (lane === "review") {
    const machine = { ...review.review, requires: MACHINE, assignedTo: MACHINES, lane };
    const showing = showingOf(context, decision, machine, verdict, looks, epoch, because);
    const shown = await underway.shown({ ...showing, along }, by);
    // A process that ends here leaves a question that no person may answer; it expires, and nothing has run.
    const { id: asked, hash } = shown;
    const given = { hash, by: verdict.validator, verdict };
    const interaction = await context.store.interactions.approve(asked, given);
    return { proposed: true, interaction, preview: showing.preview };
  }
  const showing = showingOf(context, decision, terms, verdict, looks, epoch, because);
  try {
    const asked = { ...showing, along, ...(content === undefined ? {} : { content }) };
    const interaction = await underway.shown(asked, by);
    return { proposed: true, interaction, preview: showing.preview };
  } catch (error) {
    // Another proposal was first: no one will be asked about this one, so it must not wait for an answer.
    if (
      isSallyportError(error, "already_exists") ||
      isSallyportError(error, "concurrent_modification")
    ) {
      await refusedBy(OVERTAKEN);
    }
    throw error;
  }

  /** The stored bytes, decoded once. What is proposed never changes: an edit is a proposal of its own. */
  function proposed(): CallProposal {
    decoded ??= decodeProposal(underway.decision);
    return decoded;
  }

  async function countNo(reason: string): Promise<void> {
    const { sessionId } = underway.decision;
    const proposal = proposed();
    const tools = proposal.calls.map(({ tool }) => tool);
    await countRefusal(context, tools, { reason, sessionId, actor: agentOf(proposal) });
  }

  async function refusedBy(no: Verdict): Promise<Proposed> {
    await underway.reviewed("business", no);
    return refused(no.reason);
  }

  async function refused(reason: string): Promise<Proposed> {
    await underway.store();
    return { proposed: false, id, reason };
  }
}

/** Who says yes in the lane `review`: the validators, and no person. */
const MACHINES = "(machine reviews)";
const MACHINE = [{ name: "machine reviews", count: 1 }] as const;

const OVERTAKEN: Verdict = {
  approved: false,
  score: 0,
  severity: "",
  reason: "The same was asked or decided by another process in the meantime.",
  validator: "port",
  policyVersion: "",
};

/** For work after a first write. */
export async function pastFirstWrite<Result>(
  id: string,
  hint: string,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw partlyWritten(id, hint, error);
  }
}

/**
 * A store error that says "nothing was written" is true of one write only, and a caller that believed it after an earlier write
 * would repeat everything. It becomes partly_written, which names the stored record. It has no cause, because errors are
 * recognised through their causes, and this one is not safe to repeat. Every other error is returned as it is.
 */
function partlyWritten(id: string, hint: string, error: unknown): unknown {
  if (!(error instanceof SallyportError) || !isStoreFailure(error)) return error;
  const said = error.details.hint ?? error.message;
  return new SallyportError("partly_written", {
    id,
    failed: error.code,
    hint: `${hint} The store said: ${said}`,
  });
}

function isStoreFailure(error: SallyportError): boolean {
  return error.retry === "safe" || isSallyportError(error, "commit_unknown");
}

// How much one sender may have open.

/** What one agent may have waiting for people at a time. */
export interface QuotaOptions {
  /** Questions and proposals that wait for a person; 5,000 when left out. */
  readonly openQuestions?: number;
  /** Bytes of what they ask, all together; 32 MiB when left out. */
  readonly openBytes?: number;
}

export interface OpenQuota {
  /** Throws quota_exceeded when this sender may not open one more of so many bytes. */
  check(sender: string, bytes: number, count?: number): Promise<void>;
  opened(sender: string, id: string, bytes: number): void;
  /** Closed through this process, so that no look is needed to notice it. */
  closed(id: string): void;
  has(sender: string, id: string): boolean;
}

export interface OpenQuotaTerms {
  /** For the refusal. */
  readonly what: string;
  readonly hint: string;
  readonly most: number;
  readonly mostBytes: number;
  /** Asked only about a sender that is at its limit. */
  isOpen(id: string): Promise<boolean>;
  now(): number;
}

/** A sender that is at its limit and keeps trying makes us look at what it has open no more often than this… */
const LOOK_AT_QUOTA_MS = 5_000;
/** …unless it has opened this share of its limit since the last look: a busy sender must not be refused for what is closed. */
const LOOK_AFTER_SHARE = 0.1;
/** Reads that are asked together share round trips: one after the other, 5,000 of them would hold up every caller for half a second. */
const LOOK_TOGETHER = 250;

interface Open {
  readonly bytes: Map<string, number>;
  sum: number;
  lookedAt: number;
  /** What the last look left. */
  left: { readonly count: number; readonly sum: number };
  /** A look in flight, which concurrent callers wait for. */
  looking?: Promise<void> | undefined;
}

/**
 * Counts what each sender opened through this process. Only a sender at its limit costs anything: then those that are closed
 * by now are forgotten. Other processes count for themselves.
 */
export function openQuota(terms: OpenQuotaTerms): OpenQuota {
  const { what, hint, most, mostBytes, now } = terms;
  const senders = new Map<string, Open>();
  const openers = new Map<string, Open>();

  function forget(open: Open, id: string): void {
    open.sum -= open.bytes.get(id) ?? 0;
    open.bytes.delete(id);
    openers.delete(id);
  }

  function isWorthALook({ bytes, sum, lookedAt, left }: Open): boolean {
    if (now() - lookedAt >= LOOK_AT_QUOTA_MS) return true;
    const isMany = bytes.size - left.count >= most * LOOK_AFTER_SHARE;
    return isMany || sum - left.sum >= mostBytes * LOOK_AFTER_SHARE;
  }

  async function forgetClosed(open: Open): Promise<void> {
    if (open.looking === undefined && isWorthALook(open)) {
      open.lookedAt = now();
      open.looking = lookAt(open).finally(() => {
        open.looking = undefined;
      });
    }
    await open.looking;
  }

  async function lookAt(open: Open): Promise<void> {
    const ids = [...open.bytes.keys()];
    for (let from = 0; from < ids.length; from += LOOK_TOGETHER) {
      const together = ids.slice(from, from + LOOK_TOGETHER);
      const areOpen = await Promise.all(together.map((id) => terms.isOpen(id)));
      for (const [index, id] of together.entries()) if (!areOpen[index]) forget(open, id);
    }
    open.left = { count: open.bytes.size, sum: open.sum };
  }

  return {
    async check(sender, bytes, count = 1) {
      const open = senders.get(sender);
      const isFull = () =>
        (open?.bytes.size ?? 0) + count > most || (open?.sum ?? 0) + bytes > mostBytes;
      if (isFull() && open !== undefined) await forgetClosed(open);
      if (!isFull()) return;
      throw new SallyportError("quota_exceeded", { what, most, mostBytes, hint });
    },
    opened(sender, id, bytes) {
      const open = senders.get(sender) ?? {
        bytes: new Map(),
        sum: 0,
        lookedAt: Number.NEGATIVE_INFINITY,
        left: { count: 0, sum: 0 },
      };
      senders.set(sender, open);
      forget(open, id);
      open.bytes.set(id, bytes);
      open.sum += bytes;
      openers.set(id, open);
    },
    closed(id) {
      const open = openers.get(id);
      if (open !== undefined) forget(open, id);
    },
    has: (sender, id) => senders.get(sender)?.bytes.has(id) === true,
  };
}

// The calls that wait, for the host's own callbacks.

/** The calls of this process that wait for people, for `onPending` and `onSettled`. */
export interface OpenCalls {
  /** Reports the call as pending, once, and watches it until it is settled. `look` reads what became of it. */
  opened(id: string, call: OpenCall, look: () => Promise<CallAnswer | undefined>): void;
  close(): void;
}

type Watching = Pick<GateContext, "timers" | "onCommit"> & {
  readonly [Name in "onPending" | "onSettled"]: GateOptions[Name] | undefined;
};

/** Commits of other processes may go unnoticed, so it polls as well. */
const LOOK_FOR_ANSWER_MS = 1_000;
/** Many commits in a row are one reason to look. */
const AFTER_COMMIT_MS = 20;

/** Keeps no process alive: a caller that waits for days must run for days. */
export function watchOpenCalls({ onPending, onSettled, timers, onCommit }: Watching): OpenCalls {
  const open = new Map<string, { call: OpenCall; look: () => Promise<CallAnswer | undefined> }>();
  let cancel: (() => void) | undefined;
  let forget: (() => void) | undefined;
  let isLooking = false;

  function lookIn(ms: number): void {
    cancel?.();
    cancel = timers.after(ms, () => void lookAtAll());
  }

  async function lookAtAll(): Promise<void> {
    if (isLooking) return lookIn(AFTER_COMMIT_MS);
    isLooking = true;
    for (const [id, { call, look }] of open) {
      // A store that cannot be read now is read again in a second.
      const answer = await look().catch(() => undefined);
      if (answer === undefined || !isSettled(answer) || !open.delete(id)) continue;
      tell(onSettled, { ...call, answer });
    }
    isLooking = false;
    if (open.size > 0) lookIn(LOOK_FOR_ANSWER_MS);
    else rest();
  }

  function rest(): void {
    cancel?.();
    forget?.();
    [cancel, forget] = [undefined, undefined];
  }

  return {
    opened(id, call, look) {
      if (open.has(id)) return;
      tell(onPending, call);
      if (onSettled === undefined) return;
      open.set(id, { call, look });
      forget ??= onCommit(() => lookIn(AFTER_COMMIT_MS));
      if (cancel === undefined) lookIn(LOOK_FOR_ANSWER_MS);
    },
    close() {
      open.clear();
      rest();
    },
  };
}

/** The call goes on whatever the host's own callback does; its error must not get lost either. */
function tell(listener: ((call: OpenCall) => void) | undefined, call: OpenCall): void {
  try {
    listener?.(call);
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : String(error));
  }
}
