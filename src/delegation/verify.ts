import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import {
  type CompletionPromise,
  type Evidence,
  type EvidenceNeed,
  isDelegated,
  isRunId,
  type Run,
} from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import type { GatePolicy } from "../policy/decide.ts";
import type { Store, TenantStore } from "../store/store.ts";
import { findPlace, ToolRefusal, withFolder } from "../tools/builtin/file-place.ts";
import { runProcess } from "../tools/builtin/shell-run.ts";
import { defineTool } from "../tools/define-tool.ts";
import type { Tool } from "../tools/tool.ts";
import { type Clock, systemClock, toIso } from "../util/clock.ts";
import { cutText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import { createIds } from "../util/ids.ts";
import type { JsonObject } from "../util/json.ts";
import { systemRandom } from "../util/random.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import { createGateRunner, type GateRunner } from "./plan.ts";
import { moveRun } from "./runs.ts";
import { VERIFY_COMMAND, VERIFY_RESULT } from "./scope.ts";

export interface VerifyToolsOptions {
  /** The store of the gate that uses them. */
  readonly store: Store;
  readonly tenant: string;
  /** Evaluated before a command is run; usually the gate's own. */
  readonly policies?: readonly GatePolicy[];
  readonly clock?: Clock;
  /** Shape: push; a gate's evaluation could not be recorded. */
  readonly onProblem?: (problem: { readonly traceId: string; readonly error: unknown }) => void;
}

/** The two tools that add evidence to a run: one records a check that was made, the other makes the check. */
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

interface VerifyCommandOptions {
  readonly book: EvidenceBook;
  /** Evaluated at pre-verify-command. */
  readonly gate: GateRunner;
  readonly timers?: Timers;
}

/**
 * Makes the check itself, so that no claim has to be trusted: it runs exactly the command that the promise names and records
 * how it ended. To the permission check it is a command like any other: a rule or a person must allow it.
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
      const found = await asRefusal(() => book.lookUp(sessionId, String(name), promise));
      if ("text" in found) return found;
      const { page, need } = found;
      if (need.command === undefined || need.command !== command) {
        const named = JSON.stringify(need.command ?? "no command");
        return refusal(`The promise names ${named} for this.`);
      }
      const asked = await gate.run(
        { point: "pre-verify-command", run: page.run.id, command, phase: page.run.phase },
        { sessionId, actor: page.actor },
      );
      if (!asked.allowed) return refusal(asked.findings.map(({ message }) => message).join(" "));
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
        if (error instanceof ToolRefusal) return refusal(error.message);
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
        conclusion: `It ended with ${exitCode}, as observed by this tool.`,
      } as const;
      const by = { sessionId, key: idempotencyKey, observed: true };
      const evidence = await asRefusal(() => book.record(page, need.name, claim, by));
      if ("text" in evidence) return evidence;
      await keepCopy(page.run.evidenceFolder, evidence);
      const text = `Exit code ${exitCode}. ${evidence.green ? "Green" : "Red"} evidence for ${need.name} is recorded.\n${shown}`;
      return { text, isError: !isGreen, data: { exitCode, green: evidence.green } };
    },
  });
}

const RESULT_INPUT: JsonObject = {
  type: "object",
  properties: {
    promise: { ...TEXT, description: "The completion promise; yours unless you name one." },
    need: { ...TEXT, description: "What it is evidence for: a name from the promise." },
    command: { ...TEXT, description: "The command that was run." },
    exitCode: { type: "integer", description: "Its exit code." },
    keyOutput: { ...TEXT, description: "The lines of its output that prove it." },
    verdict: { enum: ["passed", "failed"] },
    conclusion: { ...TEXT, description: "What follows from that." },
  },
  required: ["need", "command", "exitCode", "keyOutput", "verdict", "conclusion"],
  additionalProperties: false,
};

type Input = Claim & { readonly promise?: string; readonly need: string };

/** Adds the evidence of a check to its run. A claim that postpones the check is not accepted as a success. */
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
      const found = await asRefusal(() => book.lookUp(sessionId, claim.need, claim.promise));
      if ("text" in found) return found;
      const { page, need } = found;
      if (need.command !== undefined && need.command !== claim.command) {
        return refusal(`The promise wants the command ${JSON.stringify(need.command)}.`);
      }
      const why = claim.verdict === "passed" ? notGreen(claim) : undefined;
      if (why !== undefined) return refusal(why);
      const by = { sessionId, key: idempotencyKey, observed: false };
      const evidence = await asRefusal(() => book.record(page, need.name, claim, by));
      if ("text" in evidence) return evidence;
      await keepCopy(page.run.evidenceFolder, evidence);
      if (evidence.green && need.command !== undefined) {
        return `Recorded as a claim: ${need.name} names a command, so it is met only when ${VERIFY_COMMAND} runs it.`;
      }
      return evidence.green
        ? `Recorded: green evidence for ${need.name}.`
        : `Recorded: the check of ${need.name} failed. It has to be repaired.`;
    },
  });
}

/** An error that the caller can fix is an answer; a failure of the store is not. */
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

/** A copy for people; the record is in the store. */
async function keepCopy(folder: string, evidence: Evidence): Promise<void> {
  if (folder === "") return;
  await mkdir(folder, { recursive: true });
  const name = `${evidence.at.replaceAll(":", "")}-${sha256Hex(evidence.key).slice(0, 8)}.json`;
  await writeFile(path.join(folder, name), `${JSON.stringify(evidence, null, 2)}\n`);
}

/** Where a session's evidence goes. */
export interface EvidenceBook {
  /** The promise of this session in its run as it is now, and one need of it. Throws not_found without them. */
  lookUp(
    sessionId: string,
    need: string,
    promiseId?: string,
  ): Promise<{ readonly page: EvidencePage; readonly need: EvidenceNeed }>;
  /** A repeat with the same key returns the same evidence. */
  record(
    page: EvidencePage,
    need: string,
    claim: Claim,
    by: { sessionId: string; key: string; observed: boolean },
  ): Promise<Evidence>;
}

export interface EvidencePage {
  readonly run: Run;
  readonly promise: CompletionPromise;
  readonly actor: string;
}

export function createEvidenceBook(
  store: Pick<TenantStore, "runs" | "delegations">,
  clock: Clock,
): EvidenceBook {
  async function whose(
    sessionId: string,
  ): Promise<{ runId: string; promiseId: string; actor: string }> {
    if (!isDelegated(sessionId)) return { runId: sessionId, promiseId: "", actor: "" };
    const { runId, promise, agents } = await store.delegations.get(sessionId);
    return { runId, promiseId: promise.id, actor: agents[0] ?? "" };
  }
  return {
    async lookUp(sessionId, name, promiseId) {
      const own = await whose(sessionId);
      if (!isRunId(own.runId)) {
        const hint = "Evidence belongs to a run, and this session is in none. Start a run first.";
        throw new SallyportError("not_found", { id: sessionId, hint });
      }
      const run = await store.runs.get(own.runId);
      const wanted = promiseId ?? (own.promiseId || run.promises[0]?.id);
      const promise = run.promises.find(({ id }) => id === wanted);
      if (promise === undefined) {
        const hint = "The run has given no such promise.";
        throw new SallyportError("not_found", { id: String(wanted), hint });
      }
      const need = promise.evidence.find((one) => one.name === name);
      if (need !== undefined) {
        return { page: { run, promise, actor: own.actor || run.lead }, need };
      }
      const names = promise.evidence.map((one) => one.name).join(", ");
      const hint = `The promise ${promise.id} asks for: ${names || "nothing"}.`;
      throw new SallyportError("not_found", { id: name, hint });
    },
    async record({ run: { id }, promise, actor }, need, claim, { sessionId, key, observed }) {
      const { verdict: _, ...facts } = claim;
      const isNew = (run: Run) => !run.evidence.some((one) => one.key === key);
      const record = (run: Run) => {
        checkPhase(run);
        const green = notGreen(claim) === undefined;
        const at = toIso(clock.now());
        const evidence = {
          ...{ promiseId: promise.id, need, ...facts, observed },
          ...{ green, key, sessionId, at },
        };
        return { kind: "evidence_recorded", evidence } as const;
      };
      const eventOf = (run: Run) => (isNew(run) ? record(run) : undefined);
      const { evidence } = await moveRun(store.runs, id, eventOf, { actor });
      return evidence.findLast((one) => one.key === key) as Evidence;
    },
  };
}

/** Production does not change in this phase, so what was checked is what will be delivered. */
function checkPhase({ id, phase }: Run): void {
  if (phase === "verify") return;
  const hint = "Evidence is recorded in the phase verify, when production is no longer written.";
  throw new SallyportError("illegal_transition", { id, from: phase, hint });
}

/** The result of a check, as reported. */
export interface Claim {
  readonly command: string;
  readonly exitCode: number;
  readonly keyOutput: string;
  readonly verdict: "passed" | "failed";
  readonly conclusion: string;
}

/**
 * Words that postpone a check, or say that it was not made. Compared after removing what hides them: case, look-alike forms,
 * invisible characters, punctuation between words.
 */
const PUT_OFF: readonly RegExp[] = [
  /\b(?:to|will|should|must|can|needs? to|yet to|remains? to) be (?:\w+ )?(?:verified|tested|checked|confirmed|validated|determined)\b/,
  /\b(?:will|shall|going to|plan to|need to|have to) (?:\w+ )?(?:verify|test|check|confirm|validate)\b/,
  /\b(?:verif|test|check|confirm|validat)\w* (?:\w+ ){0,3}(?:later|afterwards?|soon|tomorrow|pending|follows|manually)\b/,
  /\b(?:not|never) (?:(?:yet|been) )*(?:verified|tested|checked|confirmed|validated)\b/,
  /待验证|待测|稍后|后续|未验证|未测试/,
];

/** A conclusion may not hedge either; in the output of a tool the same words mean something else ("0 skipped"). */
const HEDGED: readonly RegExp[] = [
  /\b(?:not|never|didn t|did not|could not|couldn t|unable to) (?:(?:yet|been) )*(?:run|execute|executed|verify|test|check)\b/,
  /\b(?:tbd|tbc|todo|wip|n a|untested|unverified|unchecked)\b/,
  /\b(?:assum\w+|presumably|probably|likely|should (?:pass|work|be fine)|expected to (?:pass|work)|looks? (?:fine|good))\b/,
  /(?<!\b(?:0|no|nothing|none) )\b(?:pending|skipped|later)\b/,
];

/** Why a claim is not green evidence, as a sentence; undefined when it is. */
export function notGreen(claim: Claim): string | undefined {
  const { command, exitCode, keyOutput, verdict, conclusion } = claim;
  if (verdict !== "passed") return "The check failed.";
  if (exitCode !== 0) return `The command ended with ${exitCode}, and only 0 is a success.`;
  if (plain(command) === "") return "There is no command: nothing was checked.";
  if (plain(keyOutput) === "") return "There is no output: show the lines that prove it.";
  if (plain(conclusion) === "") return "There is no conclusion.";
  if (!isPutOff(conclusion, "conclusion") && !isPutOff(keyOutput, "output")) return undefined;
  return "It says that the check was postponed or not made. Make it, and record the result.";
}

function isPutOff(text: string, what: "conclusion" | "output"): boolean {
  const words = plain(text);
  const patterns = what === "conclusion" ? [...PUT_OFF, ...HEDGED] : PUT_OFF;
  return patterns.some((pattern) => pattern.test(words));
}

function plain(text: string): string {
  return text
    .normalize("NFKD")
    .replace(/[\p{M}\p{Cf}]/gu, "")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
}
