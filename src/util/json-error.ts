/** Why a text or value was refused. `not_json` applies to values only: a function, a Date, a hole in an array. */
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

/** A place in a value: the keys and indexes from the root. */
export type JsonPath = readonly (string | number)[];

interface JsonErrorFacts {
  /** The problem, as the rest of a sentence; contains at most one character of the input. */
  readonly what: string;
  /** What the sender can do about it, as a sentence. */
  readonly advice: string;
  readonly at?: number;
  readonly path?: JsonPath;
}

/**
 * An error of the strict parser or the canonicaliser. The message may appear in a log or before another tenant's
 * operator, so it names the place and never repeats values; keys are shortened and reduced to printable ASCII.
 */
export class JsonError extends Error {
  override readonly name = "JsonError";
  readonly reason: JsonErrorReason;
  /** Offset in UTF-16 units, or -1 when the error has no single place in a text. */
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

/** `$.items[3].price`, or `$["a key"]`; of a long path the first and the last steps are kept. */
export function formatPath(path: JsonPath): string {
  if (path.length <= MOST_STEPS) return `$${path.map(formatStep).join("")}`;
  const half = MOST_STEPS / 2;
  const head = path.slice(0, half).map(formatStep).join("");
  const tail = path.slice(-half).map(formatStep).join("");
  return `$${head}…${tail}`;
}

/**
 * One character for a message: printable ASCII as itself, others as their code, so that the text cannot alter a log.
 */
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
