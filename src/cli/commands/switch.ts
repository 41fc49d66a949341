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

/** How long a server may take before the store is written directly. */
const PATIENCE_MS = 5_000;

/** The kill switch has the shortest names, because it is needed in a hurry. */
export function addSwitch(program: Command): void {
  turning(program, "stop")
    .description(
      "Stop everything: after the answer no new effect starts anywhere. Also works without a server.",
    )
    .argument("[reason]", "why", "stopped from the command line")
    .action((reason: string, _, command: Command) => turn("stop", reason, command));
  turning(program, "resume")
    .description("Allow effects to start again. Also works without a server.")
    .argument("[reason]", "why", "resumed from the command line")
    .action((reason: string, _, command: Command) => turn("resume", reason, command));
  program
    .command("status")
    .description("Show whether everything is stopped, and who is signed in.")
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
    .option("--direct", "write to the store in --data directly, without a server")
    .option("--database <url>", "write to a PostgreSQL store directly, without a server")
    .option("--tenant <name>", "the tenant, for direct writes; stop: all tenants by default");
}

/** Through the server if it answers; otherwise directly into the store, where every process sees it. */
async function turn(turned: Turn, reason: string, command: Command): Promise<void> {
  const flags = command.optsWithGlobals<Flags>();
  const isDirect = flags.direct === true || flags.database !== undefined;
  if (!isDirect) {
    try {
      const asking = (signal: AbortSignal) => connect(flags).switch[turned]({ reason }, { signal });
      return print(await withDeadline(asking, PATIENCE_MS, systemTimers), flags);
    } catch (error) {
      // A server that was named explicitly is not bypassed.
      if (isNamed(flags) || !hasStore(place(flags))) throw error;
      progress(`The server failed (${errorText(error)}). Writing to the store directly.`);
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
        tenants.length === 0 ? "This store has no tenants yet." : "Name the tenant with --tenant.";
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
