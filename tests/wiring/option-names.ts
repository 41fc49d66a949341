// The names of all options, read from the interfaces that declare them, with those of the objects inside them.

import { z } from "zod";
import { checkedConfig } from "../../src/cli/config.ts";
import { createProgram } from "../../src/cli/main.ts";
import { PATHS, ROUTES, type RouteName } from "../../src/http/index.ts";
import { pathOf } from "../../src/http/paths.ts";
import { filesIn, isTest, read } from "../support/source-files.ts";

/** Where callers say what they want; the names of what is inside follow. */
export const ROOTS: Readonly<Record<string, string>> = {
  createGate: "GateOptions",
  createServer: "ServerOptions",
  shellRun: "ShellOptions",
  sqlQuery: "SqlQueryOptions",
  sqlRowTools: "SqlRowsOptions",
  sqlUpdateRow: "SqlRowOptions",
  httpSend: "HttpOptions",
  fileTools: "FileToolOptions",
  postgresDatabase: "PostgresDatabaseOptions",
  sqliteDatabase: "SqliteProcessesOptions",
};

/** Objects of settings; all others are parts with methods or records. */
const IS_SETTINGS =
  /(?:Options|Terms|Limits|Config|Rate|Pool|Person|ReviewRule|Sheet|Requirement)$/;

interface Declared {
  readonly heads: string;
  readonly body: string;
}

const DECLARED: ReadonlyMap<string, Declared> = new Map(
  filesIn("src")
    .filter((file) => file.endsWith(".ts") && !isTest(file))
    .flatMap((file) => {
      const code = read(file).replaceAll(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, "");
      const found = code.matchAll(/^(?:export )?interface (\w+)([^{]*)\{\n([\s\S]*?)^\}/gm);
      return [...found].map(
        ([, name = "", heads = "", body = ""]) => [name, { heads, body }] as const,
      );
    }),
);

/** Each option of a root by its path, as `createGate.deferredTools.threshold`. */
export function optionNames(): readonly string[] {
  return Object.entries(ROOTS).flatMap(([call, type]) =>
    within(type, new Set()).map((name) => `${call}.${name}`),
  );
}

/** Each field of the configuration of `serve`, as its refusal of an unknown one lists them. */
export function configNames(): readonly string[] {
  return configWithin([]);
}

function configWithin(path: readonly string[]): readonly string[] {
  const wrong = path.reduceRight<object>((inside, name) => ({ [name]: inside }), { [UNKNOWN]: 0 });
  const names = /The fields(?: of `[\w.]+`)? are ([\w, ]+)\./.exec(refusalOf(wrong))?.[1] ?? "";
  return names
    .split(", ")
    .filter((name) => name !== "")
    .flatMap((name) => {
      const here = [...path, name];
      return [here.join("."), ...configWithin(here)];
    });
}

const UNKNOWN = "noSuchField";

function refusalOf(config: object): string {
  try {
    checkedConfig({ tools: [], ...config }, "test");
    return "";
  } catch (error) {
    return String(error);
  }
}

/** Throws for a type that is not there. */
function within(type: string, around: ReadonlySet<string>): readonly string[] {
  const declared = DECLARED.get(type);
  if (declared === undefined) throw new Error(`no interface ${type}`);
  const seen = new Set([...around, type]);
  const inherited = settingsIn(declared.heads)
    .filter((one) => !seen.has(one))
    .flatMap((one) => within(one, seen));
  const left = new Set(
    [...declared.heads.matchAll(/Omit<\w+,([^>]*)>/g)].flatMap(([, names = ""]) =>
      [...names.matchAll(/"(\w+)"/g)].map(([, name = ""]) => name),
    ),
  );
  return [
    ...inherited.filter((name) => !left.has(name.split(".")[0] ?? "")),
    ...fieldsIn(declared.body, 1, seen),
  ];
}

function settingsIn(text: string): readonly string[] {
  return [...new Set(text.match(/\b[A-Z]\w+/g) ?? [])].filter(
    (name) => IS_SETTINGS.test(name) && DECLARED.has(name),
  );
}

/** The fields at one depth of indentation, with those inside them. A method has nothing inside. */
function fieldsIn(body: string, depth: number, seen: ReadonlySet<string>): readonly string[] {
  const start = new RegExp(`^ {${2 * depth}}(?:readonly )?(\\w+)\\??([:(])`);
  const lines = body.split("\n");
  const starts = lines.flatMap((line, at) => (start.test(line) ? [at] : []));
  return starts.flatMap((at, nth) => {
    const [, name = "", sign] = start.exec(lines[at] ?? "") ?? [];
    const text = lines.slice(at, starts[nth + 1] ?? lines.length).join("\n");
    if (sign === "(" || text.includes("=>")) return [name];
    const inline = fieldsIn(text.slice(text.indexOf("\n") + 1), depth + 1, seen);
    const picked = /Pick<\w+,([^>]*)>/.exec(text)?.[1];
    const omitted = /Omit<\w+,([^>]*)>/.exec(text)?.[1] ?? "";
    const named = settingsIn(text)
      .filter((one) => !seen.has(one))
      .flatMap((one) => within(one, seen))
      .filter((one) => picked === undefined || picked.includes(`"${one.split(".")[0]}"`))
      .filter((one) => !omitted.includes(`"${one.split(".")[0]}"`));
    return [name, ...[...inline, ...named].map((one) => `${name}.${one}`)];
  });
}

/** Each flag of a command that is written by hand, as `serve --port`, or `* --state` where many share it. Those of generated ones are the inputs of routes. */
export function flagNames(): readonly string[] {
  const generated = new Set(
    (Object.keys(PATHS) as RouteName[])
      .filter((name) => ROUTES[name].kind === "json" && !HAND_WRITTEN.includes(name))
      .map((name) => name.split(".").map(kebab).join(" ")),
  );
  const program = createProgram();
  const found: { readonly words: string; readonly flag: string; readonly about: string }[] = [];
  const visit = (command: typeof program, words: string) => {
    if (generated.has(words)) return;
    for (const { long, description } of command.options) {
      found.push({ words, flag: long ?? "", about: description });
    }
    for (const one of command.commands) visit(one, `${words} ${one.name()}`.trim());
  };
  visit(program, "");
  const isShared = ({ flag, about }: (typeof found)[number]) =>
    found.filter((one) => one.flag === flag && one.about === about).length >= SHARED;
  const names = found.map((one) => `${isShared(one) ? "*" : one.words} ${one.flag}`.trim());
  return [...new Set(names)];
}

/** Commands with the name of a route that are no call of it. */
const HAND_WRITTEN: readonly RouteName[] = ["audit.verify"];

/** A flag that so many commands have with one sentence is read in one place. */
const SHARED = 3;

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** The commands that are made from routes, with their words. */
export function generatedVerbs(
  program: ReturnType<typeof createProgram>,
): readonly { readonly name: RouteName; readonly words: readonly string[] }[] {
  return (Object.keys(PATHS) as RouteName[]).flatMap((name) => {
    const words = name.split(".").map(kebab);
    const noun = program.commands.find((one) => one.name() === words[0]);
    const verb = noun?.commands.find((one) => one.name() === words[1]);
    const isMade = ROUTES[name].kind === "json" && !HAND_WRITTEN.includes(name);
    return isMade && verb !== undefined ? [{ name, words }] : [];
  });
}

/** A value for each field of a route, and the arguments that say the same. */
export function sampleOf(name: RouteName) {
  const { params } = pathOf(name);
  const { properties = {} } = z.toJSONSchema(ROUTES[name].input, {
    unrepresentable: "any",
    io: "input",
  });
  const input: Record<string, unknown> = {};
  for (const param of params) input[param] = `of-${param}`;
  const args: string[] = params.map((param) => `of-${param}`);
  for (const [field, property] of Object.entries(properties)) {
    if (params.includes(field)) continue;
    const { type = "json" } = property as { readonly type?: string };
    const value = SAMPLES[type];
    // The conversation's question: `--version` is the program's.
    const flag = field === "version" ? "--question-version" : `--${kebab(field)}`;
    const { required = [] } = z.toJSONSchema(ROUTES[name].input, { unrepresentable: "any" });
    const isFlag = type === "boolean" && !required.includes(field);
    input[field] = value;
    args.push(flag, ...(isFlag ? [] : [typeof value === "string" ? value : JSON.stringify(value)]));
  }
  return { input, args };
}

const SAMPLES: Readonly<Record<string, unknown>> = {
  string: "a text",
  integer: 3,
  number: 3,
  boolean: true,
  array: ["one", "two"],
  object: { a: 1 },
  json: "a word",
};
