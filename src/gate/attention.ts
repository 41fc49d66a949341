// Checks on reviewers, if the options ask for them: decoys among the real confirmations, and a limit of approvals per hour.

import type { DecisionId, Verdict } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import type { Reviewer } from "../model/identity.ts";
import { foldName } from "../model/names.ts";
import type { ReviewerStore } from "../store/reviewers.ts";
import { definitionHash } from "../tools/registry.ts";
import { capabilityOf } from "../tools/tool.ts";
import { fromIso, toIso } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import type { JsonValue } from "../util/json.ts";
import type { GateContext } from "./context.ts";
import { agentOf, draftOf, looksAt, reviewOf, showingOf, withProposal } from "./show.ts";

/** Checks on reviewers: known-bad calls (decoys) among the real ones, and a limit of approvals per hour. */
export interface AttentionOptions {
  /** Calls that no attentive reviewer would allow, as an agent would ask for them. They are shown and never executed. */
  readonly decoys?: readonly Decoy[];
  /** Which part of the real questions is followed by a decoy: 0.02 for one in fifty. */
  readonly rate?: number;
  /** After so many approved decoys a person's yes does not count until an operator restores it; default and maximum 3. */
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

/** How people decide, and how an operator restores a person who approved decoys. */
export interface Reviewers {
  list(): Promise<readonly Reviewer[]>;
  /** Throws not_found, not_allowed for the one it is about. */
  restore(id: string, by: { readonly by: string; readonly reason: string }): Promise<Reviewer>;
}

export const DECOY_TEXT =
  "Nothing was executed: this was a known-bad call, shown to see whether anybody looks.";

const MOST_MISSES = 3;
const HOUR_MS = 3_600_000;

/** Throws invalid_input for numbers that make no sense. */
export function checkAttention(options: AttentionOptions | undefined): void {
  const { rate = 0, misses = MOST_MISSES, yesesPerHour } = options ?? {};
  check(rate >= 0 && rate <= 1, "Give a rate from 0 to 1.");
  check(Number.isInteger(misses) && misses >= 1 && misses <= MOST_MISSES, "Forgive 1 to 3 misses.");
  check(yesesPerHour === undefined || yesesPerHour >= 1, "Allow at least one yes per hour.");
}

/** A real confirmation was opened for this decision: a decoy may follow it. */
export async function mayPlantDecoy(
  context: GateContext,
  { decoys = [], rate = 0, onProblem }: AttentionOptions,
  id: DecisionId,
): Promise<void> {
  const below = (limit: number) => Buffer.from(context.random.bytes(4)).readUInt32BE() % limit;
  const decoy = decoys[below(Math.max(1, decoys.length))];
  if (decoy === undefined || below(1_000_000) >= rate * 1_000_000) return;
  try {
    await plant(context, decoy, id);
  } catch (error) {
    onProblem(error);
  }
}

/** Throws not_allowed for a person whose yes does not count at the moment. */
export async function checkYes(
  { store, clock }: GateContext,
  { yesesPerHour }: AttentionOptions,
  by: string,
): Promise<void> {
  // Another spelling of a name does not get around what was counted under the first one.
  const known = (await store.reviewers.list()).filter(({ id }) => foldName(id) === foldName(by));
  const suspended = known.find(({ status }) => status === "suspended");
  if (suspended !== undefined) {
    const hint = `${by} let ${suspended.missed} known-bad calls through. An operator has to restore the right to approve.`;
    throw new SallyportError("not_allowed", { by, hint });
  }
  const now = clock.now();
  const recent = known.filter(({ hourAt }) => now < fromIso(hourAt) + HOUR_MS);
  const count = recent.reduce((sum, { hourCount }) => sum + hourCount, 0);
  if (yesesPerHour === undefined || count < yesesPerHour) return;
  const hint = `${by} has said yes ${count} times within the hour, which is as much as counts. Hand it over, or come back later.`;
  throw new SallyportError("not_allowed", { by, hint });
}

/** Counts what a person decided. True when it was a decoy: then nothing may be executed. */
export async function countDecided(
  { store: { reviewers } }: GateContext,
  { misses = MOST_MISSES }: AttentionOptions,
  decided: { readonly id: DecisionId; readonly by: string; readonly what: "approved" | "rejected" },
): Promise<boolean> {
  const { id, by, what } = decided;
  const isDecoy = await reviewers.isDecoy(id);
  if (isDecoy) await reviewers.met(by, what === "approved" ? "missed" : "caught", misses);
  else await reviewers[what](by);
  return isDecoy;
}

export function reviewersOf(store: ReviewerStore): Reviewers {
  return {
    list: () => store.list(),
    async restore(id, { by, reason }) {
      if (foldName(by) === foldName(id)) {
        const hint =
          "Another person has to restore it: a right cannot be restored by the person who lost it.";
        throw new SallyportError("not_allowed", { by, hint });
      }
      return store.restore(id, reason, { actor: by });
    },
  };
}

/**
 * A decision like any other, up to its confirmation. Everything that a reviewer can read has the shape of the real one that
 * was opened last: the same fields, ids of the same form, the same machine verdicts. That it is a decoy is recorded in a table
 * of its own, which the transaction that begins an effect checks. Its session is marked when it is staged: a recovery cancels
 * a decoy that was cut off before its confirmation and never takes it for a real proposal.
 */
async function plant(context: GateContext, decoy: Decoy, real: DecisionId): Promise<void> {
  const { store } = context;
  const tool = context.registry.get(decoy.tool);
  if (tool === undefined) throw new SallyportError("not_found", { id: decoy.tool });
  if (capabilityOf(tool).reverseThinking) {
    const hint = `"${decoy.tool}" wants a counter-check, and a decoy without one would be recognised.`;
    throw new SallyportError("invalid_input", { what: "decoys", hint });
  }
  const model = withProposal(await store.decisions.get(real));
  const question = await store.interactions.get(real);
  const { machine } = (await store.interactions.shown(real))?.preview ?? {};
  const { calls: realCalls, chain, owner, messageId, keys, claim, metadata } = model.proposal;
  const [first] = realCalls;
  const alike = (text: string) => sameForm(context, text);
  const calls = [
    {
      tool: tool.name,
      definition: definitionHash(tool),
      input: decoy.input,
      workingDirectory: first?.workingDirectory ?? "",
      callId: alike(first?.callId ?? ""),
      turn: first?.turn ?? 0,
    },
  ];
  const [key] = keys;
  const proposal = {
    calls,
    chain: [decoy.agent, ...chain.slice(1)],
    owner,
    messageId: alike(messageId),
    keys: key === undefined ? [] : [{ key: alike(key.key), step: 0 }],
    facts: {},
    editors: [],
    ...definedFields({ claim, metadata }),
  };
  // Sessions that an agent named over HTTP begin with its name.
  const named = `${agentOf(model.proposal)}:`;
  const isNamed = model.sessionId.startsWith(named);
  const like = isNamed ? `${decoy.agent}:${model.sessionId.slice(named.length)}` : model.sessionId;
  const sessionId = await freshSession(context, model.sessionId, () => alike(like));
  const draft = draftOf(sessionId, proposal, toIso(context.clock.now()));
  const marked = [store.reviewers.plant(sessionId).step];
  const { id } = await store.decisions.stage(draft, { actor: decoy.agent }, marked);
  const decision = withProposal(await store.decisions.updateTechVerdict(id, model.techVerdict));
  const looks = await looksAt(context, sessionId, decision.proposal.calls);
  const review = reviewOf(context, decision.proposal.calls, looks.dryRun);
  if (!review.possible) throw new SallyportError("invalid_input", { hint: review.problem });
  const epoch = await store.epoch.current();
  const showing = showingOf(context, decision, review.review, PASSED, looks, epoch);
  // With the machine verdict of the real one.
  const asked = { ...showing.question, metadata: { ...question.metadata } };
  const by = { actor: decoy.agent };
  const preview = { ...showing.preview, ...definedFields({ machine }) };
  await store.interactions.show(
    { ...showing, preview, question: asked, along: [store.reviewers.plant(id)] },
    by,
  );
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/;
const SETS = ["0123456789", "abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ"];

/** Another text of the same form: digits for digits, letters for letters, a fresh id for an id. */
function sameForm(context: GateContext, text: string): string {
  const { random } = context;
  const prefix = text.search(/[0-9a-f]{8}-/);
  if (prefix >= 0 && UUID.test(text.slice(prefix))) {
    return text.slice(0, prefix) + context.newId() + text.slice(prefix + 36);
  }
  // Words stay as they are: only what differs from call to call is replaced.
  return text.replace(/[0-9]+|(?<=[-_:.])[A-Za-z0-9]{6,}/g, (part) =>
    Array.from(part, (sign) => {
      const set = SETS.find((one) => one.includes(sign)) ?? sign;
      return set.charAt((random.bytes(1)[0] ?? 0) % set.length);
    }).join(""),
  );
}

/** A session that no agent has: an agent must not find the decoy in its own. */
async function freshSession(
  { store, newId }: GateContext,
  real: string,
  next: () => string,
): Promise<string> {
  for (let tries = 0; tries < 20; tries += 1) {
    const id = next();
    const isKnown = (await store.sessions.peek(id)) !== undefined;
    const [decision] = isKnown ? [] : await store.decisions.list({ sessionId: id, limit: 1 });
    const { operations } = await store.operations.listNewest(id, { limit: 1 });
    if (!isKnown && id !== real && decision === undefined && operations.length === 0) return id;
  }
  return newId();
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
