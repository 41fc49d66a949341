// What every process of a story shares: the gate over the default store of the working directory, the tools, and a ledger of
// the effects. A child is named after its framework; see `stories.ts`.

import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createGate, type Gate } from "sallyport";
import { z } from "zod";

/** What the scripted model asks for in its first turn, and what the tool does for which amount. */
export interface Wish {
  readonly id: string;
  readonly tool: "refund" | "lookup" | "bash" | "edit" | "write";
  readonly cents: number;
}

export const input = z.object({ invoice: z.string(), cents: z.int() });
export type Refund = z.output<typeof input>;

export const inputOf = ({ id, cents }: Wish): Refund => ({ invoice: `INV-${id}`, cents });

/** One line per effect, to be counted by the reader. */
export function refund({ invoice, cents }: Refund): { refunded: string; cents: number } {
  if (cents === LOST) throw new Error("connection reset");
  appendFileSync("ledger.txt", `${invoice} ${cents}\n`);
  return { refunded: invoice, cents };
}

/** The answer of the target is lost: whether it happened is unknown. */
export const LOST = 666;
/** The target refuses, and says so by throwing. */
export const REFUSED = 555;

export function refuse({ cents }: Refund): void {
  if (cents === REFUSED) throw new Error("the invoice is closed");
}

/** What the refund promises in stories that need it: REFUSES, that it throws before anything happens; VERSIONED, its record. */
export function refundPromises() {
  const { REFUSES, VERSIONED } = process.env;
  return {
    ...(REFUSES === undefined ? {} : { failsByThrowing: true as const }),
    ...(VERSIONED === undefined
      ? {}
      : { stateVersion: () => (existsSync(VERSIONED) ? readFileSync(VERSIONED, "utf8") : "v0") }),
  };
}

export const lookup = ({ invoice }: Refund) => `${invoice} is open`;

/** Dies where the environment says, as a crash would. Decisions are counted then, so that a yes is written before its intent. */
export function openGate(): Gate {
  const { KILL_AT } = process.env;
  return createGate({
    ...(KILL_AT === undefined ? {} : { attention: { onProblem: () => {} } }),
    at: (point) => {
      if (point === KILL_AT) process.kill(process.pid, "SIGKILL");
    },
  });
}

export const AGENT = "billing";
export const RUN = "run-1";
/** In stories with HOW=sub-agent it makes the calls, for AGENT. */
export const SUB_AGENT = "general-purpose";

/** What a process of a story reports to its test. */
export interface Report {
  /** Ids of the calls at which the framework stopped. */
  readonly paused: readonly string[];
  /** What the model was told about its calls, by id; the last words of the scripted model. */
  readonly told: Readonly<Record<string, string>>;
}

/** Resumed, and nothing to do for this process: an answer is missing, or another process is at it. */
export const STILL_WAITS: Report = { paused: ["still waits"], told: {} };

const STATE = "state.json";
/** With KEEP the saved run stays as it is, so that two processes continue from the same place. */
export function saveState(state: unknown): void {
  if (process.env["KEEP"] === undefined) writeFileSync(STATE, JSON.stringify(state));
}
export const loadState = <State>(): State => JSON.parse(readFileSync(STATE, "utf8"));

let hasReported = false;
/** Once: a run that went on and stopped at the same calls has been reported, and was not continued. */
export function report(said: Report): void {
  if (!hasReported) process.stdout.write(JSON.stringify(said));
  hasReported = true;
}

/** The words of the scripted model after its calls: what it was told. */
export function toldIn(text: string): Report["told"] {
  return text === "" ? {} : (JSON.parse(text) as Report["told"]);
}

/**
 * A person's answers to everything that is open, open in one session, or about one invoice. `change` sets every amount to 100;
 * another person approves it then.
 */
export async function decide(
  gate: Gate,
  verdict: string,
  { reason = "", session = "", invoice = "" },
): Promise<void> {
  for (const question of await gate.interactions.list()) {
    const { id, hash, sessionId } = question;
    if (session !== "" && sessionId !== session) continue;
    if (invoice !== "" && !JSON.stringify(question).includes(`INV-${invoice}`)) continue;
    if (verdict === "reject") {
      await gate.interactions.reject(id, { hash, by: "ada", reason });
      continue;
    }
    if (verdict === "approve") {
      await gate.interactions.approve(id, { hash, by: "grace" });
      continue;
    }
    const { sourceTool } = (await gate.decisions.get(question.decisionId)).diff;
    const inputs = { "0": CHANGED[sourceTool] ?? { invoice: "INV-1", cents: 100 } };
    const edited = await gate.interactions.edit(id, { hash, by: "ada", inputs });
    if (!edited.edited) throw new Error(edited.text);
  }
}

/** The same effect with another amount, by tools of Claude Code itself. */
const CHANGED: Readonly<Record<string, Record<string, string>>> = {
  Bash: { command: "echo INV-1 100 >> ledger.txt", description: "refund" },
  Edit: {
    file_path: path.resolve("ledger.txt"),
    old_string: "nothing yet",
    new_string: "INV-1 100",
  },
};
