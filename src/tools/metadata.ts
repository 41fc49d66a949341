/** What a tool says about itself. Optional: without it the safe defaults below hold. */
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
