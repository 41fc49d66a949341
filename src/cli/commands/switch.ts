import { userInfo } from "node:os";
import type { Command } from "commander";
import { SallyportError } from "../../model/errors.ts";
import type { Store } from "../../store/store.ts";
import { errorText } from "../../util/error-text.ts";
import { systemTimers, withDeadline } from "../../util/timers.ts";
import { connect, isServerNamed, type Shared } from "../connect.ts";
import { hasStore, inStore, type StoreFlags, storePlaceOf, withFlags } from "../open-store.ts";
import { print, progress } from "../render.ts";

interface Flags extends StoreFlags {
  readonly tenant?: string;
  readonly direct?: boolean;
}

const TURNS = {
  stop: "Stop everything: after the answer no new effect starts anywhere. Also works without a server.",
  resume: "Allow effects to start again. Also works without a server.",
} as const;
type Turn = keyof typeof TURNS;

/** How long a server may take before the store is written directly. */
const PATIENCE_MS = 5_000;

/** The kill switch has the shortest names, because it is needed in a hurry. */
export function addSwitch(program: Command): void {
  for (const [name, about] of Object.entries(TURNS) as [Turn, string][]) {
    program
      .command(name)
      .option("--direct", "write to the store in --data directly, without a server")
      .option("--database <url>", "write to a PostgreSQL store directly, without a server")
      .option("--tenant <name>", "the tenant, for direct writes; stop: all tenants by default")
      .description(about)
      .argument(
        "[reason]",
        "why",
        `${name === "stop" ? "stopped" : "resumed"} from the command line`,
      )
      .action(withFlags<Flags>((flags, reason = "") => turn(name, reason, flags)));
  }
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

/** Through the server if it answers; otherwise directly into the store, where every process sees it. */
async function turn(turned: Turn, reason: string, flags: Flags): Promise<void> {
  const isDirect = flags.direct === true || flags.database !== undefined;
  if (!isDirect) {
    try {
      const asking = (signal: AbortSignal) => connect(flags).switch[turned]({ reason }, { signal });
      return print(await withDeadline(asking, PATIENCE_MS, systemTimers), flags);
    } catch (error) {
      // A server that was named explicitly is not bypassed.
      if (isServerNamed(flags) || !hasStore(storePlaceOf(flags))) throw error;
      progress(`The server failed (${errorText(error)}). Writing to the store directly.`);
    }
  }
  print(await writeSwitch(turned, reason, flags), flags);
}

async function writeSwitch(turned: Turn, reason: string, flags: Flags) {
  return inStore(storePlaceOf(flags), write, "to write");

  async function write(store: Store) {
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
  }
}
