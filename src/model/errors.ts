/**
 * Every error Sallyport throws has one of these codes. The code is the identity of an error, because errors are stored,
 * replayed and sent over HTTP, SSE and MCP, where classes do not survive. `docs/reference/errors.md` lists the same rows.
 *
 * retry: never (the same call will fail again), later (nothing is wrong with the record, ask again),
 * after_reread (somebody was first: look again, then decide), safe (nothing was written, the same call may be repeated),
 * ask_a_person (it may or may not have happened; never repeat blindly).
 */
export const ERRORS = {
  illegal_transition: {
    status: 409,
    retry: "never",
    summary: "The record is not in a state that allows this.",
  },
  not_found: { status: 404, retry: "never", summary: "The record does not exist." },
  already_final: {
    status: 409,
    retry: "never",
    summary: "The record is already closed, with another outcome.",
  },
  dependency_denied: {
    status: 409,
    retry: "later",
    summary: "A guard refused the transition; nothing was written.",
  },
  already_exists: {
    status: 409,
    retry: "never",
    summary: "A record with this id already exists; nothing was overwritten.",
  },
  concurrent_modification: {
    status: 409,
    retry: "after_reread",
    summary: "Another caller changed the record first: read it again and retry, or choose another.",
  },
  not_claimable: {
    status: 409,
    retry: "after_reread",
    summary: "The task cannot be claimed in its current state; choose another.",
  },
  already_completed: { status: 409, retry: "never", summary: "The task is already completed." },
  claim_lost: {
    status: 409,
    retry: "never",
    summary: "The claim has ended: its lease expired, or another worker holds the task.",
  },
  approval_void: {
    status: 409,
    retry: "after_reread",
    summary: "The approval does not match what would run, or has expired.",
  },
  already_answered: {
    status: 409,
    retry: "never",
    summary: "The question is already closed; the first answer counts.",
  },
  not_allowed: { status: 403, retry: "never", summary: "This person is not allowed to do that." },
  unauthenticated: {
    status: 401,
    retry: "never",
    summary: "No one is signed in, or the sign-in has expired.",
  },
  wrong_origin: {
    status: 403,
    retry: "never",
    summary: "The request's Host or Origin is not one that this server serves.",
  },
  key_reused: {
    status: 422,
    retry: "never",
    summary: "This idempotency key was already used for another request.",
  },
  still_running: {
    status: 409,
    retry: "later",
    summary: "The same request is in progress; repeat it later for its answer.",
  },
  too_fast: {
    status: 429,
    retry: "safe",
    summary: "This sender exceeded its rate limit; the request was not started.",
  },
  quota_exceeded: {
    status: 429,
    retry: "later",
    summary: "This sender reached its limit of open or stored items; nothing was started.",
  },
  overloaded: {
    status: 503,
    retry: "safe",
    summary: "Too many concurrent requests; this one was not started.",
  },
  invalid_input: { status: 422, retry: "never", summary: "The input cannot be accepted." },
  invalid_json: {
    status: 400,
    retry: "never",
    summary: "The text is not valid JSON, or not the strict JSON that is accepted.",
  },
  payload_too_large: {
    status: 413,
    retry: "never",
    summary: "The payload exceeds the size or nesting limit.",
  },
  circuit_open: {
    status: 503,
    retry: "later",
    summary: "Too many consecutive writes failed review; writes are paused.",
  },
  store_unavailable: {
    status: 503,
    retry: "safe",
    summary: "The store did not answer; nothing was written.",
  },
  store_busy: {
    status: 503,
    retry: "safe",
    summary: "The store is overloaded or locked by another process; nothing was written.",
  },
  clock_wrong: {
    status: 503,
    retry: "later",
    summary: "The store's clock jumped or is behind the audit log; nothing was written.",
  },
  store_closed: { status: 503, retry: "never", summary: "The store was closed." },
  store_incompatible: {
    status: 500,
    retry: "never",
    summary: "This is not a store that this version can use.",
  },
  store_rolled_back: {
    status: 503,
    retry: "never",
    summary:
      "The store has lost entries it once had; nothing is executed until an operator has checked.",
  },
  commit_unknown: {
    status: 503,
    retry: "ask_a_person",
    summary: "The store failed during a commit; the write may or may not have happened.",
  },
  partly_written: {
    status: 503,
    retry: "after_reread",
    summary: "The store failed after part of this was written: read the named record first.",
  },
  outcome_unknown: {
    status: 502,
    retry: "ask_a_person",
    summary: "The call may or may not have happened.",
  },
  internal_error: {
    status: 500,
    retry: "ask_a_person",
    summary: "An unexpected error; the operator's log has the details.",
  },
  damaged_record: {
    status: 500,
    retry: "never",
    summary: "A stored record is invalid: it was changed from outside, or the disk is faulty.",
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;
export type Retry = "never" | "later" | "after_reread" | "safe" | "ask_a_person";

interface ErrorRow {
  readonly status: number;
  readonly retry: Retry;
  readonly summary: string;
}

/** Ids, states and limits; never tool arguments or secrets. `hint` is a sentence that says what to do. */
export interface ErrorDetails {
  readonly hint?: string;
  readonly [name: string]: string | number | boolean | readonly string[] | undefined;
}

/** The one error class. Recognise it with `isSallyportError(error, "not_found")`, also after wrapping. */
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

/** True when the error, or anything in its chain of causes, is a SallyportError (with that code, if one is named). */
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
