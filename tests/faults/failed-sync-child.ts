/**
 * Asks questions over a SQLite file, one commit each, until the store refuses one, and then dies or closes. Arguments: the
 * file, the thread mode, what to do after the refusal. Prints one line for each question.
 */
import { writeSync } from "node:fs";
import { createGate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { SallyportError } from "../../src/model/errors.ts";
import { NO_RULES } from "../../src/policy/policy.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

export interface AskedLine {
  readonly text: string;
  /** Absent when the question was asked. */
  readonly refused?: { readonly code: string; readonly retry: string };
}

export const QUESTIONS = 8;

export function portOver(store: ReturnType<typeof sqliteStore>) {
  return createGate({
    store,
    tenant: "acme",
    tools: [],
    validators: { tech: sampleVerdictValidator("t"), business: sampleVerdictValidator("b") },
    guard: allowAlways,
    policy: NO_RULES,
  });
}

if (process.argv[1] === import.meta.filename) await main();

async function main(): Promise<void> {
  const [file = "", thread = "never", then = "die"] = process.argv.slice(2);
  const store = sqliteStore({ file, thread: thread === "always" ? "always" : "never" });
  const session = portOver(store).sessions.open({ id: "s", agent: "agent:x" });
  const say = (line: AskedLine) => void writeSync(1, `${JSON.stringify(line)}\n`);
  for (let n = 0; n < QUESTIONS; n += 1) {
    const text = `question ${n}`;
    try {
      await session.ask({ callId: `c${n}`, text });
      say({ text });
    } catch (error) {
      if (!(error instanceof SallyportError)) throw error;
      say({ text, refused: { code: error.code, retry: error.retry } });
      if (then === "die") process.kill(process.pid, "SIGKILL");
      break;
    }
  }
  await store.close();
}
