import type { Capabilities } from "../engine.ts";
import type { StoreCase } from "./case.ts";

export interface CaseResult {
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** Why it was skipped. */
  readonly reason?: string;
  /** What a failed case threw. */
  readonly error?: unknown;
}

interface Closable {
  close(): Promise<void>;
  readonly engine?: { readonly capabilities: Capabilities };
}

/**
 * Runs cases one after the other, each on a store of its own, and answers with what came out: for use under any test
 * runner and outside of one. Never throws; a store that cannot be opened or closed fails its case.
 */
export async function runCases<Harness extends Closable>(
  open: () => Promise<Harness>,
  cases: readonly StoreCase<Harness>[],
): Promise<readonly CaseResult[]> {
  const results: CaseResult[] = [];
  for (const one of cases) results.push(await runCase(open, one));
  return results;
}

export async function runCase<Harness extends Closable>(
  open: () => Promise<Harness>,
  { name, needs, run }: StoreCase<Harness>,
): Promise<CaseResult> {
  try {
    const harness = await open();
    try {
      if (needs !== undefined && harness.engine?.capabilities[needs] !== true) {
        return { name, outcome: "skipped", reason: `the store is not ${WORDS[needs]}` };
      }
      await run(harness);
    } finally {
      await harness.close();
    }
    return { name, outcome: "passed" };
  } catch (error) {
    return { name, outcome: "failed", error };
  }
}

const WORDS: Readonly<Record<keyof Capabilities, string>> = {
  durable: "durable",
  manyProcesses: "for many processes",
};
