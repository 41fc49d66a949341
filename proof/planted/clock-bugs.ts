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
];
