import { SallyportError } from "../model/errors.ts";
import type { StoredAnswer } from "../model/http-key.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonValue } from "../util/json.ts";
import { renewEvery } from "../util/timers.ts";
import { problemOf } from "./answer.ts";
import type { Call } from "./route.ts";

/** A key as its sender wrote it; empty for none. Throws invalid_input. */
export function readKey(header: string | undefined): string {
  if (header === undefined) return "";
  if (/^[\x21-\x7e]{1,255}$/.test(header)) return header;
  const hint = "An Idempotency-Key is 1 to 255 visible ASCII characters.";
  throw new SallyportError("invalid_input", { what: "Idempotency-Key", hint });
}

export interface Done extends StoredAnswer {
  /** The stored answer was returned. */
  readonly replayed: boolean;
}

export interface Attempt {
  /** What is sent. */
  readonly answer: StoredAnswer;
  /** What is stored for the key, if different. */
  readonly kept?: StoredAnswer;
}

/**
 * Executes a request once for its key. Throws key_reused when the key was used with other content, still_running while
 * it is in progress. A failure that wrote nothing is not stored.
 */
export async function once(
  call: Call,
  { route, ifCutOff }: { readonly route: string; readonly ifCutOff: "again" | "ask" },
  content: JsonValue,
  work: () => Promise<Attempt>,
): Promise<Done> {
  const { store, identity, services, key } = call;
  const { subject: actor } = identity;
  const id = sha256Hex(canonicalJson([actor, key]));
  const contentHash = sha256Hex(canonicalJson([route, content]));
  const { keyLeaseMs: leaseMs, keyKeepMs: keepMs } = services.limits;
  const begun = await store.httpKeys.begin({ id, route, contentHash, actor }, { leaseMs, keepMs });
  switch (begun.found) {
    case "answer":
      services.metrics.replayed();
      return { ...begun.answer, replayed: true };
    case "other_content":
      throw new SallyportError("key_reused", { hint: "Use a new key for a new request." });
    case "running":
      throw new SallyportError("still_running", {
        hint: "Send the same request again in a moment.",
      });
    case "nothing":
      break;
  }
  // A short, renewed lease: a retry does not wait long for a dead process, and never overtakes a slow one.
  const stopRenewing = renewEvery(leaseMs / 3, services.timers, () =>
    store.httpKeys.renew(id, begun.fence, leaseMs, actor),
  );
  const doing = begun.again && ifCutOff === "ask" ? { answer: errorAnswer(cutOff()) } : work();
  const { answer, kept = answer } = await Promise.resolve<Attempt>(doing).finally(stopRenewing);
  if (isWorthRepeating(answer)) await store.httpKeys.forget(id, begun.fence, actor);
  else await store.httpKeys.answer(id, begun.fence, kept, actor);
  return { ...answer, replayed: false };
}

function cutOff(): SallyportError {
  const hint =
    "The first request with this key was interrupted. Check whether it took effect before you send it with a new key.";
  return new SallyportError("outcome_unknown", { hint });
}

function isWorthRepeating({ status, body }: StoredAnswer): boolean {
  if (status < 500 && status !== 409 && status !== 429) return false;
  const { retry } = JSON.parse(body) as { retry?: string };
  return retry === "safe" || retry === "later";
}

/** What is sent for an error. */
export function errorAnswer(error: unknown): StoredAnswer {
  const problem = problemOf(error);
  return { status: problem.status, body: JSON.stringify(problem) };
}
