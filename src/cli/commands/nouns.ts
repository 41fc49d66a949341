import type { Command } from "commander";
import { z } from "zod";
import type { Client } from "../../client/index.ts";
import { type Path, pathOf, type RouteName } from "../../http/paths.ts";
import type { JsonRoute } from "../../http/route.ts";
import { ROUTES } from "../../http/routes.ts";
import { SallyportError } from "../../model/errors.ts";
import { asPerson, connect, type Shared } from "../connect.ts";
import { print } from "../print.ts";

/** Route groups with hand-written commands. */
const ELSEWHERE: readonly string[] = ["switch", "audit", "signIn", "service", "events"];

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
    const flag = `--${kebab(field.name)}${field.type === "boolean" ? "" : ` <${field.type}>`}`;
    if (field.required) command.requiredOption(flag, field.about);
    else command.option(flag, field.about);
  }
  command.action(async (...given: unknown[]) => {
    const shared = noun.parent?.opts<Shared>() ?? { data: ".sallyport" };
    const input = inputOf(given, command.opts(), { params, fields });
    const [nounName = "", verbName = ""] = name.split(".");
    const send = (client: Client) =>
      (client as unknown as Record<string, Record<string, Send>>)[nounName]?.[verbName]?.(input);
    const isOfPeople = "roles" in route.rule && route.rule.person === true;
    const isPerson = isOfPeople || shared.link !== undefined;
    print(
      isPerson
        ? await asPerson(shared, async (client) => send(client))
        : await send(connect(shared)),
      shared,
    );
  });
}

type Send = (input: object) => Promise<unknown>;

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
    const text = options[name];
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
    const hint = `Write --${kebab(name)} as JSON.`;
    throw new SallyportError("invalid_input", { what: name, hint }, error);
  }
}

function nounOf(program: Command, noun: string): Command {
  const known = program.commands.find((command) => command.name() === noun);
  return known ?? program.command(noun).description(`Commands for ${noun}.`).exitOverride();
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
