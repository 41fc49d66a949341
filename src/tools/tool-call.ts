import { lstat, readlink } from "node:fs/promises";
import path from "node:path";
import { canonicalJson } from "../util/canonical-json.ts";
import { definedFields } from "../util/defined-fields.ts";
import { cutText, errorCodeOf, errorText } from "../util/error-text.ts";
import type { JsonValue } from "../util/json.ts";
import { commandWords, namesIn } from "./command-words.ts";
import { defineTool } from "./define-tool.ts";
import { nameProblem } from "./registry.ts";
import type { ResultOwner, ResultPart, ResultRange, ResultStore } from "./result-store.ts";
import {
  type DryRun,
  isDryRunnable,
  isReversible,
  type Resource,
  type Tool,
  type ToolCall,
  type ToolResult,
} from "./tool.ts";

export type Access = "read" | "write";

/** A resource for the gate, independent of the working directory and of links. */
export type ResolvedResource =
  | {
      readonly kind: "file";
      /** As given. */
      readonly path: string;
      /**
       * Absolute, with links and `..` resolved. For a file that does not exist yet: its nearest existing parent,
       * resolved, and the remaining names.
       */
      readonly resolved: string;
      readonly access: Access;
    }
  | {
      /** A file that could not be resolved. The gate denies it: what cannot be named cannot be judged. */
      readonly kind: "unresolved";
      readonly path: string;
      readonly access: Access;
      readonly reason: string;
    }
  | {
      readonly kind: "command";
      readonly command: string;
      /** The folder it runs in, resolved like a file; omitted when there is none or it cannot be resolved. */
      readonly folder?: string;
      /** Where its words lead that go through a link; omitted when none does. */
      readonly linked?: readonly LinkedPlace[];
    }
  | Exclude<Resource, { kind: "file" | "command" }>;

/** Where a word of a command leads through a link. */
export interface LinkedPlace {
  readonly resolved: string;
  /** The word is a path below the command's folder, and the link leads out of it. */
  readonly leaves: boolean;
}

/** The limit of Linux. */
const MOST_LINKS = 40;

/**
 * Resolves the files among a call's resources against its working directory, as the operating system would open them.
 * The answer is valid at that moment. Tools get it as `context.places` and open exactly these places, without following
 * links.
 */
export async function resolveResources(
  resources: readonly Resource[],
  workingDirectory: string,
): Promise<readonly ResolvedResource[]> {
  return Promise.all(
    resources.map(async (resource): Promise<ResolvedResource> => {
      if (resource.kind === "command") return withFolder(resource, workingDirectory);
      if (resource.kind !== "file") return resource;
      const { access } = resource;
      try {
        const resolved = await resolvePath(resource.path, workingDirectory);
        return { kind: "file", path: resource.path, resolved, access };
      } catch (error) {
        return { kind: "unresolved", path: resource.path, access, reason: reasonOf(error) };
      }
    }),
  );
}

/** The resolved places of a call, in the order of its resources: files, and the folders of commands. */
export function placesOf(resources: readonly ResolvedResource[]): readonly string[] {
  return resources.flatMap((resource) => {
    if (resource.kind === "file") return [resource.resolved];
    if (resource.kind === "command" && resource.folder !== undefined) return [resource.folder];
    return [];
  });
}

/** A folder with all links resolved; undefined when it is empty, relative or cannot be resolved. */
export async function resolveFolder(folder: string): Promise<string | undefined> {
  if (!path.isAbsolute(folder)) return undefined;
  return resolvePath(folder, "").catch(() => undefined);
}

async function withFolder(
  { command, directory = "" }: Extract<Resource, { kind: "command" }>,
  workingDirectory: string,
): Promise<ResolvedResource> {
  const folder = await resolveFolder(directory || workingDirectory);
  const linked = folder === undefined ? [] : await linkedPlaces(command, folder);
  const places = linked.length === 0 ? undefined : linked;
  return definedFields({ kind: "command" as const, command, folder, linked: places });
}

/** A word that names nothing, or that the system refuses to look up, leads nowhere. */
async function linkedPlaces(command: string, folder: string): Promise<readonly LinkedPlace[]> {
  const names = new Set(commandWords(command).flatMap(({ text }) => namesIn(text)));
  const found: LinkedPlace[] = [];
  for (const name of names) {
    const resolved = await resolvePath(name, folder).catch(() => undefined);
    const plain = path.resolve(folder, name);
    if (resolved === undefined || resolved === plain) continue;
    found.push({ resolved, leaves: isBelow(plain, folder) && !isBelow(resolved, folder) });
  }
  return found;
}

function isBelow(place: string, folder: string): boolean {
  return (
    place === folder || place.startsWith(folder.endsWith(path.sep) ? folder : folder + path.sep)
  );
}

async function resolvePath(given: string, workingDirectory: string): Promise<string> {
  if (given === "") throw new Unresolvable("it is empty");
  if (given.includes("\0")) throw new Unresolvable("it holds a null character");
  if (!path.isAbsolute(given) && !path.isAbsolute(workingDirectory)) {
    throw new Unresolvable("it is relative, and no working directory is set");
  }
  // Joined manually: path.join and path.resolve would remove `link/..` before the link is resolved.
  const whole = path.isAbsolute(given) ? given : `${workingDirectory}${path.sep}${given}`;
  const { root } = path.parse(whole);
  let here = root;
  const ahead = namesOf(whole.slice(root.length)).reverse();
  let links = 0;
  for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
    if (name === "..") {
      here = path.dirname(here);
      continue;
    }
    const next = path.join(here, name);
    const target = await look(next);
    if (target.kind === "missing") return withRest(next, ahead);
    if (target.kind === "link") {
      links += 1;
      if (links > MOST_LINKS) throw new Unresolvable("it goes through too many links");
      if (path.isAbsolute(target.to)) here = path.parse(target.to).root;
      ahead.push(...namesOf(target.to.slice(path.parse(target.to).root.length)).reverse());
      continue;
    }
    if (target.kind === "file" && ahead.length > 0) {
      throw new Unresolvable("one of its folders is a file");
    }
    here = next;
  }
  return here;
}

/**
 * `..` after a name that does not exist cannot be resolved: the system would refuse it, and the text alone would
 * mislead.
 */
function withRest(missing: string, ahead: readonly string[]): string {
  if (ahead.includes("..")) throw new Unresolvable("it steps out of a folder that does not exist");
  return path.join(missing, ...ahead.toReversed());
}

type Looked =
  | { readonly kind: "folder" | "file" | "missing" }
  | { readonly kind: "link"; readonly to: string };

async function look(at: string): Promise<Looked> {
  try {
    const found = await lstat(at);
    if (found.isSymbolicLink()) return { kind: "link", to: await readlink(at) };
    return { kind: found.isDirectory() ? "folder" : "file" };
  } catch (error) {
    if (errorCodeOf(error) === "ENOENT") return { kind: "missing" };
    throw error;
  }
}

function namesOf(rest: string): string[] {
  return rest
    .split(path.sep === "\\" ? /[\\/]/ : "/")
    .filter((name) => name !== "" && name !== ".");
}

class Unresolvable extends Error {}

function reasonOf(error: unknown): string {
  if (error instanceof Unresolvable) return error.message;
  return `the file system refused to look (${errorCodeOf(error) || "unknown error"})`;
}

interface HasDirectory {
  readonly workingDirectory: string;
}

/**
 * The context with another working directory; the same object when the directory is empty. Contexts are immutable, so
 * an override ends with its call and parallel calls do not see each other's.
 */
export function withWorkingDirectory<Context extends HasDirectory>(
  context: Context,
  directory: string,
): Context {
  return directory === "" ? context : { ...context, workingDirectory: directory };
}

/** Empty when none is set. */
export function workingDirectoryOf(context: Partial<HasDirectory>): string {
  return context.workingDirectory ?? "";
}

/** For tools with their own directory: the context's directory takes precedence. */
export function directoryFor(context: Partial<HasDirectory>, own: string): string {
  return workingDirectoryOf(context) || own;
}

/** How to undo one call. Rollback dispatches by `tool` and `input`; the description is for people. */
export interface UndoRecord {
  /** Empty when irreversible. */
  readonly tool: string;
  readonly input: JsonValue;
  readonly description: string;
  readonly irreversible: boolean;
  /** What a person can do manually; shown instead of dispatching an irreversible call. */
  readonly manualGuide: string;
}

/**
 * The short form for tool authors: the call that undoes this one, or the statement that there is none. Data, not a
 * function, because a rollback may come after a restart and passes the gate like any call.
 */
export type UndoRecipe =
  | {
      readonly tool: string;
      /** Plain JSON, which is checked when it is recorded: a value whose type is an interface fits as well. */
      readonly input: JsonValue | object;
      readonly description?: string;
      readonly irreversible?: false;
      readonly manualGuide?: string;
    }
  | {
      readonly irreversible: true;
      readonly manualGuide: string;
      readonly description?: string;
      readonly tool?: string;
      readonly input?: JsonValue;
    };

export type UndoReading =
  | { readonly ok: true; readonly undo: UndoRecord }
  | { readonly ok: false; readonly problem: string };

/** Completes a tool's undo record, or returns the problem with it. Never throws. */
export function readUndo(given: unknown): UndoReading {
  if (typeof given !== "object" || given === null) return bad("it is not an object");
  const all = {
    tool: "",
    input: null,
    description: "",
    irreversible: false,
    manualGuide: "",
    ...given,
  };
  if (typeof all.irreversible !== "boolean") return bad("irreversible is not true or false");
  if (typeof all.description !== "string") return bad("the description is not a text");
  if (typeof all.manualGuide !== "string") return bad("the manual guide is not a text");
  const { description, irreversible, manualGuide } = all;
  // An irreversible call has nothing to dispatch, so nothing is kept that could be dispatched by mistake.
  if (irreversible) {
    return { ok: true, undo: { tool: "", input: null, description, irreversible, manualGuide } };
  }
  if (nameProblem(all.tool) !== undefined) return bad("it names no tool");
  try {
    canonicalJson(all.input);
  } catch (error) {
    return bad(`its input cannot be kept: ${errorText(error)}`);
  }
  const { tool, input } = all;
  return { ok: true, undo: { tool, input, description, irreversible, manualGuide } };
}

function bad(problem: string): UndoReading {
  return { ok: false, problem };
}

export interface MadeUndo {
  /** Undefined when there is no undo: the call changed nothing, the tool has none, or the record was lost. */
  readonly undo?: UndoRecord;
  /** Why an expected undo record is missing; for the operation log and the person who requests a rollback. */
  readonly lost?: string;
}

/**
 * The undo record of a call that has just ended: the tool's own, otherwise the result of `generateUndo`. The capability
 * is never read; it is for display. A failed call changed nothing unless its result contains an undo record. Never
 * throws: the call succeeded even if its undo record could not be created; the loss is reported instead.
 */
export async function makeUndo(tool: Tool, call: ToolCall, result: ToolResult): Promise<MadeUndo> {
  if (result.isError === true && result.undo === undefined) return {};
  try {
    const given =
      result.undo ?? (isReversible(tool) ? await tool.generateUndo(call, result) : undefined);
    if (given === undefined && !isReversible(tool)) return {};
    const reading = readUndo(given);
    return reading.ok ? { undo: reading.undo } : lostUndo(tool, reading.problem);
  } catch (error) {
    return lostUndo(tool, errorText(error));
  }
}

/** False when there is nothing to undo. */
export function mayHaveUndo(tool: Tool, result: ToolResult): boolean {
  return result.undo !== undefined || (isReversible(tool) && result.isError !== true);
}

export function lostUndo(tool: Tool, problem: string): MadeUndo {
  const lost =
    `"${tool.name}" was executed, but no way to undo it could be recorded: ${problem}. ` +
    "It counts as irreversible; a rollback will list it for a person.";
  return { lost };
}

/**
 * Asks a tool what a call would do. For previews: needs no approval and starts no execution. The tool gets neither
 * idempotency key nor fence, so that it cannot mistake this for an attempt. Undefined without a dry run; errors of the
 * dry run are rethrown.
 */
export async function previewCall(tool: Tool, call: ToolCall): Promise<DryRun | undefined> {
  if (!isDryRunnable(tool)) return undefined;
  return tool.dryRun({ ...call, context: { ...call.context, idempotencyKey: "", fence: 0 } });
}

/** Shortens long outputs. Shape: callback; the orchestrator waits for it before it returns a result. */
export interface ResultProcessor {
  process(call: ProcessedCall, text: string): Promise<ProcessedResult>;
  /** A part of a stored output, by the path it was stored under. Undefined when this owner has none there. */
  read?(
    owner: ResultOwner,
    storedPath: string,
    range: ResultRange,
  ): Promise<ResultPart | undefined>;
}

/** Whose output it is: the session, the agent's id of the call, and the tool. */
export interface ProcessedCall extends ResultOwner {
  readonly callId: string;
  readonly tool: string;
}

export interface ProcessedResult {
  readonly text: string;
  /** True exactly when the text is a summary and the full output is stored. */
  readonly truncated: boolean;
  /** The stored path; empty otherwise. Caller-specific and untrusted: see `forSharedUse`. */
  readonly storedPath: string;
}

export interface ResultProcessorOptions {
  /** With `read`, people can open what was stored. */
  readonly store: Pick<ResultStore, "save"> & Partial<Pick<ResultStore, "read">>;
  /** Outputs up to this many characters are unchanged. Default 30,000. */
  readonly maxCharacters?: number;
  /** How much of a long output the summary shows. Default 2,000. */
  readonly headCharacters?: number;
  /** Removes secrets before anything is stored or shown; when it fails, the output is dropped. Shape: callback. */
  readonly redact?: (text: string) => string;
  /** The tool that reads the rest. */
  readonly readTool?: string;
}

export function createResultProcessor(options: ResultProcessorOptions): ResultProcessor {
  const { store, redact, readTool = READ_RESULT } = options;
  const { maxCharacters = 30_000, headCharacters = 2_000 } = options;
  return {
    async process(owner, output) {
      let text = output;
      try {
        text = redact?.(output) ?? output;
      } catch (error) {
        return shown(
          `[The output is withheld: secrets could not be taken out of it (${errorText(error)}).]`,
        );
      }
      if (text.length <= maxCharacters) return shown(text);
      try {
        const { id, path } = await store.save(owner, text);
        const head = cutText(text, headCharacters);
        return { text: summary(text, head, id, readTool), truncated: true, storedPath: path };
      } catch (error) {
        return shown(cutVisibly(text, maxCharacters, errorText(error)));
      }
    },
    // A file is named after its id and its owner; the folder in the path may have moved since.
    read: async (owner, storedPath, range) =>
      store.read?.(owner, path.basename(storedPath).slice(0, ID_LENGTH), range),
  };
}

/** Of a UUID. */
const ID_LENGTH = 36;

/** Without a processor the output is unchanged. */
export function processResult(
  processor: ResultProcessor | undefined,
  call: ProcessedCall,
  text: string,
): ProcessedResult | Promise<ProcessedResult> {
  return processor === undefined ? shown(text) : processor.process(call, text);
}

/**
 * The result for a shared destination: logs, events, screens. The stored path reveals a location on someone's disk, and
 * the producer of the result may have chosen it.
 */
export function forSharedUse(result: ProcessedResult): ProcessedResult {
  return { ...result, storedPath: "" };
}

function shown(text: string): ProcessedResult {
  return { text, truncated: false, storedPath: "" };
}

/** Contains the id and never the path, because the text may be shared. */
function summary(text: string, head: string, id: string, readTool: string): string {
  const offset = Buffer.byteLength(head.toWellFormed());
  const next = JSON.stringify({ id, offset });
  return (
    `[The output has ${text.length} characters and is stored; its first ${head.length} follow. ` +
    `To read on, call "${readTool}" with ${next}.]\n${head}\n[Not shown: ${text.length - head.length} characters.]`
  );
}

function cutVisibly(text: string, maxCharacters: number, problem: string): string {
  const kept = cutText(text, maxCharacters);
  return (
    `${kept}\n[Cut here: ${text.length - kept.length} more characters could not be stored (${problem}) and are lost. ` +
    "Ask for less at a time if you need them.]"
  );
}

export const READ_RESULT = "read_result";
const DEFAULT_LENGTH = 20_000;

/** The tool with which a model reads the rest of a long output. It sees only results of its own session. */
export function createReadResult(store: Pick<ResultStore, "read">): Tool {
  return defineTool({
    name: READ_RESULT,
    description:
      "Reads a part of an earlier output that was too long to show. That output contains the id.",
    input: {
      type: "object",
      properties: {
        id: { type: "string", maxLength: 64 },
        offset: {
          type: "integer",
          minimum: 0,
          description: "First byte to read; default 0.",
        },
        length: {
          type: "integer",
          minimum: 1,
          maximum: 100_000,
          description: "Number of bytes; default 20,000.",
        },
      },
      required: ["id"],
      additionalProperties: false,
    },
    safety: { effect: "read", concurrencySafe: true },
    permissionClass: "readonly",
    auditOperation: "read",
    async execute({ input, tenant, sessionId }) {
      const { id, offset = 0, length = DEFAULT_LENGTH } = input;
      const range = { offset: Number(offset), length: Number(length) };
      const part = await store.read({ tenant, sessionId }, String(id), range);
      if (part === undefined) {
        return {
          text: "There is no stored output with this id in this session. Check the id.",
          isError: true,
        };
      }
      const { text, nextOffset, totalBytes } = part;
      const isEnd = nextOffset >= totalBytes;
      const next = JSON.stringify({ id: String(id), offset: nextOffset });
      const note = isEnd
        ? "[End of the output.]"
        : `[To read on, call "${READ_RESULT}" with ${next}.]`;
      return { text: `${text}\n${note}`, data: { nextOffset, totalBytes } };
    },
  });
}
