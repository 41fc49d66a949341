import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { AuditEntry, Decision, VerifyReport } from "sallyport";

/** A file that is removed at the end. */
export function scratchFile(name: string): string {
  const dir = mkdtempSync(path.join(tmpdir(), "sallyport-"));
  process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
  return path.join(dir, name);
}

export function tell(decision: Decision, trail: readonly AuditEntry[]): void {
  console.log(`Decision ${decision.id} is ${decision.state}.`);
  for (const { validator, approved, reason } of [decision.techVerdict, decision.bizVerdict]) {
    console.log(`  ${validator}: ${approved ? "yes" : "no"}${reason && ` (${reason})`}`);
  }
  console.log("\nIts trail:");
  for (const { seq, at, type, actor, hash } of trail) {
    console.log(`  ${seq}  ${at}  ${type.padEnd(18)}  ${actor.padEnd(18)}  ${hash.slice(0, 12)}…`);
  }
}

/** The story checks itself: it fails if the result is not the expected one. */
export function ending({ ok, entries, problems }: VerifyReport): void {
  for (const { message } of problems) console.error(message);
  const found = ok ? "no entry between the first and the last was changed." : "NOT intact.";
  console.log(`\nVerified ${entries} entries: ${found}`);
  if (!ok || entries !== 4) process.exitCode = 1;
}
