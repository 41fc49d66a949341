import {
  chmodSync,
  existsSync,
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
import {
  type AnchorSigner,
  type AnchorSink,
  createSigner,
  fileAnchorSink,
  generateSigningKey,
} from "../audit/anchor.ts";
import { createAnchorer } from "../audit/anchorer.ts";
import type { VerifyOptions } from "../audit/verify.ts";
import { SallyportError } from "../model/errors.ts";
import type { Store } from "../store/store.ts";
import { epochFile, type Remembered } from "../store/watched-engine.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { systemClock, toIso } from "../util/clock.ts";
import {
  createWholeFile,
  makePrivate,
  makePrivateFolder,
  openToOthers,
  PRIVATE_FILE,
  PRIVATE_FOLDER,
  realPath,
} from "../util/files.ts";
import { sha256Hex } from "../util/hash.ts";
import { createIds } from "../util/ids.ts";
import { systemRandom } from "../util/random.ts";

/** Where everything is kept: a PostgreSQL database, or one file in a folder. */
export interface StorePlace {
  readonly data: string;
  /** The store's file; `sallyport.db` in `data` unless it is named. */
  readonly file?: string;
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
  // With several hosts it is no URL.
  if (!URL.canParse(database)) return `${database.replace(/\/\/[^@/]*@/, "//")} ${schema}`;
  const { host, pathname } = new URL(database);
  return `${host}${pathname} ${schema}`;
}

/**
 * Makes the state folder and takes over an epoch file from the data folder, where older versions kept it. Says whether
 * anything was known about the store before. Throws invalid_input for the state of another store.
 */
export function prepareState(place: StorePlace): "known" | "new" {
  const files = stateOf(place);
  makeState(files, place);
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
  writeEpoch(to, higher(readEpoch(to), old) ?? old);
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

function writeEpoch(place: string, remembered: Remembered): void {
  const file = epochFile(place);
  try {
    file.write(remembered);
  } finally {
    file.close();
  }
}

/** The folder and that of the epoch file, after checking that they belong to this store. */
function makeState(files: StateFiles, place: StorePlace): void {
  ensurePrivateFolder(files.folder);
  mkdirSync(path.dirname(files.epochFile), { recursive: true, mode: PRIVATE_FOLDER });
  checkPlace(files, place);
}

/** After a restore was declared: what is remembered begins anew, and the anchors of the life before are kept as they are. */
export function beginState(place: StorePlace, remembered: Remembered): void {
  const files = stateOf(place);
  makeState(files, place);
  writeEpoch(files.epochFile, remembered);
  const old = oldEpochPath(place);
  if (old !== files.epochFile) rmSync(old, { force: true });
  const kept = path.join(files.folder, `anchors-before-${remembered.epoch}.jsonl`);
  if (existsSync(files.anchorFile)) renameSync(files.anchorFile, kept);
}

/** The session of whatever `entry` names: made at its first use, and the same for every later process of this user. */
export function lastingSession(place: StorePlace, entry: readonly string[]): string {
  const { folder } = stateOf(place);
  const file = path.join(folder, `session-${sha256Hex(canonicalJson(entry)).slice(0, 16)}`);
  const made = createIds({ clock: systemClock, random: systemRandom }).next();
  if (!existsSync(file)) createWholeFile(file, `${made}\n`);
  return readFileSync(file, "utf8").trim();
}

/** A state folder that was copied by hand from another store would vouch for the wrong one. */
function checkPlace({ folder }: StateFiles, place: StorePlace): void {
  const file = path.join(folder, "place.json");
  const of = identityOf(place);
  if (!existsSync(file)) {
    const facts = { of, machine: hostname(), since: toIso(systemClock.now()) };
    createWholeFile(file, `${JSON.stringify(facts)}\n`);
  }
  if (storeIn(readFileSync(file, "utf8")) === of) return;
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

/** Files by which a data or state folder is recognised. */
const OURS = /^(sallyport.*\.(db|epoch)|local\.json|serve\.lock|place\.json)$/;

/**
 * Makes the folder, or takes the rights of other users off it and its files. A folder that holds files of something else is
 * not changed: it is refused with the command that would do it. Throws invalid_input, store_unavailable.
 */
export function ensurePrivateFolder(folder: string): void {
  try {
    makePrivateFolder(folder);
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

/** Only the owner can change modes; otherwise the folder is refused rather than used as it is. */
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

/** Where anchors are kept instead of the state folder, preferably on another machine, and who signs them. */
export interface OwnAnchors {
  readonly sink: AnchorSink;
  readonly signer: AnchorSigner;
  /** Keys that signed older anchors in the sink. */
  readonly publicKeys?: readonly string[];
}

export interface Anchoring {
  /** For verification: the current end is anchored first. */
  readonly audit: Pick<VerifyOptions, "anchors" | "publicKeys">;
  close(): Promise<void>;
}

/** Anchors every trail of the store from now on. The signing key is created on first use and is never in the store. */
export function startAnchoring(
  store: Store,
  place: StateFiles | OwnAnchors,
  onProblem: (error: unknown) => void,
): Anchoring {
  const own = "sink" in place ? place : inFolder(place);
  const { sink, signer, publicKeys = [] } = own;
  const anchorer = createAnchorer({
    store,
    sink,
    signer,
    publicKeys,
    onProblem: ({ code, message, cause }) => onProblem(new Error(`${code}: ${message}`, { cause })),
  });
  return {
    audit: {
      publicKeys: [signer.publicKey, ...publicKeys],
      anchors: {
        async *[Symbol.asyncIterator]() {
          // A failure was reported to onProblem; the anchors that are there still count.
          await anchorer.flush().catch(() => {});
          yield* sink.read();
        },
      },
    },
    close: () => anchorer.close(),
  };
}

function inFolder({ anchorFile, keyFile, publicKeyFile }: StateFiles): OwnAnchors {
  const signer = createSigner({ privateKey: privateKeyIn(keyFile) });
  // For verification elsewhere, which needs no private key.
  writeFileSync(publicKeyFile, signer.publicKey, { mode: PRIVATE_FILE });
  return { sink: fileAnchorSink({ file: anchorFile }), signer };
}

function privateKeyIn(file: string): string {
  // Where another process was first, or this is a later start, the existing key is used.
  const isOld =
    existsSync(file) || createWholeFile(file, generateSigningKey().privateKey) === "exists";
  if (isOld) chmodSync(file, PRIVATE_FILE);
  return readFileSync(file, "utf8");
}

/** The anchors that a local server wrote, for verification; undefined if there are none. */
export function anchorsIn({
  anchorFile,
  publicKeyFile,
}: StateFiles): Anchoring["audit"] | undefined {
  if (!existsSync(anchorFile)) return undefined;
  return {
    anchors: fileAnchorSink({ file: anchorFile }).read(),
    publicKeys: existsSync(publicKeyFile) ? [readFileSync(publicKeyFile, "utf8")] : [],
  };
}
