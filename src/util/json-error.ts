/** Why a text or value was refused. `not_json` is only said of values: a function, a Date, a hole in an array. */
export type JsonErrorReason =
  | "syntax"
  | "bad_utf8"
  | "too_large"
  | "too_deep"
  | "too_many_nodes"
  | "duplicate_key"
  | "forbidden_key"
  | "lone_surrogate"
  | "unsafe_number"
  | "not_json";

/** Where a walk stands: the keys and indexes from the root down. */
export type JsonPath = readonly (string | number)[];

interface JsonErrorFacts {
  /** What is wrong, as the rest of a sentence; holds no input beyond one character. */
  readonly what: string;
  /** What the sender can do about it, as a sentence. */
  readonly advice: string;
  readonly at?: number;
  readonly path?: JsonPath;
}

/**
 * A refusal by the strict parser or the canonicaliser. The message may end up in a log or before another tenant's
 * operator, so it names the place and never repeats values; keys are shortened and reduced to printable ASCII.
 */
export class JsonError extends Error {
  override readonly name = "JsonError";
  readonly reason: JsonErrorReason;
  /** Offset in UTF-16 units, or -1 when the refusal has no single place in a text. */
  readonly at: number;
  /** The place as a path such as `$.items[3].price`, shortened in the middle when long. */
  readonly path: string;

  constructor(reason: JsonErrorReason, facts: JsonErrorFacts) {
    const at = facts.at ?? -1;
    const path = formatPath(facts.path ?? []);
    const place = at < 0 ? path : `character ${at} (${path})`;
    super(`JSON refused at ${place}: ${facts.what}. ${facts.advice}`);
    this.reason = reason;
    this.at = at;
    this.path = path;
  }
}

const LONGEST_KEY = 24;
const MOST_STEPS = 8;

/** `$.items[3].price`, or `$["odd key"]`; of a long path the first and the last steps are kept. */
export function formatPath(path: JsonPath): string {
  if (path.length <= MOST_STEPS) return `$${path.map(formatStep).join("")}`;
  const half = MOST_STEPS / 2;
  const head = path.slice(0, half).map(formatStep).join("");
  const tail = path.slice(-half).map(formatStep).join("");
  return `$${head}…${tail}`;
}

/** One character as it may be shown: printable ASCII as itself, the rest as its number, so that no log is rewritten. */
export function showCharacter(text: string, at: number): string {
  if (at >= text.length) return "the end of the text";
  const character = text.charAt(at);
  return isPrintable(character) ? `'${character}'` : codeUnit(character);
}

function formatStep(step: string | number): string {
  if (typeof step === "number") return `[${step}]`;
  const short = step.length <= LONGEST_KEY ? step : `${step.slice(0, LONGEST_KEY)}…`;
  if (/^[A-Za-z_$][\w$]*…?$/.test(short)) return `.${short}`;
  const quoted = JSON.stringify(short);
  return `[${quoted.replace(/[^\x20-\x7e…]/g, codeUnit)}]`;
}

function isPrintable(character: string): boolean {
  return character >= " " && character <= "~";
}

function codeUnit(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
