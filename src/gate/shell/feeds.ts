import { readsCode } from "./carriers.ts";
import type { StructureDanger } from "./shell-script.ts";
import { programName, type Token } from "./token.ts";
import { OTHER_SHELLS, READABLE_SHELLS } from "./wrappers.ts";

/** Programs that bring in text from elsewhere. */
// biome-ignore format: a table
const DOWNLOADERS: ReadonlySet<string> = new Set([
  "curl", "wget", "fetch", "aria2c", "http", "https", "xh", "lynx", "ftp", "sftp", "scp", "nc", "ncat", "netcat",
  "socat", "telnet", "openssl", "dig", "nslookup",
]);

/** Programs that turn text nobody can read into text a shell can. */
// biome-ignore format: a table
const DECODERS: ReadonlySet<string> = new Set([
  "base64", "base32", "basenc", "xxd", "uudecode", "rev", "tr", "gpg",
]);

/** A program that was met on the way, wrappers included. */
export interface Met {
  readonly name: string;
  /** It runs what stands in its words: a shell, eval, source. */
  readonly runsText: boolean;
  /** It runs what it reads: a shell without a file, an interpreter without one. */
  readonly runsInput: boolean;
}

export function meet(words: readonly Token[]): Met {
  const name = programName(words[0]);
  const isShell = READABLE_SHELLS.has(name) || OTHER_SHELLS.has(name);
  const rest = words.slice(1).map(({ text }) => text);
  const hasFile =
    rest.some((text) => !/^[-+]/.test(text)) && !rest.some((text) => /^-\w*s/.test(text));
  return {
    name,
    runsText: isShell || name === "eval" || name === "source" || name === ".",
    runsInput: (isShell && !hasFile) || readsCode(words, false),
  };
}

/** What is wrong when the output of `sources` becomes code: nobody has seen it, and nobody can see it before it runs. */
export function codeFrom(sources: readonly Met[]): readonly StructureDanger[] {
  const dangers: StructureDanger[] = [];
  if (sources.some(({ name }) => DOWNLOADERS.has(name))) dangers.push("code-from-network");
  if (sources.some(({ name }) => DECODERS.has(name))) dangers.push("code-from-decoder");
  return dangers;
}
