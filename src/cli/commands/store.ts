import { copyFileSync, existsSync, rmSync } from "node:fs";
import path from "node:path";
import { Command } from "commander";
import { afterRestore, type Voided } from "../../gate/restore.ts";
import { SallyportError } from "../../model/errors.ts";
import type { ClockLook } from "../../store/clock-watch.ts";
import { backupDatabase } from "../../store/sqlite/backup.ts";
import { systemClock } from "../../util/clock.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { createPrivateFile, makePrivate } from "../../util/files.ts";
import { createIds } from "../../util/ids.ts";
import { systemRandom } from "../../util/random.ts";
import { placeOf, type Shared, STATE } from "../connect.ts";
import { openExisting, openStore, storeFile } from "../open-store.ts";
import { EXIT, print, progress, progressEnd } from "../print.ts";
import { beginState, ensurePrivateFolder } from "../state-folder.ts";
import { verifiedInWords, verifyPlace } from "../verify-place.ts";

interface Flags extends Shared {
  readonly database?: string;
  readonly state?: string;
  readonly epochFile?: string;
}

interface Checking extends Flags {
  readonly records?: boolean;
}

interface Restoring extends Flags {
  readonly as: string;
}

interface Accepting extends Restoring {
  readonly accept?: boolean;
}

export function storeCommand(): Command {
  const store = new Command("store").description("Check, migrate, back up or restore the store.");
  const verbs = [
    store
      .command("check")
      .description(
        "Open the store and verify every trail in it against anchors, epoch file and records.",
      )
      .option("--database <url>", "a PostgreSQL store")
      .option("--records", "compare records with the trail, however many there are")
      .option("--no-records", "do not compare records with the trail")
      .action(async (_, command: Command) => check(command.optsWithGlobals<Checking>())),
    store
      .command("migrate")
      .description("Create the store, or migrate it to this version's schema.")
      .option("--database <url>", "a PostgreSQL store")
      .action(async (_, command: Command) => {
        const flags = command.optsWithGlobals<Flags>();
        const opened = await openStore(placeOf(flags));
        await opened.close();
        print(
          flags.json === true ? { migrated: true } : "The store has this version's schema.",
          flags,
        );
      }),
    store
      .command("backup")
      .argument("<file>")
      .description("Back up the store's file while others keep writing.")
      .action(async (file: string, _, command: Command) =>
        backup(file, command.optsWithGlobals<Flags>()),
      ),
    store
      .command("restore")
      .argument("<file>")
      .description("Restore a backup where no store exists, and void the approvals in it.")
      .option("--as <who>", "who restores it, recorded in the trail", "operator")
      .action(async (file: string, _, command: Command) =>
        restore(file, command.optsWithGlobals<Restoring>()),
      ),
    store
      .command("restored")
      .description(
        "Declare that a backup was restored by other means: stops everything and voids earlier approvals.",
      )
      .option("--database <url>", "a PostgreSQL store")
      .option("--as <who>", "who restored it, recorded in the trail", "operator")
      .action(async (_, command: Command) => restored(command.optsWithGlobals<Restoring>())),
    store
      .command("clock")
      .description(
        "Compare the store's clock with the trails. A trail far ahead of it stops writes that depend on time.",
      )
      .option("--database <url>", "a PostgreSQL store")
      .option(
        "--accept",
        "declare that the clock is right and the trail was written under a wrong one",
      )
      .option("--as <who>", "who declares it, recorded in the trail", "operator")
      .action(async (_, command: Command) => clock(command.optsWithGlobals<Accepting>())),
  ];
  for (const verb of verbs) {
    verb.exitOverride();
    if (verb.name() === "backup") continue;
    verb
      .option("--state <folder>", STATE)
      .option("--epoch-file <file>", "the epoch file; by default in the state folder");
  }
  return store;
}

async function check(flags: Checking, against: "state" | "itself" = "state"): Promise<void> {
  const place = placeOf(flags);
  const store = await openExisting(place);
  try {
    const terms = definedFields({ against, records: flags.records });
    const verified = await verifyPlace(store, place, terms);
    const { report, notCompared } = verified;
    const count = report.problemCount + (verified.records?.length ?? 0);
    const text = `${store.name}: ${report.entries} entries, ${count} problems.`;
    print(
      flags.json === true
        ? { ...report, records: verified.records ?? [], notCompared }
        : [text, ...verifiedInWords(verified).split("\n")],
      flags,
    );
    if (count > 0) process.exitCode = EXIT.tampered;
  } finally {
    await store.close();
  }
}

async function backup(file: string, flags: Flags): Promise<void> {
  const from = storeFile(path.resolve(flags.data));
  if (!existsSync(from)) throw missing(from);
  try {
    await backupDatabase(from, file, (copied, of) => progress(`${copied} of ${of} pages`));
  } finally {
    progressEnd();
  }
  print(flags.json === true ? { file } : `Copied to ${file}.`, flags);
}

/** Never over an existing store: what was written since the backup would be lost silently. */
async function restore(file: string, flags: Restoring): Promise<void> {
  const data = path.resolve(flags.data);
  const to = storeFile(data);
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
  const place = placeOf(flags);
  const store = await openStore(place, { watch: "unwatched" });
  try {
    const epoch = createIds({ clock: systemClock, random: systemRandom }).next();
    const voided = await afterRestore(store, { epoch, by: flags.as });
    const heads = await store.heads();
    beginState(place, { epoch, entries: heads.reduce((sum, { seq }) => sum + seq, 0) });
    print(flags.json === true ? { epoch, voided } : inWords(voided), flags);
  } finally {
    await store.close();
  }
}

/** The clock of leases and deadlines, and the time of the last entry. */
async function clock(flags: Accepting): Promise<void> {
  const store = await openExisting(placeOf(flags));
  try {
    const looks = [];
    for (const { tenant } of await store.heads()) {
      const { clock: mark } = store.tenant(tenant);
      const seen = flags.accept
        ? await mark.accept("The clock is right.", { actor: flags.as })
        : await mark.look();
      looks.push({ tenant, ...seen });
    }
    print(flags.json === true ? looks : looks.map(clockInWords), flags);
    if (looks.some(({ state }) => state === "refused")) process.exitCode = EXIT.failed;
  } finally {
    await store.close();
  }
}

function clockInWords({ tenant, ...seen }: ClockLook & { readonly tenant: string }): string {
  const { clockAt, trailAt, state } = seen;
  const times = `${tenant}: the clock says ${clockAt}, the last entry ${trailAt}`;
  if (state === "right") return `${times}.`;
  if (state === "accepted") return `${times}; leases and deadlines go by the clock.`;
  return `${times}; nothing that goes by time is written. If the clock is wrong, set it right. If it is right, run: sallyport store clock --accept`;
}

function inWords(voided: readonly Voided[]): string {
  const lines = voided.map((of) => {
    const gone = `${of.approvals} approvals, ${of.questions} questions, ${of.proposals} proposals, ${of.standingRules} standing rules, ${of.grants} grants and ${of.delegations} delegations are void`;
    const out = `${of.tokens} tokens, links and sessions have ended`;
    return `${of.tenant}: stopped; ${gone}; ${out}; ${of.calls} calls wait for somebody who knows what became of them.`;
  });
  return [...lines, "Everyone must sign in again. Check, then run: sallyport resume"].join("\n");
}

function missing(file: string): SallyportError {
  return new SallyportError("not_found", { id: file, hint: "The file does not exist." });
}
