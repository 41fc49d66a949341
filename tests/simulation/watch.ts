// Watches a run while it goes on: after every step it looks at what was added to the trail and to the ledger, and says what
// must not be. It knows the order of all events, which cannot be found out later; the table of `crashkit` judges the whole.

import type { LedgerEntry, Told } from "../../src/crashkit/evidence.ts";
import { type AuditEntry, emptyHead, entryHash, headAfter } from "../../src/model/audit-entry.ts";
import { isLegal } from "../../src/model/decision.ts";
import type { ContentProof } from "../../src/store/tenant-engine.ts";
import { JUMP_MS } from "../../src/store/turn.ts";
import { fromIso } from "../../src/util/clock.ts";
import type { Stamp } from "./sim-server.ts";

export interface WatchOptions {
  readonly tenant: string;
  readonly leaseMs: number;
  readonly taskLeaseMs: number;
  readonly approvalMs: number;
}

interface Call {
  status: "started" | "success" | "failed" | "unknown" | "rolled_back";
  fence: number;
  leaseUntil: number;
  readonly undoOf: string;
  /** What the trail proves of its input. */
  readonly input: unknown;
  /** Effects that arrived, and repeats that a person wanted. */
  taken: number;
  tries: number;
  repeats: number;
  isPlain: boolean;
  /** For each attempt when its lease was written last, by monotonic time. */
  readonly leases: Map<number, number>;
}

/** What arrived in production under an id, whatever became of its entries. */
type Arrived = Pick<Call, "taken" | "tries" | "isPlain">;

interface Asked {
  readonly hash: unknown;
  readonly deadline: number;
  isOpen: boolean;
}

interface Claim {
  fence: number;
  leaseUntil: number;
  isLive: boolean;
}

type Data = Readonly<Record<string, unknown>>;

export class Watch {
  readonly problems: string[] = [];
  readonly told: Told[] = [];
  readonly #options: WatchOptions;
  #calls = new Map<string, Call>();
  #decisions = new Map<string, { state: string; expiresAt: number }>();
  #questions = new Map<string, Asked>();
  /** The one call that each order became. */
  readonly #orders = new Map<string, string>();
  /** Under ids whose call may be lost. */
  readonly #arrived = new Map<string, Arrived>();
  #claims = new Map<string, Claim>();
  /** Hashes that people really said yes to, per question and person. */
  readonly #saidYes = new Set<string>();
  #head;
  #isStopped = false;
  /** All entries with their stamps, to begin again from when the last ones are lost. */
  #trail: { readonly entry: AuditEntry; readonly stamp: Stamp }[] = [];
  /** Ids with an entry that was lost: what the store says of them is not what happened. */
  readonly lost = new Set<string>();
  /** Attempts that began before the last loss: what was sent of them counts as sent before. */
  #begunBefore = new Set<string>();
  /** What was lost and not yet looked at by an operator. */
  #isLossOpen = false;
  /** The trail was once written by a clock that was ahead: entries cannot be held against deadlines any more. */
  isAhead = false;
  /** Up to when an operator has said that the trail is ahead of a right clock. */
  #acceptedTo = "";
  /** Decisions whose stored approval is currently forged. */
  readonly forged = new Set<string>();
  /** How the trail proves contents, from the first entry on. */
  contentProof: ContentProof | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#head = emptyHead(options.tenant);
  }

  get seq(): number {
    return this.#head.seq;
  }

  /** The last moment that the trail knows of. */
  get lastAt(): number {
    return fromIso(this.#head.at);
  }

  /** A person is about to say yes to this hash. */
  yes(id: string, by: string, hash: string): void {
    this.#saidYes.add(`${id}\n${by}\n${hash}`);
  }

  /** A caller has just received this. */
  tell(told: Told): void {
    this.told.push(told);
    const id = "operationId" in told ? told.operationId : told.decisionId;
    if (this.lost.has(id)) return;
    if (!("operationId" in told) || told.answer !== "done" || told.operationId === "") return;
    const status = this.#calls.get(told.operationId)?.status;
    this.#must(
      status === "success" || status === "rolled_back",
      `I6 ${told.operationId} was told as done while it was ${status}`,
    );
  }

  /** Whether a process holds a call: a pause longer than its lease is useful now. */
  get isBusy(): boolean {
    return [...this.#calls.values()].some(({ status }) => status === "started");
  }

  /** Decisions that are approved and not begun: a forgery is useful now. */
  get aboutToRun(): readonly string[] {
    const approved = [...this.#decisions].filter(([, { state }]) => state === "approved");
    return approved.map(([id]) => id).filter((id) => !this.#calls.has(`${id}.0`));
  }

  get isLossOpen(): boolean {
    return this.#isLossOpen;
  }

  /**
   * Everything behind this entry is gone, as if it had never been written; what reached production stays there. Where none of
   * it was acknowledged, no process can or need notice.
   */
  lose(seq: number, isAcknowledged: boolean): void {
    const kept = this.#trail.slice(0, seq);
    for (const { entry } of this.#trail.slice(seq)) this.lost.add(entry.subject);
    const arrived = new Map<string, Arrived>(this.#calls);
    const attempts = [...this.#calls].flatMap(([id, { leases }]) =>
      [...leases.keys()].map((fence) => `${id} ${fence}`),
    );
    this.#calls = new Map();
    this.#decisions = new Map();
    this.#questions = new Map();
    this.#claims = new Map();
    this.#isStopped = false;
    this.#acceptedTo = "";
    this.#head = emptyHead(this.#options.tenant);
    this.#trail = [];
    const { length } = this.problems;
    for (const { entry, stamp } of kept) this.entry(entry, stamp);
    // They were looked at when they were written.
    this.problems.length = length;
    for (const attempt of attempts) this.#begunBefore.add(attempt);
    this.contentProof = undefined;
    for (const [id, { taken, tries, isPlain }] of arrived) {
      this.#arrived.set(id, { taken, tries, isPlain });
      const call = this.#calls.get(id);
      if (call !== undefined) Object.assign(call, { taken, tries, isPlain });
    }
    this.#isLossOpen ||= isAcknowledged;
  }

  /** What arrived, as far as the store can know of it: a call that was lost and is there again counts once, if it was done. */
  withoutLost(ledger: readonly LedgerEntry[]): readonly LedgerEntry[] {
    const idOf = ({ key }: LedgerEntry) => key.slice(this.#options.tenant.length + 1);
    const kept = ledger.filter((effect) => !this.lost.has(idOf(effect)));
    const again = [...this.lost].flatMap((id) => {
      const call = this.#calls.get(id);
      const done = ledger.findLast((effect) => effect.applied && idOf(effect) === id);
      if (call === undefined || done === undefined) return [];
      // What is failed or unknown claims nothing about an effect from before the loss: the agent may have reused its key
      // with another input since.
      if (call.status !== "success" && call.status !== "rolled_back") return [];
      return [{ ...done, fence: call.fence, at: Number.MAX_SAFE_INTEGER }];
    });
    return [...kept, ...again];
  }

  /** A process is about to call its tool. */
  sent(key: string, fence: number, elapsed: number): void {
    const id = key.slice(this.#options.tenant.length + 1);
    const attempt = `${id} ${fence}`;
    if (this.#begunBefore.has(attempt)) return;
    this.#must(!this.#isLossOpen, `I7 ${attempt} was sent after a loss that nobody has looked at`);
    const leased = this.#calls.get(id)?.leases.get(fence);
    const heldMs = elapsed - (leased ?? Number.NEGATIVE_INFINITY);
    const isHeld = heldMs <= this.#options.leaseMs;
    this.#must(isHeld, `I13 ${attempt} was sent ${heldMs} ms after its lease was written`);
  }

  /** Something reached production; forward calls say as which order. */
  arrived(effect: LedgerEntry, order: string | undefined): void {
    const id = effect.key.slice(this.#options.tenant.length + 1);
    const call = this.#calls.get(id);
    if (this.#begunBefore.has(`${id} ${effect.fence}`)) {
      const seen = call ?? this.#arrived.get(id);
      if (seen !== undefined && effect.applied) seen.taken += 1;
      return;
    }
    if (call === undefined) {
      this.#say(`I5 ${effect.key} happened before its intent`);
      return;
    }
    this.#must(effect.fence <= call.fence, `I5 ${id} happened under a fence that is to come`);
    const sent = this.contentProof?.({ field: "input", subject: id }, effect.inputSha256);
    this.#must(sent !== undefined && sent === call.input, `I2 ${id} happened with other bytes`);
    call.tries += 1;
    if (effect.applied) call.taken += 1;
    const first = order === undefined ? undefined : this.#orders.get(order);
    this.#must(first === undefined || first === id, `I29 ${order} ran as ${first} and as ${id}`);
    if (order !== undefined && effect.applied) this.#orders.set(order, id);
    call.isPlain = effect.kind === "plain";
    if (call.isPlain) {
      this.#must(call.tries <= 1 + call.repeats, `I7 ${id} was tried ${call.tries} times`);
    } else this.#must(call.taken <= 1, `I7 ${id} took effect ${call.taken} times`);
  }

  entry(entry: AuditEntry, stamp: Stamp): void {
    const { seq, type, subject, at } = entry;
    const isNext = seq === this.#head.seq + 1 && entry.prev === this.#head.hash;
    this.#must(isNext && entryHash(entry) === entry.hash, `I17 the chain breaks at ${seq}`);
    this.#must(at >= this.#head.at, `I18 ${seq} is older than the one before`);
    const now = this.#timeOf(entry, stamp);
    this.#trail.push({ entry, stamp });
    this.#head = headAfter(entry);
    const data = JSON.parse(entry.data ?? "{}") as Data;
    const [noun, what = ""] = type.split(".");
    if (type === "store.clock_accepted") this.#acceptedTo = String(data["trailAt"]);
    if (type === "store.restored") this.#restored();
    if (noun === "switch") this.#isStopped = what === "stopped";
    if (noun === "decision") this.#decision(subject, what, data, now);
    if (noun === "interaction") this.#question(subject, what, data, entry.actor, now);
    if (noun === "operation") {
      this.#call(entry, what, data, now);
      const fence = Number(data["fence"]);
      if (LEASES.includes(what)) this.#calls.get(subject)?.leases.set(fence, stamp.elapsed);
      if (BEGINS.includes(what)) this.#begunBefore.delete(`${subject} ${fence}`);
    }
    if (noun === "task") this.#task(subject, what, data, now);
  }

  /** What leases and deadlines must go by: the clock, which stands still while it is a little behind the trail. */
  #timeOf({ seq, at, type }: AuditEntry, { clock }: Stamp): number {
    const trailAt = fromIso(this.#head.at);
    if (fromIso(at) - clock > JUMP_MS || trailAt - clock > JUMP_MS) this.isAhead = true;
    if (trailAt - clock <= JUMP_MS) return Math.max(clock, trailAt);
    const mayBe = this.#acceptedTo >= this.#head.at || isUrgentEntry(type);
    this.#must(mayBe, `I13 ${seq} ${type} was written while the clock was far behind the trail`);
    return clock;
  }

  /** An operator has looked: what was done in the lost part may be wanted once more. */
  #restored(): void {
    this.#isLossOpen = false;
    for (const [order, id] of this.#orders) if (this.lost.has(id)) this.#orders.delete(order);
  }

  #decision(id: string, what: string, data: Data, now: number): void {
    const known = this.#decisions.get(id);
    if (what === "staged") {
      this.#must(known === undefined, `I15 ${id} was staged twice`);
      this.#decisions.set(id, { state: String(data["to"]), expiresAt: 0 });
    } else if (known === undefined) {
      this.#say(`I18 ${id} was ${what} before it was staged`);
    } else if (what === "previewed") {
      known.expiresAt = fromIso(String(data["expires_at"]));
      const lastsMs = known.expiresAt - now;
      const isMeant = lastsMs <= this.#options.approvalMs + JUMP_MS;
      this.#must(isMeant, `I13 ${id} may be approved for ${lastsMs} ms`);
    } else {
      const to = String(data["to"]);
      const isMove = known.state === data["from"] && isLegal(known.state, to);
      this.#must(isMove, `I15 ${id} went from ${known.state} to ${to}`);
      known.state = to;
    }
  }

  #question(id: string, what: string, data: Data, by: string, now: number): void {
    const known = this.#questions.get(id);
    if (what === "opened") {
      this.#must(known === undefined, `I10 ${id} was asked twice`);
      // What was found out about a lost call counts however late it is.
      const hasCutOff = data["type"] !== "connection_lost";
      const deadline = hasCutOff ? Number(data["deadline"]) : Number.POSITIVE_INFINITY;
      this.#questions.set(id, { hash: data["hash"], deadline, isOpen: true });
      return;
    }
    if (known === undefined) {
      this.#say(`I18 ${id} was ${what} before it was asked`);
      return;
    }
    this.#must(known.isOpen, `I10 ${id} was ${what} after it had been closed`);
    if (what === "answered" || what === "voted" || what === "superseded") {
      this.#must(now <= known.deadline, `I13 ${id} was ${what} after its deadline`);
    }
    if (what === "expired") this.#must(now > known.deadline, `I10 ${id} expired too early`);
    if (what === "voted" || data["outcome"] === "approved") {
      const isMeant = this.#saidYes.has(`${id}\n${by}\n${String(known.hash)}`);
      this.#must(isMeant, `I1 ${id} counts a yes of ${by} that was not said to what was shown`);
    }
    known.isOpen = !CLOSES.includes(what);
  }

  #call({ subject: id, session, actor }: AuditEntry, what: string, data: Data, now: number): void {
    const known = this.#calls.get(id);
    const { leaseMs } = this.#options;
    const fence = Number(data["fence"]);
    if (what === "started") {
      this.#must(known === undefined, `I7 ${id} was started twice`);
      this.#mayStart(id, data, session, now);
      const undoOf = String(data["undo_of"] ?? "");
      this.#calls.set(id, {
        status: "started",
        fence,
        leaseUntil: now + leaseMs,
        undoOf,
        input: data["input_hmac"],
        taken: 0,
        tries: 0,
        repeats: 0,
        isPlain: false,
        leases: new Map(),
      });
      return;
    }
    if (known === undefined) {
      this.#say(`I18 ${id} was ${what} before it was started`);
      return;
    }
    if (BEGINS_AGAIN.includes(what)) {
      this.#must(!this.#isStopped, `I30 ${id} was ${what} while everything was stopped`);
      this.#must(fence === known.fence + 1, `I12 ${id} was ${what} under fence ${fence}`);
      const from = what === "reopened" ? "unknown" : "started";
      this.#must(known.status === from, `I15 ${id} was ${what} while ${known.status}`);
      if (what === "reopened") known.repeats += 1;
      if (what === "taken_over") {
        this.#must(now >= known.leaseUntil, `I13 ${id} was taken from a live lease`);
      }
      Object.assign(known, { status: "started", fence, leaseUntil: now + leaseMs });
    } else if (what === "renewed") {
      const isHeld = fence === known.fence && known.status === "started";
      this.#must(isHeld && now <= known.leaseUntil, `I13 ${id} was renewed without a lease`);
      known.leaseUntil = now + leaseMs;
    } else if (what === "brought_back") {
      this.#must(known.status === "success", `I28 ${id} was brought back while ${known.status}`);
    } else if (what === "undone") {
      this.#must(known.status === "success", `I28 ${id} was undone while ${known.status}`);
      known.status = "rolled_back";
    } else {
      this.#must(fence === known.fence, `I12 ${id} ${what} under fence ${fence}`);
      const isOpen = known.status === "started" || known.status === "unknown";
      this.#must(isOpen, `I15 ${id} ${what} while ${known.status}`);
      known.status = OUTCOMES[what] ?? known.status;
      // A keyed target that did it before the loss, and a probe, say so.
      const happened = known.taken > 0 || (this.#arrived.get(id)?.taken ?? 0) > 0;
      const isTrue = what !== "succeeded" || happened;
      this.#must(isTrue, `I6 ${id} succeeded, but production knows nothing of it`);
      // Whether a plain one happened is never certain, and a person may have looked before a paused process's call arrived.
      const isSaid = actor.startsWith("person:");
      const isFalse = what === "failed" && known.taken > 0 && !known.isPlain && !isSaid;
      this.#must(!isFalse, `I6 ${id} failed, but it happened`);
    }
  }

  #mayStart(id: string, data: Data, session: string, now: number): void {
    this.#must(!this.#isStopped, `I30 ${id} was started while everything was stopped`);
    const decision = String(data["decision"] ?? "");
    if (decision !== "") {
      const { state, expiresAt } = this.#decisions.get(decision) ?? { state: "none", expiresAt: 0 };
      this.#must(state === "approved", `I1 ${id} was started while ${decision} was ${state}`);
      this.#must(!this.forged.has(decision), `I1 ${id} was started on a forged approval`);
      this.#must(now <= expiresAt, `I4 ${id} was started after ${decision} had expired`);
    }
    const undoOf = String(data["undo_of"] ?? "");
    if (undoOf !== "") {
      const status = this.#calls.get(undoOf)?.status;
      this.#must(status === "success", `I28 ${id} undoes ${undoOf}, which is ${status}`);
      const others = [...this.#calls.values()].filter((other) => other.undoOf === undoOf);
      const isAlone = others.every((other) => other.status === "failed");
      this.#must(isAlone, `I28 ${id} undoes ${undoOf}, which another does`);
    }
    const [, task, fence] = /^claim:(.+):(\d+)$/.exec(session) ?? [];
    if (task === undefined || undoOf !== "") return;
    const claim = this.#claims.get(task);
    const isHeld = claim?.isLive === true && claim.fence === Number(fence);
    const isLive = isHeld && now < claim.leaseUntil;
    this.#must(isLive, `I12 ${id} was started under a claim of ${task} that is over`);
  }

  #task(id: string, what: string, data: Data, now: number): void {
    const fence = Number(data["fence"] ?? 0);
    const known = this.#claims.get(id) ?? { fence: 0, leaseUntil: 0, isLive: false };
    this.#claims.set(id, known);
    if (what === "claimed") {
      const isFree = !known.isLive || now >= known.leaseUntil;
      this.#must(isFree, `I11 ${id} was claimed while somebody held it`);
      this.#must(fence > known.fence, `I12 ${id} was claimed under fence ${fence}`);
      Object.assign(known, { fence, leaseUntil: now + this.#options.taskLeaseMs, isLive: true });
    } else if (what === "renewed" || what === "completed") {
      const isHeld = known.isLive && fence === known.fence && now < known.leaseUntil;
      this.#must(isHeld, `I12 ${id} was ${what} by somebody who does not hold it`);
      // A renewal never shortens what was promised, also not by a clock that is wrong once.
      const renewed = Math.max(known.leaseUntil, now + this.#options.taskLeaseMs);
      if (what === "renewed") known.leaseUntil = renewed;
      else known.isLive = false;
    } else if (what === "expired" || what === "released") {
      const isOver = what === "released" || now >= known.leaseUntil;
      this.#must(isOver, `I11 ${id} was taken from somebody who holds it`);
      known.isLive = false;
    }
  }

  #must(holds: boolean, problem: string): void {
    if (!holds) this.#say(problem);
  }

  #say(problem: string): void {
    this.problems.push(problem);
  }
}

/** By another process, by a person's answer, and by the holder itself when it probes or calls the tool again. */
const BEGINS_AGAIN: readonly string[] = ["taken_over", "reopened", "attempted"];
const BEGINS = ["started", ...BEGINS_AGAIN];
const LEASES = [...BEGINS, "renewed"];
const CLOSES = ["answered", "superseded", "expired", "canceled"];
const OUTCOMES: Readonly<Record<string, Call["status"]>> = {
  succeeded: "success",
  failed: "failed",
  lost: "unknown",
};

/** What may be written by any clock: see `isUrgent`. What is written along with it counts as part of it. */
function isUrgentEntry(type: string): boolean {
  const [noun, what = ""] = type.split(".");
  if (noun === "operation") return !LEASES.includes(what);
  return noun === "switch" || noun === "store" || ALONG.includes(type);
}
const ALONG = [
  "decision.executed",
  "decision.failed",
  "interaction.opened",
  "interaction.answered",
];
