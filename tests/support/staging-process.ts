import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Decision } from "../../src/model/decision.ts";
import type { Place } from "./stores.ts";

export interface StagingProcess {
  /** Calls the staging engine of that process; the answer is what JSON can carry, or the code of the refusal. */
  call(name: string, ...args: readonly unknown[]): Promise<Decision | string>;
  /** Lets it close its store and end. */
  end(): Promise<void>;
  /** Ends it without a word, as a power cut would. */
  kill(): Promise<void>;
}

/** Another process over the same store, on a clock that stands at `now`: the store refuses clocks that disagree. */
export async function stagingProcess(place: Place, now: number): Promise<StagingProcess> {
  const script = fileURLToPath(new URL("./staging-child.ts", import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify(place), String(now)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const answers = createInterface(child.stdout)[Symbol.asyncIterator]();
  await answerOf(answers);
  return {
    async call(name, ...args) {
      child.stdin.write(`${JSON.stringify([name, ...args])}\n`);
      return answerOf(answers);
    },
    end: () => gone(child, () => child.stdin.end()),
    kill: () => gone(child, () => child.kill("SIGKILL")),
  };
}

async function answerOf(answers: AsyncIterator<string>): Promise<Decision | string> {
  const { value, done } = await answers.next();
  if (done) throw new Error("the other process ended without an answer");
  const { ok, code } = JSON.parse(value);
  return code ?? ok;
}

async function gone(child: ChildProcess, end: () => void): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  end();
  await exited;
}
