import { Command } from "commander";
import { auditCommand } from "./commands/audit.ts";
import { completionCommand } from "./commands/completion.ts";
import { crashkitCommand } from "./commands/crashkit.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { addNouns } from "./commands/nouns.ts";
import { reviewCommand } from "./commands/review.ts";
import { demoCommand, serveCommand } from "./commands/serve.ts";
import { storeCommand } from "./commands/store.ts";
import { addSwitch } from "./commands/switch.ts";
import { workerCommand } from "./commands/worker.ts";
import { visible } from "./render.ts";

/** Every command. Those of the nouns are made from the server's own table of routes, so none can be missing. */
export function createProgram(): Command {
  const program = new Command("sallyport")
    .description("The gate with two doors between AI agents and production.")
    .option(
      "--data <folder>",
      "where the store lies, and how a server here is reached",
      ".sallyport",
    )
    .option("--url <address>", "a server elsewhere (or SALLYPORT_URL)")
    .option("--token <secret>", "who you are there (or SALLYPORT_TOKEN)")
    .option(
      "--link <address>",
      "a sign-in link, to decide as yourself; on a terminal it is asked for",
    )
    .option("--json", "answers as JSON, for scripts")
    .showHelpAfterError("(sallyport help COMMAND tells more)")
    .exitOverride();
  program.addCommand(demoCommand());
  program.addCommand(serveCommand());
  program.addCommand(workerCommand());
  program.addCommand(reviewCommand());
  addSwitch(program);
  addNouns(program);
  program.addCommand(storeCommand());
  auditCommand(program);
  program.addCommand(doctorCommand());
  program.addCommand(crashkitCommand());
  program.addCommand(completionCommand(program));
  for (const command of program.commands) command.exitOverride();
  quoteSafely(program);
  return program;
}

/** What is wrong with an argument is told with the argument, which may come from anywhere. */
function quoteSafely(command: Command): void {
  command.configureOutput({ outputError: (text, write) => write(visible(text)) });
  for (const one of command.commands) quoteSafely(one);
}
