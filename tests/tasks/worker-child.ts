/**
 * One of several processes that work off the same list. What it asks and what it is answered goes into a file of its own,
 * each line written before anything else happens, so that it survives the death of the process.
 *
 * Arguments: what to do, the place of the store as JSON, a name, the file for the lines, the lease in milliseconds.
 */
import fs from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { SallyportError } from "../../src/model/errors.ts";
import type { Task } from "../../src/model/task.ts";
import { createTaskList } from "../../src/tasks/create-task-list.ts";
import { startHeartbeat } from "../../src/tasks/watchdog.ts";
import { fromIso } from "../../src/util/clock.ts";
import type { TaskInput, TaskOutput } from "./task-model.ts";
import { openPlace } from "./task-places.ts";

/** work: claim and complete all there is. hold: claim four and keep them. watch: take over whatever is free. */
export type WorkerMode = "work" | "hold" | "watch";

/** A question, or the answer to it. Moments are microseconds of the machine, the same in every process. */
export type WorkerLine =
  | { readonly n: number; readonly worker: string; readonly start: number; readonly op: "claim" }
  | {
      readonly n: number;
      readonly worker: string;
      readonly start: number;
      readonly op: "complete" | "renew";
      readonly id: string;
      readonly fence: number;
    }
  | { readonly n: number; readonly end: number; readonly id: string; readonly output: TaskOutput }
  /** Nothing was there, or the store was busy and wrote nothing. */
  | { readonly n: number; readonly end: number; readonly nothing: string };

const WORKERS = 4;
const [mode = "", place = "", name = "", file = "", lease = ""] = process.argv.slice(2);
const leaseMs = Number(lease);
const { store, close } = await openPlace(JSON.parse(place));
const tasks = createTaskList({ store });
const log = fs.openSync(file, "a");
let count = 0;
// The parent ends the run by closing standard input.
let over = false;
process.stdin.resume().on("end", () => {
  over = true;
});

if (mode === "work") {
  await Promise.all(Array.from({ length: WORKERS }, (_, n) => work(`${name}-w${n}`)));
} else if (mode === "hold") await hold();
else await watch();
await close();
process.exit(0);

async function work(worker: string): Promise<void> {
  while (!over) {
    const task = await ask({ op: "claim", worker }, () =>
      tasks.claimNext({ claimer: worker, leaseMs }),
    );
    if (task === undefined) {
      await sleep(20);
      continue;
    }
    const { id, fence = 0 } = task;
    if (Math.random() < 0.1) {
      await ask({ op: "renew", worker, id, fence }, () => tasks.renew({ id, fence, leaseMs }));
    }
    if (Math.random() < 0.1) await sleep(Math.random() * 10);
    await ask({ op: "complete", worker, id, fence }, () =>
      tasks.complete({ id, fence, result: worker }),
    );
  }
}

async function ask(
  input: TaskInput & { worker: string; id?: string },
  call: () => Promise<Task | undefined>,
): Promise<Task | undefined> {
  count += 1;
  const n = count;
  write({ n, start: moment(), ...input });
  try {
    const task = await call();
    if (task === undefined) write({ n, end: moment(), nothing: "none" });
    else write({ n, end: moment(), id: task.id, output: answerOf(task, input.op) });
    return task;
  } catch (error) {
    if (!(error instanceof SallyportError)) throw error;
    const { code, retry } = error;
    // Unknown: there is no answer, as if we had died.
    if (retry === "safe") write({ n, end: moment(), nothing: code });
    else if (code !== "commit_unknown") {
      const output = { ok: false, at: Date.now(), code } as const;
      write({ n, end: moment(), id: input.id ?? "", output });
    }
    return undefined;
  }
}

function answerOf(task: Task, op: TaskInput["op"]): TaskOutput {
  const { fence = 0, leaseUntil, claimedAt, completedAt } = task;
  const until = leaseUntil === undefined ? {} : { leaseUntil: fromIso(leaseUntil) };
  const at =
    op === "complete"
      ? fromIso(completedAt ?? "")
      : op === "claim"
        ? fromIso(claimedAt ?? "")
        : fromIso(leaseUntil ?? "") - leaseMs;
  return { ok: true, at, fence, ...until };
}

/** Keeps four claims alive until the line is closed, and then completes them. */
async function hold(): Promise<void> {
  const held = await tasks.claimBatch({ claimer: name, leaseMs, limit: WORKERS });
  const beats = held.map(({ id, fence = 0 }) => {
    const told = {
      renew: async (request: Parameters<typeof tasks.renew>[0]) => {
        const renewed = await tasks.renew(request);
        say({ renewed: id, at: Date.now() });
        return renewed;
      },
    };
    return startHeartbeat({ tasks: told, id, fence, leaseMs });
  });
  say({ holds: held.map(({ id }) => id) });
  while (!over) await sleep(10);
  for (const beat of beats) beat.stop();
  for (const { id, fence = 0 } of held) await tasks.complete({ id, fence, result: name });
  say({ completed: held.length, lost: beats.filter(({ signal }) => signal.aborted).length });
}

async function watch(): Promise<void> {
  say({ watching: name });
  while (!over) {
    for (const { id } of await tasks.sweep()) say({ swept: id, at: Date.now() });
    const task = await tasks.claimNext({ claimer: name, leaseMs: 60_000 });
    if (task !== undefined) say({ took: task.id, at: Date.now() });
    else await sleep(20);
  }
}

function write(line: object): void {
  fs.writeSync(log, `${JSON.stringify(line)}\n`);
}

function say(line: object): void {
  fs.writeSync(1, `${JSON.stringify(line)}\n`);
}

function moment(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}
