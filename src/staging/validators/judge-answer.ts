import { oneLine } from "../../util/error-text.ts";
import type { JsonValue } from "../../util/json.ts";
import { parseStrictJson } from "../../util/strict-json.ts";
import { isFilledText, isObject, need } from "../need.ts";
import { findJson } from "./find-json.ts";

/** What a judge has to say, and the only shape in which it is believed. */
export interface JudgeAnswer {
  readonly approved: boolean;
  readonly score: number;
  readonly reason: string;
  readonly severity: "" | "warn" | "block";
}

const LONGEST_ANSWER = 64 * 1024;
const LONGEST_REASON = 2000;

/**
 * Reads the one answer out of what a model wrote. Prose and fences around it are fine; anything that leaves a doubt
 * about what the model meant is not, and throws: a missing or misspelt field, a second opinion that differs, or a yes
 * that blocks. `shown` is the untrusted data the model saw: an answer that can be found in there is a quotation.
 */
export function readJudgeAnswer(text: string, shown: string): JudgeAnswer {
  need(typeof text === "string" && text.trim() !== "", "the answer is empty");
  need(text.length <= LONGEST_ANSWER, `the answer is longer than ${LONGEST_ANSWER} characters`);
  const { values, rest } = findJson(text);
  need(
    !/approved["'`*]*\s*[:=]/i.test(rest),
    "it says something about approval outside of valid JSON",
  );
  const [first, ...others] = values.flatMap((value) => {
    const json = parseStrictJson(value);
    return mentionsApproval(json) ? [{ value, answer: readFields(json) }] : [];
  });
  need(first !== undefined, "there is no JSON object with an approved field in it");
  const quotable = squeeze(shown);
  for (const { value, answer } of [first, ...others]) {
    need(isSame(answer, first.answer), "it holds two answers that contradict each other");
    need(
      !quotable.includes(squeeze(value)),
      "the answer is a quotation from the data under review",
    );
  }
  return first.answer;
}

function readFields(json: JsonValue): JudgeAnswer {
  need(isObject(json) && !Array.isArray(json), "the answer is not an object");
  const { approved, score, reason, severity } = json;
  need(typeof approved === "boolean", "approved is not true or false");
  need(typeof score === "number" && score >= 0 && score <= 1, "score is not a number from 0 to 1");
  need(isFilledText(reason), "reason is not text");
  need(
    severity === "" || severity === "warn" || severity === "block",
    'severity is neither "warn" nor "block"',
  );
  need(!(approved && severity === "block"), "it approves and blocks at once");
  return { approved, score, reason: oneLine(reason, LONGEST_REASON), severity };
}

/** Also deep inside: a no that is wrapped in another object still contradicts a yes beside it. */
function mentionsApproval(json: JsonValue): boolean {
  return /approved/i.test(JSON.stringify(json));
}

function isSame(one: JudgeAnswer, other: JudgeAnswer): boolean {
  return (
    one.approved === other.approved && one.score === other.score && one.severity === other.severity
  );
}

/** Models re-indent what they quote, and unescape what stood inside a JSON string. */
function squeeze(text: string): string {
  return text.replace(/[\s\\]/g, "");
}
