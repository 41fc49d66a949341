import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { SallyportError } from "../model/errors.ts";
import type { Evidence } from "../model/promise.ts";
import type { GatePolicy } from "../policy/gate-policy.ts";
import type { Store } from "../store/store.ts";
import { findPlace, withFolder } from "../tools/builtin/file-place.ts";
import { Refusal } from "../tools/builtin/refusal.ts";
import { runProcess } from "../tools/builtin/shell-run.ts";
import { defineTool } from "../tools/define-tool.ts";
import type { Tool } from "../tools/tool.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { cutText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import { createIds } from "../util/ids.ts";
import type { JsonObject } from "../util/json.ts";
import { systemRandom } from "../util/random.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import { type Claim, createEvidenceBook, type EvidenceBook, needOf, notGreen } from "./evidence.ts";
import { createGateRunner, type GateRunner } from "./gate-runner.ts";

export interface VerifyToolsOptions {
  /** The store of the port they are for. */
  readonly store: Store;
  readonly tenant: string;
  /** Asked before a command is run; the port's own, usually. */
  readonly policies?: readonly GatePolicy[];
  readonly clock?: Clock;
  /** Shape: push; what a gate said could not be written down. */
  readonly onProblem?: (problem: { readonly traceId: string; readonly error: unknown }) => void;
}

/** The two ways in which evidence comes into a run: somebody records a check, or the check is made right here. */
export function verifyTools(options: VerifyToolsOptions): readonly Tool[] {
  const { policies = [], clock = systemClock, onProblem = () => {} } = options;
  const store = options.store.tenant(options.tenant);
  const book = createEvidenceBook(store, clock);
  const ids = createIds({ clock, random: systemRandom });
  const newTraceId = () => ids.next();
  const gate = createGateRunner({ policies, ledger: store.gateLedger, newTraceId, onProblem });
  return [verifyResult(book), verifyCommand({ book, gate })];
}

const TEXT = { type: "string", minLength: 1, maxLength: 8_000 } as const;
const INPUT: JsonObject = {
  type: "object",
  properties: { promise: TEXT, need: TEXT, command: TEXT },
  required: ["need", "command"],
  additionalProperties: false,
};
const LONGEST_KEPT = 4_000;
const TIMEOUT_MS = 600_000;
const GRACE_MS = 2_000;

export interface VerifyCommandOptions {
  readonly book: EvidenceBook;
  /** Asked at pre-verify-command. */
  readonly gate: GateRunner;
  readonly timers?: Timers;
}

/**
 * Makes the check itself, so that nobody has to be believed: it runs the command that the promise names, no other, and
 * records how it ended. A command like any other to the permission check: a rule or a person has to allow it.
 */
export function verifyCommand({ book, gate, timers = systemTimers }: VerifyCommandOptions): Tool {
  return defineTool({
    name: VERIFY_COMMAND,
    description: "Runs the command that a completion promise names and records how it ended.",
    input: INPUT,
    safety: { effect: "external", reversible: false, undoMethod: "manual", affects: ["process"] },
    permissionClass: "bash",
    auditOperation: "verify",
    resources: ({ input }) => [{ kind: "command", command: String(input["command"]) }],
    async execute({ input, sessionId, idempotencyKey, signal, workingDirectory, places }) {
      const { promise, need: name, command } = input as unknown as Readonly<Record<string, string>>;
      const page = await asRefusal(() => book.lookUp(sessionId, promise));
      if ("text" in page) return page;
      const need = await asRefusal(async () => needOf(page, String(name)));
      if ("text" in need) return need;
      if (need.command === undefined || need.command !== command) {
        return refusal(
          `The promise names ${JSON.stringify(need.command ?? "no command")} for this.`,
        );
      }
      const asked = await gate.run(
        { point: "pre-verify-command", run: page.run.id, command, phase: page.run.phase },
        { sessionId, actor: page.actor },
      );
      if (!asked.allowed) {
        return refusal(asked.findings.map(({ message }) => message).join(" "));
      }
      const run = async () => {
        const folder = await findPlace(workingDirectory, { workingDirectory, places }, {});
        return withFolder(folder, (directory) =>
          runProcess({
            file: "/bin/sh",
            args: ["-c", command],
            directory,
            environment: { PATH: process.env["PATH"] ?? "" },
            timeoutMs: TIMEOUT_MS,
            maxOutputBytes: 64 * 1024,
            graceMs: GRACE_MS,
            signal,
            timers,
          }),
        );
      };
      const end = await run().catch((error: unknown) => {
        if (error instanceof Refusal) return refusal(error.message);
        throw error;
      });
      if ("text" in end) return end;
      const exitCode = end.exitCode ?? -1;
      const isGreen = exitCode === 0;
      const shown = cutText(`${end.stdout}${end.stderr}`.slice(-LONGEST_KEPT).trim(), LONGEST_KEPT);
      const claim = {
        command,
        exitCode,
        keyOutput: shown.toWellFormed() || "(it printed nothing)",
        verdict: isGreen ? "passed" : "failed",
        conclusion: `It ended with ${exitCode}, as this tool saw itself.`,
      } as const;
      const by = { sessionId, key: idempotencyKey };
      const evidence = await asRefusal(() => book.record(page, need.name, claim, by));
      if ("text" in evidence) return evidence;
      await keepCopy(page.run.evidenceFolder, evidence);
      const text = `Exit code ${exitCode}. ${evidence.green ? "Green" : "Red"} evidence for ${need.name} is recorded.\n${shown}`;
      return { text, isError: !isGreen, data: { exitCode, green: evidence.green } };
    },
  });
}

const RESULT_TEXT = { type: "string", minLength: 1, maxLength: 8_000 } as const;
const RESULT_INPUT: JsonObject = {
  type: "object",
  properties: {
    promise: { ...RESULT_TEXT, description: "The completion promise; yours unless you name one." },
    need: { ...RESULT_TEXT, description: "What it is evidence for: a name out of the promise." },
    command: { ...RESULT_TEXT, description: "The command that was run." },
    exitCode: { type: "integer", description: "What it ended with." },
    keyOutput: { ...RESULT_TEXT, description: "The lines of its output that prove it." },
    verdict: { enum: ["passed", "failed"] },
    conclusion: { ...RESULT_TEXT, description: "What follows from that." },
  },
  required: ["need", "command", "exitCode", "keyOutput", "verdict", "conclusion"],
  additionalProperties: false,
};

type Input = Claim & { readonly promise?: string; readonly need: string };

/** Leaves the evidence of a check in the run it belongs to. What puts the check off is not accepted as a success. */
export function verifyResult(book: EvidenceBook): Tool {
  return defineTool({
    name: VERIFY_RESULT,
    description:
      "Records a check that was made: the command, its exit code, the lines that matter and the conclusion. Record failures too.",
    input: RESULT_INPUT,
    safety: { effect: "write", reversible: false, undoMethod: "manual", affects: ["evidence"] },
    permissionClass: "generic",
    auditOperation: "verify",
    idempotency: "keyed",
    resources: () => [{ kind: "other", id: "evidence", access: "write" }],
    async execute({ input, sessionId, idempotencyKey }) {
      const claim = input as unknown as Input;
      const page = await asRefusal(() => book.lookUp(sessionId, claim.promise));
      if ("text" in page) return page;
      const need = await asRefusal(async () => needOf(page, claim.need));
      if ("text" in need) return need;
      if (need.command !== undefined && need.command !== claim.command) {
        return refusal(`The promise wants the command ${JSON.stringify(need.command)}.`);
      }
      const why = claim.verdict === "passed" ? notGreen(claim) : undefined;
      if (why !== undefined) return refusal(why);
      const by = { sessionId, key: idempotencyKey };
      const evidence = await asRefusal(() => book.record(page, need.name, claim, by));
      if ("text" in evidence) return evidence;
      await keepCopy(page.run.evidenceFolder, evidence);
      return evidence.green
        ? `Recorded: green evidence for ${need.name}.`
        : `Recorded: the check of ${need.name} failed. It has to be repaired.`;
    },
  });
}

/** What the caller can mend is an answer; a store that fails is not. */
async function asRefusal<Result extends object>(
  work: () => Promise<Result>,
): Promise<Result | { readonly text: string; readonly isError: true }> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SallyportError) || error.status >= 500) throw error;
    return refusal(error.details.hint ?? error.message);
  }
}

function refusal(why: string): { readonly text: string; readonly isError: true } {
  return { text: `Not accepted as evidence: ${why}`, isError: true };
}

/** For people who look into the run's folder; what counts is in the store. */
async function keepCopy(folder: string, evidence: Evidence): Promise<void> {
  if (folder === "") return;
  await mkdir(folder, { recursive: true });
  const name = `${evidence.at.replaceAll(":", "")}-${sha256Hex(evidence.key).slice(0, 8)}.json`;
  await writeFile(path.join(folder, name), `${JSON.stringify(evidence, null, 2)}\n`);
}

/** Records a check that was made. */
export const VERIFY_RESULT = "verify.result";
/** Makes the check that the promise names, and records it. */
export const VERIFY_COMMAND = "verify.command";

/** The only tools through which evidence comes into a run. */
export const VERIFY_TOOLS: readonly string[] = [VERIFY_RESULT, VERIFY_COMMAND];
