import type { DecisionId } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { foldName } from "../model/names.ts";
import type { Reviewer } from "../model/reviewer.ts";
import type { Verdict } from "../model/verdict.ts";
import type { ReviewerStore } from "../store/reviewers.ts";
import { definitionHash } from "../tools/definition-hash.ts";
import { fromIso } from "../util/clock.ts";
import type { JsonValue } from "../util/json.ts";
import type { Random } from "../util/random.ts";
import { encodeAction } from "./action.ts";
import { looksAt } from "./preview.ts";
import { reviewOf, showingOf } from "./propose.ts";
import type { Rooms } from "./rooms.ts";

/** Keeps an eye on those who say yes: known-bad calls among the real ones, and no more yeses than somebody can read. */
export interface AttentionOptions {
  /** Calls that nobody who looks would allow, as an agent would ask for them. They are shown and never executed. */
  readonly decoys?: readonly Decoy[];
  /** Which part of the real questions is followed by a decoy: 0.02 for one in fifty. */
  readonly rate?: number;
  /** With so many decoys let through, somebody's yes does not count until an operator restores it; 3 unless told, at most 3. */
  readonly misses?: number;
  /** How many yeses of one person count within an hour; no limit when left out. */
  readonly yesesPerHour?: number;
  /** A decoy could not be planted. Shape: push; the real question is asked all the same. */
  readonly onProblem: (error: unknown) => void;
}

export interface Decoy {
  readonly agent: string;
  readonly tool: string;
  readonly input: JsonValue;
}

/** Who decides how, and the way back for those who did not look. */
export interface Reviewers {
  list(): Promise<readonly Reviewer[]>;
  /** Throws not_found, not_allowed for the one it is about. */
  restore(id: string, by: { readonly by: string; readonly reason: string }): Promise<Reviewer>;
}

/** What the inbox asks about a person, and tells about what they decided. */
export interface Attention {
  /** A real question was asked. */
  asked(): Promise<void>;
  /** Throws not_allowed for somebody whose yes does not count at the moment. */
  checkYes(by: string): Promise<void>;
  /** True when it was a decoy: then nothing may be carried out. */
  decided(id: DecisionId, by: string, what: "approved" | "rejected"): Promise<boolean>;
}

export const DECOY_TEXT =
  "Nothing was executed: this was a known-bad call, shown to see whether anybody looks.";

const MOST_MISSES = 3;
const HOUR_MS = 3_600_000;

/** Throws invalid_input for numbers that make no sense. */
export function attentionOf(
  { decoys = [], rate = 0, misses = MOST_MISSES, yesesPerHour, onProblem }: AttentionOptions,
  rooms: Rooms,
  random: Random,
): Attention {
  const { reviewers } = rooms.store;
  check(rate >= 0 && rate <= 1, "Give a rate from 0 to 1.");
  check(Number.isInteger(misses) && misses >= 1 && misses <= MOST_MISSES, "Forgive 1 to 3 misses.");
  check(yesesPerHour === undefined || yesesPerHour >= 1, "Allow at least one yes per hour.");
  const below = (limit: number) => Buffer.from(random.bytes(4)).readUInt32BE() % limit;

  return {
    async asked() {
      const decoy = decoys[below(Math.max(1, decoys.length))];
      if (decoy === undefined || below(1_000_000) >= rate * 1_000_000) return;
      try {
        await plant(decoy, rooms);
      } catch (error) {
        onProblem(error);
      }
    },
    async checkYes(by) {
      const known = await reviewers.get(by);
      if (known === undefined) return;
      if (known.status === "suspended") {
        const hint = `${by} let ${known.missed} known-bad calls through. An operator has to restore the right to approve.`;
        throw new SallyportError("not_allowed", { by, hint });
      }
      const isThisHour = rooms.judging.now() < fromIso(known.hourAt) + HOUR_MS;
      if (yesesPerHour === undefined || !isThisHour || known.hourCount < yesesPerHour) return;
      const hint = `${by} has said yes ${known.hourCount} times within the hour, which is as much as counts. Hand it over, or come back later.`;
      throw new SallyportError("not_allowed", { by, hint });
    },
    async decided(id, by, what) {
      const isDecoy = await reviewers.isDecoy(id);
      if (isDecoy) await reviewers.met(by, what === "approved" ? "missed" : "caught", misses);
      else await reviewers[what](by);
      return isDecoy;
    },
  };
}

export function reviewersOf(store: ReviewerStore): Reviewers {
  return {
    list: () => store.list(),
    async restore(id, { by, reason }) {
      if (foldName(by) === foldName(id)) {
        const hint = "Somebody else has to restore it: nobody gives themselves a right back.";
        throw new SallyportError("not_allowed", { by, hint });
      }
      return store.restore(id, reason, { actor: by });
    },
  };
}

/**
 * A decision like any other, up to the question. It belongs to a life of the store that never was, so no path executes it;
 * and it has no facts, so that a recovery does not take what was cut off here for a real proposal.
 */
async function plant({ agent, tool: name, input }: Decoy, rooms: Rooms): Promise<void> {
  const { store, staging, deciding } = rooms;
  const tool = deciding.registry.get(name);
  if (tool === undefined) throw new SallyportError("not_found", { id: name });
  const callId = rooms.newId();
  const planned = {
    tool: tool.name,
    definition: definitionHash(tool),
    input,
    workingDirectory: "",
    callId,
    turn: 0,
  };
  const metadata = { requester: agent, chain: [agent], owner: "", messageId: callId, keys: [] };
  const diff = { sourceTool: tool.name, raw: encodeAction([planned]), metadata };
  const { id } = await staging.stage(rooms.newId(), diff, { actor: agent });
  const decision = await store.decisions.updateTechVerdict(id, PASSED);
  const looks = await looksAt(decision, deciding);
  const review = reviewOf(decision, rooms, looks.dryRun);
  if (!review.possible) throw new SallyportError("invalid_input", { hint: review.problem });
  const showing = await showingOf(decision, review.review, PASSED, rooms, {
    looks,
    epoch: rooms.newId(),
  });
  await store.approvals.show({ ...showing, along: [store.reviewers.plant(id)] }, { actor: agent });
}

const PASSED: Verdict = {
  approved: true,
  score: 1,
  severity: "",
  reason: "",
  validator: "review",
  policyVersion: "",
};

function check(holds: boolean, hint: string): void {
  if (!holds) throw new SallyportError("invalid_input", { what: "attention", hint });
}
