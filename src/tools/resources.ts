import { lstat, readlink } from "node:fs/promises";
import path from "node:path";
import { definedFields } from "../util/defined-fields.ts";
import type { Resource } from "./tool.ts";

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
    }
  | Exclude<Resource, { kind: "file" | "command" }>;

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
  return definedFields({ kind: "command" as const, command, folder });
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
    if (codeOf(error) === "ENOENT") return { kind: "missing" };
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
  return `the file system refused to look (${codeOf(error)})`;
}

function codeOf(error: unknown): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : "";
  return typeof code === "string" && code !== "" ? code : "unknown error";
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
