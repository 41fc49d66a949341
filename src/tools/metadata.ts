/** What a tool says about itself. Optional: without it the safe defaults below hold. Shape: pulled, without side effects. */
export interface ToolMetadata {
  /** For display and reports only. `read` changes nothing, `write` changes what we own, `external` reaches beyond it. */
  readonly effect: Effect;
  /** Alone decides whether calls may run in parallel. */
  readonly concurrencySafe: boolean;
  /** For display and audit only; it never changes a permission decision. */
  readonly readOnly: boolean;
  /** For warnings and reports only; it never changes a permission decision. */
  readonly destructive: boolean;
  /** Older names under which the tool can still be found. */
  readonly aliases: readonly string[];
  /** A few words that help the tool search. */
  readonly searchHint: string;
  /** Alone selects the permission check; empty means the engine's built-in fallback. */
  readonly permissionClass: PermissionClass;
  /** Operation in audit entries: write, edit, read, execute, delete, invoke or any other word; empty: guessed. */
  readonly auditOperation: string;
}

/** Empty: not declared. */
export const EFFECTS = ["read", "write", "external", ""] as const;
export type Effect = (typeof EFFECTS)[number];

export const PERMISSION_CLASSES = ["bash", "file", "webfetch", "readonly", "generic", ""] as const;
export type PermissionClass = (typeof PERMISSION_CLASSES)[number];

/** "Empty" and "safe default" are the same value on purpose: nothing is claimed, so nothing is allowed for it. */
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

/** What the tool declares, filled up with the safe defaults. A tool that declares nothing gets `NO_METADATA` itself. */
export function metadataOf(tool: { readonly metadata?: Partial<ToolMetadata> }): ToolMetadata {
  const declared = tool.metadata;
  return declared === undefined ? NO_METADATA : Object.freeze({ ...NO_METADATA, ...declared });
}

/** What is wrong with declared metadata, as a sentence; undefined when nothing is. Tools may come from plain JavaScript. */
export function metadataProblem(declared: Partial<ToolMetadata> | undefined): string | undefined {
  const all: Readonly<Record<keyof ToolMetadata, unknown>> = { ...NO_METADATA, ...declared };
  for (const flag of ["concurrencySafe", "readOnly", "destructive"] as const) {
    if (typeof all[flag] !== "boolean") return `${flag} must be true or false.`;
  }
  for (const text of ["searchHint", "auditOperation"] as const) {
    if (typeof all[text] !== "string") return `${text} must be a text.`;
  }
  if (!isOneOf(EFFECTS, all.effect)) return 'effect must be "read", "write" or "external".';
  if (!isOneOf(PERMISSION_CLASSES, all.permissionClass)) {
    return "permissionClass must be bash, file, webfetch, readonly, generic or empty.";
  }
  const isNames =
    Array.isArray(all.aliases) && all.aliases.every((name) => typeof name === "string");
  return isNames ? undefined : "aliases must be a list of names.";
}

function isOneOf(words: readonly string[], word: unknown): boolean {
  return typeof word === "string" && words.includes(word);
}
