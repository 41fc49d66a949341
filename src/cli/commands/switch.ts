import { userInfo } from "node:os";
import type { Command } from "commander";
import { SallyportError } from "../../model/errors.ts";
import type { PauseScope } from "../../model/pause.ts";
import type { Store } from "../../store/store.ts";
import { errorText } from "../../util/error-text.ts";
import { systemTimers, withDeadline } from "../../util/timers.ts";
import { connect, isServerNamed, type Shared } from "../connect.ts";
import { hasStore, inStore, type StoreFlags, storePlaceOf, withFlags } from "../open-store.ts";
import { print, progress } from "../render.ts";

interface Flags extends StoreFlags {
  readonly tenant?: string;
  readonly direct?: boolean;
  readonly agent?: string;
  readonly tool?: string;
  readonly session?: string;
}

const TURNS = {
  stop: "Pause everything, or one agent, tool or run. Nothing of it starts until resumed. Also works without a server.",
  resume: "End a pause; what was approved meanwhile runs. Also works without a server.",
} as const;
type Turn = keyof typeof TURNS;

/** How long a server may take before the store is written directly. */
const PATIENCE_MS = 5_000;

/** The kill switch has the shortest names, because it is needed in a hurry. */
export function addSwitch(program: Command): void {
  for (const [name, about] of Object.entries(TURNS) as [Turn, string][]) {
    program
      .command(name)
      .option("--agent <name>", "only this agent, and what it has delegated")
      .option("--tool <pattern>", "only these tools, for instance orders.*")
      .option("--session <id>", "only this run")
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
    .description("Show what is paused, what waits, and who is signed in.")
    .action(async () => {
      const shared = program.opts<Shared>();
      const client = connect(shared);
      const [me, state, pauses] = await Promise.all([
        client.me.get(),
        client.switch.get(),
        client.pauses.list(),
      ]);
      if (!Array.isArray(pauses?.items) || !Array.isArray(me?.roles)) {
        const hint = "What answers there is not a Sallyport server. Check the address.";
        throw new SallyportError("store_unavailable", { what: "server", hint });
      }
      if (shared.json === true)
        return print({ ...me, switch: state, pauses: pauses.items }, shared);
      print(statusText(me, state, pauses.items), shared);
    });
}

/** Through the server if it answers; otherwise directly into the store, where every process sees it. */
async function turn(turned: Turn, reason: string, flags: Flags): Promise<void> {
  const isDirect = flags.direct === true || flags.database !== undefined;
  if (!isDirect) {
    try {
      const asking = (signal: AbortSignal) => ask(turned, reason, flags, signal);
      return print(await withDeadline(asking, PATIENCE_MS, systemTimers), flags);
    } catch (error) {
      // A server that was named explicitly is not bypassed.
      if (isServerNamed(flags) || !hasStore(storePlaceOf(flags))) throw error;
      progress(`The server failed (${errorText(error)}). Writing to the store directly.`);
    }
  }
  print(await writeSwitch(turned, reason, flags), flags);
}

function scopesOf({ agent, tool, session }: Flags): readonly PauseScope[] {
  return (
    [
      ["agent", agent],
      ["tool", tool],
      ["session", session],
    ] as const
  ).flatMap(([kind, subject]) => (subject === undefined ? [] : [{ kind, subject }]));
}

/** With a scope, each part by itself; without one, everything. */
async function ask(turned: Turn, reason: string, flags: Flags, signal: AbortSignal) {
  const client = connect(flags);
  const scopes = scopesOf(flags);
  if (scopes.length === 0) return client.switch[turned]({ reason }, { signal });
  const verb = turned === "stop" ? "pause" : "resume";
  for (const scope of scopes) await client.pauses[verb]({ ...scope, reason }, { signal });
  return { [turned === "stop" ? "paused" : "resumed"]: scopes.map(({ subject }) => subject) };
}

interface Paused {
  readonly subject: string;
  readonly actor: string;
  readonly reason: string;
}

function statusText(
  me: { readonly subject: string; readonly roles: readonly string[]; readonly tenant: string },
  all: { readonly stopped: boolean; readonly by: string; readonly reason: string },
  pauses: readonly Paused[],
): string {
  const by = (who: string, why: string) => `${who === "" ? "" : ` by ${who}`}: "${why}"`;
  return [
    all.stopped ? `Everything is paused${by(all.by, all.reason)}.` : "Running.",
    ...pauses.map(({ subject, actor, reason }) => `${subject} is paused${by(actor, reason)}.`),
    `Signed in as ${me.subject} (${me.roles.join(", ")}) in ${me.tenant}.`,
  ].join("\n");
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
    const scopes = scopesOf(flags);
    for (const tenant of tenants) {
      const { killSwitch, pauses } = store.tenant(tenant);
      if (scopes.length === 0) await killSwitch[turned](reason, by);
      for (const scope of scopes) {
        await pauses[turned === "stop" ? "pause" : "resume"](scope, reason, by);
      }
    }
    if (scopes.length > 0) return { [turned]: scopes.map(({ subject }) => subject), tenants };
    return { stopped: turned === "stop", tenants, by: by.actor };
  }
}
