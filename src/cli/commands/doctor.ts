import { accessSync, constants, existsSync } from "node:fs";
import path from "node:path";
import { Command } from "commander";
import { serverFindings } from "../../store/postgres/index.ts";
import { sqliteVersion } from "../../store/sqlite/backup.ts";
import { systemClock } from "../../util/clock.ts";
import { errorText } from "../../util/error-text.ts";
import { openToOthers } from "../../util/files.ts";
import { anchorsIn } from "../anchoring.ts";
import { connect, placeOf, type Shared, STATE } from "../connect.ts";
import { hasStore, openExisting, POOL } from "../open-store.ts";
import { print } from "../print.ts";
import { consoleFolder } from "../serve.ts";
import { rememberedOf, type StorePlace, stateOf } from "../state-folder.ts";
import { ago } from "../verify-place.ts";

interface Finding {
  readonly what: string;
  readonly ok: boolean;
  readonly text: string;
}

interface Flags extends Shared {
  readonly database?: string;
  readonly state?: string;
  readonly epochFile?: string;
}

/** Checks for common problems, and says what to do about them. */
export function doctorCommand(): Command {
  return new Command("doctor")
    .description("Check the set-up for common problems.")
    .option("--database <url>", "a PostgreSQL store")
    .option("--state <folder>", STATE)
    .option("--epoch-file <file>", "the epoch file; by default in the state folder")
    .action(async (_, command: Command) => {
      const flags = command.optsWithGlobals<Flags>();
      const place = placeOf(flags);
      const findings = [
        found("node", () => process.versions.node),
        found("sqlite", sqliteVersion),
        found("data folder", () => writable(place.data)),
        await foundLater("store", async () => {
          // The check must not create a store.
          if (!hasStore(place)) return "none yet; serve creates it";
          const store = await openExisting(place);
          const heads = await store.heads();
          await store.close();
          return `${store.name}, ${heads.length} tenants`;
        }),
        await foundLater("clock", () => clockOf(place)),
        found("file modes", () => privateModes(place)),
        await foundLater("anchors", () => anchorAge(place)),
        found("epoch file", () => epochPlace(place)),
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
      print(flags.json === true ? findings : lines, flags);
      // A server that is not running is not a problem.
      if (findings.some(({ ok, what }) => !ok && what !== "server")) process.exitCode = 1;
    });
}

/** A trail far ahead of the clock stops everything that depends on time. */
async function clockOf(place: StorePlace): Promise<string> {
  if (!hasStore(place)) return "no store yet";
  const store = await openExisting(place);
  try {
    for (const { tenant } of await store.heads()) {
      const { state, clockAt, trailAt } = await store.tenant(tenant).clock.look();
      if (state !== "refused") continue;
      throw new Error(
        `the clock says ${clockAt}, the last entry of ${tenant} ${trailAt}: see sallyport store clock`,
      );
    }
    return "not behind the trail";
  } finally {
    await store.close();
  }
}

/** PostgreSQL settings that durability depends on. */
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

function privateModes(place: StorePlace): string {
  const folders = [place.data, stateOf(place).folder].filter((folder) => existsSync(folder));
  const open = folders.flatMap((folder) => openToOthers(folder));
  if (open.length === 0) return "only you can read the data and state folders";
  throw new Error(`other users can reach ${open.join(", ")}; serve removes these permissions`);
}

/** Off is allowed; `audit verify` then says what it cannot check. */
async function anchorAge(place: StorePlace): Promise<string> {
  const files = stateOf(place);
  let last = "";
  for await (const { at } of anchorsIn(files)?.anchors ?? []) if (at > last) last = at;
  if (last === "") return `off, or none yet in ${files.folder}`;
  return `on; the last one is from ${ago(systemClock.now() - Date.parse(last))} ago, in ${files.anchorFile}`;
}

function epochPlace(place: StorePlace): string {
  const { epochFile } = stateOf(place);
  const known = rememberedOf(place);
  if (known === undefined) return `${epochFile}, which does not exist yet`;
  if (known.isRolledBack !== true) return `${epochFile}, remembers ${known.entries} entries`;
  throw new Error(`${epochFile} detected an older copy of the store; see store restored`);
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
