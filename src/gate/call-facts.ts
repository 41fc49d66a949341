import type { PermissionClass } from "../tools/metadata.ts";
import type { Access, ResolvedResource } from "../tools/resolve-resources.ts";
import type { JsonValue } from "../util/json.ts";

/**
 * What the gate is told about a call: everything resolved, so that it does no I/O itself. Text that an agent wrote about
 * its call is not part of it: the gate depends on tool, input, resources and identity alone. Nor is the way the call came
 * in (direct, deferred, undo, sub-agent, resumed): without it no way can have a gate of its own.
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

export type { Access, ResolvedResource };
