export type { Dice } from "./child.ts";
export type { Effect, Evidence, Invariant, Kind, Told } from "./evidence.ts";
export { collectEvidence, type FromOutside } from "./evidence.ts";
export { checkInvariants, INVARIANTS, type Violation } from "./invariants/table.ts";
export type { CrashKitHooks, HostParts, KitCall } from "./open-kit.ts";
export type { Trouble } from "./random/run-random.ts";
export { type CrashKitReport, describeReport } from "./report.ts";
export { type CrashKitOptions, type KitProgress, runCrashKit } from "./run-crash-kit.ts";
