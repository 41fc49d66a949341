import { expect, test } from "vitest";
import type { AuditEntry } from "../../src/model/audit-entry.ts";
import { toIso } from "../../src/util/clock.ts";
import { Watch } from "./watch.ts";

const OPENED_AT = Date.parse("2026-11-15T06:00:00.000Z");

test.each([
  ["confirm", 1],
  ["ask_user", 1],
  ["connection_lost", 0],
])("the watch reports %s answered after its deadline %i times [I13]", (type, times) => {
  const watch = new Watch({
    tenant: "acme",
    leaseMs: 30_000,
    taskLeaseMs: 30_000,
    approvalMs: 30_000,
  });
  const deadline = OPENED_AT + 1_000;
  const told = [
    { type: "interaction.opened", data: { type, deadline }, now: OPENED_AT },
    { type: "interaction.answered", data: {}, now: deadline + 1 },
  ];
  for (const { type, data, now } of told) {
    const at = toIso(now);
    const entry = { type, subject: "q-1", at, data: JSON.stringify(data) } as AuditEntry;
    watch.entry(entry, { clock: now, elapsed: now });
  }
  const late = watch.problems.filter((problem) => problem.startsWith("I13"));
  expect(late).toHaveLength(times);
});
