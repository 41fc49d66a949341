import { verifyTrail } from "../src/audit/verify.ts";
import { type AuditEntry, emptyHead, headAfter, sealEntry } from "../src/model/audit-entry.ts";
import { toIso } from "../src/util/clock.ts";
import { ENTRY } from "./floors/rows.ts";
import type { Result } from "./report.ts";

const ENTRIES = 1_000_000;
const PAGE = 1_000;

/** How long a whole trail takes to verify, and whether memory grows with it. */
export async function* verifyBenches(wanted: (name: string) => boolean): AsyncGenerator<Result> {
  if (!wanted("audit.verify")) return;
  const making = { ms: 0 };
  let peak = 0;
  const start = performance.now();
  const report = await verifyTrail(trail(making), {
    onProgress: () => {
      peak = Math.max(peak, process.memoryUsage().heapUsed);
    },
  });
  const seconds = (performance.now() - start - making.ms) / 1_000;
  if (!report.ok || report.entries !== ENTRIES) throw new Error("the trail should verify");
  yield { name: "audit.verify.1000000", value: seconds, unit: "s", goal: "<= 60" };
  yield { name: "audit.verify.heap", value: peak / 2 ** 20, unit: "MiB", goal: "constant" };
}

/** Entries as the product seals them; the time to make them is put aside. */
async function* trail(making: { ms: number }): AsyncGenerator<AuditEntry> {
  let head = emptyHead("bench");
  const at = toIso(1_763_190_000_000);
  const data = JSON.parse(ENTRY.data);
  const { type, actor, salt } = ENTRY;
  for (let page = 0; page < ENTRIES / PAGE; page += 1) {
    const start = performance.now();
    const entries: AuditEntry[] = [];
    for (let i = 0; i < PAGE; i += 1) {
      const draft = { type, subject: `d-${page}-${i}`, session: `s-${page}`, actor, data };
      const entry = sealEntry(head, draft, at, salt);
      entries.push(entry);
      head = headAfter(entry);
    }
    making.ms += performance.now() - start;
    yield* entries;
  }
}
