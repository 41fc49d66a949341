// The one configuration of `serve`, `worker`, `review`, `mcp`, `hook` and tests: what a module exports, and what is wrong with it.

import { createGate, type Gate } from "../gate/create-gate.ts";
import { SallyportError } from "../model/errors.ts";
import type { Store } from "../store/store.ts";
import type { ServedParts } from "./serve.ts";

/** What a host provides to Sallyport's commands: tools, reviews, rules, the store, and how people sign in. */
export type SallyportConfig = ServedParts &
  Required<Pick<ServedParts, "tools">> & {
    /** A file, or a PostgreSQL address; `--store`, `--database` and SALLYPORT_DATABASE take precedence. */
    readonly store?: string;
    /** `default` when left out; `--tenant` takes precedence. */
    readonly tenant?: string;
    /** Folder of anchors, signing key and epoch file; `--state` and SALLYPORT_STATE take precedence. */
    readonly state?: string;
  };

/**
 * Types and checks a configuration. Throws invalid_input that names the field.
 *
 *     export default defineConfig({ tools: [refund], policy, store: env("DATABASE_URL") });
 */
export function defineConfig(config: SallyportConfig): SallyportConfig {
  return checkedConfig(config, "defineConfig");
}

/**
 * The value of an environment variable, so that no secret is written into the configuration. Throws invalid_input that names
 * the variable when it is missing or empty.
 */
export function env(name: string): string {
  const value = process.env[name];
  if (value !== undefined && value !== "") return value;
  const hint = `The configuration needs the environment variable ${name}. Set it and start again.`;
  throw new SallyportError("invalid_input", { what: name, hint });
}

/**
 * The gate that `serve` makes of a configuration, over a store of the caller's: for tests of tools, policy and reviews
 * together. Throws invalid_input that names the field.
 */
export function createConfiguredGate(config: SallyportConfig, { store }: { store: Store }): Gate {
  const { tenant = "default", ...parts } = checkedConfig(config, "createConfiguredGate");
  return createGate({ ...parts, store, tenant });
}

/** The same as `defineConfig` for what a module exports; `what` names the module. */
export function checkedConfig(config: unknown, what: string): SallyportConfig {
  if (typeof config !== "object" || config === null || !("tools" in config)) {
    const problem =
      "the default export must be an object with `tools`; every other field is optional.";
    throw wrong(what, "tools", problem);
  }
  checkFields(config, FIELDS, { what, path: "" });
  return config as SallyportConfig;
}

interface Place {
  readonly what: string;
  /** The path of the object whose fields are checked, empty or ending with a dot. */
  readonly path: string;
}

function checkFields(given: object, fields: Fields, { what, path }: Place): void {
  for (const [name, value] of Object.entries(given)) {
    const kind = Object.hasOwn(fields, name) ? fields[name] : undefined;
    const field = `${path}${name}`;
    if (kind === undefined) throw wrong(what, field, unknownField(field, path, fields));
    if (value === undefined) continue;
    const [isRight, words] = check(kind);
    if (!isRight(value)) throw wrong(what, field, `the field \`${field}\` must be ${words}.`);
    if (isFields(kind)) checkFields(value as object, kind, { what, path: `${field}.` });
  }
}

function check(kind: Kind | Words | Fields): [(value: unknown) => boolean, string] {
  if (typeof kind === "string") return [IS[kind], WORDS[kind]];
  if (isFields(kind)) return [IS.object, WORDS.object];
  const words = kind.map((word) => `"${word}"`).join(" or ");
  return [(value) => kind.includes(String(value)), words];
}

function isFields(kind: Kind | Words | Fields): kind is Fields {
  return typeof kind === "object" && !Array.isArray(kind);
}

function wrong(what: string, field: string, problem: string): SallyportError {
  return new SallyportError("invalid_input", { what, field, hint: `${what}: ${problem}` });
}

function unknownField(field: string, path: string, fields: Fields): string {
  if (field === "database") return "the field `database` is named `store`.";
  const owner = path === "" ? "The fields are" : `The fields of \`${path.slice(0, -1)}\` are`;
  return `there is no field \`${field}\`. ${owner} ${Object.keys(fields).join(", ")}.`;
}

type Kind =
  | "list"
  | "object"
  | "function"
  | "text"
  | "flag"
  | "milliseconds"
  | "count"
  | "port"
  | "key"
  | "checkpoint";

/** One of these. */
type Words = readonly string[];
/** The kind of each field; those of an object by their own names. */
type Fields = { readonly [name: string]: Kind | Words | Fields };
/** A new field of the type is refused by the compiler until its kind is said. */
type FieldsOf<Config> = { readonly [Name in keyof Required<Config>]: Kind | Words | Fields };

const HTTP: FieldsOf<NonNullable<ServedParts["http"]>> = {
  host: "text",
  port: "port",
  publicUrl: "text",
  signInBy: ["oidc", "links"],
  trustedProxies: "list",
  tls: { cert: "text", key: "text" },
  oidc: {
    issuer: "text",
    clientId: "text",
    clientSecret: "text",
    scope: "text",
    maxAgeSeconds: "count",
    presence: ["proved", "not_asked"],
    groups: { claim: "text", roles: "object", subject: "text", tenant: "text" },
    identify: "function",
  },
  signIn: {
    sessionMs: "milliseconds",
    linkMs: "milliseconds",
    inviteMs: "milliseconds",
    tokenMs: "milliseconds",
    freshMs: "milliseconds",
    roles: "list",
  },
  audit: "object",
  limits: "object",
};

const FIELDS: FieldsOf<SallyportConfig> = {
  tools: "object",
  policy: "object",
  tasks: "object",
  validators: "object",
  guard: "object",
  review: "list",
  people: "list",
  hooks: "list",
  gatePolicies: "list",
  fileRoots: "list",
  sessionFolders: "list",
  protectedPaths: "list",
  checkpoint: "checkpoint",
  confidenceKey: "text",
  approvalMs: "milliseconds",
  leaseMs: "milliseconds",
  timeoutMs: "milliseconds",
  reviewTimeoutMs: "milliseconds",
  hookTimeoutMs: "milliseconds",
  checkpointTimeoutMs: "milliseconds",
  maxAtOnce: "count",
  reverseThinking: "object",
  deferredTools: "object",
  attention: "object",
  quotas: "object",
  breaker: "object",
  processor: "object",
  audit: "object",
  onPending: "function",
  onSettled: "function",
  onResumeProblem: "function",
  onLedgerProblem: "function",
  onHookProblem: "function",
  started: "function",
  resume: "function",
  flow: "function",
  http: HTTP,
  notify: { channels: "object", routes: "list", attempts: "count", timeoutMs: "milliseconds" },
  anchors: "object",
  redactionKey: "key",
  codingAgents: { project: "text", commands: "list" },
  epochFile: "text",
  clock: "object",
  timers: "object",
  random: "object",
  at: "function",
  store: "text",
  tenant: "text",
  state: "text",
  mcp: "object",
};

const isObject = (value: unknown) => typeof value === "object" && value !== null;
const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) > 0;

const IS: Readonly<Record<Kind, (value: unknown) => boolean>> = {
  list: Array.isArray,
  object: (value) => isObject(value) || typeof value === "function",
  function: (value) => typeof value === "function",
  text: (value) => typeof value === "string" && value !== "",
  flag: (value) => typeof value === "boolean",
  milliseconds: isCount,
  count: isCount,
  port: (value) => Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) < 65_536,
  key: (value) => typeof value === "string" || value instanceof Uint8Array,
  checkpoint: (value) => value === "inbox" || typeof value === "function",
};

const WORDS: Readonly<Record<Kind, string>> = {
  list: "a list",
  object: "an object",
  function: "a function",
  text: "a text",
  flag: "true or false",
  milliseconds: "a whole number of milliseconds above 0",
  count: "a whole number above 0",
  port: "a port, from 0 to 65535",
  key: "a text or bytes",
  checkpoint: '"inbox" or a function',
};
