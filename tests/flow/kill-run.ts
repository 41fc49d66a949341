// Starts the children of the kill test and looks at what they left behind.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import path from "node:path";
import type { KillPlan } from "./kill-child.ts";
import { type LedgerLine, ledgerLines, linesOf, STEPS } from "./kill-world.ts";

const NODE = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
const CHILD = path.join(import.meta.dirname, "kill-child.ts");

/** One run of the flow with its own store and its own production. */
export interface KillCase {
  readonly plan: Omit<KillPlan, "killAfter" | "onlyNew">;
  readonly ledger: () => readonly LedgerLine[];
  readonly summaries: () => readonly string[];
  readonly events: () => readonly string[];
}

export function killCase(
  root: string,
  store: Pick<KillPlan, "store"> & { readonly place?: string },
): KillCase {
  const dir = mkdtempSync(path.join(root, "case-"));
  const file = (name: string) => path.join(dir, name);
  const plan = {
    store: store.store,
    place: store.place ?? file("store.db"),
    ledger: file("ledger.jsonl"),
    out: file("out.jsonl"),
    log: file("log.jsonl"),
  };
  return {
    plan,
    ledger: () => ledgerLines(plan.ledger),
    summaries: () => linesOf<{ summary: string }>(plan.out).map(({ summary }) => summary),
    events: () => linesOf<{ what: string }>(plan.log).map(({ what }) => what),
  };
}

/** Runs a process until it was killed after so many events, or came to the end. Any other end throws. */
export async function runProcess(
  { plan }: KillCase,
  kill: Pick<KillPlan, "killAfter" | "onlyNew">,
): Promise<{ readonly killed: boolean }> {
  const child = spawn(process.execPath, [...NODE, CHILD, JSON.stringify({ ...plan, ...kill })], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let errors = "";
  child.stderr.on("data", (chunk) => (errors += chunk));
  const [code, signal] = await once(child, "close");
  if (signal === "SIGKILL") return { killed: true };
  if (code === 0) return { killed: false };
  throw new Error(`killed after ${kill.killAfter}, then ended with ${code ?? signal}: ${errors}`);
}

/** What is wrong with a run that has come to its end. */
export function problemsOf({ ledger, summaries }: KillCase, summary: string): string[] {
  const steps = ledger().map(({ step }) => step);
  const problems = Array.from({ length: STEPS }, (_, at) => at + 1).flatMap((step) => {
    const times = steps.filter((done) => done === step).length;
    return times === 1 ? [] : [`step ${step} happened ${times} times`];
  });
  if (steps.join() !== steps.toSorted((a, b) => a - b).join()) problems.push("out of order");
  if (summaries().length === 0) problems.push("no summary");
  for (const given of new Set(summaries())) {
    if (given !== summary) problems.push(`another summary: ${given}`);
  }
  return problems;
}
