import { SallyportError } from "../model/errors.ts";
import { type Capability, capabilityProblem } from "./capability.ts";
import { metadataProblem, type PermissionClass, type ToolMetadata } from "./metadata.ts";

/** The safety part of a tool's data sheet. Only `effect` must be said, because it cannot be guessed. */
export interface SafetySheet {
  /** `read` changes nothing, `write` changes what we own, `external` reaches beyond it: money, mail, other people. */
  readonly effect: "read" | "write" | "external";
  /** Must agree with what is implemented: true needs `undo`, false forbids it. */
  readonly reversible?: boolean;
  readonly confidenceMin?: number;
  readonly checkpoint?: boolean;
  readonly reverseThinking?: boolean;
  readonly concurrencySafe?: boolean;
  readonly destructive?: boolean;
  /** For display only: how and with which tool it is usually taken back, and what kinds of things it touches. */
  readonly undoMethod?: "tool" | "manual";
  readonly undoTool?: string;
  readonly affects?: readonly string[];
}

/** The rest of the sheet that ends up in metadata. */
export interface ListingSheet {
  readonly aliases?: readonly string[];
  readonly searchHint?: string;
  /** Selects the permission check. Never inferred: a tool that reads files is `file`, not `readonly`. */
  readonly permissionClass?: PermissionClass;
  readonly auditOperation?: string;
}

export interface Declarations {
  readonly metadata?: Partial<ToolMetadata>;
  readonly capability?: Partial<Capability>;
}

/** What a sheet declares, checked against itself; nothing is there that was not said. Throws invalid_input. */
export function readDeclarations(
  tool: string,
  sheet: ListingSheet & { readonly safety?: SafetySheet },
  implemented: { readonly undo: boolean },
): Declarations {
  const problem = sheet.safety === undefined ? undefined : contradiction(sheet.safety, implemented);
  const metadata = readMetadata(sheet);
  const capability = readCapability(sheet.safety, implemented);
  const hint = problem ?? metadataProblem(metadata) ?? capabilityProblem(capability);
  if (hint !== undefined) throw new SallyportError("invalid_input", { tool, hint });
  return {
    ...(metadata === undefined ? {} : { metadata: Object.freeze(metadata) }),
    ...(capability === undefined ? {} : { capability: Object.freeze(capability) }),
  };
}

function contradiction(safety: SafetySheet, { undo }: { undo: boolean }): string | undefined {
  const { effect, reversible, destructive, undoMethod } = safety;
  if (effect !== "read" && effect !== "write" && effect !== "external") {
    return 'safety.effect must be said: "read", "write" or "external".';
  }
  if (reversible === true && !undo) return "safety.reversible needs undo, which says how.";
  if (reversible === false && undo)
    return "There is an undo, so safety.reversible cannot be false.";
  if (effect === "read" && undo) return "A tool that only reads has nothing to undo.";
  if (effect === "read" && destructive === true) return "A tool that only reads destroys nothing.";
  if (undoMethod === "tool" && !undo) return 'safety.undoMethod "tool" needs undo, which says how.';
  return undefined;
}

function readMetadata(
  sheet: ListingSheet & { readonly safety?: SafetySheet },
): Partial<ToolMetadata> | undefined {
  const { safety, aliases, searchHint, permissionClass, auditOperation } = sheet;
  const declared = given({
    effect: safety?.effect,
    readOnly: safety === undefined ? undefined : safety.effect === "read",
    concurrencySafe: safety?.concurrencySafe,
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
  return given({
    confidenceMin,
    checkpoint,
    reverseThinking,
    undoMethod: safety.undoMethod ?? (undo ? "tool" : undefined),
    undoTool,
    affects: Array.isArray(affects) ? Object.freeze([...affects]) : affects,
  });
}

type Given<Fields> = { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> };

/** Without the fields that are undefined. */
function given<Fields extends object>(fields: Fields): Given<Fields> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Given<Fields>;
}
