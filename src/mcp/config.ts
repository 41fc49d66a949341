// The configuration of the gateway, checked once. Every message names the field that it is about.

import path from "node:path";
import { z } from "zod";
import { SallyportError } from "../model/errors.ts";
import { nameProblem } from "../tools/registry.ts";

const name = z.string().refine((text) => nameProblem(text) === undefined && !text.includes("."), {
  error: "must be one part of a tool's name: ASCII letters, digits, hyphens and underscores",
});

const field = z.string().min(1).max(200);

/** Values as they are, and `"{input.path}"`, `"{output.id}"`, `"{before}"` for what the call had; see docs/guide/mcp.md. */
const template = z.record(z.string(), z.json());

const undo = z.union([
  z.strictObject({
    /** A read tool of the same upstream, called before the write: its text is `{before}`. */
    snapshot: z.strictObject({ tool: field, input: template }).optional(),
    tool: field,
    input: template,
    description: z.string().max(1_000).optional(),
    /** What a person does where the snapshot found nothing. */
    whenMissing: z.string().min(1).max(2_000).optional(),
  }),
  z.strictObject({ irreversible: z.literal(true), manualGuide: z.string().min(1).max(2_000) }),
]);

/** Where in the read tool's answer to look, and what is there if the call happened: that value, or a list or lines with it. */
const sign = z
  .strictObject({ at: field, is: z.json().optional(), has: z.json().optional() })
  .refine(({ is, has }) => (is === undefined) !== (has === undefined), {
    error: "needs either `is` or `has`",
  });

const probe = z.strictObject({
  /** A read tool of the same upstream, asked after an answer was lost. */
  tool: field,
  /** Made from the call's `input` and, with a `key`, its `key`. */
  input: template,
  happened: sign,
  /** What an answer without that sign means. `repeat`: it did not happen, and is done again. Left out: a person is asked. */
  otherwise: z.enum(["ask", "repeat"]).optional(),
  /** The same for a read tool that refuses, as some do where there is nothing. */
  missing: z.enum(["ask", "repeat"]).optional(),
});

const tool = z.strictObject({
  /** What the operator has found out. Left out: a write, whatever the upstream says about it. */
  effect: z.enum(["read", "write", "external"]).optional(),
  /** Not offered, and every call is refused. */
  hidden: z.literal(true).optional(),
  /** A person must approve each call; no standing rule replaces that. */
  checkpoint: z.boolean().optional(),
  /** `required`: a client that cannot take a task for an answer is refused, instead of being kept waiting for a person. */
  task: z.literal("required").optional(),
  /** Arguments that hold paths, by access, for rules about paths. Relative paths begin at the upstream's folder. */
  paths: z
    .strictObject({ read: z.array(field).optional(), write: z.array(field).optional() })
    .optional(),
  /** Arguments that hold addresses, for rules about hosts. */
  urls: z.array(field).optional(),
  /**
   * Arguments that hold SQL. A call whose statements only read is one of a tool of its own, `upstream.tool.read`, which passes
   * and which rules can name; everything else, and whatever is not understood, stays a call of the tool itself.
   */
  sql: z.array(field).min(1).optional(),
  /** How its calls are undone. Left out: they are irreversible. */
  undo: undo.optional(),
  /**
   * The argument by which the upstream recognises a call that it has done already, and then only answers. The gateway fills
   * it in, the client is not offered it, and a call whose answer was lost is sent again.
   */
  key: field.optional(),
  /** How to find out whether a call happened whose answer was lost. With neither a person is asked. */
  probe: probe.optional(),
});

const upstream = z
  .strictObject({
    /** The prefix of its tools in the gate: `files.write_file`. */
    name,
    command: z.string().min(1).optional(),
    args: z.array(z.string()).optional(),
    env: z.record(z.string(), z.string()).optional(),
    cwd: z.string().min(1).optional(),
    /** A server over Streamable HTTP, instead of a command. */
    url: z
      .url({ protocol: /^https?$/ })
      .refine((text) => isGuarded(text), {
        error: "would send calls in the clear: use https, or an address of this machine",
      })
      .optional(),
    /** Sent with every request to `url`, for instance a token. */
    headers: z
      .record(z.string().regex(/^[\w-]{1,100}$/), z.string().regex(/^[\x20-\x7e]*$/))
      .optional(),
    /** What the client sees before each tool name. Left out: nothing for one upstream, `name_` for several. */
    prefix: z
      .string()
      .regex(/^[A-Za-z0-9_-]{0,40}$/)
      .optional(),
    /** What is known about the tools of a published server; `tools` takes precedence. */
    profile: z.enum(["filesystem", "memory", "git", "dbhub"]).optional(),
    tools: z.record(z.string().min(1), tool).optional(),
    /** Offers tools with characters that a reader cannot see. Left out: such tools are refused. */
    hiddenText: z.literal("allow").optional(),
  })
  .refine(({ command, url }) => (command === undefined) !== (url === undefined), {
    error: "needs either a command or a url",
  })
  .superRefine((one, context) => {
    const foreign = one.url === undefined ? ["headers"] : ["args", "env", "cwd"];
    for (const field of foreign.filter((name) => name in one)) {
      const message = one.url === undefined ? "is for a url" : "is for a command";
      context.addIssue({ code: "custom", path: [field], message });
    }
  });

/** Calls and tokens do not leave this machine unencrypted. */
function isGuarded(text: string): boolean {
  const { protocol, hostname } = new URL(text);
  return protocol === "https:" || ["127.0.0.1", "[::1]", "localhost"].includes(hostname);
}

const config = z
  .strictObject({
    upstreams: z.array(upstream).min(1),
    /** Who the calls are recorded for. */
    agent: z.string().min(1).max(200).optional(),
    /** How long a call that waits for a person is held before the client is told to ask later. */
    holdMs: z.int().min(0).max(3_600_000).optional(),
    /** Whether a call that waits is a task for clients that declare the Tasks extension. Left out: it is. */
    tasks: z.enum(["offer", "off"]).optional(),
    /** Whether upstreams learn the client's folders and follow them. */
    roots: z.enum(["allow", "refuse"]).optional(),
    /** What does not pass, in neither direction, besides tools, which the gate decides about. */
    refuse: z.array(z.enum(["resources", "prompts", "sampling", "elicitation"])).optional(),
  })
  .superRefine(({ upstreams }, context) => {
    const names = upstreams.map((one) => one.name);
    names.forEach((one, index) => {
      if (names.indexOf(one) === index) return;
      const message = `is "${one}" twice; give each upstream its own name`;
      context.addIssue({ code: "custom", path: ["upstreams", index, "name"], message });
    });
  });

export type McpConfig = z.infer<typeof config>;
export type UpstreamConfig = McpConfig["upstreams"][number];
export type McpToolConfig = z.infer<typeof tool>;
export type UndoConfig = z.infer<typeof undo>;
export type ProbeConfig = z.infer<typeof probe>;

/** Throws invalid_input with the first field that does not fit. */
export function readMcpConfig(given: unknown): McpConfig {
  const read = config.safeParse(given);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const place = ["mcp", ...(issue?.path ?? [])].join(".");
  const hint = `${place} ${issue?.message ?? "does not fit"}.`;
  throw new SallyportError("invalid_input", { what: place, hint });
}

/** A command line as words, with quotes as in a shell and nothing else of one. Throws invalid_input. */
export function splitCommand(line: string): readonly string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (const sign of line) {
    if (quote !== "") {
      if (sign === quote) quote = "";
      else word += sign;
    } else if (sign === '"' || sign === "'") {
      quote = sign;
      word ??= "";
    } else if (/\s/.test(sign)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + sign;
  }
  if (word !== undefined) words.push(word);
  if (quote === "" && words.length > 0) return words;
  const hint = quote === "" ? "It is empty." : `The quote ${quote} is not closed.`;
  throw new SallyportError("invalid_input", { what: line, hint });
}

/** A name for an upstream that has none: the last word of its command that looks like a package or a program. */
export function nameFor(words: readonly string[]): string {
  const [command = ""] = words;
  const isLauncher = /^(npx|node|bunx|uvx|deno|python3?)$/.test(path.basename(command));
  const named = isLauncher ? words.slice(1).find((word) => !word.startsWith("-")) : command;
  const base = path
    .basename(named ?? command)
    .replace(/@[^@]*$/, "")
    .replace(/\.[cm]?[jt]s$/, "");
  const plain = base.replace(/^(mcp-)?server-/, "").replace(/[^A-Za-z0-9]+/g, "-");
  return plain.replace(/^-+|-+$/g, "").slice(0, 40) || "upstream";
}
