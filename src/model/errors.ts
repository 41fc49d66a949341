/**
 * Every error Sallyport throws has one of these codes. The code is the identity of an error, because errors are stored,
 * replayed and sent over HTTP, SSE and MCP, where classes do not survive. `docs/reference/errors.md` lists the same rows.
 *
 * retry: never (the same call will fail again), later (nothing is wrong with the record, ask again),
 * after_reread (another caller was first: read again, then decide), safe (nothing was written, the same call may be repeated),
 * ask_a_person (it may or may not have happened; never repeat blindly).
 *
 *     const { status, retry, summary } = ERRORS.not_found;
 */
// biome-ignore format: a table
export const ERRORS = {
  illegal_transition: row(409, "never", "The record is not in a state that allows this."),
  not_found: row(404, "never", "The record does not exist."),
  already_final: row(409, "never", "The record is already closed, with another outcome."),
  dependency_denied: row(409, "later", "A guard refused the transition; nothing was written."),
  already_exists: row(409, "never", "A record with this id already exists; nothing was overwritten."),
  concurrent_modification: row(409, "after_reread", "Another caller changed the record first: read it again and retry, or choose another."),
  not_claimable: row(409, "after_reread", "The task cannot be claimed in its current state; choose another."),
  already_completed: row(409, "never", "The task is already completed."),
  claim_lost: row(409, "never", "The claim has ended: its lease expired, or another worker holds the task."),
  approval_void: row(409, "after_reread", "The approval does not match what would run, or has expired."),
  permit_taken: row(409, "never", "Another executor holds or has used the permit of this decision."),
  permit_lost: row(409, "never", "The permit has ended: it was given back, its lease ran out, or its outcome is known."),
  stopped: row(503, "later", "Everything is stopped by an operator; nothing was started."),
  already_answered: row(409, "never", "The question is already closed; the first answer counts."),
  not_allowed: row(403, "never", "This person is not allowed to do that."),
  unauthenticated: row(401, "never", "No one is signed in, or the sign-in has expired."),
  wrong_origin: row(403, "never", "The request's Host or Origin is not one that this server serves."),
  key_reused: row(422, "never", "This idempotency key was already used for another request."),
  still_running: row(409, "later", "The same request is in progress; repeat it later for its answer."),
  too_fast: row(429, "safe", "This sender exceeded its rate limit; the request was not started."),
  quota_exceeded: row(429, "later", "This sender reached its limit of open or stored items; nothing was started."),
  overloaded: row(503, "safe", "Too many concurrent requests; this one was not started."),
  invalid_input: row(422, "never", "The input cannot be accepted."),
  invalid_json: row(400, "never", "The text is not valid JSON, or not the strict JSON that is accepted."),
  payload_too_large: row(413, "never", "The payload exceeds the size or nesting limit."),
  circuit_open: row(503, "later", "Too many consecutive writes failed review; writes are paused."),
  store_unavailable: row(503, "safe", "The store did not answer; nothing was written."),
  store_busy: row(503, "safe", "The store is overloaded or locked by another process; nothing was written."),
  clock_wrong: row(503, "later", "The store's clock jumped or is behind the audit log; nothing was written."),
  store_closed: row(503, "never", "The store was closed."),
  store_incompatible: row(500, "never", "This is not a store that this version can use."),
  store_rolled_back: row(503, "never", "The store has lost entries it once had; nothing is executed until an operator has checked."),
  commit_unknown: row(503, "ask_a_person", "The store failed during a commit; the write may or may not have happened."),
  partly_written: row(503, "after_reread", "The store failed after part of this was written: read the named record first."),
  outcome_unknown: row(502, "ask_a_person", "The call may or may not have happened."),
  internal_error: row(500, "ask_a_person", "An unexpected error; the operator's log has the details."),
  damaged_record: row(500, "never", "A stored record is invalid: it was changed from outside, or the disk is faulty."),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;
export type Retry = "never" | "later" | "after_reread" | "safe" | "ask_a_person";

interface ErrorRow {
  readonly status: number;
  readonly retry: Retry;
  readonly summary: string;
}

function row(status: number, retry: Retry, summary: string): ErrorRow {
  return { status, retry, summary };
}

/** Ids, states and limits; never tool arguments or secrets. `hint` is a sentence that says what to do. */
export interface ErrorDetails {
  readonly hint?: string;
  readonly [name: string]: string | number | boolean | readonly string[] | undefined;
}

/**
 * The one error class. Recognise it with `isSallyportError(error, "not_found")`, also after wrapping.
 *
 *     if (error instanceof SallyportError) console.error(error.code, error.details);
 */
export class SallyportError extends Error {
  override readonly name = "SallyportError";
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, details: ErrorDetails = {}, cause?: unknown) {
    super(messageOf(code, details), cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = details;
  }

  get status(): number {
    return ERRORS[this.code].status;
  }

  get retry(): Retry {
    return ERRORS[this.code].retry;
  }
}

/**
 * True when the error, or anything in its chain of causes, is a SallyportError (with that code, if one is named).
 *
 *     if (isSallyportError(error, "already_answered")) console.log("Another person was first.");
 */
export function isSallyportError(error: unknown, code?: ErrorCode): error is Error {
  for (let link: unknown = error, hops = 0; link instanceof Error && hops < 16; hops += 1) {
    if (link instanceof SallyportError && (code === undefined || link.code === code)) return true;
    link = link.cause;
  }
  return false;
}

function messageOf(code: ErrorCode, details: ErrorDetails): string {
  const facts = Object.entries(details)
    .filter(([name, value]) => name !== "hint" && value !== undefined)
    .map(([name, value]) => `${name}=${Array.isArray(value) ? value.join(",") : String(value)}`);
  const hint = details.hint === undefined ? "" : ` ${details.hint}`;
  return `sallyport: ${ERRORS[code].summary}${hint} (${[code, ...facts].join("; ")})`;
}

/**
 * How sentences begin that tell an agent what to do next. Answers to calls end with one. On a person's screen it would ask
 * for something that they cannot do.
 */
const FOR_AGENTS: readonly string[] = [
  "Check the input once more, and prefer ",
  "Go on with something else",
  "Do not repeat",
  "Propose it again",
  "Propose the call again",
  "Look first, then propose",
  "Look again later",
  "Tell the operator, and propose",
  "Change the call",
  "Correct these places",
  "Wait until it is resumed",
  "Stop working on this task",
  "Stop, and report back",
  "Ask what to do instead",
  "Take that way",
  "Take another",
  "Write it and call again",
  "Use an absolute path",
  "Bring the run there first",
  "Revise the plan first",
  "Do not take silence for a yes",
];

/** An answer to a call without the advice to the agent at its end. */
export function forPeople(text: string): string {
  let rest = text.trimEnd();
  for (;;) {
    const start = lastSentence(rest);
    const sentence = rest.slice(start);
    if (!FOR_AGENTS.some((opening) => sentence.startsWith(opening))) return rest;
    const shorter = rest.slice(0, start).trimEnd();
    // Nothing but advice: better than an empty message.
    if (shorter === "") return rest;
    rest = shorter;
  }
}

/** Where the last sentence of a text begins. */
function lastSentence(text: string): number {
  const end = text.length - 1;
  const stops = [". ", ".\n", "\n"].map((stop) => {
    const at = text.lastIndexOf(stop, end - 1);
    return at < 0 ? 0 : at + stop.length;
  });
  return Math.max(...stops);
}
