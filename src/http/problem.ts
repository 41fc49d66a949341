import { ERRORS, type ErrorCode, type ErrorDetails, SallyportError } from "../model/errors.ts";

/** RFC 9457, with the code that is the identity of an error everywhere. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ErrorCode;
  readonly retry: string;
  readonly detail: string;
  readonly details: ErrorDetails;
}

/** What somebody outside is told about an error. Of an error that is not ours they learn nothing: it may quote anything. */
export function problemOf(error: unknown): Problem {
  const ours = findOurs(error) ?? new SallyportError("internal_error");
  const { code, details, message } = ours;
  const { status, retry, summary } = ERRORS[code];
  return {
    type: `urn:sallyport:error:${code}`,
    title: summary,
    status,
    code,
    retry,
    detail: message,
    details,
  };
}

/** True for errors of our own making that nobody outside can do anything about. */
export function isBug(error: unknown): boolean {
  return findOurs(error) === undefined;
}

function findOurs(error: unknown): SallyportError | undefined {
  for (let link = error, hops = 0; link instanceof Error && hops < 16; hops += 1) {
    if (link instanceof SallyportError) return link;
    link = link.cause;
  }
  return undefined;
}
