import { isDelegated } from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import type { CompletionPromise, Evidence, EvidenceNeed } from "../model/promise.ts";
import { isRunId, type Run, type RunId } from "../model/run.ts";
import type { TenantStore } from "../store/store.ts";
import { type Clock, toIso } from "../util/clock.ts";
import { reduceRun } from "./runs.ts";

/** Where a session's evidence goes. */
export interface EvidenceBook {
  /** The promise that evidence of this session is about, in its run as it is now. Throws not_found without a run. */
  lookUp(sessionId: string, promiseId?: string): Promise<Page>;
  /** Made again with the same key it is the same evidence. */
  record(
    page: Page,
    need: string,
    claim: Claim,
    by: { sessionId: string; key: string },
  ): Promise<Evidence>;
}

export interface Page {
  readonly run: Run;
  readonly promise: CompletionPromise;
  readonly actor: string;
}

const TRIES = 20;

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
    async lookUp(sessionId, promiseId) {
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
      return { run, promise, actor: own.actor || run.lead };
    },
    async record({ run: { id }, promise, actor }, need, claim, { sessionId, key }) {
      for (let tries = 0; tries < TRIES; tries += 1) {
        const run = await store.runs.get(id);
        const known = run.evidence.find((one) => one.key === key);
        if (known !== undefined) return known;
        checkTime(id, run);
        const { command, exitCode, keyOutput, conclusion } = claim;
        const evidence: Evidence = {
          promiseId: promise.id,
          need,
          command,
          exitCode,
          keyOutput,
          conclusion,
          green: notGreen(claim) === undefined,
          key,
          sessionId,
          at: toIso(clock.now()),
        };
        const event = { kind: "evidence_recorded", evidence } as const;
        const moved = await store.runs.move(reduceRun(run, id, event), event, { actor });
        if (moved !== undefined) return evidence;
      }
      throw new SallyportError("concurrent_modification", { id });
    },
  };
}

/** Production stands still in this phase, so what was checked is what will be delivered. */
function checkTime(id: RunId, { phase }: Run): void {
  if (phase === "verify") return;
  const hint = "Evidence is recorded in the phase verify, when nothing is written any more.";
  throw new SallyportError("illegal_transition", { id, from: phase, hint });
}

/** Throws not_found for a need that the promise does not have. */
export function needOf({ promise }: Page, name: string): EvidenceNeed {
  const need = promise.evidence.find((one) => one.name === name);
  if (need !== undefined) return need;
  const names = promise.evidence.map((one) => one.name).join(", ");
  const hint = `The promise ${promise.id} asks for: ${names || "nothing"}.`;
  throw new SallyportError("not_found", { id: name, hint });
}

/** What somebody says of a check. */
export interface Claim {
  readonly command: string;
  readonly exitCode: number;
  readonly keyOutput: string;
  readonly verdict: "passed" | "failed";
  readonly conclusion: string;
}

/**
 * Words that put a check off, or say that it was not made. Compared after everything is taken away that hides them: case,
 * look-alike forms, invisible characters, punctuation between words.
 */
const PUT_OFF: readonly RegExp[] = [
  /\b(?:to|will|should|must|can|needs? to|yet to|remains? to) be (?:\w+ )?(?:verified|tested|checked|confirmed|validated|determined)\b/,
  /\b(?:will|shall|going to|plan to|need to|have to) (?:\w+ )?(?:verify|test|check|confirm|validate)\b/,
  /\b(?:verif|test|check|confirm|validat)\w* (?:\w+ ){0,3}(?:later|afterwards?|soon|tomorrow|pending|follows|manually)\b/,
  /\b(?:not|never) (?:(?:yet|been) )*(?:verified|tested|checked|confirmed|validated)\b/,
  /待验证|待测|稍后|后续|未验证|未测试/,
];

/** Beyond these, a conclusion may not hedge; in the output of a tool the same words mean something else ("0 skipped"). */
const HEDGED: readonly RegExp[] = [
  /\b(?:not|never|didn t|did not|could not|couldn t|unable to) (?:(?:yet|been) )*(?:run|execute|executed|verify|test|check)\b/,
  /\b(?:tbd|tbc|todo|wip|n a|untested|unverified|unchecked)\b/,
  /\b(?:assum\w+|presumably|probably|likely|should (?:pass|work|be fine)|expected to (?:pass|work)|looks? (?:fine|good))\b/,
  /(?<!\b(?:0|no|nothing|none) )\b(?:pending|skipped|later)\b/,
];

/** Why a claim is no green evidence, as a sentence; undefined when it is. */
export function notGreen(claim: Claim): string | undefined {
  const { command, exitCode, keyOutput, verdict, conclusion } = claim;
  if (verdict !== "passed") return "The check failed.";
  if (exitCode !== 0) return `The command ended with ${exitCode}, and only 0 is a success.`;
  if (plain(command) === "") return "There is no command: nothing was checked.";
  if (plain(keyOutput) === "") return "There is no output: show the lines that prove it.";
  if (plain(conclusion) === "") return "There is no conclusion.";
  if (!isPutOff(conclusion, "conclusion") && !isPutOff(keyOutput, "output")) return undefined;
  return "It says that the check was put off or not made. Make it, and record what came out.";
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
