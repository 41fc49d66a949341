// The parent's side of a `person-child`: starts it, tells it what to do, hears what it acknowledged, kills it.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { inject } from "vitest";
import { freshDatabase } from "../../support/postgres-database.ts";
import {
  type ChildPlan,
  type Command,
  type Commands,
  openStore,
  type Said,
  type Seen,
  type Told,
} from "./person-child.ts";

const CHILD = path.join(import.meta.dirname, "person-child.ts");

/** A store that several processes share, and the ledger of what really happened beside it. */
export interface SharedPlace extends ChildPlan {
  remove(): Promise<void>;
}

export const ENGINES = ["sqlite", "postgres"] as const;

export async function newPlace(store: (typeof ENGINES)[number]): Promise<SharedPlace> {
  const dir = await mkdtemp(path.join(tmpdir(), "sallyport-people-"));
  const ledger = path.join(dir, "ledger.jsonl");
  const removeDir = () => rm(dir, { recursive: true, force: true });
  const database = store === "postgres" ? await freshDatabase(inject("pgUrl")) : undefined;
  const place = database?.url ?? path.join(dir, "store.db");
  // Migrated once, before anybody races for it.
  await (await openStore({ store, place })).close();
  return {
    store,
    place,
    ledger,
    async remove() {
      await database?.drop();
      await removeDir();
    },
  };
}

export interface PersonProcess {
  readonly pid: number;
  readonly ready: Promise<Ready>;
  /** Everything the process acknowledged, also when it was killed later. */
  readonly opened: readonly Seen[];
  readonly said: readonly Said[];
  ask<Name extends keyof Commands>(
    name: Name,
    ...argument: Parameters<Commands[Name]>
  ): ReturnType<Commands[Name]>;
  signal(signal: "SIGCONT"): void;
  /** SIGKILL; resolves when it is gone and everything it had said has been read. */
  kill(): Promise<void>;
  end(): Promise<void>;
}

export interface Ready {
  /** When the inbox gave its first page, from the moment the process was started. */
  readonly readyMs: number;
  /** How much of a processor that took, which does not depend on who else is at work on this machine. */
  readonly cpuMs: number;
  /** The whole inbox at that time. */
  readonly seen: readonly Seen[];
}

export function startPerson({ store, place, ledger }: SharedPlace): PersonProcess {
  const started = performance.now();
  const plan: ChildPlan = { store, place, ledger };
  const child = fork(CHILD, [JSON.stringify(plan)], {
    execArgv: ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"],
    stdio: ["ignore", "inherit", "pipe", "ipc"],
  });
  let errors = "";
  child.stderr?.on("data", (chunk) => (errors += chunk));
  const opened: Seen[] = [];
  const said: Said[] = [];
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let first = { readyMs: 0, cpuMs: 0 };
  const isReady = Promise.withResolvers<Ready>();
  // A kill before it is ready does not wait for that.
  isReady.promise.catch(() => {});
  child.on("message", (message: Told | { nr: number; value?: unknown; error?: string }) => {
    if ("nr" in message) {
      const { nr, value, error } = message;
      if (error === undefined) waiting.get(nr)?.resolve(value);
      else waiting.get(nr)?.reject(new Error(error));
      waiting.delete(nr);
    } else if (message.told === "opened") opened.push(message.seen);
    else if (message.told === "answered") said.push(message.said);
    else if (message.told === "ready")
      first = { readyMs: performance.now() - started, cpuMs: message.cpuMs };
    else isReady.resolve({ ...first, seen: message.seen });
  });
  const gone = closed(child).then(() => {
    const over = new Error(`the process is gone: ${errors}`);
    isReady.reject(over);
    for (const { reject } of waiting.values()) reject(over);
  });
  let nrs = 0;
  const ask: PersonProcess["ask"] = (name, ...argument) => {
    nrs += 1;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    // A command that the kill cuts off fails, and some callers expect just that.
    promise.catch(() => {});
    waiting.set(nrs, { resolve, reject });
    child.send({ nr: nrs, name, argument: argument[0] } satisfies Command);
    return promise as ReturnType<Commands[typeof name]>;
  };
  return {
    pid: child.pid ?? 0,
    ready: isReady.promise,
    opened,
    said,
    ask,
    signal: (signal) => child.kill(signal),
    async kill() {
      child.kill("SIGKILL");
      await gone;
    },
    async end() {
      // It answers by going away.
      void ask("end");
      await gone;
    },
  };
}

/** `disconnect` comes after the channel was read to its end. */
async function closed(child: ChildProcess): Promise<void> {
  await Promise.all([once(child, "close"), once(child, "disconnect")]);
  // Messages that were read are handed out one per turn of the loop.
  await setTimeout(0);
}

/** Runs `work` over a fresh place and removes it, also when the work fails. */
export async function withPlace(
  store: (typeof ENGINES)[number],
  work: (place: SharedPlace) => Promise<void>,
): Promise<void> {
  const place = await newPlace(store);
  try {
    await work(place);
  } finally {
    await place.remove();
  }
}
