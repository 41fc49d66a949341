// What reached production, against what was allowed and written down before it.

import type { Decision } from "../../model/decision.ts";
import { previewHash } from "../../model/interaction.ts";
import type { Operation } from "../../model/operation.ts";
import { canonicalJson } from "../../util/canonical-json.ts";
import { fromIso } from "../../util/clock.ts";
import { sha256Hex } from "../../util/hash.ts";
import type { Effect, Evidence, Invariant } from "../evidence.ts";
import { type Line, type Look, lookAt, tellsOf } from "../look.ts";
import { isStopped, stateBefore } from "./histories.ts";

export const I1: Invariant = {
  id: "I1",
  text: "No effect without a stored decision, rule or policy that allowed it, over the bytes that were sent.",
  check(evidence) {
    const look = lookAt(evidence);
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
  effect: Effect,
  evidence: Evidence,
  look: Look,
): readonly string[] {
  const { decisionId, undoOf, tool } = operation;
  if (decisionId !== "") {
    const decision = look.decision(decisionId);
    if (decision === undefined) return [`there is no decision ${decisionId}`];
    return whyNotApproved(operation, effect, decision, look);
  }
  const [started] = look.begins(operation.id);
  if (started === undefined) return ["the trail tells of no start"];
  if (undoOf !== "") {
    const done = look.linesOf(undoOf).find(({ type }) => type === "operation.succeeded");
    const isDone = done !== undefined && done.seq < started.seq;
    return isDone ? [] : [`it takes back ${undoOf}, which had not succeeded`];
  }
  const rule = String(started.data["allowed_by"] ?? "");
  if (rule !== "") return whyNotRuled(rule, started, look);
  const mayRun = evidence.mayRunAlone?.(tool) ?? true;
  return mayRun ? [] : [`nobody was asked about ${tool}`];
}

function whyNotApproved(
  { step, tool, definitionHash }: Operation,
  { inputSha256 }: Effect,
  decision: Decision,
  look: Look,
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

function whyNotRuled(rule: string, started: Line, look: Look): readonly string[] {
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
  check(evidence) {
    const look = lookAt(evidence);
    const sent = evidence.ledger.flatMap((effect) => {
      const operation = look.behind(effect);
      if (operation === undefined) return [];
      const [started] = look.begins(operation.id);
      const problems: string[] = [];
      if (sha256Hex(operation.input) !== effect.inputSha256) {
        problems.push(`${operation.id} was sent with other bytes than are stored`);
      }
      if (tellsOf(started, "input", effect.inputSha256, evidence) === false) {
        problems.push(`${operation.id} was sent with other bytes than the trail tells`);
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
  text: "Nothing is begun after a denial, an expiry or the kill switch.",
  check(evidence) {
    const look = lookAt(evidence);
    const stopped = evidence.ledger.flatMap((effect) => {
      const id = look.behind(effect)?.id ?? "";
      const begin = look.begins(id).find(({ data }) => data["fence"] === effect.fence);
      if (begin === undefined || !isStopped(begin.seq, look)) return [];
      return [`${id} happened, though everything was stopped when it was begun`];
    });
    const closed = evidence.operations.flatMap(({ id, decisionId }) => {
      const [started] = look.begins(id);
      if (started === undefined || decisionId === "") return [];
      const state = stateBefore(decisionId, started.seq, look);
      const preview = look.preview(decisionId);
      const problems: string[] = [];
      if (state !== "approved") problems.push(`${id} was begun while ${decisionId} was ${state}`);
      if (preview !== undefined && started.at > preview.expiresAt) {
        problems.push(`${id} was begun after ${decisionId} had expired`);
      }
      return problems;
    });
    return [...stopped, ...closed];
  },
};

export const I5: Invariant = {
  id: "I5",
  text: "Every effect has an intent that was stored before it.",
  check(evidence) {
    const look = lookAt(evidence);
    const { clockSkewMs = 0 } = evidence;
    return evidence.ledger.flatMap((effect) => {
      const operation = look.behind(effect);
      if (operation === undefined) return [`${effect.key} happened without an intent`];
      const intent = look.begins(operation.id).find(({ data }) => data["fence"] === effect.fence);
      if (intent === undefined) {
        return [`${operation.id} happened under fence ${effect.fence}, which was never given`];
      }
      const isLate = fromIso(intent.at) > effect.at + clockSkewMs;
      return isLate ? [`${operation.id} happened before its intent was stored`] : [];
    });
  },
};

export const I7: Invariant = {
  id: "I7",
  text: "A decision is used once; each step takes effect once, or is tried once without a person where no key and no probe helps.",
  check(evidence) {
    const look = lookAt(evidence);
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
