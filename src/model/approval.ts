import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonValue } from "../util/json.ts";
import type { DecisionId, SessionId } from "./decision.ts";
import type { Instant } from "./instant.ts";
import type { Requirement } from "./requirement.ts";

/**
 * What a reviewer is shown of a decision and what the approval is bound to. A change of any of it changes the hash, and an
 * approval of another hash is no approval.
 */
export interface Preview {
  readonly decisionId: DecisionId;
  readonly tenant: string;
  readonly sessionId: SessionId;
  /** Who asks: the agent, whoever delegated to it, and on whose behalf. */
  readonly askers: readonly string[];
  /** SHA-256 of the staged payload: the action itself. */
  readonly actionHash: string;
  /** Output of the dry runs. */
  readonly dryRun: JsonValue;
  /** Version of each target when it was looked at. */
  readonly stateVersion: JsonValue;
  /** The highest safety class in the chain. */
  readonly safetyClass: string;
  readonly policyHash: string;
  /** Who must say yes. */
  readonly requires: Requirement;
  readonly expiresAt: Instant;
  /** Makes each approval good for one use: two equal actions have different hashes. */
  readonly nonce: string;
  /** The life of the store in which it was shown; a restored backup begins another one. */
  readonly epoch: string;
}

/** H of the spine: canonical form, so that any language can recompute it. */
export function previewHash(preview: Preview): string {
  return sha256Hex(canonicalJson({ ...preview, v: 1 }));
}
