import type { TestProject } from "vitest/node";
import { startPostgres } from "./postgres-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** A PostgreSQL server to create databases on: `freshDatabase(inject("pgUrl"))`. */
    pgUrl: string;
  }
}

/** One server for the whole test run: yours if DATABASE_URL names one, otherwise a private one. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const own = process.env["DATABASE_URL"];
  if (own) {
    project.provide("pgUrl", own);
    return undefined;
  }
  const server = await startPostgres({ durable: false });
  project.provide("pgUrl", server.url);
  return () => server.stop();
}
