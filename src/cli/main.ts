import { CommanderError } from "commander";
import { SallyportError } from "../model/errors.ts";
import { errorText } from "../util/error-text.ts";
import { EXIT } from "./exit.ts";
import { safeJson } from "./print.ts";
import { createProgram } from "./program.ts";
import { shown } from "./render.ts";

/** Runs one command line and says how it ended. Nothing is thrown: what went wrong is on standard error. */
export async function main(args: readonly string[]): Promise<number> {
  const program = createProgram();
  try {
    await program.parseAsync([...args], { from: "user" });
    return Number(process.exitCode ?? EXIT.done);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    const json = args.includes("--json");
    process.stderr.write(`${json ? asJson(error) : shown(errorText(error))}\n`);
    return exitCodeOf(error);
  }
}

function asJson(error: unknown): string {
  const { code, details } =
    error instanceof SallyportError ? error : { code: "failed", details: {} };
  return safeJson({ error: { code, text: errorText(error), details } });
}

function exitCodeOf(error: unknown): number {
  if (!(error instanceof SallyportError)) return EXIT.failed;
  if (error.code === "store_unavailable") return EXIT.unreachable;
  return error.status >= 400 && error.status < 500 ? EXIT.refused : EXIT.failed;
}
