import { accessSync, constants, existsSync } from "node:fs";
import path from "node:path";
import { Command } from "commander";
import { serverFindings } from "../../store/postgres/index.ts";
import { sqliteVersion } from "../../store/sqlite/backup.ts";
import { errorText } from "../../util/error-text.ts";
import { connect, type Shared } from "../connect.ts";
import { hasStore, openStore, POOL } from "../open-store.ts";
import { print } from "../print.ts";
import { consoleFolder } from "../serve.ts";

interface Finding {
  readonly what: string;
  readonly ok: boolean;
  readonly text: string;
}

interface Flags extends Shared {
  readonly database?: string;
}

/** Looks at everything that usually stands in the way, and says what to do about it. */
export function doctorCommand(): Command {
  return new Command("doctor")
    .description("Looks at what usually stands in the way.")
    .option("--database <url>", "a PostgreSQL store")
    .action(async (_, command: Command) => {
      const flags = command.optsWithGlobals<Flags>();
      const findings = [
        found("node", () => process.versions.node),
        found("sqlite", sqliteVersion),
        found("data folder", () => writable(path.resolve(flags.data))),
        await foundLater("store", async () => {
          const place = { ...flags, data: path.resolve(flags.data) };
          // Looking must not make one.
          if (!hasStore(place)) return "none yet; serve makes it";
          const store = await openStore(place, "to read");
          const heads = await store.heads();
          await store.close();
          return `${store.name}, ${heads.length} tenants`;
        }),
        ...(flags.database === undefined ? [] : await foundOfServer(flags.database)),
        found("console", () => {
          if (consoleFolder() === undefined) throw new Error("not built; run npm run build");
          return "built";
        }),
        await foundLater("server", async () => {
          const { subject, tenant } = await connect(flags).me.get();
          return `answers; you are ${subject} of ${tenant}`;
        }),
      ];
      const lines = findings.map(({ ok, what, text }) => `${ok ? "ok" : "--"}  ${what}: ${text}`);
      print(flags.json === true ? findings : lines.join("\n"), flags);
      // A server that does not run is no fault of the machine.
      if (findings.some(({ ok, what }) => !ok && what !== "server")) process.exitCode = 1;
    });
}

/** Settings of a PostgreSQL server that decide whether what was acknowledged is kept. */
async function foundOfServer(database: string): Promise<readonly Finding[]> {
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: database, ...POOL });
  pool.on("error", () => {});
  try {
    return await serverFindings(pool);
  } catch (error) {
    return [{ what: "postgres", ok: false, text: errorText(error) }];
  } finally {
    await pool.end();
  }
}

function writable(folder: string): string {
  accessSync(existsSync(folder) ? folder : path.dirname(folder), constants.W_OK);
  return folder;
}

function found(what: string, look: () => string): Finding {
  try {
    return { what, ok: true, text: look() };
  } catch (error) {
    return { what, ok: false, text: errorText(error) };
  }
}

async function foundLater(what: string, look: () => Promise<string>): Promise<Finding> {
  try {
    return { what, ok: true, text: await look() };
  } catch (error) {
    return { what, ok: false, text: errorText(error) };
  }
}
