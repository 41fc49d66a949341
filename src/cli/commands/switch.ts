import { userInfo } from "node:os";
import path from "node:path";
import type { Command } from "commander";
import { SallyportError } from "../../model/errors.ts";
import { errorText } from "../../util/error-text.ts";
import { systemTimers, withDeadline } from "../../util/timers.ts";
import { connect, type Shared } from "../connect.ts";
import { hasStore, openExisting } from "../open-store.ts";
import { print, progress } from "../print.ts";

interface Flags extends Shared {
  readonly database?: string;
  readonly tenant?: string;
  readonly direct?: boolean;
}

type Turn = "stop" | "resume";

/** How long a server may take before the store is written without it. */
const PATIENCE_MS = 5_000;

/** The kill switch has the shortest names: whoever needs it has no time. */
export function addSwitch(program: Command): void {
  turning(program, "stop")
    .description(
      "Stops everything: once it has answered, no new effect starts anywhere. Works without a server, too.",
    )
    .argument("[reason]", "why", "stopped from the command line")
    .action((reason: string, _, command: Command) => turn("stop", reason, command));
  turning(program, "resume")
    .description("Lets effects start again. Works without a server, too.")
    .argument("[reason]", "why", "resumed from the command line")
    .action((reason: string, _, command: Command) => turn("resume", reason, command));
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

function turning(program: Command, name: Turn): Command {
  return program
    .command(name)
    .option("--direct", "writes the store in --data itself and asks no server")
    .option("--database <url>", "writes a PostgreSQL store itself and asks no server")
    .option("--tenant <name>", "whose, when the store is written; stop: everybody's when left out");
}

/** Through the server that answers; otherwise into the store itself, where every process sees it. */
async function turn(turned: Turn, reason: string, command: Command): Promise<void> {
  const flags = command.optsWithGlobals<Flags>();
  const isDirect = flags.direct === true || flags.database !== undefined;
  if (!isDirect) {
    try {
      const asking = (signal: AbortSignal) => connect(flags).switch[turned]({ reason }, { signal });
      return print(await withDeadline(asking, PATIENCE_MS, systemTimers), flags);
    } catch (error) {
      // A server that was named is the one that is meant.
      if (isNamed(flags) || !hasStore(place(flags))) throw error;
      progress(`The server did not do it (${errorText(error)}). Writing the store instead.`);
    }
  }
  print(await writeSwitch(turned, reason, flags), flags);
}

async function writeSwitch(turned: Turn, reason: string, flags: Flags) {
  const store = await openExisting(place(flags), "to write");
  try {
    const known = (await store.heads()).map(({ tenant }) => tenant);
    const tenants = flags.tenant === undefined ? known : [flags.tenant];
    if (tenants.length === 0 || (turned === "resume" && tenants.length > 1)) {
      const hint =
        tenants.length === 0
          ? "Nobody has worked with this store yet."
          : "Say whose with --tenant.";
      throw new SallyportError("invalid_input", { what: "tenant", known, hint });
    }
    const by = { actor: `cli:${userInfo().username}` };
    for (const tenant of tenants) await store.tenant(tenant).killSwitch[turned](reason, by);
    return { stopped: turned === "stop", tenants, by: by.actor };
  } finally {
    await store.close();
  }
}

function isNamed({ url, token }: Flags): boolean {
  const { SALLYPORT_URL, SALLYPORT_TOKEN } = process.env;
  return [url, token, SALLYPORT_URL, SALLYPORT_TOKEN].some((given) => given !== undefined);
}

function place(flags: Flags) {
  return { ...flags, data: path.resolve(flags.data) };
}
