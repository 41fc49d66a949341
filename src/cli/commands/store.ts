import { accessSync, constants, copyFileSync, existsSync, rmSync } from "node:fs";
import path from "node:path";
import { Command } from "commander";
import { afterRestore, type Voided } from "../../gate/restore.ts";
import { SallyportError } from "../../model/errors.ts";
import { serverFindings } from "../../store/postgres/index.ts";
import { backupDatabase, sqliteVersion } from "../../store/sqlite/database.ts";
import type { ClockLook } from "../../store/switch.ts";
import { systemClock } from "../../util/clock.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { errorText } from "../../util/error-text.ts";
import { createPrivateFile, makePrivate, openToOthers } from "../../util/files.ts";
import { createIds } from "../../util/ids.ts";
import { systemRandom } from "../../util/random.ts";
import { connect } from "../connect.ts";
import {
  hasStore,
  inStore,
  OPTION,
  openStore,
  POOL,
  type StoreFlags,
  storeFile,
  storePlaceOf,
  withFlags,
} from "../open-store.ts";
import { EXIT, print, progress, progressEnd } from "../render.ts";
import { builtConsoleFolder } from "../serve.ts";
import {
  anchorsIn,
  beginState,
  ensurePrivateFolder,
  rememberedOf,
  type StorePlace,
  stateOf,
} from "../state-folder.ts";
import { ago, verifiedInWords, verifyPlace } from "./audit.ts";
import { hostFindings } from "./coding.ts";

interface Checking extends StoreFlags {
  readonly records?: boolean;
}

interface Restoring extends StoreFlags {
  readonly as: string;
}

interface Accepting extends Restoring {
  readonly accept?: boolean;
}

export function storeCommand(): Command {
  const store = new Command("store").description("Check, migrate, back up or restore the store.");
  const verb = (name: string, about: string) => store.command(name).description(about);
  verb(
    "check",
    "Open the store and verify every trail in it against anchors, epoch file and records.",
  )
    .option(...OPTION.database)
    .option(...OPTION.records)
    .option(...OPTION.noRecords)
    .action(withFlags<Checking>((flags) => check(flags)));
  verb("migrate", "Create the store, or migrate it to this version's schema.")
    .option(...OPTION.database)
    .action(withFlags<StoreFlags>(migrate));
  verb("backup", "Back up the store's file while others keep writing.")
    .argument("<file>")
    .action(withFlags<StoreFlags>(backup));
  verb("restore", "Restore a backup where no store exists, and void the approvals in it.")
    .argument("<file>")
    .option("--as <who>", "who restores it, recorded in the trail", "operator")
    .action(withFlags<Restoring>(restore));
  verb(
    "restored",
    "Declare that a backup was restored by other means: stops everything and voids earlier approvals.",
  )
    .option(...OPTION.database)
    .option("--as <who>", "who restored it, recorded in the trail", "operator")
    .action(withFlags<Restoring>(restored));
  verb(
    "clock",
    "Compare the store's clock with the trails. A trail far ahead of it stops writes that depend on time.",
  )
    .option(...OPTION.database)
    .option(
      "--accept",
      "declare that the clock is right and the trail was written under a wrong one",
    )
    .option("--as <who>", "who declares it, recorded in the trail", "operator")
    .action(withFlags<Accepting>(clock));
  for (const one of store.commands) {
    one.exitOverride();
    if (one.name() === "backup") continue;
    one.option(...OPTION.state).option(...OPTION.epochFile);
  }
  return store;
}

async function check(flags: Checking, against: "state" | "itself" = "state"): Promise<void> {
  const place = storePlaceOf(flags);
  await inStore(place, async (store) => {
    const terms = definedFields({ against, records: flags.records });
    const verified = await verifyPlace(store, place, terms);
    const { report, records = [], notCompared } = verified;
    const count = report.problemCount + records.length;
    const text = `${store.name}: ${report.entries} entries, ${count} problems.`;
    const inWords = [text, ...verifiedInWords(verified).split("\n")];
    print({ ...report, records, notCompared }, flags, inWords);
    if (count > 0) process.exitCode = EXIT.tampered;
  });
}

async function migrate(flags: StoreFlags): Promise<void> {
  const store = await openStore(storePlaceOf(flags));
  await store.close();
  print({ migrated: true }, flags, "The store has this version's schema.");
}

async function backup(flags: StoreFlags, file = ""): Promise<void> {
  const from = storeFile(storePlaceOf(flags));
  if (!existsSync(from)) throw missing(from);
  try {
    await backupDatabase(from, file, (copied, of) => progress(`${copied} of ${of} pages`));
  } finally {
    progressEnd();
  }
  print({ file }, flags, `Copied to ${file}.`);
}

/** Never over an existing store: what was written since the backup would be lost silently. */
async function restore(flags: Restoring, file = ""): Promise<void> {
  const place = storePlaceOf(flags);
  const { data } = place;
  const to = storeFile(place);
  if (!existsSync(file)) throw missing(file);
  if (existsSync(to)) {
    const hint = `${to} exists. Move it away first, or restore into another --data.`;
    throw new SallyportError("already_exists", { id: to, hint });
  }
  ensurePrivateFolder(data);
  createPrivateFile(to);
  // Into an existing file, so that its mode does not depend on the backup's.
  copyFileSync(file, to);
  makePrivate(to);
  try {
    await check(flags, "itself");
  } catch (error) {
    // Not a store: left behind, it would block the next restore.
    for (const end of ["", "-wal", "-shm"]) rmSync(to + end, { force: true });
    throw error;
  }
  await restored(flags);
}

/** What the backup brings back may have been used, revoked or stopped since it was made. */
async function restored(flags: Restoring): Promise<void> {
  const place = storePlaceOf(flags);
  const store = await openStore(place, { watch: "unwatched" });
  try {
    const epoch = createIds({ clock: systemClock, random: systemRandom }).next();
    const voided = await afterRestore(store, { epoch, by: flags.as });
    const heads = await store.heads();
    beginState(place, { epoch, entries: heads.reduce((sum, { seq }) => sum + seq, 0) });
    print({ epoch, voided }, flags, inWords(voided));
  } finally {
    await store.close();
  }
}

/** The clock of leases and deadlines, and the time of the last entry. */
async function clock(flags: Accepting): Promise<void> {
  await inStore(storePlaceOf(flags), async (store) => {
    const looks = [];
    for (const { tenant } of await store.heads()) {
      const { clock: mark } = store.tenant(tenant);
      const seen = flags.accept
        ? await mark.accept("The clock is right.", { actor: flags.as })
        : await mark.look();
      looks.push({ tenant, ...seen });
    }
    print(looks, flags, looks.map(clockInWords));
    if (looks.some(({ state }) => state === "refused")) process.exitCode = EXIT.failed;
  });
}

function clockInWords({ tenant, ...seen }: ClockLook & { readonly tenant: string }): string {
  const { clockAt, trailAt, state } = seen;
  const times = `${tenant}: the clock says ${clockAt}, the last entry ${trailAt}`;
  if (state === "right") return `${times}.`;
  if (state === "accepted") return `${times}; leases and deadlines go by the clock.`;
  return `${times}; only the kill switch and outcomes are written. If the clock is wrong, correct it. If it is right, run: sallyport store clock --accept`;
}

function inWords(voided: readonly Voided[]): string {
  const lines = voided.map((of) => {
    const gone = `${of.approvals} approvals, ${of.questions} questions, ${of.proposals} proposals, ${of.standingRules} standing rules, ${of.grants} grants and ${of.delegations} delegations are void`;
    const out = `${of.tokens} tokens, links and sessions have ended`;
    return `${of.tenant}: stopped; ${gone}; ${out}; ${of.calls} calls wait for a person who knows their outcome.`;
  });
  return [...lines, "Everyone must sign in again. Check, then run: sallyport resume"].join("\n");
}

function missing(file: string): SallyportError {
  return new SallyportError("not_found", { id: file, hint: "The file does not exist." });
}

interface Finding {
  readonly what: string;
  readonly ok: boolean;
  readonly text: string;
}

/** Checks for common problems, and says what to do about them. */
export function doctorCommand(): Command {
  return new Command("doctor")
    .description("Check the set-up for common problems.")
    .option(...OPTION.database)
    .option(...OPTION.state)
    .option(...OPTION.epochFile)
    .action(withFlags<StoreFlags>(doctor));
}

async function doctor(flags: StoreFlags): Promise<void> {
  const place = storePlaceOf(flags);
  const findings = [
    await found("node", () => process.versions.node),
    await found("sqlite", sqliteVersion),
    await found("data folder", () => writable(place.data)),
    await found("store", () => tenantsOf(place)),
    await found("clock", () => clockOf(place)),
    await found("file modes", () => privateModes(place)),
    await found("anchors", () => anchorAge(place)),
    await found("epoch file", () => epochPlace(place)),
    ...(flags.database === undefined ? [] : await foundOfServer(flags.database)),
    await found("console", () => {
      if (builtConsoleFolder() === undefined) throw new Error("not built; run npm run build");
      return "built";
    }),
    ...(await hostFindings(place.data)),
    await found("server", async () => {
      const { subject, tenant } = await connect(flags).me.get();
      return `answers; you are ${subject} of ${tenant}`;
    }),
  ];
  const lines = findings.map(({ ok, what, text }) => `${ok ? "ok" : "--"}  ${what}: ${text}`);
  print(findings, flags, lines);
  // A server that is not running is not a problem.
  if (findings.some(({ ok, what }) => !ok && what !== "server")) process.exitCode = EXIT.failed;
}

async function found(what: string, look: () => string | Promise<string>): Promise<Finding> {
  try {
    return { what, ok: true, text: await look() };
  } catch (error) {
    return { what, ok: false, text: errorText(error) };
  }
}

/** The check must not create a store. */
async function tenantsOf(place: StorePlace): Promise<string> {
  if (!hasStore(place)) return "none yet; serve creates it";
  return inStore(place, async (store) => `${store.name}, ${(await store.heads()).length} tenants`);
}

/** A trail far ahead of the clock stops everything that depends on time. */
async function clockOf(place: StorePlace): Promise<string> {
  if (!hasStore(place)) return "no store yet";
  return inStore(place, async (store) => {
    for (const { tenant } of await store.heads()) {
      const { state, clockAt, trailAt } = await store.tenant(tenant).clock.look();
      if (state !== "refused") continue;
      throw new Error(
        `the clock says ${clockAt}, the last entry of ${tenant} ${trailAt}: see sallyport store clock`,
      );
    }
    return "not behind the trail";
  });
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
