export type { Dice } from "./child.ts";
export {
  collectEvidence,
  type FromOutside,
  type Invariant,
  type Kind,
  type LedgerEntry,
  type RunEvidence,
  type Told,
} from "./evidence.ts";
export { checkInvariants, INVARIANTS, type Violation } from "./invariants/table.ts";
export type { CrashKitHooks, HostParts, KitCall } from "./open-kit.ts";
export type { Trouble } from "./random/run-random.ts";
export { type CrashKitReport, describeReport } from "./report.ts";
export { type CrashKitOptions, type KitProgress, runCrashKit } from "./run-crash-kit.ts";
