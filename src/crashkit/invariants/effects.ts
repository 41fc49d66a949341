import type { Decision } from "../../model/decision.ts";
import { missingFactors, previewHash } from "../../model/interaction.ts";
import { foldName } from "../../model/names.ts";
import type { Operation } from "../../model/operation.ts";
import { canonicalJson } from "../../util/canonical-json.ts";
import { fromIso } from "../../util/clock.ts";
import { sha256Hex } from "../../util/hash.ts";
import {
  closingsOf,
  decisionMoves,
  type EvidenceIndex,
  type Invariant,
  isStopped,
  type LedgerEntry,
  lookAt,
  type RunEvidence,
  stateBefore,
  type Told,
  type TrailLine,
  tellsOf,
} from "../evidence.ts";

// What reached production, against what was allowed and written down before it.

export const I1: Invariant = {
  id: "I1",
  text: "No effect without a stored decision, rule or policy that allowed it, over the bytes that were sent.",
  check(evidence, look = lookAt(evidence)) {
    return evidence.ledger.flatMap((effect) => {
      const operation = look.behind(effect);
      if (operation === undefined) return [`${effect.key} happened, and nothing allowed it`];
      return whyNotAllowed(operation, effect, evidence, look).map(
        (why) => `${operation.id} happened, but ${why}`,
      );
    });
  },
};

function whyNotAllowed(
  operation: Operation,
  effect: LedgerEntry,
  evidence: RunEvidence,
  look: EvidenceIndex,
): readonly string[] {
  const { decisionId, undoOf, tool } = operation;
  if (decisionId !== "") {
    const decision = look.decision(decisionId);
    if (decision === undefined) return [`there is no decision ${decisionId}`];
    return whyNotApproved(operation, effect, decision, look);
  }
  const [started] = look.begins(operation.id);
  if (started === undefined) return ["the audit log has no start"];
  if (undoOf !== "") {
    const done = look.linesOf(undoOf).find(({ type }) => type === "operation.succeeded");
    const isDone = done !== undefined && done.seq < started.seq;
    return isDone ? [] : [`it undoes ${undoOf}, which had not succeeded`];
  }
  const rule = String(started.data["allowed_by"] ?? "");
  if (rule !== "") return whyNotRuled(rule, started, look);
  const mayRun = evidence.mayRunAlone?.(tool) ?? true;
  return mayRun ? [] : [`no person was asked about ${tool}`];
}

function whyNotApproved(
  { step, tool, definitionHash }: Operation,
  { inputSha256 }: LedgerEntry,
  decision: Decision,
  look: EvidenceIndex,
): readonly string[] {
  const { id, diff } = decision;
  const call = look.calls(decision)?.[step];
  const preview = look.preview(id);
  const question = look.interaction(id);
  const facts: readonly (readonly [boolean, string])[] = [
    [call?.tool === tool, `${id} names another tool for step ${step}`],
    [call?.definition === definitionHash, `${id} was about another definition of ${tool}`],
    [
      call !== undefined && sha256Hex(canonicalJson(call.input)) === inputSha256,
      `${id} was approved with other bytes than were sent`,
    ],
    [preview?.actionHash === sha256Hex(diff.raw), `what is stored of ${id} is not what was shown`],
    [
      preview !== undefined && question?.hash === previewHash(preview),
      `the hash that was approved is not that of what was shown of ${id}`,
    ],
    [question?.outcome === "approved", `the question about ${id} is ${question?.outcome}`],
  ];
  return facts.filter(([holds]) => !holds).map(([, why]) => why);
}

function whyNotRuled(rule: string, started: TrailLine, look: EvidenceIndex): readonly string[] {
  const before = look.linesOf(rule.replace(/^rule:/, "")).filter(({ seq }) => seq < started.seq);
  const made = before.find(({ type }) => type === "standing_rule.made");
  if (made === undefined) return [`there was no ${rule}`];
  const { for_ms: forMs } = made.data;
  const endsAt = fromIso(made.at) + (typeof forMs === "number" ? forMs : 0);
  if (!made.isErased && fromIso(started.at) > endsAt) return [`${rule} had expired`];
  const isRevoked = before.some(({ type }) => type === "standing_rule.revoked");
  return isRevoked ? [`${rule} had been revoked`] : [];
}

export const I2: Invariant = {
  id: "I2",
  text: "The bytes that were hashed, those that were shown and those that were sent are the same.",
  check(evidence, look = lookAt(evidence)) {
    const sent = evidence.ledger.flatMap((effect) => {
      const operation = look.behind(effect);
      if (operation === undefined) return [];
      const [started] = look.begins(operation.id);
      const problems: string[] = [];
      if (sha256Hex(operation.input) !== effect.inputSha256) {
        problems.push(`${operation.id} was sent with other bytes than are stored`);
      }
      if (tellsOf(started, "input", effect.inputSha256, evidence) === false) {
        problems.push(`${operation.id} was sent with other bytes than the audit log says`);
      }
      return problems;
    });
    const staged = evidence.decisions.flatMap(({ id, diff }) => {
      const lines = look.linesOf(id);
      const told = lines.find(({ type }) => type === "decision.staged");
      const shown = lines.find(({ type }) => type === "decision.previewed")?.data["hash"];
      const asked = lines.find(({ type }) => type === "interaction.opened")?.data["hash"];
      const problems: string[] = [];
      if (tellsOf(told, "raw", sha256Hex(diff.raw), evidence) === false) {
        problems.push(`${id} is stored with other bytes than were staged`);
      }
      if (shown !== undefined && asked !== undefined && shown !== asked) {
        problems.push(`${id} was asked about with another hash than was shown`);
      }
      return problems;
    });
    return [...sent, ...staged];
  },
};

export const I4: Invariant = {
  id: "I4",
  text: "Nothing is started after a denial, an expiry or the kill switch.",
  check(evidence, look = lookAt(evidence)) {
    const stopped = evidence.ledger.flatMap((effect) => {
      const id = look.behind(effect)?.id ?? "";
      const begin = look.begins(id).find(({ data }) => data["fence"] === effect.fence);
      if (begin === undefined || !isStopped(begin.seq, look)) return [];
      return [`${id} happened, though everything was stopped when it was started`];
    });
    const closed = evidence.operations.flatMap(({ id, decisionId }) => {
      const [started] = look.begins(id);
      if (started === undefined || decisionId === "") return [];
      const state = stateBefore(decisionId, started.seq, look);
      const preview = look.preview(decisionId);
      const problems: string[] = [];
      if (state !== "approved") problems.push(`${id} was started while ${decisionId} was ${state}`);
      if (preview !== undefined && started.at > preview.expiresAt) {
        problems.push(`${id} was started after ${decisionId} had expired`);
      }
      return problems;
    });
    return [...stopped, ...closed];
  },
};

export const I5: Invariant = {
  id: "I5",
  text: "Every effect has an intent that was stored before it.",
  check(evidence, look = lookAt(evidence)) {
    const { clockSkewMs = 0 } = evidence;
    return evidence.ledger.flatMap((effect) => {
      const operation = look.behind(effect);
      if (operation === undefined) return [`${effect.key} happened without an intent`];
      const intent = look.begins(operation.id).find(({ data }) => data["fence"] === effect.fence);
      if (intent === undefined) {
        return [`${operation.id} happened under fence ${effect.fence}, which was never issued`];
      }
      const isLate = fromIso(intent.at) > effect.at + clockSkewMs;
      return isLate ? [`${operation.id} happened before its intent was stored`] : [];
    });
  },
};

export const I7: Invariant = {
  id: "I7",
  text: "A decision is used once; each step takes effect once, or, without a key or probe, is tried once unless a person repeats it.",
  check(evidence, look = lookAt(evidence)) {
    const effects = evidence.operations.flatMap(({ id }) => {
      const all = look.effectsOf(id);
      const taken = all.filter(({ applied }) => applied).length;
      const plain = all.filter(({ kind }) => kind === "plain").length;
      const asked = look.begins(id).filter(({ type }) => type === "operation.reopened").length;
      const problems: string[] = [];
      if (plain === 0 && taken > 1) problems.push(`${id} took effect ${taken} times`);
      if (plain > 1 + asked) {
        problems.push(`${id} was tried ${plain} times, and a person wanted ${asked} repeats`);
      }
      return problems;
    });
    const forward = evidence.operations.filter(
      ({ decisionId, undoOf }) => decisionId !== "" && undoOf === "",
    );
    const uses = Map.groupBy(forward, ({ decisionId, step }) => `step ${step} of ${decisionId}`);
    const used = [...uses].flatMap(([what, all]) =>
      all.length > 1 ? [`${what} was used by ${all.map(({ id }) => id).join(" and ")}`] : [],
    );
    return [...effects, ...used];
  },
};

// Questions to people and their answers.

export const I3: Invariant = {
  id: "I3",
  text: "A call is approved by people alone, not by its requesters, and each person counts once.",
  check({ interactions }) {
    const approved = interactions.filter(
      ({ type, outcome }) => type === "confirm" && outcome === "approved",
    );
    return approved.flatMap(({ id, chain, votes, requires }) => {
      const askers = chain.map(foldName);
      const people = votes.map(({ by }) => foldName(by));
      const problems: string[] = [];
      const own = votes.find(({ by }) => askers.includes(foldName(by)));
      if (own !== undefined) problems.push(`${id} was approved by ${own.by}, who asked for it`);
      const agent = people.find((by) => by.startsWith("agent:"));
      if (agent !== undefined) problems.push(`${id} was approved by ${agent}`);
      if (new Set(people).size < people.length) problems.push(`${id} counts one person twice`);
      if (missingFactors(requires, votes).length > 0) {
        problems.push(`${id} was approved with too few votes`);
      }
      return problems;
    });
  },
};

export const I10: Invariant = {
  id: "I10",
  text: "A question is answered once, and no answer means no.",
  check(evidence, look = lookAt(evidence)) {
    return evidence.interactions.flatMap(({ id, status, outcome, decisionId }) => {
      const closings = closingsOf(id, look);
      const problems: string[] = [];
      if (closings.length > 1) problems.push(`${id} was closed ${closings.length} times`);
      if (status === "open" && closings.length > 0) problems.push(`${id} is open again`);
      const state = decisionId === "" ? undefined : look.decision(decisionId)?.state;
      if ((outcome === "expired" || outcome === "canceled") && state !== undefined) {
        if (state !== "rejected_ml") problems.push(`${id} is ${outcome}, but it is ${state}`);
      }
      return problems;
    });
  },
};

/**
 * An expired lease or approval stays expired, whatever clocks do. A `connection_lost` question has no cut-off: the finding
 * counts however late it is.
 */
export const I13: Invariant = {
  id: "I13",
  text: "An expired lease or approval never becomes valid again.",
  check(evidence, look = lookAt(evidence)) {
    const withCutOff = evidence.interactions.filter(({ type }) => type !== "connection_lost");
    const late = withCutOff.flatMap(({ id, deadline }) =>
      closingsOf(id, look)
        .filter(
          ({ type, at }) => type === "interaction.answered" && fromIso(at) > fromIso(deadline),
        )
        .map(({ at }) => `${id} was answered at ${at}, after ${deadline}`),
    );
    const revived = evidence.operations.flatMap(({ id }) => {
      let newest = 0;
      return look.linesOf(id).flatMap(({ type, data, seq }) => {
        const { fence } = data;
        if (typeof fence !== "number" || type === "operation.undone") return [];
        if (fence < newest) {
          return [`${id} was written under fence ${fence} at ${seq}, which was over`];
        }
        newest = fence;
        return [];
      });
    });
    return [...late, ...revived];
  },
};

// What callers requested and received, and what is stored of it.

export const I6: Invariant = {
  id: "I6",
  text: "No success is reported or stored without an effect in production, or reported without a stored outcome.",
  check(evidence, look = lookAt(evidence)) {
    const told = evidence.told.flatMap((one) => {
      if (!("operationId" in one) || one.answer !== "done") return [];
      const types = look.linesOf(one.operationId).map(({ type }) => type);
      if (types.includes("operation.succeeded")) return [];
      return [`${one.operationId} was reported as done without a stored outcome`];
    });
    const stored = evidence.operations.flatMap(({ id, status, effect }) => {
      if (effect === "read" || (status !== "success" && status !== "rolled_back")) return [];
      const happened = look.effectsOf(id).some(({ applied }) => applied);
      return happened ? [] : [`${id} is ${status}, but production has no effect of it`];
    });
    return [...told, ...stored];
  },
};

export const I9: Invariant = {
  id: "I9",
  text: "Everything that was acknowledged is still stored.",
  check(evidence, look = lookAt(evidence)) {
    return evidence.told.flatMap((told) => whyLost(told, look));
  },
};

function whyLost(told: Told, look: EvidenceIndex): readonly string[] {
  if ("operationId" in told) {
    const { operationId, answer } = told;
    const status = look.operation(operationId)?.status ?? "gone";
    const holds = STILL_TRUE[answer].includes(status);
    return holds ? [] : [`${operationId} was reported as ${answer}, but it is ${status}`];
  }
  const { decisionId, answer } = told;
  const moves = decisionMoves(decisionId, look);
  if (look.decision(decisionId) === undefined)
    return [`${decisionId} was reported, but it is gone`];
  const wanted = ONCE[answer];
  const holds = moves === undefined || moves.some(({ to }) => to === wanted);
  return holds ? [] : [`${decisionId} was reported as ${answer}, but it never was ${wanted}`];
}

const STILL_TRUE: Readonly<Record<"done" | "failed" | "unknown", readonly string[]>> = {
  done: ["success", "rolled_back"],
  // Also a call that was undone since, or that failed with an undo record.
  failed: ["failed", "rolled_back"],
  // A probe or a person may have found out since, or have repeated it.
  unknown: ["unknown", "started", "success", "failed", "rolled_back"],
};

/** The state that it must have had at least once. */
const ONCE = { pending: "pending_ml", approved: "approved", rejected: "rejected_ml" } as const;

export const I29: Invariant = {
  id: "I29",
  text: "A call that is repeated with its key stays one call: asked about once, started once.",
  check(evidence) {
    const keyed = new Set(evidence.keyed);
    const became = Map.groupBy(callsOf(evidence), ({ what, callId }) => `${callId} was ${what}`);
    return [...became].flatMap(([what, all]) =>
      all.length > 1 && keyed.has(all[0]?.callId ?? "")
        ? [`${what} as ${all.map(({ id }) => id).join(" and ")}, though it had a key`]
        : [],
    );
  },
};

/** Questions and operations by the id that the agent gave the call. */
function callsOf({ interactions, operations }: RunEvidence) {
  // Asked again because of an edit or a change of the target, not because of a repeated call.
  const successors = new Set(interactions.map(({ supersededBy }) => supersededBy));
  const asked = interactions
    .filter(({ id, type }) => type === "confirm" && !successors.has(id))
    .map(({ callId, id }) => ({ what: "asked about", callId, id }));
  const begun = operations
    .filter(({ undoOf }) => undoOf === "")
    .map(({ callId, id }) => ({ what: "started", callId, id }));
  return [...asked, ...begun];
}

export const I28: Invariant = {
  id: "I28",
  text: "Each call is undone at most once; a bundle ends executed, undone, or reported as incomplete.",
  check(evidence, look = lookAt(evidence)) {
    const taken = new Set(evidence.operations.map(({ undoOf }) => undoOf));
    const twice = [...taken].flatMap((id) => whyTwice(id, look));
    const untrue = evidence.operations.flatMap(({ id, status }) => {
      const done = look.undosOf(id).filter((undo) => undo.status === "success").length;
      if (status === "rolled_back" && done !== 1) return [`${id} is rolled back by ${done} calls`];
      return done > 0 && status !== "rolled_back" ? [`${id} was undone, but is ${status}`] : [];
    });
    const bundles = evidence.decisions.flatMap((decision) => whyBetween(decision, look));
    return [...twice, ...untrue, ...bundles];
  },
};

function whyTwice(id: string, look: EvidenceIndex): readonly string[] {
  const tries = look.undosOf(id);
  // Also where the first never reached production: that was unknown, so a second attempt was not allowed.
  const alive = tries.filter(({ status }) => status !== "failed").length;
  const effects = tries.flatMap((undo) => look.effectsOf(undo.id));
  const taken = effects.filter(({ applied, kind }) => applied && kind !== "plain").length;
  const problems: string[] = [];
  if (alive > 1) problems.push(`${alive} operations undo ${id}`);
  if (taken > 1) problems.push(`${id} was undone ${taken} times`);
  return problems;
}

/** The state of a closed decision must agree with each of its steps. */
function whyBetween(decision: Decision, look: EvidenceIndex): readonly string[] {
  const { id, state, executionError } = decision;
  const calls = look.calls(decision);
  if (calls === undefined) return [];
  const own = look.operationsOf(id);
  if (state === "executed") {
    const isDone = (step: number) =>
      own.some((one) => one.step === step && ENDED_WELL.includes(one.status));
    const missing = calls.map((_, step) => step).filter((step) => !isDone(step));
    return missing.map((step) => `${id} is executed, but step ${step} is not`);
  }
  // A decision that a person closed is not checked.
  const closed = look.linesOf(id).findLast(({ type }) => type === "decision.failed");
  if (state !== "failed" || !CLOSES.includes(closed?.actor ?? "executor")) return [];
  const left = own.filter(({ status }) => status === "success");
  return left.flatMap((one) => {
    const isTold = executionError.includes(one.id) && executionError.includes("not complete");
    // After a failover the undo may be unknown again; then a person is asked about it (I14).
    const isAsked = look.undosOf(one.id).some(({ status }) => status === "unknown");
    return isTold || isAsked ? [] : [`${id} failed, and ${one.id} is neither undone nor reported`];
  });
}

const ENDED_WELL = ["success", "rolled_back"];
const CLOSES = ["executor", "recovery"];
