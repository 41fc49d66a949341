import type { Access, CallFacts } from "./call-facts.ts";
import { segmentsOf } from "./path-pattern.ts";
import { type ReadUrl, readUrl } from "./read-url.ts";
import { readShell } from "./shell/read-shell.ts";
import type { ShellScript } from "./shell/shell-script.ts";

/** A call with its resources read once: rules and classes look at the same reading, so they cannot disagree about it. */
export interface SeenCall {
  readonly facts: CallFacts;
  readonly scripts: readonly ShellScript[];
  readonly files: readonly SeenFile[];
  readonly urls: readonly { readonly url: string; readonly read: ReadUrl }[];
  /** Files nobody could resolve. */
  readonly unresolved: readonly { readonly path: string; readonly reason: string }[];
}

export interface SeenFile {
  readonly path: string;
  readonly resolved: string;
  readonly segments: readonly string[];
  readonly access: Access;
}

export function seeCall(facts: CallFacts): SeenCall {
  const scripts: ShellScript[] = [];
  const files: SeenFile[] = [];
  const urls: SeenCall["urls"][number][] = [];
  const unresolved: SeenCall["unresolved"][number][] = [];
  for (const resource of facts.resources) {
    switch (resource.kind) {
      case "command":
        scripts.push(readShell(resource.command));
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
