// The tools of the upstreams as tools of the gate. What an upstream says about its own tools is a hint for people: each is a
// write that a person is asked about, until the operator says otherwise.

import path from "node:path";
import { SallyportError } from "../model/errors.ts";
import { isReadOnlySql } from "../policy/sql.ts";
import {
  defineTool,
  type ProbeSheet,
  type SheetCall,
  type ToolSheet,
} from "../tools/define-tool.ts";
import {
  type DefinitionChange,
  nameProblem,
  nameSkeleton,
  type Registry,
} from "../tools/registry.ts";
import type { OperatorWord, Resource, Tool } from "../tools/tool.ts";
import type { UndoRecipe } from "../tools/tool-call.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { definedFields } from "../util/defined-fields.ts";
import { cutText, errorText, oneLine } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../util/json.ts";
import { piecesOf } from "../util/visible-text.ts";
import type { McpToolConfig, ProbeConfig, UndoConfig, UpstreamConfig } from "./config.ts";
import { type HeaderParam, headerParamsOf } from "./http-headers.ts";
import { lostTerms, withoutKey } from "./lost-calls.ts";
import type { Pins } from "./pins.ts";
import { PROFILES, type Snapshot } from "./undo.ts";

/** A tool of an upstream under the three names it has. */
export interface OfferedTool {
  readonly upstream: string;
  /** As the upstream names it. */
  readonly name: string;
  /** As the client sees it. */
  readonly offeredAs: string;
  /** As the gate, its rules and its records name it. */
  readonly gateName: string;
  readonly isRead: boolean;
  /** The argument that the gateway fills with the key of the call. */
  readonly key: string | undefined;
  /** Whether a call whose answer was lost may be sent again. */
  readonly isRepeatable: boolean;
  /** Offered to clients alone that take tasks. */
  readonly needsTask: boolean;
  /** Arguments that are repeated as headers over HTTP. */
  readonly headerParams: readonly HeaderParam[];
  /** The tool of the gate for calls that only read, where the arguments say so. */
  readonly reading?: OfferedTool;
}

/** Executes one approved call at its upstream, with what is needed to undo it. Shape: callback. */
export type CallUpstream = (
  tool: OfferedTool,
  call: SheetCall<JsonObject>,
  undo: UndoConfig | undefined,
) => Promise<{
  readonly text: string;
  readonly isError?: boolean;
  readonly data?: unknown;
  readonly undo?: UndoRecipe;
}>;

/** Calls a read tool of an upstream that the operator named for snapshots. Shape: callback. */
export type TakeSnapshot = (
  tool: OfferedTool,
  undo: UndoConfig,
  call: SheetCall<JsonObject>,
) => Promise<Snapshot | undefined>;

/** Finds out whether a call happened whose answer was lost. Shape: callback. */
export type AskProbe = (
  tool: OfferedTool,
  own: { readonly probe: ProbeConfig; readonly undo: UndoConfig | undefined },
  call: SheetCall<JsonObject>,
) => Promise<ProbeSheet<unknown>>;

export interface OfferedTools {
  /** Takes over a list as an upstream sent it, and returns the part of it that may be offered, under the offered names. */
  learn(upstream: string, listed: readonly JsonValue[]): readonly JsonObject[];
  /** The tool of the gate that a call of this name with this input is one of. */
  find(offeredAs: string, input: JsonObject): OfferedTool | undefined;
  /** Takes all of them out of the gate. */
  close(): void;
}

export interface OfferedToolsOptions {
  readonly registry: Registry;
  readonly upstreams: readonly UpstreamConfig[];
  readonly pins: Pins;
  readonly call: CallUpstream;
  readonly snapshot: TakeSnapshot;
  readonly probe: AskProbe;
  /** For the operator: why a tool is not offered, or that it has changed. Shape: push. */
  readonly onProblem: (text: string) => void;
}

/** Of one upstream; more are left out. */
export const MOST_TOOLS = 2_000;
const LARGEST_DEFINITION = 256 * 1024;
/** The longest difference that a reviewer is shown. */
const LONGEST_CHANGE = 4_000;

interface Known extends OfferedTool {
  readonly hash: string;
  /** Arguments that hold SQL. */
  readonly sql: readonly string[];
}

/** The end of the names of tools that stand for the reading calls of another one. */
const READING = ".read";

export function createOfferedTools(options: OfferedToolsOptions): OfferedTools {
  const { registry, upstreams, pins, call, snapshot, probe, onProblem } = options;
  upstreams.forEach(checkReaders);
  const byName = new Map<string, Known>();
  /** Look-alikes of names that clients see; the registry compares those of the gate. */
  const skeletons = new Map<string, string>();
  const reported = new Set<string>();

  function report(text: string): void {
    if (reported.has(text) || reported.size >= MOST_TOOLS) return;
    reported.add(text);
    onProblem(text);
  }

  /** The definition to offer; undefined when it must not be. */
  function accept(config: UpstreamConfig, listed: JsonValue): JsonObject | undefined {
    const name = isJsonObject(listed) ? listed["name"] : undefined;
    if (!isJsonObject(listed) || typeof name !== "string") {
      report(`${config.name}: a tool without a name is not offered`);
      return undefined;
    }
    const own = configFor(config, name);
    if (own.hidden === true) return undefined;
    const offeredAs = `${prefixOf(config, upstreams)}${name}`;
    try {
      const hash = hashOf(listed);
      const known = byName.get(offeredAs);
      if (known?.upstream === config.name && known.hash === hash) {
        return offered(withoutKey(listed, known.key), offeredAs);
      }
      const tool: OfferedTool = {
        upstream: config.name,
        name,
        offeredAs,
        gateName: `${config.name}.${name}`,
        isRead: own.effect === "read",
        key: own.key,
        isRepeatable: own.key !== undefined || own.probe !== undefined,
        needsTask: own.task === "required",
        headerParams: headerParamsOf(listed["inputSchema"]),
      };
      refuseCollision(tool, byName, skeletons);
      const hidden = config.hiddenText === "allow" ? undefined : hiddenTextIn(listed);
      if (hidden !== undefined) throw refusal(`${hidden}; set hiddenText to "allow" to offer it`);
      const changes = pins.check(config.name, name, listed);
      if (changes.length > 0) {
        report(
          `${tool.gateName} has changed since it was accepted; a person is asked about each call. Accept it with: sallyport mcp --accept ${tool.gateName}`,
        );
      }
      if (changes.length > 0) {
        // What a key or a probe is now is not known either.
        const { key: _, probe: __, ...plain } = own;
        const changed = { ...tool, key: undefined, isRepeatable: false };
        register(changed, listed, plain, changes, hash);
        return offered(listed, offeredAs);
      }
      const shown = withoutKey(listed, own.key);
      register(tool, shown, own, changes, hash);
      return offered(shown, offeredAs);
    } catch (error) {
      // What was known under this name must not be called by it any more.
      if (byName.get(offeredAs)?.upstream === config.name) forget(offeredAs);
      report(`${config.name}.${oneLine(name, 80)} is not offered: ${reasonOf(error)}`);
      return undefined;
    }
  }

  function forget(offeredAs: string): void {
    const known = byName.get(offeredAs);
    if (known === undefined) return;
    byName.delete(offeredAs);
    skeletons.delete(nameSkeleton(offeredAs));
    registry.unregister(known.gateName);
    if (known.reading !== undefined) registry.unregister(known.reading.gateName);
  }

  function register(
    tool: OfferedTool,
    listed: JsonObject,
    own: McpToolConfig,
    changes: readonly DefinitionChange[],
    hash: string,
  ): void {
    const config = upstreams.find((one) => one.name === tool.upstream);
    const terms = { changes, hash, folder: config?.cwd ?? "", call, snapshot, probe };
    const made = toolOf(tool, listed, own, terms);
    forget(tool.offeredAs);
    const isAccepted = changes.length === 0;
    const operator = isAccepted ? wordOf(own) : { checkpoint: true };
    registry.register(made, { server: tool.upstream, operator });
    const { sql = [] } = own;
    const known = { ...tool, isRead: tool.isRead && isAccepted, hash, sql };
    byName.set(tool.offeredAs, known);
    if (sql.length > 0 && !tool.isRead && isAccepted) {
      const reading = { ...tool, gateName: `${tool.gateName}${READING}`, isRead: true };
      const { undo: _, task: __, key: ___, probe: ____, ...plain } = own;
      const read = toolOf(reading, listed, plain, {
        ...terms,
        // What people changed it into must not pass for a read either.
        call: async (one, asked) =>
          onlyReads(asked.input, sql) ? call(one, asked, undefined) : NOT_READING,
      });
      const word = wordOf({ ...definedFields({ checkpoint: own.checkpoint }), effect: "read" });
      registry.register(read, { server: tool.upstream, operator: word });
      byName.set(tool.offeredAs, { ...known, reading });
    }
    skeletons.set(nameSkeleton(tool.offeredAs), tool.offeredAs);
  }

  return {
    learn(upstream, listed) {
      const config = upstreams.find(({ name }) => name === upstream);
      if (config === undefined) return [];
      if (listed.length > MOST_TOOLS) {
        report(`${upstream}: only the first ${MOST_TOOLS} tools are offered`);
      }
      const seen = pins.together(() =>
        listed.slice(0, MOST_TOOLS).map((one) => accept(config, one)),
      );
      return seen.filter((one) => one !== undefined);
    },
    find(offeredAs, input) {
      const known = byName.get(offeredAs);
      const reading = known?.reading;
      return reading !== undefined && onlyReads(input, known?.sql ?? []) ? reading : known;
    },
    close() {
      for (const name of [...byName.keys()]) forget(name);
    },
  };
}

function prefixOf({ name, prefix }: UpstreamConfig, all: readonly UpstreamConfig[]): string {
  return prefix ?? (all.length > 1 ? `${name}_` : "");
}

function configFor({ tools = {}, profile }: UpstreamConfig, name: string): McpToolConfig {
  const known = (profile === undefined ? undefined : PROFILES[profile]) ?? {};
  return {
    ...(Object.hasOwn(known, name) ? known[name] : undefined),
    ...(Object.hasOwn(tools, name) ? tools[name] : undefined),
  };
}

/** Snapshots and probes are taken without asking, so only tools that the operator calls read-only may take them. */
function checkReaders(config: UpstreamConfig): void {
  for (const name of Object.keys(config.tools ?? {})) {
    const { undo, key, probe, effect } = configFor(config, name);
    const at = `mcp.upstreams ${config.name} tools.${name}`;
    if (effect === "read" && (key !== undefined || probe !== undefined)) {
      const what = `${at}.${key === undefined ? "probe" : "key"}`;
      const hint = `${what} is for a tool that changes something: a lost read is simply repeated.`;
      throw new SallyportError("invalid_input", { what, hint });
    }
    const readers = {
      "undo.snapshot.tool": undo !== undefined && "tool" in undo ? undo.snapshot?.tool : undefined,
      "probe.tool": probe?.tool,
    };
    for (const [field, reader] of Object.entries(readers)) {
      if (reader === undefined || configFor(config, reader).effect === "read") continue;
      const what = `${at}.${field}`;
      const hint = `${what} names "${reader}": give that tool the effect "read" first.`;
      throw new SallyportError("invalid_input", { what, hint });
    }
  }
}

function refusal(hint: string): SallyportError {
  return new SallyportError("invalid_input", { what: "definition", hint });
}

function reasonOf(error: unknown): string {
  const hint = error instanceof SallyportError ? error.details["hint"] : undefined;
  return typeof hint === "string" ? hint : errorText(error);
}

function hashOf(listed: JsonObject): string {
  const text = canonicalJson(listed);
  if (text.length > LARGEST_DEFINITION) {
    throw refusal(`its definition is larger than ${LARGEST_DEFINITION} characters`);
  }
  return sha256Hex(text);
}

function offered(listed: JsonObject, offeredAs: string): JsonObject {
  return listed["name"] === offeredAs ? listed : { ...listed, name: offeredAs };
}

/** Two upstreams must not offer one name, or two that people take for one. */
function refuseCollision(
  tool: OfferedTool,
  byName: ReadonlyMap<string, Known>,
  skeletons: ReadonlyMap<string, string>,
): void {
  const problem = nameProblem(tool.name);
  if (problem !== undefined) throw refusal(problem);
  // Otherwise a tool could take the name under which the reading calls of another one pass.
  if (tool.name.toLowerCase().endsWith(READING)) throw refusal(`"${READING}" is the gate's own`);
  const alike = skeletons.get(nameSkeleton(tool.offeredAs));
  const known = byName.get(alike ?? tool.offeredAs);
  if (known === undefined) return;
  if (known.offeredAs === tool.offeredAs && known.upstream === tool.upstream) return;
  throw refusal(`"${tool.offeredAs}" is or looks like a tool of ${known.upstream}`);
}

function wordOf({ effect = "write", checkpoint, undo, key }: McpToolConfig): OperatorWord {
  const isRead = effect === "read";
  return {
    effect,
    ...(isRead ? { readOnly: true, concurrencySafe: true, permissionClass: "readonly" } : {}),
    ...(checkpoint === undefined ? {} : { checkpoint }),
    ...(key === undefined ? {} : { idempotency: "keyed" }),
    ...(undo !== undefined && "tool" in undo ? { undoMethod: "tool", undoTool: undo.tool } : {}),
  };
}

function toolOf(
  tool: OfferedTool,
  listed: JsonObject,
  own: McpToolConfig,
  {
    changes,
    hash,
    folder,
    call,
    snapshot,
    probe,
  }: {
    readonly changes: readonly DefinitionChange[];
    readonly hash: string;
    readonly folder: string;
    readonly call: CallUpstream;
    readonly snapshot: TakeSnapshot;
    readonly probe: AskProbe;
  },
): Tool {
  const schema = isJsonObject(listed["inputSchema"]) ? listed["inputSchema"] : {};
  const sheet: Omit<ToolSheet<JsonObject, unknown>, "input"> = {
    name: tool.gateName,
    description: descriptionOf(tool, listed),
    safety: { effect: "write", destructive: hintOf(listed, "destructiveHint") },
    // The hash of everything that the upstream says about the tool, so that an approval is bound to all of it.
    version: tool.isRepeatable ? sha256Hex(canonicalJson({ hash, ...lostTerms(own) })) : hash,
    execute: (asked) => call(tool, asked, own.undo),
    ...undoParts(tool, own.undo, snapshot),
    ...probePart(tool, own, probe),
    ...(changes.length === 0 ? {} : { dryRun: () => changedNotice(tool, changes) }),
    ...resourcesOf(own, folder),
  };
  try {
    return defineTool({ ...sheet, input: { ...schema, type: "object" } });
  } catch (error) {
    if (!(error instanceof SallyportError)) throw error;
    // A schema with keywords that the gate cannot check: the upstream checks the input, and people see all of it.
    return defineTool({ ...sheet, input: { type: "object" } });
  }
}

function probePart(
  tool: OfferedTool,
  { probe, undo }: McpToolConfig,
  ask: AskProbe,
): Pick<ToolSheet<JsonObject, unknown>, "probe"> {
  return probe === undefined ? {} : { probe: (asked) => ask(tool, { probe, undo }, asked) };
}

/** An undo is made by the call itself, which alone knows what was there before. */
function undoParts(
  tool: OfferedTool,
  undo: UndoConfig | undefined,
  snapshot: TakeSnapshot,
): Pick<ToolSheet<JsonObject, unknown>, "undo" | "stateVersion"> {
  if (undo === undefined || "irreversible" in undo) return {};
  const made: Pick<ToolSheet<JsonObject, unknown>, "undo"> = {
    undo: ({ result }) => result.undo ?? { irreversible: true, manualGuide: NO_UNDO },
  };
  if (undo.snapshot === undefined) return made;
  return {
    ...made,
    async stateVersion(asked) {
      const taken = await snapshot(tool, undo, asked);
      if (taken === undefined) throw new Error("its state cannot be read");
      return "text" in taken ? sha256Hex(taken.text) : "missing";
    },
  };
}

const NO_UNDO = "Nothing was recorded by which this call could be undone. Look at its target.";

function hintOf(listed: JsonObject, hint: string): boolean {
  const { annotations } = listed;
  return isJsonObject(annotations) && annotations[hint] === true;
}

function descriptionOf(tool: OfferedTool, listed: JsonObject): string {
  const { description } = listed;
  const text = typeof description === "string" ? description.trim() : "";
  return text === "" ? `The tool ${tool.name} of ${tool.upstream}.` : text;
}

function changedNotice({ gateName }: OfferedTool, changes: readonly DefinitionChange[]) {
  const lines = changes.map(
    ({ path: place, before, after }) =>
      `${place}\n  was: ${before || "nothing"}\n  is:  ${after || "nothing"}`,
  );
  return {
    summary: `The definition of ${gateName} has changed since it was accepted.`,
    preview: cutText(lines.join("\n"), LONGEST_CHANGE),
    unavailable: "what a changed tool does is not known",
  };
}

/** The places that the operator's mapping finds in the arguments. An argument that cannot be read that way is refused. */
function resourcesOf(
  { paths, urls = [] }: McpToolConfig,
  folder: string,
): Pick<ToolSheet<JsonObject, unknown>, "resources"> {
  const mapped = [
    ...(paths?.read ?? []).map((field) => ({ field, access: "read" as const })),
    ...(paths?.write ?? []).map((field) => ({ field, access: "write" as const })),
  ];
  if (mapped.length === 0 && urls.length === 0) return {};
  return {
    resources({ input }) {
      const files = mapped.flatMap(({ field, access }) =>
        textsAt(input, field).map(
          (text): Resource => ({
            kind: "file",
            path: path.isAbsolute(text) ? text : path.join(folder || process.cwd(), text),
            access,
          }),
        ),
      );
      const addresses = urls.flatMap((field) =>
        textsAt(input, field).map((url): Resource => ({ kind: "url", url })),
      );
      return [...files, ...addresses];
    },
  };
}

/** Whether every statement in the arguments only reads; one that is missing or no text does not. */
function onlyReads(input: JsonObject, fields: readonly string[]): boolean {
  try {
    return fields.every((field) => {
      const texts = textsAt(input, field);
      return texts.length > 0 && texts.every(isReadOnlySql);
    });
  } catch {
    return false;
  }
}

const NOT_READING = { text: "Not executed: the statement does not only read.", isError: true };

/** The texts at a field like `path`, `edits.path` or `paths`; lists are followed. */
function textsAt(input: JsonValue | undefined, field: string): readonly string[] {
  let found: readonly JsonValue[] = input === undefined ? [] : [input];
  for (const key of field.split(".")) {
    found = found
      .flat(1)
      .flatMap((one) =>
        isJsonObject(one) && Object.hasOwn(one, key) ? [one[key] as JsonValue] : [],
      );
  }
  return found.flat(1).map((one) => {
    if (typeof one === "string") return one;
    throw new Error(`${field} is not a text`);
  });
}

/** The first hidden characters in a definition, as a sentence; undefined when everything in it can be seen. */
export function hiddenTextIn(definition: JsonValue): string | undefined {
  for (const [place, text] of textsIn(definition, "")) {
    // Emoji are made of several characters, some of which are invisible by themselves.
    const plain = text.replace(/\p{RGI_Emoji}/gv, "").replace(/[\t\r\u00a0]/g, " ");
    const hidden = piecesOf(plain).find((piece) => piece.kind === "code");
    if (hidden !== undefined && "label" in hidden) {
      return `${place} holds ${hidden.label} (${hidden.why})`;
    }
  }
  return undefined;
}

function* textsIn(value: JsonValue, place: string): Generator<readonly [string, string]> {
  if (typeof value === "string") yield [place, value];
  else if (Array.isArray(value)) {
    for (const [index, one] of value.entries()) yield* textsIn(one, `${place}[${index}]`);
  } else if (typeof value === "object" && value !== null) {
    for (const [key, one] of Object.entries(value)) {
      const at = place === "" ? key : `${place}.${key}`;
      yield [`a name in ${place || "the definition"}`, key];
      yield* textsIn(one, at);
    }
  }
}
