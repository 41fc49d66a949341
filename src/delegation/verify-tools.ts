import type { GatePolicy } from "../gate/gate-policy.ts";
import type { Store } from "../store/store.ts";
import type { Tool } from "../tools/tool.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { createIds } from "../util/ids.ts";
import { systemRandom } from "../util/random.ts";
import { createEvidenceBook } from "./evidence-book.ts";
import { createGateRunner } from "./gate-runner.ts";
import { verifyCommand } from "./verify-command.ts";
import { verifyResult } from "./verify-result.ts";

export interface VerifyToolsOptions {
  /** The store of the port they are for. */
  readonly store: Store;
  readonly tenant: string;
  /** Asked before a command is run; the port's own, usually. */
  readonly policies?: readonly GatePolicy[];
  readonly clock?: Clock;
  /** Shape: push; what a gate said could not be written down. */
  readonly onProblem?: (problem: { readonly traceId: string; readonly error: unknown }) => void;
}

/** The two ways in which evidence comes into a run: somebody records a check, or the check is made right here. */
export function verifyTools(options: VerifyToolsOptions): readonly Tool[] {
  const { policies = [], clock = systemClock, onProblem = () => {} } = options;
  const store = options.store.tenant(options.tenant);
  const book = createEvidenceBook(store, clock);
  const ids = createIds({ clock, random: systemRandom });
  const newTraceId = () => ids.next();
  const gate = createGateRunner({ policies, ledger: store.gateLedger, newTraceId, onProblem });
  return [verifyResult(book), verifyCommand({ book, gate })];
}
