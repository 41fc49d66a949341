import type { Bug } from "./bug.ts";

/**
 * Bugs that the simulation has to notice without a hint where to look. Some show in one of seventy seeds,
 * and which ones those are changes with every change of the product, so it has the seeds of the proof to find them.
 */
const caughtBy = {
  file: "tests/simulation/simulation.test.ts",
  title: "no seed breaks",
  scale: "proof",
} as const;

export const SIMULATED_BUGS: readonly Bug[] = [
  {
    name: "answer-before-commit",
    what: "a success is told before it is stored",
    file: "src/gate/settle.ts",
    right: '  at("S7.before");\n',
    wrong:
      '  at("S7.before");\n    if (outcome.status === "success") {\n      const parts = { ...settlement, ...(closes === undefined ? {} : { closes }), ...(tookBack === undefined ? {} : { tookBack }) };\n      context.store.operations.settle(id, parts).catch(() => {});\n      return { status: "done", operation: { ...begun, status: "success", output: outcome.output }, result };\n    }\n',
    caughtBy,
  },
  {
    name: "switch-read-before",
    what: "the kill switch is read before the consuming transaction instead of in it",
    file: "src/store/operations.ts",
    right: "const running = [RUNNING, ...unpaused];",
    wrong:
      'const isStopped = (await engine.get(RUNNING.table, "kill"))?.["state"] === "stopped";\n  const running = isStopped ? [RUNNING, ...unpaused] : [...unpaused];',
    caughtBy,
  },
  {
    name: "switch-not-in-take-over",
    what: "a take-over does not look at the kill switch",
    file: "src/store/operations.ts",
    right:
      "const result = await engine.commit(along([{ step: RUNNING }, own, ...how.along, ...held]));",
    wrong:
      "const result = await engine.commit(along([{ step: { ...RUNNING, where: {} } as Step }, own, ...how.along, ...held]));",
    caughtBy,
  },
  {
    name: "lease-by-local-clock",
    what: "a lease is judged by the clock of the process that recovers",
    file: "src/store/operations.ts",
    right:
      'const where = { status: "started", lease_until: { atMost: NOW } };\n      const type = "operation.taken_over";',
    wrong:
      'const where = { status: "started", lease_until: { atMost: Date.now() } };\n      const type = "operation.taken_over";',
    caughtBy,
  },
  {
    name: "dead-lease-renewed",
    what: "a lease that is over is renewed",
    file: "src/store/operations.ts",
    right:
      'const where = { status: "started", fence, lease_until: { atLeast: NOW } };\n      const set =',
    wrong: 'const where = { status: "started", fence };\n      const set =',
    caughtBy,
  },
  {
    name: "fence-kept",
    what: "a take-over keeps the fence",
    file: "src/store/operations.ts",
    right: "  fence: { plus: 1 },\n",
    wrong: "",
    caughtBy,
  },
  {
    name: "claim-not-in-consume",
    what: "the consuming transaction does not look at the claim",
    file: "src/store/engine-tasks.ts",
    right: "where: { fence, ...LIVE }",
    wrong: "where: {}",
    caughtBy,
  },
  {
    name: "claim-of-held-task",
    what: "a task that somebody holds is claimed",
    file: "src/store/task-claims.ts",
    right: '      lane: "ready",\n',
    wrong: "",
    caughtBy,
  },
  {
    name: "task-written-late",
    what: "a task is written under a lease that is over",
    file: "src/store/engine-tasks.ts",
    right: "...(underLease === true ? LIVE : {}),",
    wrong: "",
    caughtBy,
  },
  {
    name: "unknown-without-question",
    what: "an unknown outcome asks nobody",
    file: "src/gate/settle.ts",
    right: 'outcome.status === "unknown" ? [lostQuestion(order, begun, outcome.error)] : [];',
    wrong:
      'outcome.status === "unknown" ? [lostQuestion(order, begun, outcome.error)].slice(1) : [];',
    caughtBy,
  },
  {
    name: "key-not-in-free-lane",
    what: "a keyed call that needs nobody runs once per attempt",
    file: "src/gate/session.ts",
    right: "operationId: key === undefined ? context.newId() : callKeyId(caller.sessionId, key),",
    wrong: "operationId: context.newId(),",
    caughtBy,
  },
  {
    name: "other-bytes",
    what: "other bytes are sent than were approved",
    file: "src/gate/run.ts",
    right: "    input: call.input,\n",
    wrong: '    input: { ...(call.input as object), item: "item-0" },\n',
    caughtBy,
  },
  {
    name: "lost-answer-is-failure",
    what: "a lost answer counts as a failure",
    file: "src/gate/attempt.ts",
    right: 'if (metadataOf(order.tool).effect === "read") {',
    wrong: 'if (metadataOf(order.tool).effect !== "read") {',
    caughtBy,
  },
  {
    name: "found-undo-not-told",
    what: "a compensation that a person found done does not mark what it took back",
    file: "src/gate/decide.ts",
    right: '...(found.happened && undoOf !== "" ? { tookBack: undoOf } : {}),',
    wrong: "",
    caughtBy,
  },
  {
    name: "expired-without-decision",
    what: "an expired question leaves its decision open",
    file: "src/store/interactions.ts",
    right: "return (await engine.commit(along([late, ...moves]))).committed;",
    wrong: "return (await engine.commit(along([late, ...moves.slice(0, 0)]))).committed;",
    caughtBy,
  },
  {
    name: "time-runs-backwards",
    what: "an entry carries the clock's time, also when that was turned back",
    file: "src/store/turn.ts",
    right: "const isBehind = iso < head.at;",
    wrong: "const isBehind = false;",
    caughtBy,
  },
  {
    name: "late-answer-acted-on",
    what: "a tool is called however late the store confirmed its intent",
    file: "src/gate/attempt.ts",
    right: "if (tries === MAX_CONFIRMS) return { operation, isHeld: false };",
    wrong: "return { operation, isHeld: true };",
    caughtBy,
  },
  {
    name: "failed-sync-believed",
    what: "a COMMIT that the server failed with is reported as not written without a look",
    file: "src/store/postgres/session.ts",
    right: "if (isRolledBack || !(await this.#didCommit(ends, deadline))) throw failure.reason;",
    wrong:
      "if (isRolledBack || isServerAnswer(failure.reason) || !(await this.#didCommit(ends, deadline))) throw failure.reason;",
    caughtBy,
  },
  {
    name: "loss-noticed-too-late",
    what: "an effect whose intent was written over a lost entry begins all the same",
    file: "src/store/watched-engine.ts",
    right:
      "if (rolledBack !== undefined && startsEffect(change)) throw rolledBack;\n        return result;",
    wrong: "return result;",
    caughtBy,
  },
  {
    name: "lost-number-given-again",
    what: "a process does not look whether the entry that another one wrote last is still there",
    file: "src/store/watched-engine.ts",
    right: "return await hasEntry(known, heads);",
    wrong: "return heads.length >= 0;",
    caughtBy: { file: "src/store/watched-engine.test.ts", title: "wrote past their number" },
  },
  {
    name: "lost-key-kept",
    what: "contents are proven under a key that was lost with the transaction that made it",
    file: "src/store/tenant-engine.ts",
    right: "const required = keys.requirement(tenant);",
    wrong: "const required = keys.requirement(tenant) && undefined;",
    caughtBy,
  },
  {
    name: "silence-outlasted",
    what: "a request over a silent line is waited for as long as the line is open",
    file: "src/store/postgres/connection.ts",
    right: "          reject(new TimeoutError(ms));\n          client.connection",
    wrong: "          return;\n          client.connection",
    caughtBy,
  },
  {
    name: "altered-tables-not-survived",
    what: "a connection whose plans do not fit the tables any more is used again",
    file: "src/store/postgres/connection.ts",
    right: 'const SPOILED_LINE = ["0A000", "26000", "25006"];',
    wrong: 'const SPOILED_LINE = ["26000", "25006"];',
    caughtBy,
  },
  {
    name: "one-wrong-reading-written",
    what: "one reading of the clock that cannot be right is written",
    file: "src/store/turn.ts",
    right: "if (jumpMs !== 0) this.clockTrouble = clockJumped(jumpMs);",
    wrong: "if (jumpMs === 1) this.clockTrouble = clockJumped(jumpMs);",
    caughtBy,
  },
];
