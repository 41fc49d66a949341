import type { Access, CallFacts } from "./answers.ts";
import { type ReadUrl, readUrl, segmentsOf } from "./patterns.ts";

import { readShell } from "./shell/read-shell.ts";
import { baseName, type ShellScript, type Token } from "./shell/script.ts";

/** A call with its resources parsed once: rules and classes share the result, so they cannot disagree about it. */
export interface SeenCall {
  readonly facts: CallFacts;
  readonly scripts: readonly SeenScript[];
  readonly files: readonly SeenFile[];
  readonly urls: readonly { readonly url: string; readonly read: ReadUrl }[];
  /** Files that could not be resolved. */
  readonly unresolved: readonly { readonly path: string; readonly reason: string }[];
}

export interface SeenScript extends ShellScript {
  /** Names of the folder it starts in; undefined when unknown. */
  readonly folder: readonly string[] | undefined;
  /** A command in it changes the folder, so the folder of the others is unknown. */
  readonly moves: boolean;
}

export interface SeenFile {
  readonly path: string;
  readonly resolved: string;
  readonly segments: readonly string[];
  readonly access: Access;
}

export function seeCall(facts: CallFacts): SeenCall {
  const scripts: SeenScript[] = [];
  const files: SeenFile[] = [];
  const urls: SeenCall["urls"][number][] = [];
  const unresolved: SeenCall["unresolved"][number][] = [];
  for (const resource of facts.resources) {
    switch (resource.kind) {
      case "command":
        scripts.push(seeScript(resource.command, resource.folder));
        break;
      case "url":
        urls.push({ url: resource.url, read: readUrl(resource.url) });
        break;
      case "file": {
        const { path, resolved, access } = resource;
        const segments = segmentsOf(resolved);
        if (segments !== undefined) files.push({ path, resolved, segments, access });
        else unresolved.push({ path, reason: "its resolved form is not an absolute plain path" });
        break;
      }
      case "unresolved":
        unresolved.push(resource);
        break;
      case "other":
        break;
    }
  }
  return { facts, scripts, files, urls, unresolved };
}

function seeScript(command: string, folder: string | undefined): SeenScript {
  const script = readShell(command);
  const layers = script.parts.flatMap(({ words, wrappers }) => [words, ...wrappers]);
  return {
    ...script,
    folder: folder === undefined ? undefined : segmentsOf(folder),
    moves: layers.some(isMove),
  };
}

const MOVES: ReadonlySet<string> = new Set(["cd", "pushd", "popd"]);
/** Options of find that run a program for each file. */
const MOVING_OPTIONS: ReadonlySet<string> = new Set(["-execdir", "-okdir"]);

/** True for a command that changes the folder of later commands, or of its own child. */
export function isMove(words: readonly Token[]): boolean {
  const [name, ...rest] = words;
  return MOVES.has(baseName(name?.text ?? "")) || rest.some(({ text }) => MOVING_OPTIONS.has(text));
}
