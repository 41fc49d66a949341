// Reading the repository's own files, for the tests that compare code, docs and package.json.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "../..");

export function exists(file: string): boolean {
  return existsSync(path.join(root, file));
}

export function read(file: string): string {
  return readFileSync(path.join(root, file), "utf8");
}

/** All files below a folder of the repository, as `src/util/clock.ts`; none if there is no such folder. */
export function filesIn(folder: string): string[] {
  if (!exists(folder)) return [];
  return readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
    .map((file) => file.replaceAll(path.sep, "/"))
    .toSorted();
}

export function isTest(file: string): boolean {
  return file.endsWith(".test.ts");
}

/** The code with its comments blanked out, so that line numbers stay. Strings stay as they are. */
function codeOf(file: string): string {
  const stringOrComment =
    /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
  return read(file).replace(stringOrComment, (found) =>
    found.startsWith("/") ? found.replaceAll(/[^\n]/g, " ") : found,
  );
}

/** The string literals of a file, without their quotes and as they are written. Those in comments do not count. */
export function stringsIn(file: string): string[] {
  const string = /"((?:\\.|[^"\\\n])*)"|'((?:\\.|[^'\\\n])*)'|`((?:\\.|[^`\\])*)`/g;
  return [...codeOf(file).matchAll(string)].map(([, a, b, c]) => a ?? b ?? c ?? "");
}

/** What a file imports: other files as paths from the root, packages by the words of the import. */
export function importsOf(file: string): string[] {
  // Anchored to the statement: SQL in a string says `from "…"` too.
  const statements = [
    /^(?:import|export)\b[^;"'`]*?\bfrom\s+"([^"]+)"/gm,
    /^import\s+"([^"]+)"/gm,
    /\bimport\(\s*"([^"]+)"/g,
  ];
  const code = codeOf(file);
  return statements
    .flatMap((statement) => [...code.matchAll(statement)])
    .map(([, target = ""]) =>
      target.startsWith(".") ? path.posix.join(path.posix.dirname(file), target) : target,
    );
}

/** The files that must be loaded before this one: what it imports except `import type`, and not what it loads on use. */
export function loadsOf(file: string): string[] {
  const statement = /^(?:import|export)\b(?!\s+type\b)(?:[^;"'`]*?\bfrom)?\s+"(\.[^"]+)"/gm;
  return [...codeOf(file).matchAll(statement)].map(([, target = ""]) =>
    path.posix.join(path.posix.dirname(file), target),
  );
}

/** `file:line: text` for each line of the file that the pattern matches. Comments do not count. */
export function linesWith(file: string, pattern: RegExp): { at: string; line: string }[] {
  return codeOf(file)
    .split("\n")
    .flatMap((line, index) =>
      pattern.test(line) ? [{ at: `${file}:${index + 1}`, line: line.trim() }] : [],
    );
}

/** The rows of a markdown file's tables that have a column of that name, as objects by column. */
export function tableRows(file: string, column: string): Record<string, string>[] {
  const rows: Record<string, string>[] = [];
  let columns: string[] = [];
  for (const line of read(file).split("\n")) {
    if (!line.startsWith("|")) {
      columns = [];
      continue;
    }
    const cells = line.split(/(?<!\\)\|/).slice(1, -1);
    const words = cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
    if (columns.length === 0) columns = words.map((word) => word.toLowerCase());
    else if (columns.includes(column) && !words.every((word) => /^:?-+:?$/.test(word))) {
      rows.push(Object.fromEntries(columns.map((name, index) => [name, words[index] ?? ""])));
    }
  }
  return rows;
}
