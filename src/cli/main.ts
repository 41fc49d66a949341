import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { SallyportError } from "../model/errors.ts";
import { errorText } from "../util/error-text.ts";
import { auditCommand } from "./commands/audit.ts";
import { hookCommand, installCommand, uninstallCommand } from "./commands/coding.ts";
import { initCommand } from "./commands/init.ts";
import { mcpCommand } from "./commands/mcp.ts";
import { notifyCommand } from "./commands/notify.ts";
import { addNouns, completionCommand } from "./commands/nouns.ts";
import { addPeopleCommands } from "./commands/people.ts";
import { policyCommand } from "./commands/policy.ts";
import { reviewCommand } from "./commands/review.ts";
import { crashkitCommand, demoCommand, serveCommand, workerCommand } from "./commands/serve.ts";
import { doctorCommand, storeCommand } from "./commands/store.ts";
import { addSwitch } from "./commands/switch.ts";
import { storeNamed } from "./open-store.ts";
import { EXIT, printable, safeJson, visible } from "./render.ts";

/** Runs one command line and returns its exit code. Errors go to standard error; nothing is thrown. */
export async function main(args: readonly string[]): Promise<number> {
  const program = createProgram();
  try {
    await program.parseAsync([...args], { from: "user" });
    return Number(process.exitCode ?? EXIT.done);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    const json = args.includes("--json");
    process.stderr.write(`${json ? asJson(error) : printable(errorText(error))}\n`);
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

/** All commands. Those for records are generated from the routes, so none can be missing. */
export function createProgram(): Command {
  const program = new Command("sallyport")
    .description("The gate between AI agents and production.")
    .option(
      "--data <folder>",
      "folder of the store and of the local server's access file",
      ".sallyport",
    )
    .option(
      "--store <file|url>",
      "any store file, or a PostgreSQL address, for commands that need no server",
    )
    .option("--url <address>", "a remote server (or SALLYPORT_URL)")
    .option("--token <secret>", "your token for that server (or SALLYPORT_TOKEN)")
    .option("--link <address>", "a sign-in link, to decide as yourself; prompted for on a terminal")
    .option("--json", "print JSON, for scripts")
    .version(ownVersion(), "--version", "print the version")
    .showHelpAfterError("(run sallyport help COMMAND for details)")
    .hook("preAction", takeStore)
    .exitOverride();
  program.addCommand(initCommand());
  program.addCommand(demoCommand());
  program.addCommand(serveCommand());
  program.addCommand(workerCommand());
  program.addCommand(mcpCommand());
  program.addCommand(hookCommand());
  program.addCommand(installCommand());
  program.addCommand(uninstallCommand());
  program.addCommand(policyCommand());
  program.addCommand(reviewCommand());
  addPeopleCommands(program);
  addSwitch(program);
  addNouns(program);
  program.addCommand(notifyCommand());
  program.addCommand(storeCommand());
  auditCommand(program);
  program.addCommand(doctorCommand());
  program.addCommand(crashkitCommand());
  program.addCommand(completionCommand(program));
  for (const command of program.commands) command.exitOverride();
  quoteSafely(program);
  return program;
}

/** `--store` names the store for every command that opens one: as a file, or as a database. */
function takeStore(program: Command, command: Command): void {
  const { store } = program.opts<{ readonly store?: string }>();
  if (store === undefined) return;
  const { database } = command.opts<{ readonly database?: string }>();
  for (const [name, value] of Object.entries(storeNamed(store, database))) {
    program.setOptionValue(name, value);
  }
}

function ownVersion(): string {
  const manifest = new URL("../../package.json", import.meta.url);
  return JSON.parse(readFileSync(manifest, "utf8")).version;
}

/** Error messages quote arguments, which may be untrusted, so they are escaped. */
function quoteSafely(command: Command): void {
  command.configureOutput({ outputError: (text, write) => write(visible(text)) });
  for (const one of command.commands) quoteSafely(one);
}
