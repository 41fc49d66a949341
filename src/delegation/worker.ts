import { spawn } from "node:child_process";
import { once } from "node:events";
import { DEFAULT_PERMISSION, isReadOnlyRole } from "../model/delegation.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import { cutText, errorText, oneLine } from "../util/error-text.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import {
  type Delegations,
  LONGEST_OUTPUT,
  MOST_AT_ONCE,
  MOST_LINKS,
  MOST_TASKS,
  outcomeOf,
} from "./delegations.ts";
import type { Delegated, DelegationOutcome, DelegationRequest, Parent } from "./plan.ts";
import type { Capsule } from "./scope.ts";

/** `parallel` is for read-only roles; in a chain each gets the findings of the one before. */
export type WorkMode = "single" | "parallel" | "chained";

/** One for each request, in their order. */
export type WorkResult =
  | { readonly answer: "worked"; readonly outcome: DelegationOutcome }
  | Extract<Delegated, { answer: "denied" }>
  /** An earlier link of the chain failed. */
  | { readonly answer: "skipped"; readonly text: string };

export interface WorkRequest<Session> {
  readonly parent: Parent;
  readonly requests: readonly DelegationRequest[];
  readonly mode: WorkMode;
  readonly worker: Worker<Session>;
}

/** How long a worker may take to react to the signal. */
const GRACE_MS = 1_000;

/** Delegates and runs the work. Throws invalid_input for a batch beyond the limits: then nothing was started. */
export async function delegateWork<Session>(
  { parent, requests, mode, worker }: WorkRequest<Session>,
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
      const text = "Not started: the link before it did not succeed.";
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
    refuse("Only read-only roles, with their own write permission, may work in parallel.");
  }
}

/** A read-only role with another permission is not read-only. */
function isReadOnly({ role, writePermission = "none" }: DelegationRequest): boolean {
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
  if (delegated.answer === "dry_run") throw new TypeError("unexpected dry run");
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

/** A worker that ignores the signal is abandoned after a moment: its calls are refused. */
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

/** If it has ended before (revoked, reported), that outcome is returned. */
async function failed<Session>(
  id: Parameters<Delegations<Session>["get"]>[0],
  reason: string,
  delegations: Delegations<Session>,
): Promise<DelegationOutcome> {
  try {
    return outcomeOf(await delegations.fail(id, reason, { actor: "delegator" }));
  } catch (error) {
    if (!isSallyportError(error, "illegal_transition")) throw error;
    return outcomeOf(await delegations.get(id));
  }
}

/** Results in the order of the items. */
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

/** The input of a worker: the capsule and its own session, nothing of the conversation it comes from. */
export interface Job<Session> {
  readonly capsule: Capsule;
  readonly session: Session;
  /** Proves that it works for this delegation, also in another process. */
  readonly token: string;
  /** Aborted when the delegation has ended. */
  readonly signal: AbortSignal;
}

/**
 * Does the work of one delegation. Returns its report, or undefined when it has reported by itself. Shape: callback; what it
 * throws is the reason of the failure.
 */
export type Worker<Session> = (job: Job<Session>) => Promise<string | undefined>;

interface ProcessWorkerOptions {
  readonly file: string;
  readonly args: readonly string[];
  readonly directory: string;
  /** Nothing else is inherited but PATH. */
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
 * Works in a child process, which reaches the gate through the store: it attaches with the token and reports by itself, or
 * writes its report to standard output. When the delegation has ended, its process group gets SIGTERM, then SIGKILL.
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
      // A child that does not read its input ends with its own error, not with our broken pipe.
      child.stdin.on("error", () => {});
      child.stdin.end(`${JSON.stringify(handover)}\n`);
      const closed = once(child, "close");
      // Processes left in the group would hold the pipes open.
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

/** Up to one character more than the limit, so that the cut is visible. */
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
    // The group is empty.
  }
}
