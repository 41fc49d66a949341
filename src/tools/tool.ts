import { SallyportError } from "../model/errors.ts";
import type { Finding } from "../model/finding.ts";
import { definedFields } from "../util/defined-fields.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import type { UndoRecord } from "./tool-call.ts";

/**
 * A typed action with a safety declaration. It takes no part in permission checks; of display it holds only `present`.
 * Created by `defineTool`; everything after `execute` is optional, so a plain tool is three lines long. Shapes:
 * execute, dryRun, generateUndo, probe and stateVersion are callbacks; metadata and capability are pulled.
 */
export interface Tool {
  /** Unique, ASCII; `server.tool` for tools of other servers. */
  readonly name: string;
  /** May depend on the context and change between calls; read when a prompt is built. */
  description(context: DescriptionContext): string;
  /** JSON Schema of the input for the model. */
  readonly inputSchema: JsonObject;
  /**
   * Validates input strictly; rejected input never reaches `execute`. The returned value is what must be shown, hashed,
   * stored and executed: it is JSON, contains all defaults and rewrites of the schema, and parsing it again gives the
   * same value.
   */
  parseInput(input: JsonValue): ParsedInput;
  execute(call: ToolCall): Promise<ToolResult>;
  /** Undefined when the tool declares none: then the safe defaults apply. */
  readonly metadata?: Partial<ToolMetadata>;
  readonly capability?: Partial<Capability>;
  /** Describes the effect without causing it. */
  readonly dryRun?: (call: ToolCall) => Promise<DryRun>;
  /** How to undo the call, from its input and output. Called right after a success. */
  readonly generateUndo?: (call: ToolCall, result: ToolResult) => UndoRecord | Promise<UndoRecord>;
  /** Whether the call took effect. Called after a lost answer, before any retry. */
  readonly probe?: (call: ToolCall) => Promise<ProbeAnswer>;
  /** Version of the target (ETag, row version, content hash): equal means unchanged. */
  readonly stateVersion?: (call: ToolCall) => Promise<string>;
  /** The call in words for people. Synchronous, from the input alone; see `Presented`. */
  readonly present?: (input: JsonValue) => Presented;
  /** The resources that this input touches; write scopes and permissions are checked against them. */
  readonly resources?: (
    input: unknown,
    context: { readonly workingDirectory: string },
  ) => readonly Resource[];
  /**
   * `keyed`: for one idempotency key the target acts at most once, and its answer is final, also a refusal. Return a
   * refusal with `isError`. A throw means that there was no answer, so it settles nothing after a lost call.
   */
  readonly idempotency?: "keyed" | "none";
  /** Direct calls are refused: only a rollback may dispatch it. */
  readonly undoOnly?: true;
  /** `external`: an external executor carries out its approved calls, under a permit; `execute` is never called. */
  readonly execution?: "external";
  /** Of an external tool: keeps what the call will overwrite, before its executor gets the permit. A throw gives it back. */
  readonly prepare?: (call: ToolCall) => Promise<void>;
  /** Version of the implementation; an approval is bound to it. */
  readonly version?: string;
  /** Versions whose pending calls this one may execute, if only wording and schema changed. */
  readonly continues?: readonly string[];
}

export interface DescriptionContext {
  readonly workingDirectory: string;
}

export type ParsedInput =
  | { readonly ok: true; readonly value: JsonValue }
  | { readonly ok: false; readonly issues: readonly InputIssue[] };

export interface InputIssue {
  /** Like `$.items[3].price`; `$` for the whole. */
  readonly path: string;
  readonly message: string;
}

/** One invocation: the checked input and its context. */
export interface ToolCall {
  readonly callId: string;
  readonly input: unknown;
  readonly context: ToolContext;
}

export interface ToolContext {
  readonly tenant: string;
  readonly sessionId: string;
  /** Aborted when the caller gives up or the time limit passes. */
  readonly signal: AbortSignal;
  /** Empty when none is set: the tool then uses its own. */
  readonly workingDirectory: string;
  /**
   * The resolved places of the files and command folders in `resources`, in that order, with all links resolved by the
   * gate. A tool opens only these places: a path that now leads elsewhere was changed after it was judged. Undefined
   * when the call did not come through the gate.
   */
  readonly places?: readonly string[] | undefined;
  /**
   * The gate's answer to this call if it named this place, for tools that find files by themselves. They open only what is
   * allowed and do not even name what is denied. What a person approved counts as allowed where the same reasons ask
   * again. Undefined when the call did not come through the gate.
   */
  readonly judgePlace?: JudgePlace | undefined;
  /** Shape: push; reaches the caller while the tool works. */
  progress(report: Progress): void;
  /** The same for every attempt of this step; empty for a dry run. */
  readonly idempotencyKey: string;
  /** Grows with every attempt; a target that remembers it can refuse late ones. */
  readonly fence: number;
}

/** An absolute path without links. */
export type JudgePlace = (place: string) => "allow" | "ask" | "deny";

export interface Progress {
  readonly message: string;
  /** 0 to 1, if known. */
  readonly done?: number;
}

export interface ToolResult {
  readonly text: string;
  readonly isError?: boolean;
  /** Passed through unchanged: not copied, not serialised. */
  readonly data?: unknown;
  /** The tool's own undo record; without it `generateUndo` is called. */
  readonly undo?: UndoRecord;
  /** With `isError` and an undo record: what the call did is not accepted, and the gate undoes it at once. */
  readonly takeBack?: true;
}

/** How a field is drawn; the text itself is the tool's. */
export const FIELD_FORMATS = ["text", "money", "date", "person", "code"] as const;

/** One line of what would change; `before` only where the tool knows it from the input. */
export interface PresentedField {
  readonly label: string;
  readonly value: string;
  readonly before?: string;
  readonly format?: (typeof FIELD_FORMATS)[number];
}

/** A call in the words of its tool: what reviewers read first, on every surface. */
export interface Presented {
  /** One sentence that names the object, like "Refund 129.00 EUR to Ana Ruiz". */
  readonly title: string;
  readonly fields?: readonly PresentedField[];
  /** For totals of several calls. */
  readonly amount?: { readonly value: number; readonly unit: string };
}

export interface DryRun {
  /** One line: what would be touched. */
  readonly summary: string;
  /** Details for people, for instance a unified diff. */
  readonly preview: string;
  /** Why the effect cannot be inspected. Shown to reviewers, and the call counts as irreversible (T14). */
  readonly unavailable?: string;
  /** Free-form facts about the impact; shown, never interpreted. */
  readonly impact: JsonObject;
}

export type ProbeAnswer =
  | { readonly happened: true; readonly result: ToolResult }
  | { readonly happened: false }
  | { readonly happened: "unknown"; readonly reason: string };

export type Resource =
  | { readonly kind: "file"; readonly path: string; readonly access: "read" | "write" }
  /** `directory`: where it runs, if that is not the call's working directory. */
  | { readonly kind: "command"; readonly command: string; readonly directory?: string }
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "other"; readonly id: string; readonly access: "read" | "write" };

/** A tool's declarations about itself. Optional, with the safe defaults below. Shape: pulled, without side effects. */
export interface ToolMetadata {
  /** For display, reports, and policy rules that name it (`toolEffect`). `read` changes nothing, `write` changes own data, `external` reaches beyond it. */
  readonly effect: Effect;
  /** The only field that decides whether calls may run in parallel. */
  readonly concurrencySafe: boolean;
  /** For display and audit only; it never changes a permission decision. */
  readonly readOnly: boolean;
  /** For warnings and reports only; it never changes a permission decision. */
  readonly destructive: boolean;
  /** Older names under which the tool is still found. */
  readonly aliases: readonly string[];
  /** A few words that help the tool search. */
  readonly searchHint: string;
  /** The only field that selects the permission check; empty means the engine's fallback. */
  readonly permissionClass: PermissionClass;
  /** The operation in audit entries: write, edit, read, execute, delete, invoke or any other word; empty: inferred. */
  readonly auditOperation: string;
}

/** Empty: not declared. */
export const EFFECTS = ["read", "write", "external", ""] as const;
export type Effect = (typeof EFFECTS)[number];

export const PERMISSION_CLASSES = ["bash", "file", "webfetch", "readonly", "generic", ""] as const;
export type PermissionClass = (typeof PERMISSION_CLASSES)[number];

/** "Empty" and "safe default" are the same value on purpose: nothing is claimed, so nothing is allowed. */
export const NO_METADATA: ToolMetadata = Object.freeze({
  effect: "",
  concurrencySafe: false,
  readOnly: false,
  destructive: false,
  aliases: Object.freeze([]) as readonly string[],
  searchHint: "",
  permissionClass: "",
  auditOperation: "",
});

/** The tool's declarations with the safe defaults. A tool that declares nothing gets `NO_METADATA` itself. */
export function metadataOf(tool: { readonly metadata?: Partial<ToolMetadata> }): ToolMetadata {
  const declared = tool.metadata;
  return declared === undefined ? NO_METADATA : Object.freeze({ ...NO_METADATA, ...declared });
}

/**
 * The problem with declared metadata, as a sentence; undefined when there is none. Tools may come from plain
 * JavaScript.
 */
export function metadataProblem(declared: Partial<ToolMetadata> | undefined): string | undefined {
  const all: Readonly<Record<keyof ToolMetadata, unknown>> = { ...NO_METADATA, ...declared };
  const flag = notFlag(all, "concurrencySafe", "readOnly", "destructive");
  if (flag !== undefined) return flag;
  for (const text of ["searchHint", "auditOperation"] as const) {
    if (typeof all[text] !== "string") return `${text} must be a text.`;
  }
  if (!isOneOf(EFFECTS, all.effect)) return 'effect must be "read", "write" or "external".';
  if (!isOneOf(PERMISSION_CLASSES, all.permissionClass)) {
    return "permissionClass must be bash, file, webfetch, readonly, generic or empty.";
  }
  return isTexts(all.aliases) ? undefined : "aliases must be a list of names.";
}

function notFlag<Name extends string>(
  all: Readonly<Record<Name, unknown>>,
  ...flags: readonly Name[]
): string | undefined {
  const wrong = flags.find((flag) => typeof all[flag] !== "boolean");
  return wrong === undefined ? undefined : `${wrong} must be true or false.`;
}

/** For values that may come from plain JavaScript. */
export function isTexts(list: unknown): boolean {
  return Array.isArray(list) && list.every((item) => typeof item === "string");
}

function isOneOf(words: readonly string[], word: unknown): boolean {
  return typeof word === "string" && words.includes(word);
}

/** A tool's safety capabilities and its requirements before it runs. Shape: pulled, without side effects. */
export interface Capability {
  /** The agent's own estimate must be at least this, 0 to 100; 0 switches the gate off. */
  readonly confidenceMin: number;
  /** A person must approve each call. */
  readonly checkpoint: boolean;
  /** The agent must challenge itself first: hidden assumptions, failure scenarios, verdict. */
  readonly reverseThinking: boolean;
  /** For display only; rollback reads the undo record of the call. */
  readonly undoMethod: "tool" | "manual" | "";
  readonly undoTool: string;
  /** For display only: kinds of things it touches. */
  readonly affects: readonly string[];
}

export const NO_CAPABILITY: Capability = Object.freeze({
  confidenceMin: 0,
  checkpoint: false,
  reverseThinking: false,
  undoMethod: "",
  undoTool: "",
  affects: Object.freeze([]) as readonly string[],
});

export type SafetyLevel = 0 | 1 | 2;

/** The tool's declarations with the zero capability as default. */
export function capabilityOf(tool: { readonly capability?: Partial<Capability> }): Capability {
  const declared = tool.capability;
  return declared === undefined ? NO_CAPABILITY : Object.freeze({ ...NO_CAPABILITY, ...declared });
}

/** The problem with a declared capability, as a sentence; undefined when there is none. */
export function capabilityProblem(declared: Partial<Capability> | undefined): string | undefined {
  const all: Readonly<Record<keyof Capability, unknown>> = { ...NO_CAPABILITY, ...declared };
  const min = all.confidenceMin;
  // Written so that NaN is refused; the reverse comparison would switch the gate off.
  if (!(typeof min === "number" && min >= 0 && min <= 100)) {
    return "confidenceMin must be a number from 0 to 100.";
  }
  const flag = notFlag(all, "checkpoint", "reverseThinking");
  if (flag !== undefined) return flag;
  if (all.undoMethod !== "tool" && all.undoMethod !== "manual" && all.undoMethod !== "") {
    return 'undoMethod must be "tool", "manual" or empty.';
  }
  if (typeof all.undoTool !== "string") return "undoTool must be the name of a tool or empty.";
  return isTexts(all.affects) ? undefined : "affects must be a list of words.";
}

/** The risk of a tool, lowest first. The highest class in a chain of calls applies to the whole chain. */
export const SAFETY_CLASSES = ["read", "reversible", "irreversible"] as const;
export type SafetyClass = (typeof SAFETY_CLASSES)[number];

/**
 * Derived from what the tool implements and from its permission class, which alone selects the check. The informational
 * flags (`readOnly`, `effect`) are not read: without better evidence a tool is irreversible (T12).
 */
export function safetyClassOf(tool: Tool): SafetyClass {
  if (metadataOf(tool).permissionClass === "readonly") return "read";
  return isReversible(tool) ? "reversible" : "irreversible";
}

/** An empty chain is unknown, so it counts as irreversible. */
export function highestClass(classes: readonly SafetyClass[]): SafetyClass {
  if (classes.length === 0) return "irreversible";
  const rank = (name: SafetyClass) => SAFETY_CLASSES.indexOf(name);
  return classes.reduce((highest, name) => (rank(name) > rank(highest) ? name : highest));
}

/** By what the tool implements, not by its declared capability. */
export function isDryRunnable(tool: Tool): tool is Tool & Required<Pick<Tool, "dryRun">> {
  return typeof tool.dryRun === "function";
}

/** Can be rolled back. True also for tools of level 2 that can do both. */
export function isReversible(tool: Tool): tool is Tool & Required<Pick<Tool, "generateUndo">> {
  return typeof tool.generateUndo === "function";
}

/** 2: has a dry run. 1: can be undone. 0: neither. */
export function safetyLevelOf(tool: Tool): SafetyLevel {
  if (isDryRunnable(tool)) return 2;
  return isReversible(tool) ? 1 : 0;
}

/** Shown before a call of a level-0 tool; undefined for others. Written for the model and for people. */
export function safetyWarning(tool: Tool): Finding | undefined {
  if (safetyLevelOf(tool) > 0) return undefined;
  const { readOnly, destructive } = metadataOf(tool);
  const says = readOnly ? " It declares that it only reads." : "";
  const worse = destructive ? " It declares that it destroys data." : "";
  return {
    severity: "warning",
    policy: "safety-level",
    message:
      `"${tool.name}" has neither a dry run nor an undo.${says}${worse} ` +
      "Check the input once more, and prefer a tool with a dry run where one does the same.",
  };
}

/** Tools with a dry run first, then those with undo, then the rest; otherwise the order is kept. */
export function saferFirst<Item extends Tool>(tools: readonly Item[]): readonly Item[] {
  return tools.toSorted((a, b) => safetyLevelOf(b) - safetyLevelOf(a));
}

/** The safety part of a tool's data sheet. Only `effect` is required, because it cannot be inferred. */
export interface SafetySheet {
  /** `read` changes nothing, `write` changes own data, `external` reaches beyond it: money, mail, other people. */
  readonly effect: "read" | "write" | "external";
  /** Must agree with what is implemented: true needs `undo`, false forbids it. */
  readonly reversible?: boolean;
  readonly confidenceMin?: number;
  readonly checkpoint?: boolean;
  readonly reverseThinking?: boolean;
  readonly concurrencySafe?: boolean;
  readonly destructive?: boolean;
  /** For display only: how and with which tool it is usually undone, and what kinds of things it touches. */
  readonly undoMethod?: "tool" | "manual";
  readonly undoTool?: string;
  readonly affects?: readonly string[];
}

/** The other fields of the sheet that become metadata. */
export interface ListingSheet {
  /**
   * The one declaration of a tool that only reads: no person is asked, and its calls may run in parallel. Stands for
   * `safety.effect` "read", `safety.concurrencySafe` and the permission class `readonly`.
   */
  readonly readOnly?: true;
  readonly aliases?: readonly string[];
  readonly searchHint?: string;
  /** Selects the permission check. Never inferred: a tool that reads files is `file`, not `readonly`. */
  readonly permissionClass?: PermissionClass;
  readonly auditOperation?: string;
}

interface Declarations {
  readonly metadata?: Partial<ToolMetadata>;
  readonly capability?: Partial<Capability>;
}

/** The declarations of a sheet, checked for consistency; contains only what was declared. Throws invalid_input. */
export function readDeclarations(
  tool: string,
  sheet: ListingSheet & { readonly safety?: SafetySheet },
  implemented: { readonly undo: boolean },
): Declarations {
  const problem =
    readOnlyProblem(sheet, implemented) ??
    (sheet.safety === undefined ? undefined : contradiction(sheet.safety, implemented));
  const metadata = readMetadata(sheet);
  const capability = readCapability(sheet.safety, implemented);
  const hint = problem ?? metadataProblem(metadata) ?? capabilityProblem(capability);
  if (hint !== undefined) throw new SallyportError("invalid_input", { tool, hint });
  return definedFields({
    metadata: metadata && Object.freeze(metadata),
    capability: capability && Object.freeze(capability),
  });
}

function readOnlyProblem(
  { readOnly, safety, permissionClass }: ListingSheet & { readonly safety?: SafetySheet },
  { undo }: { undo: boolean },
): string | undefined {
  if (readOnly === undefined) return undefined;
  if (readOnly !== true) return "readOnly is true or left out.";
  if (undo) return "A tool that only reads has nothing to undo.";
  if (safety !== undefined && safety.effect !== "read") {
    return "readOnly and safety.effect contradict each other.";
  }
  return permissionClass === undefined || permissionClass === "readonly"
    ? undefined
    : "readOnly stands for the permission class readonly: leave permissionClass out.";
}

function contradiction(safety: SafetySheet, { undo }: { undo: boolean }): string | undefined {
  const { effect, reversible, destructive, undoMethod } = safety;
  if (effect !== "read" && effect !== "write" && effect !== "external") {
    return 'safety.effect is required: "read", "write" or "external".';
  }
  if (reversible === true && !undo) return "safety.reversible needs an undo function.";
  if (reversible === false && undo)
    return "There is an undo, so safety.reversible cannot be false.";
  if (effect === "read" && undo) return "A tool that only reads has nothing to undo.";
  if (effect === "read" && destructive === true) return "A tool that only reads destroys nothing.";
  if (undoMethod === "tool" && !undo) return 'safety.undoMethod "tool" needs an undo function.';
  return undefined;
}

/** What `readOnly` on a sheet stands for. */
const READ_ONLY = Object.freeze({
  effect: "read",
  readOnly: true,
  concurrencySafe: true,
  permissionClass: "readonly",
} as const);

function readMetadata(
  sheet: ListingSheet & { readonly safety?: SafetySheet },
): Partial<ToolMetadata> | undefined {
  const { safety, aliases, searchHint, auditOperation } = sheet;
  const only = sheet.readOnly === true ? READ_ONLY : undefined;
  const { permissionClass = only?.permissionClass } = sheet;
  const declared = definedFields({
    effect: safety?.effect ?? only?.effect,
    readOnly: safety === undefined ? only?.readOnly : safety.effect === "read",
    concurrencySafe: safety?.concurrencySafe ?? only?.concurrencySafe,
    destructive: safety?.destructive,
    aliases: Array.isArray(aliases) ? Object.freeze([...aliases]) : aliases,
    searchHint,
    permissionClass,
    auditOperation,
  });
  return Object.keys(declared).length === 0 ? undefined : declared;
}

function readCapability(
  safety: SafetySheet | undefined,
  { undo }: { undo: boolean },
): Partial<Capability> | undefined {
  if (safety === undefined) return undefined;
  const { confidenceMin, checkpoint, reverseThinking, undoTool, affects } = safety;
  return definedFields({
    confidenceMin,
    checkpoint,
    reverseThinking,
    undoMethod: safety.undoMethod ?? (undo ? "tool" : undefined),
    undoTool,
    affects: Array.isArray(affects) ? Object.freeze([...affects]) : affects,
  });
}

/**
 * The operation in a tool's audit entries: the declared word, otherwise a guess from its name, otherwise `invoke`. No
 * tool is known by name, so a third-party tool only has to declare its word.
 */
export function auditOperationOf(tool: {
  readonly name: string;
  readonly metadata?: Partial<ToolMetadata>;
}): string {
  return metadataOf(tool).auditOperation || guessOperation(tool.name);
}

/** Most severe first: `read_and_delete` is a deletion. */
const VERBS: readonly (readonly [operation: string, verbs: ReadonlySet<string>])[] = [
  ["delete", words("delete del remove rm drop destroy purge erase unlink truncate wipe revoke")],
  [
    "execute",
    words("execute exec run bash shell sh command cmd eval deploy start stop restart kill"),
  ],
  [
    "write",
    words("write create add insert put save upload append post send publish copy store new"),
  ],
  ["edit", words("edit update patch modify change rename move replace set merge assign")],
  [
    "read",
    words(
      "read get list ls search find fetch show view query describe count check cat grep glob select",
    ),
  ],
];

export function guessOperation(name: string): string {
  const found = wordsOf(name);
  return VERBS.find(([, verbs]) => found.some((word) => verbs.has(word)))?.[0] ?? "invoke";
}

function words(line: string): ReadonlySet<string> {
  return new Set(line.split(" "));
}

/** `fs.readFile2` has the words fs, read and file. */
function wordsOf(name: string): readonly string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z]+/);
}

/** The origin of a tool of another server, and the operator's declarations about it. */
export interface ExternalOrigin {
  /** The server's name, chosen by the operator; the names of its tools start with it. */
  readonly server: string;
  /** What the operator has verified. Only this can reduce the safety requirements. */
  readonly operator?: OperatorWord;
}

export interface OperatorWord
  extends Partial<Omit<ToolMetadata, "aliases" | "searchHint">>,
    Partial<Omit<Capability, "affects">> {
  readonly idempotency?: "keyed" | "none";
}

/**
 * Wraps a tool of a remote server (T12). The server's declarations count where they are stricter, and are dropped where
 * they are more lenient: that it only reads, may run in parallel, may be repeated, has a permission class, or a name
 * for the audit log. Those come from the operator; otherwise it is a `generic` tool that a rule or a person allows. The
 * declarations are copied once, so later changes have no effect.
 */
export function externalTool(tool: Tool, operator: OperatorWord = {}): Tool {
  const claimed = { ...metadataOf(tool), ...capabilityOf(tool) };
  const metadata: ToolMetadata = {
    effect: operator.effect ?? "",
    concurrencySafe: operator.concurrencySafe ?? false,
    readOnly: operator.readOnly ?? false,
    destructive: operator.destructive === true || claimed.destructive,
    aliases: [],
    searchHint: claimed.searchHint,
    permissionClass: operator.permissionClass || "generic",
    auditOperation: operator.auditOperation ?? "",
  };
  const capability: Capability = {
    confidenceMin: Math.max(operator.confidenceMin ?? 0, claimed.confidenceMin),
    checkpoint: operator.checkpoint === true || claimed.checkpoint,
    reverseThinking: operator.reverseThinking === true || claimed.reverseThinking,
    undoMethod: operator.undoMethod ?? "",
    undoTool: operator.undoTool ?? "",
    affects: [...claimed.affects],
  };
  return Object.freeze({
    name: tool.name,
    inputSchema: tool.inputSchema,
    description: (context) => tool.description(context),
    parseInput: (input) => tool.parseInput(input),
    execute: (call) => tool.execute(call),
    metadata: Object.freeze(metadata),
    capability: Object.freeze(capability),
    ...contractsOf(tool),
    idempotency: operator.idempotency ?? "none",
    ...definedFields({ version: tool.version, execution: tool.execution }),
  } satisfies Tool);
}

/** Implemented functions are kept: they belong to the adapter, not the server. Bound, because they may be methods. */
function contractsOf(tool: Tool) {
  return definedFields({
    dryRun: tool.dryRun?.bind(tool),
    generateUndo: tool.generateUndo?.bind(tool),
    probe: tool.probe?.bind(tool),
    stateVersion: tool.stateVersion?.bind(tool),
    resources: tool.resources?.bind(tool),
    present: tool.present?.bind(tool),
    prepare: tool.prepare?.bind(tool),
  });
}
