import type { Bug } from "./bug.ts";

/** Mistakes about clocks that were wrong once. */
export const CLOCK_BUGS: readonly Bug[] = [
  {
    name: "one-time-for-all",
    what: "leases and deadlines go by the trail although an operator has said that the clock is right",
    file: "src/store/turn.ts",
    right: "this.now = isAccepted ? clock : this.entryAt;",
    wrong: "this.now = this.entryAt;",
    caughtBy: { file: "tests/gate/wrong-clock.test.ts", title: "SH9" },
  },
  {
    name: "clock-behind-ignored",
    what: "a clock that went back revives what has expired",
    file: "src/store/turn.ts",
    right: 'const isAccepted = isFar && (terms.accepted?.() ?? "") >= head.at;',
    wrong: "const isAccepted = isFar;",
    caughtBy: { file: "tests/store/memory.test.ts", title: "after its deadline" },
  },
  {
    name: "wrong-reading-believed",
    what: "one reading that cannot be right gets into the store",
    file: "src/store/turn.ts",
    right: "return reading.elapsed - this.#jumped.elapsed >= SETTLED_MS;",
    wrong: "return true;",
    caughtBy: { file: "src/store/turn.test.ts", title: "SH9" },
  },
  {
    name: "switch-refused-by-clock",
    what: "the kill switch cannot be used while the clock is wrong",
    file: "src/store/sqlite/index.ts",
    right: "if (isUntimely && group.every(({ one }) => isUrgent(one.change))) {",
    wrong: "if (isUntimely && group.length > 1) {",
    caughtBy: { file: "tests/gate/wrong-clock.test.ts", title: "cannot be right" },
  },
  {
    name: "chain-not-locked",
    what: "the end of a chain is read without the lock on it",
    file: "src/store/postgres/writer.ts",
    right: "WHERE tenant = ANY($1) ORDER BY tenant FOR UPDATE`;",
    wrong: "WHERE tenant = ANY($1) ORDER BY tenant`;",
    caughtBy: { file: "tests/processes/hammer.test.ts", title: "PostgreSQL" },
  },
  {
    name: "deadline-from-wrong-reading",
    what: "a question lasts a year because one reading of the clock was a year ahead",
    file: "src/store/turn.ts",
    right: "  if (jumpMs !== 0) throw clockJumped(jumpMs);\n",
    wrong: "",
    caughtBy: { file: "tests/gate/wrong-clock.test.ts", title: "no question lasts" },
  },
  {
    name: "lease-from-earlier-reading",
    what: "a claim lasts from the time that was read before it was written",
    file: "src/store/engine-tasks.ts",
    right: "const set = { ...rowOfQueue(next, waits), ...lease.set };",
    wrong: "const set = rowOfQueue(next, waits);",
    caughtBy: { file: "tests/gate/wrong-clock.test.ts", title: "claims last" },
  },
  {
    name: "lease-ended-by-earlier-reading",
    what: "a live claim is ended or given away because an earlier reading of the clock was ahead",
    file: "src/store/engine-tasks.ts",
    right: "...(overLease === true ? OVER : {})",
    wrong: "",
    caughtBy: { file: "tests/gate/wrong-clock.test.ts", title: "claims last" },
  },
];
