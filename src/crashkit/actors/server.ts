import { createServer, type Server, type ServerOptions } from "../../http/index.ts";
import { isSallyportError } from "../../model/errors.ts";
import { errorText } from "../../util/error-text.ts";
import { LEASE_MS } from "../open-kit.ts";
import { orTold } from "./or-told.ts";
import type { Stage } from "./stage.ts";

const PAUSE_MS = 20;

/** Serves the store over HTTP, and goes on with what was left behind when it starts, as `sallyport serve` does. */
export async function playServer(stage: Stage): Promise<never> {
  const { kit, plan } = stage;
  const { port: listenPort, tenants } = plan.server;
  const made = tenants.map(async (tenant) => [tenant, await stage.port(tenant)] as const);
  const ports = Object.fromEntries(await Promise.all(made));
  await listening(stage, {
    store: kit.store,
    ports,
    listenPort,
    limits: { keyLeaseMs: LEASE_MS },
    // Reviewers of a long run sign in once, before it.
    signIn: { freshMs: 24 * 3_600_000 },
    onProblem,
  });
  for (const tenant of stage.tenants())
    await orTold(stage, tenant, async () => ports[tenant]?.recover());
  return new Promise(() => {});
}

/** The port may be in somebody else's hands for a moment: any program gets one that is free when it calls out. */
async function listening({ timers }: Stage, options: ServerOptions): Promise<Server> {
  for (;;) {
    try {
      return await createServer(options);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EADDRINUSE")) throw error;
      await timers.sleep(PAUSE_MS);
    }
  }
}

/** What breaks inside a server is a reason to end, and so to be told. */
function onProblem(error: unknown): void {
  if (isSallyportError(error)) return;
  process.stderr.write(`${error instanceof Error ? error.stack : errorText(error)}\n`);
  process.exit(1);
}
