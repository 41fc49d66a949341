import { DEFAULT_PERMISSION, isReadOnlyRole } from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import { errorText } from "../util/error-text.ts";
import type { Timers } from "../util/timers.ts";
import { outcomeOf } from "./close-with-report.ts";
import type {
  Delegated,
  DelegationOutcome,
  DelegationRequest,
  Parent,
} from "./delegation-request.ts";
import type { Delegations } from "./delegations.ts";
import { MOST_AT_ONCE, MOST_LINKS, MOST_TASKS } from "./limits.ts";
import type { Worker } from "./worker.ts";

/** `parallel` is for read-only roles; in a chain each gets what the one before has found. */
export type WorkMode = "single" | "parallel" | "chained";

/** One for each request, in their order. */
export type WorkResult =
  | { readonly answer: "worked"; readonly outcome: DelegationOutcome }
  | Extract<Delegated, { answer: "denied" }>
  /** Of a chain that broke before its turn. */
  | { readonly answer: "skipped"; readonly text: string };

export interface Work<Session> {
  readonly parent: Parent;
  readonly requests: readonly DelegationRequest[];
  readonly mode: WorkMode;
  readonly worker: Worker<Session>;
}

/** How long a worker may take to notice that it is over. */
const GRACE_MS = 1_000;

/** Delegates and has the work done. Throws invalid_input for a batch that is against the limits: then nothing was started. */
export async function delegateWork<Session>(
  { parent, requests, mode, worker }: Work<Session>,
  delegations: Delegations<Session>,
  timers: Timers,
): Promise<readonly WorkResult[]> {
  checkBatch(requests, mode);
  const one = (request: DelegationRequest) => workOne(parent, request, worker, delegations, timers);
  if (mode === "parallel") return atMost(MOST_AT_ONCE, requests, one);
  const results: WorkResult[] = [];
  let before = "";
  for (const request of requests) {
    const last = results.at(-1);
    if (last !== undefined && !hasWorked(last)) {
      const text = "Not started: the link before it did not come to a good end.";
      results.push({ answer: "skipped", text });
      continue;
    }
    const found = before === "" ? "" : `\n\nFound by the step before:\n${before}`;
    const result = await one({ ...request, capsule: `${request.capsule}${found}` });
    if (result.answer === "worked") before = result.outcome.output;
    results.push(result);
  }
  return results;
}

function hasWorked(result: WorkResult): boolean {
  return result.answer === "worked" && result.outcome.state === "reported";
}

function checkBatch(requests: readonly DelegationRequest[], mode: WorkMode): void {
  const refuse = (hint: string) => {
    throw new SallyportError("invalid_input", { what: "delegation", count: requests.length, hint });
  };
  if (requests.length === 0) refuse("Give at least one task.");
  if (mode === "single" && requests.length > 1) refuse("Use parallel or chained for several.");
  if (mode === "parallel" && requests.length > MOST_TASKS) refuse(`At most ${MOST_TASKS} tasks.`);
  if (mode === "chained" && requests.length > MOST_LINKS) refuse(`At most ${MOST_LINKS} links.`);
  if (mode === "parallel" && !requests.every(isReadOnly)) {
    refuse("Only read-only roles, with their own write permission, may work side by side.");
  }
}

/** A read-only role that was given another permission is not read-only any more. */
function isReadOnly({
  role,
  writePermission = DEFAULT_PERMISSION[role],
}: DelegationRequest): boolean {
  const isUsual = writePermission === "none" || writePermission === DEFAULT_PERMISSION[role];
  return isReadOnlyRole(role) && isUsual;
}

async function workOne<Session>(
  parent: Parent,
  request: DelegationRequest,
  worker: Worker<Session>,
  delegations: Delegations<Session>,
  timers: Timers,
): Promise<WorkResult> {
  const delegated = await delegations.delegate(parent, request);
  if (delegated.answer === "denied") return delegated;
  if (delegated.answer === "dry_run") throw new TypeError("nobody asked for a dry run");
  const { delegation, token } = delegated;
  const { id } = delegation;
  let stopWatching = () => {};
  try {
    const { capsule, session, watch } = await delegations.attach(id, token);
    stopWatching = () => watch.stop();
    const work = worker({ capsule, session, token, signal: watch.signal });
    const output = await untilOver(work, watch.signal, timers);
    if (output !== undefined) {
      return { answer: "worked", outcome: await delegations.report(id, output, token) };
    }
    const now = await delegations.get(id);
    if (now.state !== "active") return { answer: "worked", outcome: outcomeOf(now) };
    throw new Error("It ended without a report.");
  } catch (error) {
    return { answer: "worked", outcome: await failed(id, errorText(error), delegations) };
  } finally {
    stopWatching();
  }
}

/** A worker that does not hear the signal is left behind after a moment: whatever it tries is refused. */
async function untilOver<Result>(
  work: Promise<Result>,
  signal: AbortSignal,
  timers: Timers,
): Promise<Result> {
  const done = new AbortController();
  const over = new Promise<never>((_, reject) => {
    signal.addEventListener(
      "abort",
      () =>
        void timers.sleep(GRACE_MS, done.signal).then(
          () => reject(signal.reason),
          () => {},
        ),
      { once: true, signal: done.signal },
    );
  });
  try {
    return await Promise.race([work, over]);
  } finally {
    done.abort();
  }
}

/** What ended it before (a revocation, a report) stands. */
async function failed<Session>(
  id: Parameters<Delegations<Session>["get"]>[0],
  reason: string,
  delegations: Delegations<Session>,
): Promise<DelegationOutcome> {
  try {
    return outcomeOf(await delegations.fail(id, reason, { actor: "delegator" }));
  } catch (error) {
    if (!(error instanceof SallyportError && error.code === "illegal_transition")) throw error;
    return outcomeOf(await delegations.get(id));
  }
}

/** Keeps the order of the results, whoever ends first. */
async function atMost<Item, Result>(
  limit: number,
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  let next = 0;
  async function lane(): Promise<void> {
    for (let index = next; index < items.length; index = next) {
      next += 1;
      results[index] = await work(items[index] as Item);
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, lane));
  return results;
}
