// The configuration of `serve` and `worker`: what a module exports, and what is wrong with it.

import type { McpConfig } from "../mcp/index.ts";
import { SallyportError } from "../model/errors.ts";
import type { ServedParts } from "./serve.ts";

/** What a host provides to `sallyport serve` and `sallyport worker`: tools, reviews, rules, and how people sign in. */
export type SallyportConfig = ServedParts &
  Required<Pick<ServedParts, "tools">> & {
    /** For `sallyport mcp` alone: the servers behind the gateway. */
    readonly mcp?: McpConfig;
  };

/**
 * Types and checks a configuration. Throws invalid_input that names the field.
 *
 *     export default defineConfig({ tools: [refund], policy, approvalMs: 3_600_000 });
 */
export function defineConfig(config: SallyportConfig): SallyportConfig {
  return checkedConfig(config, "defineConfig");
}

/** The same for what a module exports, with or without `defineConfig`; `what` names the module. */
export function checkedConfig(config: unknown, what: string): SallyportConfig {
  const wrong = (field: string, problem: string) =>
    new SallyportError("invalid_input", { what, field, hint: `${what}: ${problem}` });
  if (typeof config !== "object" || config === null || !("tools" in config)) {
    const problem =
      "the default export must be an object with `tools`; every other field is optional.";
    throw wrong("tools", problem);
  }
  for (const [name, value] of Object.entries(config)) {
    const kind = FIELDS[name as keyof SallyportConfig] as Kind | undefined;
    if (kind === undefined) throw wrong(name, unknownField(name));
    if (value !== undefined && !IS[kind](value)) {
      throw wrong(name, `the field \`${name}\` must be ${WORDS[kind]}.`);
    }
  }
  return config as SallyportConfig;
}

function unknownField(name: string): string {
  const flag = { store: "--store", tenant: "--tenant", database: "--store" }[name];
  if (flag !== undefined) return `the field \`${name}\` is set on the command line: ${flag}.`;
  return `there is no field \`${name}\`. The fields are ${Object.keys(FIELDS).join(", ")}.`;
}

type Kind =
  | "list"
  | "object"
  | "function"
  | "text"
  | "milliseconds"
  | "count"
  | "key"
  | "checkpoint";

/** A new option of the gate is refused by the compiler here until its kind is said. */
const FIELDS: Readonly<Record<keyof SallyportConfig, Kind>> = {
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
  processor: "object",
  audit: "object",
  onPending: "function",
  onSettled: "function",
  onResumeProblem: "function",
  onLedgerProblem: "function",
  onHookProblem: "function",
  started: "function",
  resume: "function",
  http: "object",
  anchors: "object",
  redactionKey: "key",
  epochFile: "text",
  clock: "object",
  timers: "object",
  random: "object",
  at: "function",
  mcp: "object",
};

const isObject = (value: unknown) => typeof value === "object" && value !== null;

const IS: Readonly<Record<Kind, (value: unknown) => boolean>> = {
  list: Array.isArray,
  object: (value) => isObject(value) || typeof value === "function",
  function: (value) => typeof value === "function",
  text: (value) => typeof value === "string" && value !== "",
  milliseconds: (value) => Number.isSafeInteger(value) && Number(value) > 0,
  count: (value) => Number.isSafeInteger(value) && Number(value) > 0,
  key: (value) => typeof value === "string" || value instanceof Uint8Array,
  checkpoint: (value) => value === "inbox" || typeof value === "function",
};

const WORDS: Readonly<Record<Kind, string>> = {
  list: "a list",
  object: "an object",
  function: "a function",
  text: "a text",
  milliseconds: "a whole number of milliseconds above 0",
  count: "a whole number above 0",
  key: "a text or bytes",
  checkpoint: '"inbox" or a function',
};
