import { type Dirent, opendir } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { errorCodeOf, oneLine, shown } from "../../util/error-text.ts";
import { systemTimers } from "../../util/timers.ts";
import { piecesOf } from "../../util/visible-text.ts";
import { defineTool } from "../define-tool.ts";
import { compilePattern, type Pattern, PatternError } from "../json-schema/pattern.ts";
import type { JudgePlace, Tool } from "../tool.ts";
import { fileResource, fileText } from "./file-change.ts";
import {
  ABSENT,
  answerOrRefuse,
  FILE_INPUTS,
  type FileToolOptions,
  findPlace,
  jsonInput,
  type PlaceContext,
  readState,
  splitPlace,
  stateIn,
  ToolRefusal,
  withFolder,
} from "./file-place.ts";

/** The tools that look for files: list, glob, grep, and one that shows an image. */
export function findingTools(options: FileToolOptions): readonly Tool[] {
  return [filesList(options), filesGlob(options), filesGrep(options), filesReadImage(options)];
}

const READING = {
  safety: { effect: "read", concurrencySafe: true, affects: ["file"] },
  permissionClass: "file",
  auditOperation: "read",
} as const;

const FOLDER = { ...FILE_INPUTS.path, description: "The folder; default: the working directory." };

type FindCall<Input> = PlaceContext & {
  readonly input: Input;
  readonly signal: AbortSignal;
  readonly judgePlace?: JudgePlace | undefined;
};

interface FolderInput {
  readonly path?: string;
}

/** Without a path it is the working directory itself; `.` is resolved by the gate like any other path. */
function folderResource<Input extends FolderInput>(
  { input, workingDirectory }: { readonly input: Input; readonly workingDirectory: string },
  options: FileToolOptions,
) {
  return fileResource({ input: { path: folderOf(input) }, workingDirectory }, options, "read");
}

function folderOf({ path: given = "." }: FolderInput): string {
  return given;
}

interface ListData {
  readonly path: string;
  readonly entries: readonly ListEntry[];
  /** True when the folder has more entries than one answer lists. */
  readonly more: boolean;
}

interface ListEntry {
  readonly name: string;
  readonly kind: EntryKind;
}

/** Lists the names in one folder. What the gate denies is left out, and links are named but not followed. */
function filesList(options: FileToolOptions): Tool {
  return defineTool({
    name: "files.list",
    description: `Lists a folder: the names in it and whether each is a file, a folder or a link. At most ${MOST_FOUND} names.`,
    input: jsonInput<FolderInput>({ path: FOLDER }, []),
    ...READING,
    searchHint: "list directory folder ls dir names",
    resources: (asked) => [folderResource(asked, options)],
    execute: (call) =>
      answerOrRefuse<ListData>(async () => {
        const place = await findPlace(folderOf(call.input), call, options);
        const judge = judgeOf(call);
        const { entries, more } = await withFolder(place, (base) => entriesIn(base));
        const named = entries
          .filter(({ name }) => judge(path.join(place, name)) !== "deny")
          .map((entry): ListEntry => ({ name: entry.name, kind: kindOf(entry) }));
        const lines = named.slice(0, MOST_FOUND).map(({ name, kind }) => `${kind} ${label(name)}`);
        const isCut = more || named.length > MOST_FOUND;
        const count = `${lines.length} names${isCut ? ", and there are more" : ""}`;
        return {
          text: [`${label(place)} (${count}):`, ...lines].join("\n"),
          data: { path: place, entries: named.slice(0, MOST_FOUND), more: isCut },
        };
      }),
  });
}

interface GlobInput extends FolderInput {
  readonly pattern: string;
}

interface GlobData {
  readonly path: string;
  /** Relative to `path`. */
  readonly files: readonly string[];
  readonly more: boolean;
}

/** Finds files below a folder by the pattern of their path. */
function filesGlob(options: FileToolOptions): Tool {
  return defineTool({
    name: "files.glob",
    description: `Finds files below a folder whose relative path fits a pattern: * within a name, ** for any folders, ? for one character, {a,b} for either; for instance src/**/*.ts. ${NOT_ENTERED} At most ${MOST_FOUND} files.`,
    input: jsonInput<GlobInput>(
      { pattern: { type: "string", minLength: 1, maxLength: 500 }, path: FOLDER },
      ["pattern"],
    ),
    ...READING,
    searchHint: "find files by name pattern wildcard",
    resources: (asked) => [folderResource(asked, options)],
    execute: (call) =>
      answerOrRefuse<GlobData>(async () => {
        const fits = globTest(call.input.pattern);
        const files: string[] = [];
        const walk = new Walk(call, options);
        const place = await walk.start();
        await walk.files(place, async ({ relative }) => {
          if (fits(relative)) files.push(relative);
          return files.length < MOST_FOUND;
        });
        const lines = [`${files.length} files below ${label(place)}:`, ...files.map(label)];
        const data = { path: place, files, more: walk.isCut };
        return { text: [...lines, ...walk.notes()].join("\n"), data };
      }),
  });
}

const MATCHES = ["text", "text-any-case", "regex"] as const;

interface GrepInput extends FolderInput {
  readonly pattern: string;
  readonly match?: (typeof MATCHES)[number];
  readonly files?: string;
}

interface GrepData {
  readonly path: string;
  readonly matches: readonly GrepMatch[];
  readonly more: boolean;
}

interface GrepMatch {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly text: string;
}

/** Finds lines in the text files below a folder. Regular expressions are matched without backtracking (T27). */
function filesGrep(options: FileToolOptions): Tool {
  return defineTool({
    name: "files.grep",
    description: `Finds lines in the text files below a folder, or in one file. The pattern is plain text unless match says "regex" (ECMAScript without back references and lookbehind). ${NOT_ENTERED} Binary files and files above ${MOST_FILE_BYTES} bytes are skipped. At most ${MOST_FOUND} lines.`,
    input: jsonInput<GrepInput>(
      {
        pattern: { type: "string", minLength: 1, maxLength: 1000 },
        match: { enum: [...MATCHES], description: "How to read the pattern; default text." },
        path: { ...FOLDER, description: "The folder or file; default: the working directory." },
        files: {
          type: "string",
          minLength: 1,
          maxLength: 500,
          description: "Only files whose relative path fits this pattern, as in files.glob.",
        },
      },
      ["pattern"],
    ),
    ...READING,
    searchHint: "search text in files content regex find lines",
    resources: (asked) => [folderResource(asked, options)],
    execute: (call) =>
      answerOrRefuse<GrepData>(async () => {
        const { input } = call;
        const fits = input.files === undefined ? () => true : globTest(input.files);
        const isWanted = lineTest(input);
        const matches: GrepMatch[] = [];
        const walk = new Walk(call, options);
        const place = await walk.start();
        await walk.files(place, async (found) => {
          if (!fits(found.relative)) return true;
          const text = await walk.textOf(found);
          let line = 0;
          for (const whole of text?.split("\n") ?? []) {
            line += 1;
            if (line % LINES_BETWEEN_LOOKS === 0 && !(await walk.goesOn())) return false;
            if (!isWanted(whole.slice(0, LONGEST_LINE))) continue;
            matches.push({ file: found.relative, line, text: oneLine(whole, LONGEST_SHOWN) });
            if (matches.length >= MOST_FOUND) return false;
          }
          return true;
        });
        const lines = matches.map(({ file, line, text }) => `${label(file)}:${line}: ${text}`);
        const data = { path: place, matches, more: walk.isCut };
        const head = `${matches.length} lines below ${label(place)}:`;
        return { text: [head, ...lines, ...walk.notes()].join("\n"), data };
      }),
  });
}

interface ImageInput {
  readonly path: string;
}

interface ImageData {
  readonly kind: "image";
  readonly mediaType: string;
  readonly base64: string;
  readonly path: string;
  readonly sha256: string;
}

/** How the files of each format begin, in hexadecimal; `.` stands for any digit. */
const IMAGE_BEGINNINGS: readonly (readonly [string, RegExp])[] = [
  ["image/png", /^89504e470d0a1a0a/],
  ["image/jpeg", /^ffd8ff/],
  ["image/gif", /^474946383[79]61/],
  ["image/webp", /^52494646.{8}57454250/],
];

/** What models accept: 5 MiB of base64. */
const MOST_IMAGE_BYTES = (5 * 1024 * 1024 * 3) / 4;

/** Gives an image to a model that can see. The format is read from the bytes, never from the name. */
function filesReadImage(options: FileToolOptions): Tool {
  return defineTool({
    name: "files.read_image",
    description: "Shows you an image: PNG, JPEG, GIF or WebP, at most 3.75 MiB.",
    input: jsonInput<ImageInput>({ path: FILE_INPUTS.path }, ["path"]),
    ...READING,
    searchHint: "look at picture screenshot photo png jpeg",
    resources: (asked) => [fileResource(asked, options, "read")],
    execute: (call) =>
      answerOrRefuse<ImageData>(async () => {
        const place = await findPlace(call.input.path, call, options);
        const most = Math.min(options.maxReadBytes ?? MOST_IMAGE_BYTES, MOST_IMAGE_BYTES);
        const { bytes, sha256 } = await readState(place, most);
        if (bytes === undefined) {
          throw new ToolRefusal("not_found", `There is no file ${label(place)}. Check the path.`);
        }
        const start = bytes.subarray(0, 12).toString("hex");
        const [mediaType] = IMAGE_BEGINNINGS.find(([, begins]) => begins.test(start)) ?? [];
        if (mediaType === undefined) {
          throw new ToolRefusal(
            "unusable",
            `${label(place)} is neither PNG, JPEG, GIF nor WebP. Read it with files.read instead.`,
          );
        }
        const data = { kind: "image", mediaType, base64: bytes.toString("base64") } as const;
        return {
          text: `${label(place)} (${mediaType}, ${bytes.byteLength} bytes, sha256 ${sha256})`,
          data: { ...data, path: place, sha256 },
        };
      }),
  });
}

const MOST_FOUND = 1_000;
const MOST_IN_FOLDER = 10_000;
const MOST_VISITED = 50_000;
const DEEPEST = 64;
const MOST_FILE_BYTES = 1024 * 1024;
const MOST_BYTES = 128 * 1024 * 1024;
const LONGEST_LINE = 16 * 1024;
const LONGEST_SHOWN = 400;
const LINES_BETWEEN_LOOKS = 200;
const DEADLINE_MS = 10_000;
/** Steps of the pattern matcher for one line: about a tenth of a second. */
const MOST_STEPS = 2_000_000;
const SKIPPED_FOLDERS: ReadonlySet<string> = new Set([".git", "node_modules"]);
const NOT_ENTERED = "Links, .git and node_modules are not entered.";

interface FoundFile {
  /** The open folder. */
  readonly base: string;
  readonly name: string;
  /** From the folder where the walk began, with `/`. */
  readonly relative: string;
}

/** Called for every file that the gate allows; false ends the walk. */
type Visit = (found: FoundFile) => Promise<boolean>;

/**
 * A walk through a folder. Each folder is held open and compared with its path before anything in it is used, so a link
 * that is put in the way is noticed (T29). It ends at the first limit and says so.
 */
class Walk {
  readonly #call: FindCall<FolderInput>;
  readonly #options: FileToolOptions;
  readonly #judge: JudgePlace;
  readonly #deadline: number;
  #visited = 0;
  #bytes = 0;
  #lastPause = systemTimers.elapsedMs();
  readonly #limits = new Set<string>();
  #notAllowed = 0;
  #unreadable = 0;

  constructor(call: FindCall<FolderInput>, options: FileToolOptions) {
    this.#call = call;
    this.#options = options;
    this.#judge = judgeOf(call);
    this.#deadline = systemTimers.elapsedMs() + (options.deadlineMs ?? DEADLINE_MS);
  }

  /** True when there may be more than was visited. */
  get isCut(): boolean {
    return this.#limits.size > 0;
  }

  start(): Promise<string> {
    return findPlace(folderOf(this.#call.input), this.#call, this.#options);
  }

  /** Visits the files below a folder, or the one file. */
  async files(place: string, visit: Visit): Promise<void> {
    try {
      const isWhole = await this.#folder(place, "", 0, visit);
      if (!isWhole && !this.isCut) this.#limits.add("the answer is full");
    } catch (error) {
      const isFolder = !(error instanceof ToolRefusal && error.code === "not_found");
      if (isFolder || !(await isPlainFile(place))) throw error;
      const { folder, name } = splitPlace(place);
      await withFolder(folder, (base) => visit({ base, name, relative: name }));
    }
  }

  /** Undefined for what is not text, too large or cannot be opened. */
  async textOf({ base, name }: FoundFile): Promise<string | undefined> {
    try {
      const { bytes } = await stateIn(base, name, MOST_FILE_BYTES);
      this.#bytes += bytes?.byteLength ?? 0;
      return bytes === undefined ? undefined : fileText(bytes);
    } catch (error) {
      if (!(error instanceof ToolRefusal)) throw error;
      this.#unreadable += 1;
      return undefined;
    }
  }

  /** False once a limit is reached. Lets other work of the process run from time to time. */
  async goesOn(): Promise<boolean> {
    this.#call.signal.throwIfAborted();
    const now = systemTimers.elapsedMs();
    const limit =
      (now > this.#deadline && "it took too long") ||
      (this.#visited > MOST_VISITED && `it saw ${MOST_VISITED} names`) ||
      (this.#bytes > MOST_BYTES && `it read ${MOST_BYTES} bytes`);
    if (limit !== false) {
      this.#limits.add(limit);
      return false;
    }
    if (now - this.#lastPause > 20) {
      await new Promise<void>((resolve) => systemTimers.soon(resolve));
      this.#lastPause = systemTimers.elapsedMs();
    }
    return true;
  }

  notes(): readonly string[] {
    const counted = [
      [this.#notAllowed, "need a person's consent one by one and were left out"],
      [this.#unreadable, "could not be read, or are too large"],
    ] as const;
    return [
      ...counted.filter(([count]) => count > 0).map(([count, what]) => `(${count} files ${what}.)`),
      ...(this.isCut
        ? [`(There may be more: ${[...this.#limits].join(", ")}. Look in a smaller folder.)`]
        : []),
    ];
  }

  async #folder(folder: string, relative: string, depth: number, visit: Visit): Promise<boolean> {
    const below: string[] = [];
    const isDone = await withFolder(folder, async (base) => {
      const { entries, more } = await entriesIn(base);
      if (more) this.#limits.add(`a folder has more than ${MOST_IN_FOLDER} names`);
      for (const entry of entries) {
        this.#visited += 1;
        const { name } = entry;
        const answer = this.#judge(path.join(folder, name));
        if (entry.isDirectory() && answer !== "deny" && !SKIPPED_FOLDERS.has(name))
          below.push(name);
        if (entry.isFile() && answer === "ask") this.#notAllowed += 1;
        const found = { base, name, relative: `${relative}${name}` };
        if (entry.isFile() && answer === "allow" && !(await visit(found))) return true;
        if (!(await this.goesOn())) return true;
      }
      return false;
    });
    if (isDone) return false;
    if (below.length > 0 && depth >= DEEPEST) this.#limits.add(`it is ${DEEPEST} folders deep`);
    for (const name of depth >= DEEPEST ? [] : below) {
      const inner = path.join(folder, name);
      try {
        if (!(await this.#folder(inner, `${relative}${name}/`, depth + 1, visit))) return false;
      } catch (error) {
        // It was removed, replaced by a link or closed to us; what the walk named first must be there.
        if (!(error instanceof ToolRefusal)) throw error;
        this.#unreadable += 1;
      }
    }
    return true;
  }
}

/** Without a gate there are no rules; behind one, what it does not judge is not opened. */
function judgeOf({ judgePlace, places }: Omit<FindCall<unknown>, "input">): JudgePlace {
  return judgePlace ?? (() => (places === undefined ? "allow" : "deny"));
}

async function isPlainFile(place: string): Promise<boolean> {
  const { sha256 } = await readState(place, Number.MAX_SAFE_INTEGER);
  return sha256 !== ABSENT;
}

const openDirectory = promisify(opendir);

/** The first entries of an open folder, sorted by name. */
async function entriesIn(
  base: string,
): Promise<{ readonly entries: readonly Dirent[]; readonly more: boolean }> {
  const entries: Dirent[] = [];
  try {
    // With the slash it is the folder behind the open handle, not the link to it in /proc.
    const directory = await openDirectory(`${base}/`, { bufferSize: 512 });
    for await (const entry of directory) {
      if (entries.length >= MOST_IN_FOLDER) return { entries: byName(entries), more: true };
      entries.push(entry);
    }
  } catch (error) {
    throw new ToolRefusal("unusable", `The folder cannot be read (${errorCodeOf(error)}).`);
  }
  return { entries: byName(entries), more: false };
}

function byName(entries: Dirent[]): readonly Dirent[] {
  return entries.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

type EntryKind = "file" | "folder" | "link" | "other";

function kindOf(entry: Dirent): EntryKind {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "folder";
  return entry.isSymbolicLink() ? "link" : "other";
}

/** A name on one line. One with line breaks or hidden characters is quoted, so that it cannot pass for other lines. */
function label(name: string): string {
  const isPlain = piecesOf(name).every(({ kind }) => kind === "text" || kind === "twin");
  return isPlain && !name.startsWith('"') ? name : shown(name, 4096);
}

function lineTest({ pattern, match = "text" }: GrepInput): (line: string) => boolean {
  if (match === "regex") return patternTest(pattern);
  if (match === "text") return (line) => line.includes(pattern);
  const folded = pattern.toLowerCase();
  return (line) => line.toLowerCase().includes(folded);
}

function patternTest(source: string): (text: string) => boolean {
  const pattern = compiled(source);
  return (text) => {
    let left = MOST_STEPS;
    return pattern.test(text, (steps) => {
      left -= steps;
      if (left >= 0) return;
      throw new ToolRefusal(
        "too_large",
        "The pattern takes too much work for one of the lines. Nothing was found. Use a simpler pattern or plain text.",
      );
    });
  };
}

function compiled(source: string): Pattern {
  try {
    return compilePattern(source);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    throw new ToolRefusal(
      "unusable",
      `The pattern cannot be used: ${error.message}. Nothing was done. Write it differently.`,
    );
  }
}

/** The pattern of paths as a regular expression, which is matched without backtracking as well. */
function globTest(glob: string): (relative: string) => boolean {
  const parts = glob.match(/\*\*\/|\*\*|[\s\S]/gu) ?? [];
  let depth = 0;
  const source = parts.map((part) => {
    if (part === "**/") return "(?:[^\\/]+\\/)*";
    if (part === "**") return "[\\s\\S]*";
    if (part === "*") return "[^\\/]*";
    if (part === "?") return "[^\\/]";
    if (part === "{") depth += 1;
    if (part === "{") return "(?:";
    if (part === "}" && depth > 0) {
      depth -= 1;
      return ")";
    }
    if (part === "," && depth > 0) return "|";
    return part.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&");
  });
  return patternTest(`^${source.join("")}$`);
}
