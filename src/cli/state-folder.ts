import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir, hostname } from "node:os";
import path from "node:path";
import { SallyportError } from "../model/errors.ts";
import { epochFile, type Remembered } from "../store/epoch.ts";
import { systemClock, toIso } from "../util/clock.ts";
import {
  makePrivate,
  openToOthers,
  PRIVATE_FILE,
  PRIVATE_FOLDER,
  realPath,
} from "../util/files.ts";
import { sha256Hex } from "../util/hash.ts";

/** Where everything is kept: a PostgreSQL database, or one file in a folder. */
export interface StorePlace {
  readonly data: string;
  readonly database?: string;
  readonly schema?: string;
  /** The folder that holds the state folders of all stores of this user. */
  readonly state?: string;
  readonly epochFile?: string;
}

/**
 * What is known about a store outside of its data folder, so that a copy of the whole folder put back, or an end that was cut
 * off, is noticed. One folder per store, found by the data folder's real path or the database's address.
 */
export interface StateFiles {
  readonly folder: string;
  readonly epochFile: string;
  readonly anchorFile: string;
  readonly keyFile: string;
  readonly publicKeyFile: string;
  /** What no call of an agent may touch: with the default place the state of every store of this user. */
  readonly protectedPaths: readonly string[];
}

export function stateOf(place: StorePlace): StateFiles {
  const identity = identityOf(place);
  const folder = path.join(baseFolder(place), sha256Hex(identity).slice(0, 16));
  const data = realPath(path.resolve(place.data));
  if (`${realPath(folder)}${path.sep}`.startsWith(`${data}${path.sep}`)) {
    const hint = `The state folder must be outside the data folder ${data}: a copy of the data folder would bring it back. Choose another with --state or SALLYPORT_STATE.`;
    throw new SallyportError("invalid_input", { what: "--state", hint });
  }
  const epochFile = path.resolve(place.epochFile ?? path.join(folder, "sallyport.epoch"));
  const { SALLYPORT_STATE = "" } = process.env;
  const isDefault = place.state === undefined && SALLYPORT_STATE === "";
  return {
    folder,
    epochFile,
    protectedPaths: [isDefault ? path.dirname(folder) : folder, epochFile],
    anchorFile: path.join(folder, "anchors.jsonl"),
    keyFile: path.join(folder, "anchor-key.pem"),
    publicKeyFile: path.join(folder, "anchor-key.pub.pem"),
  };
}

function baseFolder({ state }: StorePlace): string {
  const { SALLYPORT_STATE, XDG_STATE_HOME } = process.env;
  if (state !== undefined) return path.resolve(state);
  if (SALLYPORT_STATE) return path.resolve(SALLYPORT_STATE);
  // The XDG specification says to ignore a relative path.
  const home =
    XDG_STATE_HOME && path.isAbsolute(XDG_STATE_HOME)
      ? XDG_STATE_HOME
      : path.join(homedir(), ".local", "state");
  return path.join(home, "sallyport");
}

/** Without user and password: these may change while the database stays the same. */
function identityOf({ data, database, schema = "" }: StorePlace): string {
  if (database === undefined) return realPath(path.resolve(data));
  if (!URL.canParse(database)) return `${database} ${schema}`;
  const { host, pathname } = new URL(database);
  return `${host}${pathname} ${schema}`;
}

/**
 * Makes the state folder and takes over an epoch file from the data folder, where older versions kept it. Says whether
 * anything was known about the store before. Throws invalid_input for the state of another store.
 */
export function prepareState(place: StorePlace): "known" | "new" {
  const files = stateOf(place);
  ensurePrivateFolder(files.folder);
  mkdirSync(path.dirname(files.epochFile), { recursive: true, mode: PRIVATE_FOLDER });
  checkPlace(files, place);
  adoptEpochFile(oldEpochPath(place), files.epochFile);
  return readEpoch(files.epochFile) === undefined ? "new" : "known";
}

/** What is remembered about the store, also where it has not been taken over yet. Throws damaged_record. */
export function rememberedOf(place: StorePlace): Remembered | undefined {
  return higher(readEpoch(stateOf(place).epochFile), readEpoch(oldEpochPath(place)));
}

/** Where versions before the state folder kept the epoch file. */
function oldEpochPath({ data, database, schema = "" }: StorePlace): string {
  if (database === undefined || !URL.canParse(database)) return path.join(data, "sallyport.epoch");
  const { host, pathname } = new URL(database);
  const name = sha256Hex(`${host}${pathname} ${schema}`).slice(0, 12);
  return path.join(data, `sallyport-${name}.epoch`);
}

/** Written durably in its new place before it goes from the old one, so that it is never lost. */
function adoptEpochFile(from: string, to: string): void {
  const old = from === to ? undefined : readEpoch(from);
  if (old === undefined) return;
  const known = higher(readEpoch(to), old);
  const file = epochFile(to);
  try {
    if (known !== undefined) file.write(known);
  } finally {
    file.close();
  }
  rmSync(from, { force: true });
}

/** A rollback that one of them has noticed stays noticed. */
function higher(one: Remembered | undefined, other: Remembered | undefined) {
  if (one === undefined || other === undefined) return one ?? other;
  const most = one.entries >= other.entries ? one : other;
  const isRolledBack = one.isRolledBack === true || other.isRolledBack === true;
  return isRolledBack ? { ...most, isRolledBack: true } : most;
}

function readEpoch(file: string): Remembered | undefined {
  return epochFile(file).read();
}

/** After a restore was declared: what is remembered begins anew, and the anchors of the life before are kept as they are. */
export function beginState(place: StorePlace, remembered: Remembered): void {
  const files = stateOf(place);
  ensurePrivateFolder(files.folder);
  mkdirSync(path.dirname(files.epochFile), { recursive: true, mode: PRIVATE_FOLDER });
  checkPlace(files, place);
  const file = epochFile(files.epochFile);
  try {
    file.write(remembered);
  } finally {
    file.close();
  }
  const old = oldEpochPath(place);
  if (old !== files.epochFile) rmSync(old, { force: true });
  const kept = path.join(files.folder, `anchors-before-${remembered.epoch}.jsonl`);
  try {
    renameSync(files.anchorFile, kept);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
}

/** A state folder that was copied by hand from another store would vouch for the wrong one. */
function checkPlace({ folder }: StateFiles, place: StorePlace): void {
  const file = path.join(folder, "place.json");
  const of = identityOf(place);
  const known = readText(file);
  if (known === undefined) {
    const facts = { of, machine: hostname(), since: toIso(systemClock.now()) };
    writeFileSync(file, `${JSON.stringify(facts)}\n`, { mode: PRIVATE_FILE });
    return;
  }
  if (storeIn(known) === of) return;
  const hint = `${folder} holds the state of another store (${file}). Move it away, or choose another folder with --state.`;
  throw new SallyportError("invalid_input", { what: file, hint });
}

function storeIn(text: string): unknown {
  try {
    return (JSON.parse(text) as { readonly of?: unknown } | null)?.of;
  } catch {
    return undefined;
  }
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** Files by which a folder is known as one of ours. */
const OURS = /^(sallyport.*\.(db|epoch)|local\.json|serve\.lock|place\.json)$/;

/**
 * Makes the folder, or takes the rights of other users off it and its files. A folder that holds files of something else is
 * not changed: it is refused with the command that would do it. Throws invalid_input, store_unavailable.
 */
export function ensurePrivateFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER });
    const open = openToOthers(folder);
    if (open.length === 0) return;
    const names = readdirSync(folder);
    if (open.includes(folder) && names.length > 0 && !names.some((name) => OURS.test(name))) {
      throw refused(folder);
    }
    for (const one of open) tighten(one, folder);
  } catch (error) {
    if (error instanceof SallyportError) throw error;
    const hint = `The folder ${folder} cannot be used: check that it is a folder and that you may write to it.`;
    throw new SallyportError("store_unavailable", { what: folder, hint }, error);
  }
}

/** Whoever does not own it cannot change it: then it is refused rather than used as it is. */
function tighten(one: string, folder: string): void {
  try {
    makePrivate(one);
  } catch (error) {
    throw refused(folder, error);
  }
}

function refused(folder: string, cause?: unknown): SallyportError {
  const mode = (statSync(folder).mode & 0o777).toString(8);
  const hint = `Other users of this machine can reach ${folder} (mode ${mode}), which will hold tokens and keys. Run: chmod 700 ${folder}, or choose a folder of its own with --data.`;
  return new SallyportError("invalid_input", { what: folder, hint }, cause);
}
