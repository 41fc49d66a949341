import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { SallyportError } from "../model/errors.ts";
import type { Evidence } from "../model/promise.ts";
import { defineTool } from "../tools/define-tool.ts";
import type { Tool } from "../tools/tool.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject } from "../util/json.ts";
import { type Claim, notGreen } from "./evidence.ts";
import { type EvidenceBook, needOf } from "./evidence-book.ts";
import { VERIFY_RESULT } from "./verify-names.ts";

const TEXT = { type: "string", minLength: 1, maxLength: 8_000 } as const;
const INPUT: JsonObject = {
  type: "object",
  properties: {
    promise: { ...TEXT, description: "The completion promise; yours unless you name one." },
    need: { ...TEXT, description: "What it is evidence for: a name out of the promise." },
    command: { ...TEXT, description: "The command that was run." },
    exitCode: { type: "integer", description: "What it ended with." },
    keyOutput: { ...TEXT, description: "The lines of its output that prove it." },
    verdict: { enum: ["passed", "failed"] },
    conclusion: { ...TEXT, description: "What follows from that." },
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
    input: INPUT,
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
export async function asRefusal<Result extends object>(
  work: () => Promise<Result>,
): Promise<Result | { readonly text: string; readonly isError: true }> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SallyportError) || error.status >= 500) throw error;
    return refusal(error.details.hint ?? error.message);
  }
}

export function refusal(why: string): { readonly text: string; readonly isError: true } {
  return { text: `Not accepted as evidence: ${why}`, isError: true };
}

/** For people who look into the run's folder; what counts is in the store. */
export async function keepCopy(folder: string, evidence: Evidence): Promise<void> {
  if (folder === "") return;
  await mkdir(folder, { recursive: true });
  const name = `${evidence.at.replaceAll(":", "")}-${sha256Hex(evidence.key).slice(0, 8)}.json`;
  await writeFile(path.join(folder, name), `${JSON.stringify(evidence, null, 2)}\n`);
}
