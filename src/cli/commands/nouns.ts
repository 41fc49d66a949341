import { readFileSync, writeFileSync } from "node:fs";
import { Argument, Command } from "commander";
import { z } from "zod";
import type { CallProgress, Client, InputOf } from "../../client/index.ts";
import { createGate } from "../../gate/create-gate.ts";
import { type Path, pathOf, type RouteName } from "../../http/paths.ts";
import type { JsonRoute } from "../../http/route.ts";
import { ROUTES } from "../../http/routes.ts";
import { SallyportError } from "../../model/errors.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { errorText } from "../../util/error-text.ts";
import { asPerson, connect, isServerNamed } from "../connect.ts";
import { hasStore, inStore, type StoreFlags, storePlaceOf } from "../open-store.ts";
import { inboxTable, print, printable } from "../render.ts";
import { isServed } from "../serve.ts";

/** Route groups with hand-written commands. */
const ELSEWHERE: readonly string[] = [
  "switch",
  "pauses",
  "audit",
  "signIn",
  "service",
  "events",
  "notify",
];

/** `sallyport NOUN VERB`, generated from the routes. */
export function addNouns(program: Command): void {
  for (const name of Object.keys(ROUTES) as RouteName[]) {
    const route = ROUTES[name];
    const [noun = "", verb = ""] = name.split(".");
    if (route.kind !== "json" || ELSEWHERE.includes(noun)) continue;
    addVerb(nounOf(program, kebab(noun)), kebab(verb), name, route);
  }
}

/** Adds one verb below a noun; also used by the hand-written commands. */
export function addVerb(noun: Command, verb: string, name: RouteName, route: JsonRoute): void {
  const { params } = pathOf(name);
  const command = noun.command(verb).description(route.summary).exitOverride();
  const fields = fieldsOf(route);
  for (const param of params) command.argument(`<${kebab(param)}>`);
  for (const field of fields.filter((one) => !params.includes(one.name))) {
    // A flag alone can only say true, so what must be said is written out.
    const isFlag = field.type === "boolean" && !field.required;
    const flag = `--${flagOf(field.name)}${isFlag ? "" : ` <${field.type}>`}`;
    if (field.required && !isInFile(name, field.name)) command.requiredOption(flag, field.about);
    else command.option(flag, field.about);
  }
  const documents = DOCUMENTS[name];
  if (documents !== undefined) command.option("--file <path>", documents.about);
  if (name === "interactions.list") {
    command.option(
      "--tenant <name>",
      "without a server: the tenant; `default` when nothing is said",
    );
    command.option("--wide", "all columns, however wide");
  }
  if (name === "sessions.call")
    command.option("--progress", "show what the tool reports meanwhile");
  command.action(async (...given: unknown[]) => {
    const shared = noun.parent?.opts<StoreFlags>() ?? { data: ".sallyport" };
    const input = withFile(name, inputOf(given, command.opts(), { params, fields }), command);
    const [nounName = "", verbName = ""] = name.split(".");
    const send = async (client: Client) => {
      const full = await withFullIds(client, nounName, input);
      if (command.opts()["progress"] !== true)
        return routesOf(client)[nounName]?.[verbName]?.(full);
      const onProgress = ({ message, done }: CallProgress) => {
        const part = done === undefined ? "" : ` (${Math.round(done * 100)} %)`;
        process.stderr.write(`${printable(message)}${part}\n`);
      };
      return client.callTool(full as unknown as InputOf<"sessions.stream">, { onProgress });
    };
    const isOfPeople = "roles" in route.rule && route.rule.person === true;
    const isPerson = isOfPeople || shared.link !== undefined;
    // Without a server the list has no pages, so a cursor is for the server that gave it.
    const isWhole = name === "interactions.list" && !("cursor" in input);
    const isLocal = isWhole && !isPerson && isOnlyStored(shared);
    const { tenant } = command.opts<{ readonly tenant?: string }>();
    if (tenant !== undefined && !isLocal) {
      const hint =
        "A server lists the tenant that it serves. Leave --tenant out, or name a store alone.";
      throw new SallyportError("invalid_input", { what: "--tenant", hint });
    }
    const answer = isLocal
      ? await inboxOfStore(shared, tenant, input)
      : await (isPerson ? asPerson(shared, send) : send(connect(shared)));
    const isTable = name === "interactions.list" && command.opts()["wide"] !== true;
    if (isTable && shared.json !== true) {
      const isFirst = Object.keys(input).every((one) => one === "limit");
      process.stdout.write(`${inboxTable(answer, { isWhole: isFirst })}\n`);
    } else print(intoFile(name, answer, command), shared);
  });
}

/** Whole documents, which are too long for an argument and are no text for a terminal. */
const DOCUMENTS: Readonly<
  Partial<Record<RouteName, { readonly way: "read" | "written"; readonly about: string }>>
> = {
  "tasks.import": { way: "read", about: "the file with the tasks, instead of --text" },
  "tasks.export": { way: "written", about: "write the document to this file" },
};
const DOCUMENT_FIELD = "text";

function isInFile(name: RouteName, field: string): boolean {
  return DOCUMENTS[name]?.way === "read" && field === DOCUMENT_FIELD;
}

/** Throws invalid_input for neither a file nor a text, both of them, or a file that cannot be read. */
function withFile(
  name: RouteName,
  input: Record<string, unknown>,
  command: Command,
): Record<string, unknown> {
  if (!isInFile(name, DOCUMENT_FIELD)) return input;
  const { file } = command.opts<{ readonly file?: string }>();
  if ((file === undefined) === (input[DOCUMENT_FIELD] === undefined)) {
    const hint = `Give the tasks either with --file or with --${DOCUMENT_FIELD}.`;
    throw new SallyportError("invalid_input", { what: "--file", hint });
  }
  if (file === undefined) return input;
  try {
    return { ...input, [DOCUMENT_FIELD]: readFileSync(file, "utf8") };
  } catch (cause) {
    const hint = `${file} cannot be read: ${errorText(cause)}`;
    throw new SallyportError("invalid_input", { what: "--file", hint }, cause);
  }
}

/** The answer without its document, if that was written to a file. Throws invalid_input. */
function intoFile(name: RouteName, answer: unknown, command: Command): unknown {
  const { file } = command.opts<{ readonly file?: string }>();
  if (DOCUMENTS[name]?.way !== "written" || file === undefined) return answer;
  const { [DOCUMENT_FIELD]: document, ...rest } = answer as Record<string, unknown>;
  try {
    writeFileSync(file, String(document));
  } catch (cause) {
    const hint = `${file} cannot be written: ${errorText(cause)}`;
    throw new SallyportError("invalid_input", { what: "--file", hint }, cause);
  }
  return { file, ...rest };
}

/** There is a store, no server runs over it, and none is named. */
function isOnlyStored(flags: StoreFlags): boolean {
  const place = storePlaceOf(flags);
  return !isServerNamed(flags) && !isServed(place.data) && hasStore(place);
}

/** The inbox as its store has it: looking at it needs no server. */
function inboxOfStore(
  flags: StoreFlags,
  tenant: string | undefined,
  query: Readonly<Record<string, unknown>>,
) {
  return inStore(storePlaceOf(flags), async (store) => {
    const gate = createGate({ store, ...definedFields({ tenant }) });
    const open = await gate.interactions.list({ status: "open", ...query });
    return { items: open, next: null };
  });
}

/** Fields that hold the id of a record of another noun. */
const ID_FIELDS: Readonly<Record<string, string>> = {
  sessionId: "sessions",
  interactionId: "interactions",
  decisionId: "decisions",
};

/** Short ids are replaced by the ids they stand for. Throws invalid_input for one that stands for several. */
async function withFullIds(
  client: Client,
  noun: string,
  input: Readonly<Record<string, unknown>>,
): Promise<Record<string, unknown>> {
  const full: Record<string, unknown> = { ...input };
  for (const [field, value] of Object.entries(input)) {
    const of = field === "id" ? noun : ID_FIELDS[field];
    if (of !== undefined && typeof value === "string" && isShortId(value)) {
      full[field] = await fullId(client, of, value);
    }
  }
  return full;
}

/** A part of a UUID; other names are never shortened. */
function isShortId(text: string): boolean {
  return /^[0-9a-f-]{4,35}$/.test(text);
}

/** Limit for a server whose pages never end. */
const MOST_PAGES = 100;

/** The one id that begins or ends like this; the text itself where none does, for the server to refuse. */
async function fullId(client: Client, noun: string, short: string): Promise<string> {
  const list = routesOf(client)[noun]?.["list"];
  const needed = fieldsOf(ROUTES[`${noun}.list` as RouteName] as JsonRoute);
  if (list === undefined || needed.some(({ required }) => required)) return short;
  const found = new Set<string>();
  let at: { readonly cursor?: string } = {};
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const { items, next } = (await list({ limit: 100, ...at })) as ListedIds;
    for (const { id } of items) {
      if (id === short) return id;
      if (id.endsWith(short) || id.startsWith(short)) found.add(id);
    }
    if (next === null || next === at.cursor) break;
    at = { cursor: next };
  }
  const [only, ...more] = found;
  if (more.length === 0) return only ?? short;
  const hint = `"${short}" is part of ${found.size} ids: ${[...found].slice(0, 10).join(", ")}. Give more of the one you mean.`;
  throw new SallyportError("invalid_input", { what: "id", hint });
}

interface ListedIds {
  readonly items: readonly { readonly id: string }[];
  readonly next: string | null;
}

type Send = (input: object) => Promise<unknown>;

function routesOf(client: Client): Readonly<Record<string, Readonly<Record<string, Send>>>> {
  return client as unknown as Record<string, Record<string, Send>>;
}

interface Field {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly about: string;
}

function fieldsOf({ input }: JsonRoute): readonly Field[] {
  const schema = z.toJSONSchema(input, { unrepresentable: "any", io: "input" });
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const { type, enum: values } = property as { type?: string; enum?: unknown[] };
    return {
      name,
      type: type ?? "json",
      required: required.has(name),
      about: values === undefined ? "" : values.join(", "),
    };
  });
}

function inputOf(
  given: readonly unknown[],
  options: Readonly<Record<string, unknown>>,
  { params, fields }: Pick<Path, "params"> & { readonly fields: readonly Field[] },
): Record<string, unknown> {
  const input: Record<string, unknown> = {};
  for (const [index, param] of params.entries()) input[param] = given[index];
  for (const { name, type } of fields) {
    const text = options[camel(flagOf(name))];
    if (text !== undefined) input[name] = read(name, type, text);
  }
  return input;
}

/** Strings are taken literally; everything else is JSON. Throws invalid_input. */
function read(name: string, type: string, text: unknown): unknown {
  if (type === "string" || typeof text !== "string") return text;
  try {
    return JSON.parse(text);
  } catch (error) {
    if (type === "json") return text;
    const hint = `Write --${flagOf(name)} as JSON.`;
    throw new SallyportError("invalid_input", { what: name, hint }, error);
  }
}

function nounOf(program: Command, noun: string): Command {
  const known = program.commands.find((command) => command.name() === noun);
  return known ?? program.command(noun).description(`Commands for ${noun}.`).exitOverride();
}

/** `--version` alone prints the program's own, so that of a question is named apart. */
function flagOf(field: string): string {
  return field === "version" ? "question-version" : kebab(field);
}

function camel(flag: string): string {
  return flag.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Generated from the commands, so that it is always current. */
export function completionCommand(program: Command): Command {
  return new Command("completion")
    .description("Print a completion script; source it in your shell's start-up file.")
    .addArgument(new Argument("<shell>").choices(["bash", "zsh", "fish"]))
    .action((shell: "bash" | "zsh" | "fish") => {
      process.stdout.write(SCRIPTS[shell](wordsOf(program)));
    });
}

/** Words after "sallyport", and after each of its nouns. */
function wordsOf(program: Command): ReadonlyMap<string, readonly string[]> {
  const names = (commands: readonly Command[]) => commands.map((command) => command.name());
  const nouns = program.commands.filter(({ commands }) => commands.length > 0);
  return new Map([
    ["", names(program.commands)],
    ...nouns.map((noun) => [noun.name(), names(noun.commands)] as const),
  ]);
}

type Words = ReadonlyMap<string, readonly string[]>;

/** Braces for the shell, not a JavaScript template. */
const braced = (inside: string) => `$\{${inside}}`;

const SCRIPTS = {
  bash: (words: Words) =>
    [
      "_sallyport() {",
      '  local noun="" word',
      `  for word in "${braced("COMP_WORDS[@]:1:COMP_CWORD-1")}"; do case "$word" in -*) ;; *) noun="$word"; break ;; esac; done`,
      '  case "$noun" in',
      ...[...words].map(([noun, verbs]) => `    "${noun}") set -- ${verbs.join(" ")} ;;`),
      "    *) set -- ;;",
      "  esac",
      `  COMPREPLY=($(compgen -W "$*" -- "${braced("COMP_WORDS[COMP_CWORD]")}"))`,
      "}",
      "complete -F _sallyport sallyport",
      "",
    ].join("\n"),
  zsh: (words: Words) =>
    [
      "#compdef sallyport",
      "_sallyport() {",
      `  local noun=${braced(`${braced("words[2,CURRENT-1]:#-*")}[1]`)}`,
      '  case "$noun" in',
      ...[...words].map(([noun, verbs]) => `    "${noun}") compadd ${verbs.join(" ")} ;;`),
      "  esac",
      "}",
      "compdef _sallyport sallyport",
      "",
    ].join("\n"),
  fish: (words: Words) =>
    [...words]
      .map(([noun, verbs]) => {
        const when = noun === "" ? "__fish_use_subcommand" : `__fish_seen_subcommand_from ${noun}`;
        return `complete -c sallyport -f -n "${when}" -a "${verbs.join(" ")}"`;
      })
      .concat("")
      .join("\n"),
};
