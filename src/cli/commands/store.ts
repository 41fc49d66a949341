import { copyFileSync, existsSync, rmSync } from "node:fs";
import path from "node:path";
import { Command } from "commander";
import { afterRestore, type Voided } from "../../gate/restore.ts";
import { SallyportError } from "../../model/errors.ts";
import type { ClockLook } from "../../store/clock-watch.ts";
import { backupDatabase } from "../../store/sqlite/backup.ts";
import { systemClock } from "../../util/clock.ts";
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
  const store = new Command("store").description(
    "The store itself: check, migrate, back up, restore.",
  );
  const verbs = [
    store
      .command("check")
      .description(
        "Opens the store and verifies every trail in it, against anchors, epoch file and records.",
      )
      .option("--database <url>", "a PostgreSQL store")
      .option("--records", "compares records with the trail, however many there are")
      .option("--no-records", "does not compare records with the trail")
      .action(async (_, command: Command) => check(command.optsWithGlobals<Checking>())),
    store
      .command("migrate")
      .description("Makes the store and brings it to this version's schema.")
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
      .description("A whole copy of the store's file, made while others go on writing.")
      .action(async (file: string, _, command: Command) =>
        backup(file, command.optsWithGlobals<Flags>()),
      ),
    store
      .command("restore")
      .argument("<file>")
      .description(
        "Puts a backup in place of a store that is not there, and voids what it brings back.",
      )
      .option("--as <who>", "who restores it, for the trail", "operator")
      .action(async (file: string, _, command: Command) =>
        restore(file, command.optsWithGlobals<Restoring>()),
      ),
    store
      .command("restored")
      .description(
        "Says that a backup was put in place by other means: stops everything and voids what was approved before.",
      )
      .option("--database <url>", "a PostgreSQL store")
      .option("--as <who>", "who restored it, for the trail", "operator")
      .action(async (_, command: Command) => restored(command.optsWithGlobals<Restoring>())),
    store
      .command("clock")
      .description(
        "Compares the store's clock with the trails. A trail far ahead of it stops all writes that go by time.",
      )
      .option("--database <url>", "a PostgreSQL store")
      .option("--accept", "says that the clock is right and the trail was written by a wrong one")
      .option("--as <who>", "who says so, for the trail", "operator")
      .action(async (_, command: Command) => clock(command.optsWithGlobals<Accepting>())),
  ];
  for (const verb of verbs) {
    verb.exitOverride();
    if (verb.name() === "backup") continue;
    verb
      .option("--state <folder>", STATE)
      .option("--epoch-file <file>", "what is remembered of the store; in the state folder");
  }
  return store;
}

async function check(flags: Checking, against: "state" | "itself" = "state"): Promise<void> {
  const place = placeOf(flags);
  const store = await openExisting(place);
  try {
    const { records } = flags;
    const terms = { against, ...(records === undefined ? {} : { records }) };
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

/** Never over a store: what was written since the backup would be gone without a word. */
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
  // Into a file that is there: it keeps its mode, whatever the mode of the backup is.
  copyFileSync(file, to);
  makePrivate(to);
  try {
    await check(flags, "itself");
  } catch (error) {
    // It is no store: left behind, it would stand in the way of the right one.
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

/** The time that leases and deadlines go by, beside the time of the last entry. */
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
  return [...lines, "Everybody signs in anew. Check, then run: sallyport resume"].join("\n");
}

function missing(file: string): SallyportError {
  return new SallyportError("not_found", { id: file, hint: "There is no such file." });
}
