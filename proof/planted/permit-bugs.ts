import type { Bug } from "./bug.ts";

const permits = "tests/permits/permits.test.ts";

/** Mistakes about who may execute what was approved, and how often. */
export const PERMIT_BUGS: readonly Bug[] = [
  {
    name: "permit-taken-twice",
    what: "a permit that another executor holds is given to the next one as well",
    file: "src/store/operations.ts",
    right: `if (first.started || first.operation?.status !== "returned") return first;
  // A permit that was given back is taken again in its own row, so that its fence grows.
  const where = { status: "returned", fence: first.operation.fence };`,
    wrong: `if (first.started || first.operation === undefined) return first;
  const where = { fence: first.operation.fence };`,
    caughtBy: {
      file: "tests/store/memory.test.ts",
      title: "of eight executors one takes a permit",
    },
  },
  {
    name: "permit-reported-under-old-fence",
    what: "an executor reports under a fence that is not the newest one",
    file: "src/gate/permit.ts",
    right: 'if (now.fence !== fence || (status !== "started" && status !== "unknown")) {',
    wrong: 'fence = now.fence; if (status !== "started" && status !== "unknown") {',
    caughtBy: { file: permits, title: "only its executor reports" },
  },
  {
    name: "expired-permit-reissued",
    what: "a permit whose lease ran out without a report is given to another executor",
    file: "src/gate/permit.ts",
    right: "return settled ? recorded(now) : undefined;",
    wrong:
      'if (settled) await store.operations.giveBack(id, { fence, from: "unknown", actor: "recovery" }); return settled ? recorded(now) : undefined;',
    caughtBy: { file: permits, title: "a permit without a report becomes a question" },
  },
  {
    name: "permit-while-stopped",
    what: "taking a permit looks at the kill switch before its transaction only",
    file: "src/store/operations.ts",
    right: "const running = [RUNNING, ...unpaused];",
    wrong:
      "const running = intent.executor === undefined ? [RUNNING, ...unpaused] : [...unpaused];",
    caughtBy: { file: permits, title: "a stop between the look and the write" },
  },
  {
    name: "same-call-of-another-session",
    what: "a retry finds the approval of another session or definition",
    file: "src/gate/show.ts",
    right: "const calls = proposal.calls.map(({ callId, turn, ...call }) => call);",
    wrong:
      'const calls = proposal.calls.map(({ callId, turn, definition, ...call }) => call); sessionId = "";',
    caughtBy: { file: "tests/gate/same-call.test.ts", title: "another session, agent, owner" },
  },
  {
    name: "late-report-overwrites-a-person",
    what: "an executor that reports after a person has answered overwrites the answer",
    file: "src/gate/permit.ts",
    right: 'if (question?.outcome === "answered") return whyClosed(question);',
    wrong: "",
    caughtBy: { file: permits, title: "a person's word that it did not" },
  },
];
