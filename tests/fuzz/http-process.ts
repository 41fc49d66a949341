import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";
import { answerOf } from "../support/child-answer.ts";
import type { ChildAnswers, ChildOrder } from "./http-child.ts";

/** The attacked process. Every question fails as soon as it is gone. */
export interface Attacked {
  ask<Ask extends keyof ChildAnswers>(ask: Ask, seq?: number): Promise<ChildAnswers[Ask]>;
  /** How it ended, undefined while it lives. */
  ended(): string | undefined;
}

export async function startAttacked(): Promise<Attacked> {
  // In memory where there is such a place: a slow disk is not a stall of the server.
  const base = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
  const folder = await mkdtemp(path.join(base, "sallyport-fuzz-"));
  const child = fork(path.join(import.meta.dirname, "http-child.ts"), [path.join(folder, "db")], {
    execArgv: ["--expose-gc", "--disable-warning=ExperimentalWarning"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  let end: string | undefined;
  child.once("exit", (code, signal) => {
    end = `code ${code}, signal ${signal}`;
  });
  onTestFinished(async () => {
    child.disconnect();
    if (end === undefined) await once(child, "exit");
    await rm(folder, { recursive: true, force: true });
  });
  await answerOf(child);
  return {
    ended: () => end,
    async ask(ask, seq) {
      const order = (seq === undefined ? { ask } : { ask, seq }) as ChildOrder;
      child.send(order);
      return (await answerOf(child)) as never;
    },
  };
}
