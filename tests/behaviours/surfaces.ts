// Through which public doors a test goes: functions of the package that it calls, a gate, the server, the command line, the
// console. Read from the lines of the test itself, from the helpers that it calls by name, and from theirs. What a file only
// imports proves nothing, nor does a constant, a type or a function that merely builds the test's own world.

import { exists, read } from "../support/source-files.ts";

/** Names that tests use to build their world; they prove something only in the test beside their own file. */
const FIXTURES: ReadonlySet<string> = new Set([
  "SallyportError",
  "allowAlways",
  "createRegistry",
  "defineTool",
  "isSallyportError",
  "manualClock",
  "memoryEngine",
  "memoryStore",
  "metadataOf",
  "capabilityOf",
  "parseJson",
  "postgresEngine",
  "sqliteEngine",
]);

/**
 * What opens the product. In a helper that tests share only these count: whatever else it calls is how it builds its world.
 */
const OPENERS: ReadonlyMap<string, string> = new Map([
  ["continueFlows", "sallyport/flow"],
  ["createClient", "http"],
  ["createFlow", "sallyport/flow"],
  ["createGate", "sallyport"],
  ["createServer", "http"],
  ["createStaging", "sallyport"],
  ["createTaskList", "sallyport/tasks"],
  ["gateTools", "sallyport/adapters"],
  ["orchestrate", "sallyport"],
  ["runCase", "sallyport/store/conformance"],
  ["runTaskCase", "sallyport/tasks/conformance"],
]);

/** What a test starts or imports whole, by a sign in its code. */
const STARTED: readonly (readonly [surface: string, sign: RegExp])[] = [
  ["cli", /src\/cli\/(?:bin|main)\.ts/],
  ["mcp", /src\/mcp\/(?:index|gateway)\.ts/],
  ["crashkit", /src\/crashkit\//],
];

/** Folders whose tests open a browser or a terminal in every test. */
const FOLDERS: readonly (readonly [surface: string, sign: RegExp])[] = [
  ["console", /^tests\/console\//],
  ["types", /^tests\/shapes\.test\.ts$/],
];

const manifest = JSON.parse(read("package.json")) as {
  readonly exports: Readonly<Record<string, { readonly "sallyport-source": string }>>;
};

/** The entries of the package by the file that they are made of, as `sallyport/tools`. */
const ENTRIES: ReadonlyMap<string, string> = new Map(
  Object.entries(manifest.exports).map(([name, { "sallyport-source": file }]) => [
    file.slice(2),
    `sallyport${name.slice(1)}`,
  ]),
);

/** Each exported value with the file that declares it and the entry that offers it. */
const EXPORTED: ReadonlyMap<string, string> = new Map(
  [...ENTRIES].flatMap(([file, entry]) =>
    exportsOf(file).map(({ from, name }) => [`${from}#${name}`, entry] as const),
  ),
);

/** The values that an entry file exports, with the file each comes from. */
export function exportsOf(
  file: string,
): readonly { readonly name: string; readonly from: string }[] {
  const code = read(file);
  const own = /^export (?:async )?(?:function\*?|const|class) (\w+)/gm;
  const passed = /^export \{([^}]*)\} from "(\.[^"]+)"/gm;
  return [
    ...[...code.matchAll(own)].map(([, name = ""]) => ({ name, from: file })),
    ...[...code.matchAll(passed)].flatMap(([, names = "", target = ""]) =>
      namesIn(names).map(({ name }) => ({ name, from: joined(file, target) })),
    ),
  ];
}

/** One `test(…)` of a file. */
export interface TestBlock {
  /** Its first and last line, counted from 1. */
  readonly from: number;
  readonly to: number;
  /** Its own code and the titles of the describes around it: where row ids stand. */
  readonly code: string;
  /** The public doors that it goes through, sorted. */
  readonly surfaces: readonly string[];
}

/** A piece of a file at the outermost level, or the body of a describe without its tests. */
interface Piece {
  readonly names: readonly string[];
  readonly code: string;
}

interface Import {
  /** What it is called where it comes from. */
  readonly name: string;
  readonly from: string;
}

interface Parsed {
  readonly file: string;
  readonly pieces: ReadonlyMap<string, Piece>;
  readonly imports: ReadonlyMap<string, Import>;
  /** Statements that run with every test of the file: beforeEach and the like. */
  readonly always: string;
  readonly tests: readonly { from: number; to: number; code: string; around: string }[];
}

const parsedFiles = new Map<string, Parsed>();
const surfacesOfPiece = new Map<string, ReadonlySet<string>>();

/** The public surfaces that the tests of a file use, sorted; none for a file that tests inner parts alone. */
export function surfacesOf(file: string): readonly string[] {
  return [...new Set(testsIn(file).flatMap(({ surfaces }) => surfaces))].toSorted();
}

/** The tests of a file in order, each with the doors that it goes through. */
export function testsIn(file: string): readonly TestBlock[] {
  const parsed = parse(file);
  return parsed.tests.map(({ from, to, code, around }) => {
    const surfaces = new Set(FOLDERS.filter(([, sign]) => sign.test(file)).map(([name]) => name));
    for (const text of [code, around, parsed.always]) {
      for (const surface of surfacesIn(parsed, text)) surfaces.add(surface);
    }
    return { from, to, code: withTitles(parsed, code, around), surfaces: [...surfaces].toSorted() };
  });
}

/** Which test of the file stands at a line. */
export function testAt(file: string, line: number): TestBlock | undefined {
  return testsIn(file).findLast(({ from, to }) => from <= line && line <= to);
}

/** What the tests go through that helpers define for a file, as those of the conformance suites: they have no line in it. */
export function surfacesOfHelped(file: string): readonly string[] {
  const helped = parse(file).tests.filter(({ code }) => !hasTest(code));
  const lines = new Set(helped.map(({ from }) => from));
  const blocks = testsIn(file).filter(({ from }) => lines.has(from));
  return [...new Set(blocks.flatMap(({ surfaces }) => surfaces))].toSorted();
}

/** The doors that a piece of code goes through, with those of the helpers that it names. */
function surfacesIn(parsed: Parsed, text: string): ReadonlySet<string> {
  const found = new Set<string>();
  const isShared = !parsed.file.endsWith(".test.ts");
  for (const [surface, sign] of STARTED) if (sign.test(text)) found.add(surface);
  for (const child of childrenIn(parsed.file, text)) {
    for (const surface of surfacesOfWhole(child)) found.add(surface);
  }
  for (const name of new Set(text.match(/[A-Za-z_]\w*/g))) {
    const import_ = parsed.imports.get(name);
    if (import_ === undefined) {
      if (parsed.pieces.has(name)) add(found, pieceSurfaces(parsed.file, name));
    } else if (import_.from.startsWith("tests/")) {
      add(found, pieceSurfaces(import_.from, import_.name));
    } else if (isCalled(text, name)) {
      const surface = doorOf(parsed.file, import_, isShared);
      if (surface !== undefined) found.add(surface);
    }
  }
  return found;
}

function add(to: Set<string>, from: ReadonlySet<string>): void {
  for (const one of from) to.add(one);
}

function doorOf(file: string, { name, from }: Import, isShared: boolean): string | undefined {
  const opener = OPENERS.get(name);
  if (opener !== undefined) return opener;
  if (isShared) return undefined;
  for (const [surface, sign] of STARTED) if (sign.test(from)) return surface;
  const isBeside = file === from.replace(/\.ts$/, ".test.ts");
  if (FIXTURES.has(name) && !isBeside) return undefined;
  if (from.startsWith("sallyport")) return from;
  return ENTRIES.get(from) ?? EXPORTED.get(`${from}#${name}`);
}

/** Called, made with `new`, or handed over to be called. */
function isCalled(text: string, name: string): boolean {
  return new RegExp(`\\b${name}(?:<[^;()]*>)?\\(|\\.\\w+\\(${name}\\)`).test(text);
}

function pieceSurfaces(file: string, name: string): ReadonlySet<string> {
  const key = `${file}#${name}`;
  const known = surfacesOfPiece.get(key);
  if (known !== undefined) return known;
  // Helpers that call each other meet themselves here.
  surfacesOfPiece.set(key, new Set());
  const parsed = parse(file);
  const code = parsed.pieces.get(name)?.code;
  const import_ = parsed.imports.get(name);
  let found: ReadonlySet<string> = new Set();
  if (code !== undefined) found = surfacesIn(parsed, code);
  else if (import_?.from.startsWith("tests/")) found = pieceSurfaces(import_.from, import_.name);
  surfacesOfPiece.set(key, found);
  return found;
}

/** What a process does that runs this file. */
function surfacesOfWhole(file: string): ReadonlySet<string> {
  const key = `${file}#`;
  const known = surfacesOfPiece.get(key);
  if (known !== undefined) return known;
  surfacesOfPiece.set(key, new Set());
  const parsed = parse(file);
  const code = [...parsed.pieces.values()].map((piece) => piece.code).join("\n");
  const found = surfacesIn(parsed, `${parsed.always}\n${code}`);
  surfacesOfPiece.set(key, found);
  return found;
}

/** The files of `tests` that a piece of code starts in a process of their own. */
function childrenIn(file: string, text: string): readonly string[] {
  return [...text.matchAll(/"(\.{0,2}\/?[\w./-]+\.ts)"/g)]
    .map(([, target = ""]) => (target.startsWith("tests/") ? target : joined(file, target)))
    .filter((target) => target !== file && target.startsWith("tests/") && exists(target));
}

/** With the titles of the describes around it, and with the constants that a title takes its ids from. */
function withTitles(parsed: Parsed, code: string, around: string): string {
  const titles = /\b(?:describe|forEachStore)[\w.]*(?:\([^"`]*\))?\(\s*(["`][^\n]*)/g;
  const above = [...around.matchAll(titles)].map(([, title = ""]) => title).join("\n");
  if (!`${above}${code}`.includes("${")) return `${above}\n${code}`;
  const constants = [...new Set(around.match(/\b[A-Z][A-Z_]+\b/g))].map(
    (name) => parsed.pieces.get(name)?.code ?? "",
  );
  return [above, ...(around.match(/^\s*const row = .*$/gm) ?? []), ...constants, code].join("\n");
}

/** Cut by its indentation, which the formatter keeps. */
function parse(file: string): Parsed {
  const before = parsedFiles.get(file);
  if (before !== undefined) return before;
  const lines = exists(file) ? read(file).split("\n") : [];
  const imports = new Map<string, Import>();
  const pieces = new Map<string, Piece>();
  const tests: { from: number; to: number; code: string; around: string }[] = [];
  const always: string[] = [];
  for (const { from, to } of statements(lines, 0, lines.length, "")) {
    const code = lines.slice(from, to).join("\n");
    if (/^\s*(?:\/\/|\/\*)/.test(code) && to - from === 1) continue;
    if (/^import\b/.test(code) || /^export (?:\*|\{)/.test(code)) readImport(file, code, imports);
    else if (isSuite(lines[from] ?? "", code)) readSuite(lines, { from, to }, "", tests);
    else {
      const names = declaredIn(code);
      for (const name of names) pieces.set(name, { names, code });
      if (names.length === 0) always.push(code);
    }
  }
  const parsed = { file, pieces, imports, always: always.join("\n"), tests };
  parsedFiles.set(file, parsed);
  return parsed;
}

/** A describe or a loop with tests in it, or a test. */
function isSuite(first: string, code: string): boolean {
  if (/^\s*(?:describe|test|it)\b/.test(first)) return true;
  return (
    /^\s*(?:for|forEachStore|if|run\w+)\b/.test(first) || (/^\s*\w+\(/.test(first) && hasTest(code))
  );
}

function hasTest(code: string): boolean {
  return /^\s*(?:test|it)\b[.(]/m.test(code);
}

function readSuite(
  lines: readonly string[],
  { from, to }: { readonly from: number; readonly to: number },
  around: string,
  tests: { from: number; to: number; code: string; around: string }[],
): void {
  const code = lines.slice(from, to).join("\n");
  const first = lines[from] ?? "";
  const isTest = /^\s*(?:test|it)\b[.(]/.test(first) || !hasTest(code);
  if (isTest) {
    tests.push({ from: from + 1, to, code, around });
    return;
  }
  const [deeper = ""] = lines
    .slice(from + 1, to)
    .flatMap((line) => /^(\s+)(?:test|it|describe|forEachStore|for)\b/.exec(line)?.slice(1) ?? [])
    .toSorted((a, b) => a.length - b.length);
  const inner = statements(lines, from + 1, to, deeper);
  const isInner = ({ from: a, to: b }: { readonly from: number; readonly to: number }) =>
    isSuite(lines[a] ?? "", lines.slice(a, b).join("\n"));
  const suites = inner.filter(isInner);
  const rest = lines.filter(
    (_, index) =>
      index >= from && index < to && !suites.some(({ from: a, to: b }) => index >= a && index < b),
  );
  const shared = `${around}\n${rest.join("\n")}`;
  for (const suite of suites) readSuite(lines, suite, shared, tests);
}

/** The statements that begin with exactly this indentation. */
function statements(lines: readonly string[], from: number, to: number, indent: string) {
  const starts: number[] = [];
  for (let at = from; at < to; at += 1) {
    const line = lines[at] ?? "";
    const rest = line.slice(indent.length);
    if (line.startsWith(indent) && /^[A-Za-z_/[{`"(]/.test(rest)) starts.push(at);
  }
  return starts.map((start, index) => ({ from: start, to: starts[index + 1] ?? to }));
}

function declaredIn(code: string): readonly string[] {
  const statement = /^(?:export )?(?:default )?(?:async )?(?:function\*?|class|const|let) (\w+)/;
  const [, name] = statement.exec(code) ?? [];
  if (name !== undefined) return [name];
  const [, taken] = /^(?:export )?(?:const|let) [{[]([^=]*)[}\]] =/.exec(code) ?? [];
  return taken === undefined ? [] : (taken.match(/\w+/g) ?? []);
}

function readImport(file: string, code: string, imports: Map<string, Import>): void {
  const [, clause = "", target = ""] = /^(?:import|export) ([^"]*?)from "([^"]+)"/.exec(code) ?? [];
  if (/^type\b/.test(clause)) return;
  const from = target.startsWith(".") ? joined(file, target) : target;
  const [, named = ""] = /\{([^}]*)\}/.exec(clause) ?? [];
  for (const { name, as } of namesIn(named)) imports.set(as, { name, from });
  const [, whole] = /\* as (\w+)/.exec(clause) ?? [];
  if (whole !== undefined) imports.set(whole, { name: "*", from });
}

/** Values only: what is marked as a type proves nothing. */
function namesIn(list: string): readonly { readonly name: string; readonly as: string }[] {
  return list
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "" && !name.startsWith("type "))
    .map((entry) => {
      const [name = entry, as = name] = entry.split(" as ");
      return { name, as };
    });
}

function joined(file: string, target: string): string {
  const parts = [...file.split("/").slice(0, -1), ...target.split("/")];
  const kept: string[] = [];
  for (const part of parts) {
    if (part === "..") kept.pop();
    else if (part !== ".") kept.push(part);
  }
  return kept.join("/");
}
