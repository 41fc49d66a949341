// Through which public door a test file goes: the parts of the package that a user can import, the server, the command line,
// the console. Read from its imports, and from those of the helpers in `tests` that it uses.

import { exists, importsOf, read } from "../support/source-files.ts";

/** Names that tests use to build their world; they prove something only in the test beside their own file. */
const FIXTURES: ReadonlySet<string> = new Set([
  "ERRORS",
  "NO_RULES",
  "SallyportError",
  "allowAlways",
  "createRegistry",
  "defineTool",
  "isSallyportError",
  "manualClock",
  "memoryStore",
  "metadataOf",
  "capabilityOf",
  "parseJson",
  "systemClock",
]);

/** By folder or by a file that is loaded or started. */
const DOORS: readonly (readonly [surface: string, sign: RegExp])[] = [
  ["console", /^tests\/console\//],
  ["cli", /^src\/cli\/|^tests\/cli\//],
  ["mcp", /^src\/mcp\/index\.ts$|^tests\/mcp\//],
  ["http", /^src\/http\/(?:index|create-server)\.ts$|^src\/client\/index\.ts$/],
  ["types", /^tests\/shapes\.test\.ts$/],
  ["crashkit", /^src\/crashkit\/index\.ts$/],
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
      namesIn(names).map((name) => ({ name, from: joined(file, target) })),
    ),
  ];
}

/** The public surfaces that a test file uses, sorted; none for a test of inner parts alone. */
export function surfacesOf(file: string): readonly string[] {
  const surfaces = new Set<string>();
  const seen = new Set<string>();
  const follow = (one: string): void => {
    if (seen.has(one) || !exists(one)) return;
    seen.add(one);
    for (const [surface, sign] of DOORS) if (sign.test(one)) surfaces.add(surface);
    const code = read(one);
    if (code.includes("src/cli/bin.ts")) surfaces.add("cli");
    for (const entry of doorsIn(one, code)) surfaces.add(entry);
    for (const target of importsOf(one)) {
      for (const [surface, sign] of DOORS) if (sign.test(target)) surfaces.add(surface);
      if (target.startsWith("tests/")) follow(target);
    }
  };
  follow(file);
  return [...surfaces].toSorted();
}

function doorsIn(file: string, code: string): readonly string[] {
  const statement = /^import (?!type\b)\{([^}]*)\} from "([^"]+)"/gm;
  return [...code.matchAll(statement)].flatMap(([, names = "", target = ""]) => {
    if (target.startsWith("sallyport")) return [target];
    const from = target.startsWith(".") ? joined(file, target) : target;
    const isBeside = file === from.replace(/\.ts$/, ".test.ts");
    return namesIn(names).flatMap((name) => {
      if (FIXTURES.has(name) && !isBeside) return [];
      const entry = ENTRIES.get(from) ?? EXPORTED.get(`${from}#${name}`);
      return entry === undefined ? [] : [entry];
    });
  });
}

/** Values only: what is marked as a type proves nothing. */
function namesIn(list: string): readonly string[] {
  return list
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "" && !name.startsWith("type "))
    .map((name) => name.split(" as ")[0] ?? name);
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
