import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import path from "node:path";
import { Command } from "commander";
import { verifyStore } from "../../audit/verify.ts";
import { collectEvidence } from "../../crashkit/collect-evidence.ts";
import { compareRecords } from "../../crashkit/compare-records.ts";
import { checkInvariants, OF_THE_STORE } from "../../crashkit/invariants/table.ts";
import { SallyportError } from "../../model/errors.ts";
import { afterRestore, type Voided } from "../../port/after-restore.ts";
import { epochFile } from "../../store/epoch-file.ts";
import { backupDatabase } from "../../store/sqlite/backup.ts";
import type { Store } from "../../store/store.ts";
import { systemClock } from "../../util/clock.ts";
import { createIds } from "../../util/ids.ts";
import { systemRandom } from "../../util/random.ts";
import type { Shared } from "../connect.ts";
import { epochPath, openExisting, openStore, storeFile } from "../open-store.ts";
import { print, progress, progressEnd } from "../print.ts";

interface Flags extends Shared {
  readonly database?: string;
}

interface Checking extends Flags {
  readonly records?: boolean;
}

interface Restoring extends Flags {
  readonly as: string;
}

export function storeCommand(): Command {
  const store = new Command("store").description(
    "The store itself: check, migrate, back up, restore.",
  );
  const verbs = [
    store
      .command("check")
      .description("Opens the store and verifies every trail in it.")
      .option("--database <url>", "a PostgreSQL store")
      .option("--records", "compares every record with what its trail tells of it, too")
      .action(async (_, command: Command) => check(command.optsWithGlobals<Checking>())),
    store
      .command("migrate")
      .description("Makes the store and brings it to this version's schema.")
      .option("--database <url>", "a PostgreSQL store")
      .action(async (_, command: Command) => {
        const flags = command.optsWithGlobals<Flags>();
        const opened = await openStore({ ...flags, data: path.resolve(flags.data) });
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
  ];
  for (const verb of verbs) verb.exitOverride();
  return store;
}

async function check(flags: Checking): Promise<void> {
  const store = await openExisting({ ...flags, data: path.resolve(flags.data) });
  try {
    const report = await verifyStore(store, {
      onProgress: ({ entries }) => progress(`${entries} entries`),
    });
    progressEnd();
    const { ok, entries, problems } = report;
    const wrong = flags.records === true ? await wrongRecords(store) : [];
    const text = `${store.name}: ${entries} entries, ${problems.length + wrong.length} problems.`;
    print(flags.json === true ? { ...report, records: wrong } : [text, ...wrong], flags);
    if (!ok || wrong.length > 0) process.exitCode = 1;
  } finally {
    await store.close();
  }
}

/** What is stored and not as the trail tells, tenant by tenant; each tenant's records are held in memory. */
async function wrongRecords(store: Store): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (const { tenant } of await store.heads()) {
    const evidence = await collectEvidence(store, tenant, NOTHING_OUTSIDE);
    const broken = checkInvariants(evidence, OF_THE_STORE).map(({ problem }) => problem);
    wrong.push(...[...broken, ...compareRecords(evidence)].map((text) => `${tenant}: ${text}`));
  }
  return wrong;
}

const NOTHING_OUTSIDE = { ledger: [], told: [], isAtRest: false } as const;

async function backup(file: string, flags: Flags): Promise<void> {
  const from = storeFile(path.resolve(flags.data));
  if (!existsSync(from)) throw missing(from);
  if (existsSync(file)) {
    const hint = "Name a file that does not exist; nothing is overwritten.";
    throw new SallyportError("already_exists", { id: file, hint });
  }
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
  mkdirSync(data, { recursive: true, mode: 0o700 });
  copyFileSync(file, to);
  try {
    await check(flags);
  } catch (error) {
    // It is no store: left behind, it would stand in the way of the right one.
    for (const end of ["", "-wal", "-shm"]) rmSync(to + end, { force: true });
    throw error;
  }
  await restored(flags);
}

/** What the backup brings back may have been used, revoked or stopped since it was made. */
async function restored(flags: Restoring): Promise<void> {
  const place = { ...flags, data: path.resolve(flags.data) };
  const store = await openStore(place, "unwatched");
  const file = epochFile(epochPath(place));
  try {
    const epoch = createIds({ clock: systemClock, random: systemRandom }).next();
    const voided = await afterRestore(store, { epoch, by: flags.as });
    const heads = await store.heads();
    file.write({ epoch, entries: heads.reduce((sum, { seq }) => sum + seq, 0) });
    print(flags.json === true ? { epoch, voided } : inWords(voided), flags);
  } finally {
    file.close();
    await store.close();
  }
}

function inWords(voided: readonly Voided[]): string {
  const lines = voided.map(({ tenant, approvals, questions, proposals, calls, standingRules }) => {
    const gone = `${approvals} approvals, ${questions} questions, ${proposals} proposals and ${standingRules} standing rules are void`;
    return `${tenant}: stopped; ${gone}; ${calls} calls wait for somebody who knows what became of them.`;
  });
  return [...lines, "Check tokens and delegations too, then run: sallyport resume"].join("\n");
}

function missing(file: string): SallyportError {
  return new SallyportError("not_found", { id: file, hint: "There is no such file." });
}
