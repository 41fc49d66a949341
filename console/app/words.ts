import { forPeople, SallyportError } from "sallyport/client";
import { momentText, numberText } from "./locale.ts";

/** Turns an error into text for people. */
export interface DisplayError {
  readonly title: string;
  readonly hint: string;
  readonly code: string;
  /** The person is signed in, but not recently enough for this. */
  readonly isOld: boolean;
}

/** Shown when something changed since the reviewer looked. */
export const CHANGED = "It changed since you saw it";

export function expiredAt(deadline: string): string {
  return `This question expired at ${momentText(new Date(deadline))}; it counted as no.`;
}

const TITLES: Readonly<Record<string, string>> = {
  already_answered: "Someone already decided this",
  approval_void: CHANGED,
  not_allowed: "You are not allowed to do this",
  unauthenticated: "You are not signed in",
  store_unavailable: "The server cannot be reached",
  invalid_input: "Invalid input",
  not_found: "Not found",
};

export function toDisplayError(error: unknown): DisplayError {
  if (error instanceof SallyportError) {
    const { code, details } = error;
    if (details["expired"] === true) {
      const hint = expiredAt(String(details["deadline"]));
      return { title: "Too late", hint, code, isOld: false };
    }
    const isOld = code === "unauthenticated" && details["what"] === "freshness";
    const title = isOld ? "Sign in again" : (TITLES[code] ?? "That did not work");
    return { title, hint: forPeople(String(details.hint ?? error.message)), code, isOld };
  }
  const hint = error instanceof Error ? error.message : String(error);
  return {
    title: "This page crashed. What you did was not sent. Reload it",
    hint,
    code: "",
    isOld: false,
  };
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${numberText(count)} ${count === 1 ? one : many}`;
}

/** 1 s, 4 min, 3 h, 2 d: the largest unit that fits. */
export function spanOf(ms: number): string {
  const units: readonly (readonly [number, string])[] = [
    [86_400_000, "d"],
    [3_600_000, "h"],
    [60_000, "min"],
  ];
  for (const [size, unit] of units) {
    if (ms >= size) return `${Math.floor(ms / size)} ${unit}`;
  }
  return `${Math.max(0, Math.floor(ms / 1_000))} s`;
}

export function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
