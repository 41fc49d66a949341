import type { Command } from "commander";
import { connect, type Shared } from "../connect.ts";
import { print } from "../print.ts";

/** The kill switch has the shortest names: whoever needs it has no time. */
export function addSwitch(program: Command): void {
  program
    .command("stop")
    .description("Stops everything: once it has answered, no new effect starts anywhere.")
    .argument("[reason]", "why", "stopped from the command line")
    .action(async (reason: string) => {
      const shared = program.opts<Shared>();
      print(await connect(shared).switch.stop({ reason }), shared);
    });
  program
    .command("resume")
    .description("Lets effects start again.")
    .argument("[reason]", "why", "resumed from the command line")
    .action(async (reason: string) => {
      const shared = program.opts<Shared>();
      print(await connect(shared).switch.resume({ reason }), shared);
    });
  program
    .command("status")
    .description("Is everything stopped, and who am I?")
    .action(async () => {
      const shared = program.opts<Shared>();
      const client = connect(shared);
      const [me, state] = [await client.me.get(), await client.switch.get()];
      print({ ...me, switch: state }, shared);
    });
}
