import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, readdir, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { canonicalJson } from "../../util/canonical-json.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { sha256Hex } from "../../util/hash.ts";
import { type CommandWord, commandWords, namesIn } from "../command-words.ts";
import { visibleText } from "./file-change.ts";

/** A file that a command names, in its current state. */
interface CommandFile {
  /** With all links resolved. */
  readonly place: string;
  readonly bytes: number;
  /** Its hash; for a file beyond the limits only its size and time. */
  readonly version: string;
  readonly isHashed: boolean;
  /** The text of a short script below the folder that the command runs. */
  readonly text?: string;
}

export interface CommandFiles {
  readonly folder: string;
  readonly files: readonly CommandFile[];
  /** What could not be inspected, as sentences. */
  readonly notes: readonly string[];
}

const MOST_FILES = 64;
const MOST_BYTES = 16 * 1024 * 1024;
const LONGEST_SCRIPT = 16 * 1024;
const MOST_WORDS = 256;
const MOST_FOLDERS = 4;
const READ = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Programs that run their first file argument. */
const RUNNERS =
  /^(\.|source|exec|env|time|nohup|setsid|(ba|da|a|z|k|fi)?sh|node|deno|bun|tsx|ts-node|python[\d.]*|perl|ruby|php|lua|make)$/;
/** Files that a program reads implicitly: for example what `npm test` runs. */
const MANIFESTS: Readonly<Record<string, readonly string[]>> = {
  npm: ["package.json"],
  npx: ["package.json"],
  pnpm: ["package.json"],
  yarn: ["package.json"],
  bun: ["package.json"],
  make: ["GNUmakefile", "makefile", "Makefile"],
};

/** `{a,b}`. By hand: a pattern would look at the rest of the text again for each of many open braces. */
function hasBraceList(command: string): boolean {
  let isOpen = false;
  for (const sign of command) {
    if (sign === "{") isOpen = true;
    else if (sign === "}") isOpen = false;
    else if (sign === "," && isOpen) return true;
  }
  return false;
}

/**
 * The files that a command names below its folder, and the programs and scripts that it names anywhere, with their
 * hashes. `searchPath` is its PATH. Program names that resolve outside the folder belong to the system, and files that
 * a script reads are not followed.
 */
export async function commandFiles(
  command: string,
  folder: string,
  searchPath: string,
): Promise<CommandFiles> {
  const every = commandWords(command);
  const words = every.slice(0, MOST_WORDS);
  const notes: string[] = [];
  if (every.length > words.length) {
    notes.push(`${every.length - words.length} more words were not looked at.`);
  }
  if (hasBraceList(command)) notes.push("It has braces, which some shells expand to names.");
  const unknown = words.filter(isWorkedOut).map(({ text }) => text);
  if (unknown.length > 0) {
    const some = [...new Set(unknown)].slice(0, 5).map((text) => JSON.stringify(text.slice(0, 80)));
    notes.push(`The shell works these out when it runs, so no file is known: ${some.join(", ")}.`);
  }
  const folders = await foldersIn(words, folder);
  const found = new Map<string, { readonly isRun: boolean }>();
  let isRunner = false;
  for (const word of words) {
    if (word.isProgram) isRunner = false;
    const places = await placesFor(word, folders, searchPath);
    for (const place of places) {
      const isRun = word.isProgram || isRunner || found.get(place)?.isRun === true;
      if (isRun || isBelow(place, folder)) found.set(place, { isRun });
    }
    // Only the first file after a runner is its program; the others are its input.
    if (places.length > 0) isRunner = false;
    if (RUNNERS.test(path.basename(word.text))) isRunner = true;
    for (const place of await manifestsOf(word, folders)) found.set(place, { isRun: true });
  }
  const all = [...found].toSorted(([a], [b]) => (a < b ? -1 : 1));
  if (all.length > MOST_FILES) {
    notes.push(`${all.length - MOST_FILES} more files are named and were not looked at.`);
  }
  const files: CommandFile[] = [];
  let left = MOST_BYTES;
  for (const [place, { isRun }] of all.slice(0, MOST_FILES)) {
    const file = await lookAt(place, left, isRun && isBelow(place, folder));
    if (file === undefined) continue;
    if (file.isHashed) left -= file.bytes;
    else notes.push(`${place} is too large to be hashed; its size and time are used instead.`);
    files.push(file);
  }
  return { folder, files, notes };
}

/** Variables, homes, substitutions, and patterns in a folder's name. */
function isWorkedOut({ text }: CommandWord): boolean {
  return /[$~]/.test(text) || /[*?[]/.test(path.dirname(text));
}

/** Equal while the folder, the files and the number of uninspected files are the same. */
export function versionOf({ folder, files, notes }: CommandFiles): string {
  const seen = files.map(({ place, version }) => [place, version]);
  return `files ${sha256Hex(canonicalJson({ folder, files: seen, notes: [...notes] }))}`;
}

/** For reviewers: names and hashes, what was omitted, and the text of scripts. */
export function describeFiles({ folder, files, notes }: CommandFiles): string {
  const names = files.map(({ place, bytes, version, isHashed }) => {
    const hash = isHashed ? `sha256 ${version.slice(0, 12)}` : "not hashed";
    return `  ${nameIn(folder, place)} (${bytes} bytes, ${hash})`;
  });
  const scripts = files.flatMap(({ place, text }) =>
    text === undefined ? [] : [`--- ${nameIn(folder, place)} ---\n${text}`],
  );
  const head =
    names.length === 0
      ? "The command names no file below its folder."
      : `Files that the command names, as they are now:\n${names.join("\n")}`;
  return [`Runs in ${folder}.`, head, ...notes, ...scripts].join("\n");
}

export function nameIn(folder: string, place: string): string {
  return isBelow(place, folder) ? path.relative(folder, place) : place;
}

function isBelow(place: string, folder: string): boolean {
  return place.startsWith(folder === path.sep ? folder : `${folder}${path.sep}`);
}

/** Folders that a relative word may refer to: the command's own, and those below it that it may change to. */
async function foldersIn(
  words: readonly CommandWord[],
  folder: string,
): Promise<readonly string[]> {
  const found = new Set([folder]);
  for (const { text } of words) {
    if (found.size >= MOST_FOLDERS) break;
    const place = await realpath(path.resolve(folder, text)).catch(() => undefined);
    if (place === undefined || !isBelow(place, folder)) continue;
    if ((await stat(place).catch(() => undefined))?.isDirectory() === true) found.add(place);
  }
  return [...found];
}

/** Plain files that a word may mean, links resolved. */
async function placesFor(
  { text, isProgram }: CommandWord,
  folders: readonly string[],
  searchPath: string,
): Promise<readonly string[]> {
  const found = new Set<string>();
  for (const name of namesFor(text)) {
    for (const folder of folders) {
      for (const at of await expanded(path.resolve(folder, name))) {
        const place = await plainFile(at);
        if (place !== undefined) found.add(place);
      }
    }
  }
  const [folder = ""] = folders;
  for (const entry of isProgram && !text.includes("/") ? searchPath.split(path.delimiter) : []) {
    const place = await plainFile(path.resolve(folder, entry, text));
    if (place !== undefined && isBelow(place, folder)) found.add(place);
  }
  return [...found];
}

/** `node x` also means `x.js`. */
function namesFor(text: string): readonly string[] {
  return namesIn(text).flatMap((name) => [name, `${name}.js`]);
}

/** A shell pattern stands for the files in its folder with the same prefix and suffix. */
async function expanded(at: string): Promise<readonly string[]> {
  const { dir, base } = path.parse(at);
  if (!/[*?[]/.test(base)) return [at];
  const start = base.slice(0, base.search(/[*?[]/));
  const end = base.slice(
    base.length -
      [...base]
        .reverse()
        .join("")
        .search(/[*?\]]/),
  );
  const names = await readdir(dir).catch(() => []);
  const fits = names.filter((name) => name.startsWith(start) && name.endsWith(end));
  return fits.toSorted().map((name) => path.join(dir, name));
}

async function manifestsOf(
  { text, isProgram }: CommandWord,
  folders: readonly string[],
): Promise<readonly string[]> {
  const names = isProgram ? (MANIFESTS[path.basename(text)] ?? []) : [];
  const places = await Promise.all(
    folders.flatMap((folder) => names.map((name) => plainFile(path.join(folder, name)))),
  );
  return places.filter((place) => place !== undefined);
}

async function plainFile(at: string): Promise<string | undefined> {
  const place = await realpath(at).catch(() => undefined);
  const isFile = place !== undefined && (await stat(place).catch(() => undefined))?.isFile();
  return isFile === true ? place : undefined;
}

/** Undefined when it is gone or cannot be read: then it does not run either. */
async function lookAt(
  place: string,
  left: number,
  isShown: boolean,
): Promise<CommandFile | undefined> {
  const file = await open(place, READ).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const { size, mtimeMs } = await file.stat();
    if (size > left) {
      return { place, bytes: size, version: `${size} ${mtimeMs}`, isHashed: false };
    }
    const { version, head } = await hashOf(file);
    const isScript = isShown && size <= LONGEST_SCRIPT;
    const text = isScript ? visibleText(head) : undefined;
    return definedFields({ place, bytes: size, version, isHashed: true, text });
  } finally {
    await file.close();
  }
}

async function hashOf(file: FileHandle): Promise<{ version: string; head: Buffer }> {
  const hash = createHash("sha256");
  const chunk = Buffer.alloc(256 * 1024);
  let head = Buffer.alloc(0);
  for (let at = 0; at <= MOST_BYTES; ) {
    const { bytesRead } = await file.read(chunk, 0, chunk.byteLength, at);
    if (bytesRead === 0) break;
    const part = chunk.subarray(0, bytesRead);
    hash.update(part);
    if (at === 0) head = Buffer.from(part);
    at += bytesRead;
  }
  return { version: hash.digest("hex"), head };
}
