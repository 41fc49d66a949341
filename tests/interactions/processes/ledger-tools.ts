// Production, as far as these tests need it: a file of its own that says what really happened, synced line by line.

import { existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { SallyportError } from "../../../src/model/errors.ts";
import { defineTool } from "../../../src/tools/define-tool.ts";
import type { Tool } from "../../../src/tools/tool.ts";

/** How long a question about `ledger.brief` stays open. */
export const BRIEF_MS = 1_000;

export interface LedgerLine {
  readonly n: number;
  /** The operation that did it. */
  readonly key: string;
}

/** The last line of a killed process may be half a line: it was not synced, so nothing relies on it. */
export function ledgerOf(file: string): readonly LedgerLine[] {
  if (!existsSync(file)) return [];
  const text = readFileSync(file, "utf8");
  const whole = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
  return whole.filter(Boolean).map((line) => JSON.parse(line));
}

/** How often each number was written. */
export function timesOf(file: string): ReadonlyMap<number, number> {
  const times = new Map<number, number>();
  for (const { n } of ledgerOf(file)) times.set(n, (times.get(n) ?? 0) + 1);
  return times;
}

/** One that people are asked about, one whose question is short, and one that is let through and never answers. */
export function ledgerTools(file: string): readonly Tool[] {
  const handle = openSync(file, "a");
  const write = (line: LedgerLine) => {
    writeSync(handle, `${JSON.stringify(line)}\n`);
    fsyncSync(handle);
  };
  const asked = (name: string) =>
    defineTool({
      name,
      description: "Writes a line into the ledger.",
      input: INPUT,
      safety: { effect: "external" },
      dryRun: ({ input: { n } }) => `would write line ${n}`,
      execute({ input: { n }, idempotencyKey: key }) {
        write({ n: Number(n), key });
        return "written";
      },
      // Asked after a process was killed in the act: the ledger knows.
      probe: async ({ idempotencyKey }) =>
        ledgerOf(file).some(({ key }) => key === idempotencyKey)
          ? { happened: true, result: "written" }
          : { happened: false },
    });
  const lost = defineTool({
    name: "ledger.lost",
    description: "Writes a line into the ledger and loses the answer.",
    input: INPUT,
    safety: { effect: "external" },
    execute({ input: { n }, idempotencyKey: key }) {
      write({ n: Number(n), key });
      throw new SallyportError("outcome_unknown", { tool: "ledger.lost" });
    },
  });
  return [asked("ledger.write"), asked("ledger.brief"), lost];
}

const INPUT = {
  type: "object",
  properties: { n: { type: "integer" } },
  required: ["n"],
  additionalProperties: false,
} as const;
