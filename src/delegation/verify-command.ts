import { findPlace, withFolder } from "../tools/builtin/file-place.ts";
import { Refusal } from "../tools/builtin/refusal.ts";
import { runProcess } from "../tools/builtin/run-process.ts";
import { defineTool } from "../tools/define-tool.ts";
import type { Tool } from "../tools/tool.ts";
import { cutText } from "../util/error-text.ts";
import type { JsonObject } from "../util/json.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import { type EvidenceBook, needOf } from "./evidence-book.ts";
import type { GateRunner } from "./gate-runner.ts";
import { VERIFY_COMMAND } from "./verify-names.ts";
import { asRefusal, keepCopy, refusal } from "./verify-result.ts";

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
