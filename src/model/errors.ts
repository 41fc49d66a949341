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
  not_found: { status: 404, retry: "never", summary: "There is no such record." },
  already_final: {
    status: 409,
    retry: "never",
    summary: "The record was closed before, with another outcome.",
  },
  dependency_denied: {
    status: 409,
    retry: "later",
    summary: "A guard did not let the record move on; nothing was written.",
  },
  already_exists: {
    status: 409,
    retry: "never",
    summary: "A record with this id exists already; nothing was overwritten.",
  },
  concurrent_modification: {
    status: 409,
    retry: "after_reread",
    summary: "Somebody else changed the record first: read it again and retry, or choose another.",
  },
  not_claimable: {
    status: 409,
    retry: "after_reread",
    summary: "The task cannot be claimed as it is now; choose another.",
  },
  already_completed: { status: 409, retry: "never", summary: "The task was completed before." },
  claim_lost: {
    status: 409,
    retry: "never",
    summary: "The claim is over: its lease ran out, or somebody else holds the task.",
  },
  approval_void: {
    status: 409,
    retry: "after_reread",
    summary: "The approval does not fit what would run, or its time is over.",
  },
  already_answered: {
    status: 409,
    retry: "never",
    summary: "The question was closed before; the first answer stands.",
  },
  not_allowed: { status: 403, retry: "never", summary: "This person may not do that." },
  unauthenticated: {
    status: 401,
    retry: "never",
    summary: "Nobody is signed in here, or the sign-in is over.",
  },
  wrong_origin: {
    status: 403,
    retry: "never",
    summary: "The request came under a name or from a page that is not served here.",
  },
  key_reused: {
    status: 422,
    retry: "never",
    summary: "This idempotency key was used for another request.",
  },
  still_running: {
    status: 409,
    retry: "later",
    summary: "The same request is being worked on; ask again for its answer.",
  },
  too_fast: {
    status: 429,
    retry: "safe",
    summary: "This sender sends more than its share; this request was not begun.",
  },
  quota_exceeded: {
    status: 429,
    retry: "later",
    summary: "This sender has as much open or stored as it may; nothing was begun.",
  },
  overloaded: {
    status: 503,
    retry: "safe",
    summary: "Too many requests at once; this one was not begun.",
  },
  invalid_input: { status: 422, retry: "never", summary: "The input cannot be accepted." },
  invalid_json: { status: 400, retry: "never", summary: "The text is not acceptable JSON." },
  payload_too_large: {
    status: 413,
    retry: "never",
    summary: "The payload is larger or deeper than the limit.",
  },
  circuit_open: {
    status: 503,
    retry: "later",
    summary: "Too many writes failed review in a row; writes are paused.",
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
    summary: "The clock of the store jumped, or is behind the trail; nothing was written.",
  },
  store_closed: { status: 503, retry: "never", summary: "The store was closed." },
  store_incompatible: {
    status: 500,
    retry: "never",
    summary: "What was opened is not a store this version can use.",
  },
  store_rolled_back: {
    status: 503,
    retry: "never",
    summary: "The store holds less than it did; nothing is executed until an operator has looked.",
  },
  commit_unknown: {
    status: 503,
    retry: "ask_a_person",
    summary: "The store went away while it was committing; the write may or may not be there.",
  },
  partly_written: {
    status: 503,
    retry: "after_reread",
    summary:
      "The store failed after a part of this was written: look at the record named here first.",
  },
  outcome_unknown: {
    status: 502,
    retry: "ask_a_person",
    summary: "The call may or may not have happened.",
  },
  internal_error: {
    status: 500,
    retry: "ask_a_person",
    summary: "Something broke here that should not; the operator can see what.",
  },
  damaged_record: {
    status: 500,
    retry: "never",
    summary: "A stored record does not make sense; it was changed from outside or the disk is bad.",
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
