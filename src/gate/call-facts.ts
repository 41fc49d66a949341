import type { PermissionClass } from "../tools/metadata.ts";
import type { JsonValue } from "../util/json.ts";

/**
 * What the gate is told about a call: everything resolved, so that it does no I/O itself. Text that an agent wrote about
 * its call is not part of it: the gate depends on tool, input, resources and identity alone.
 */
export interface CallFacts {
  readonly tool: string;
  readonly permissionClass: PermissionClass;
  /** The parsed input, without reserved keys. */
  readonly input: JsonValue;
  readonly resources: readonly ResolvedResource[];
  readonly tenant: string;
  readonly sessionId: string;
  /** Who asks: the agent, then whoever delegated to it, up to the root. */
  readonly chain: readonly string[];
  /** Epoch milliseconds by the store's clock: expiry of rules and grants. */
  readonly now: number;
}

export type ResolvedResource =
  | {
      readonly kind: "file";
      /** As given. */
      readonly path: string;
      /** Absolute, links and parent steps resolved; for a file that does not exist yet, of its nearest existing parent. */
      readonly resolved: string;
      readonly access: "read" | "write";
    }
  | { readonly kind: "command"; readonly command: string }
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "other"; readonly id: string; readonly access: "read" | "write" };
