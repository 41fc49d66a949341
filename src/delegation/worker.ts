import { spawn } from "node:child_process";
import { once } from "node:events";
import { DEFAULT_PERMISSION, isReadOnlyRole } from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import { cutText, errorText, oneLine } from "../util/error-text.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import { LONGEST_OUTPUT, MOST_AT_ONCE, MOST_LINKS, MOST_TASKS } from "./delegate.ts";
import { type Delegations, outcomeOf } from "./delegations.ts";
import type { Delegated, DelegationOutcome, DelegationRequest, Parent } from "./plan.ts";
import type { Capsule } from "./scope.ts";

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

/** What a worker gets: the capsule, its own session, and nothing of the conversation it comes from. */
export interface Job<Session> {
  readonly capsule: Capsule;
  readonly session: Session;
  /** Shows that it works for this delegation, also in another process. */
  readonly token: string;
  /** Aborted when the delegation is over. */
  readonly signal: AbortSignal;
}

/**
 * Does the work of one delegation. Gives what it has to report, or undefined when it has reported by itself. Shape: callback;
 * what it throws is the reason of the failure.
 */
export type Worker<Session> = (job: Job<Session>) => Promise<string | undefined>;

export interface ProcessWorkerOptions {
  readonly file: string;
  readonly args: readonly string[];
  readonly directory: string;
  /** All that it gets: nothing is inherited but PATH. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly graceMs?: number;
  readonly timers?: Timers;
}

/** What a child process reads from its standard input, as one line of JSON. */
export interface Handover {
  readonly capsule: Capsule;
  readonly token: string;
}

const PROCESS_GRACE_MS = 300;

/**
 * Works in a process of its own, which reaches the port over the store: it attaches with the token and reports by itself, or
 * writes its report to standard output. When the delegation is over it is asked to end, then ended, with all it has started.
 */
export function processWorker(options: ProcessWorkerOptions): Worker<unknown> {
  const { file, args, directory, environment = {}, graceMs = PROCESS_GRACE_MS } = options;
  const { timers = systemTimers } = options;
  return async ({ capsule, token, signal }) => {
    signal.throwIfAborted();
    const child = spawn(file, args, {
      cwd: directory,
      env: { PATH: process.env["PATH"] ?? "", ...environment },
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
      windowsHide: true,
    });
    const stdout = collect(child.stdout);
    const stderr = collect(child.stderr);
    let cancelKill = () => {};
    function end(): void {
      killGroup(child.pid, "SIGTERM");
      cancelKill = timers.after(graceMs, () => killGroup(child.pid, "SIGKILL"));
    }
    signal.addEventListener("abort", end, { once: true });
    try {
      const handover: Handover = { capsule, token };
      // Who does not read what it was given ends with its own error, not with a broken pipe of ours.
      child.stdin.on("error", () => {});
      child.stdin.end(`${JSON.stringify(handover)}\n`);
      const closed = once(child, "close");
      // Who is left in the group would hold the pipes open.
      child.once("exit", () => killGroup(child.pid, "SIGKILL"));
      const [code, name] = (await closed) as [number | null, string | null];
      signal.throwIfAborted();
      if (code !== 0) {
        throw new Error(`The process ended with ${code ?? name}: ${oneLine(stderr())}`);
      }
      return stdout() === "" ? undefined : stdout();
    } finally {
      cancelKill();
      signal.removeEventListener("abort", end);
    }
  };
}

/** Everything up to the limit and a little more, so that what was too long is seen to be cut. */
function collect(stream: NodeJS.ReadableStream): () => string {
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    if (text.length <= LONGEST_OUTPUT) text = cutText(text + chunk, LONGEST_OUTPUT + 1);
  });
  return () => text;
}

function killGroup(pid: number | undefined, name: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, name);
  } catch {
    // Nobody is left in the group.
  }
}
