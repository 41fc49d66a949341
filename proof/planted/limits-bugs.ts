import type { Bug } from "./bug.ts";

const LIMITS = "tests/http/limits.test.ts";
const HEAVY = "tests/http/heavy-lists.test.ts";

/** Mistakes about limits: streams, connections, queries, pages. */
export const LIMITS_BUGS: readonly Bug[] = [
  {
    name: "streams-not-counted",
    what: "one agent opens event streams without end",
    file: "src/http/routes/service.ts",
    right: "const leave = call.services.streams.enter(call.identity);",
    wrong: "const leave = () => {};",
    caughtBy: { file: LIMITS, title: "a stream that ends makes room" },
  },
  {
    name: "strangers-fill-connections",
    what: "connections that showed no token take the ones kept for people",
    file: "src/http/connections.ts",
    right: "if (this.#strangers.size <= this.#limits.strangers) return;",
    wrong: "if (this.#strangers.size <= 1e9) return;",
    caughtBy: { file: LIMITS, title: "those of agents and strangers" },
  },
  {
    name: "agents-fill-connections",
    what: "agents together may hold all connections",
    file: "src/http/connections.ts",
    right: 'if (next.isAgent && this.#agents >= agents) throw full(agents, "of agents");',
    wrong: "",
    caughtBy: { file: LIMITS, title: "those of agents and strangers" },
  },
  {
    name: "refused-token-looked-up-again",
    what: "the same made-up token costs a look-up each time",
    file: "src/http/door.ts",
    right: "if (until !== undefined && this.#options.stopwatch.now() < until) {",
    wrong: "if (until !== undefined && this.#options.stopwatch.now() < 0) {",
    caughtBy: { file: LIMITS, title: "the same one is not looked up twice" },
  },
  {
    name: "answer-filter-fails-open",
    what: "an answer that does not fit its schema is sent as it is",
    file: "src/http/answer.ts",
    right: "  services.report(checked.error);\n  const hint =",
    wrong:
      "  services.report(checked.error);\n  if (answer !== undefined) return JSON.stringify(answer);\n  const hint =",
    caughtBy: { file: LIMITS, title: "what does not fit its schema" },
  },
  {
    name: "query-outlives-its-deadline",
    what: "a query over SQLite that does not end is not killed",
    file: "src/tools/builtin/sqlite-database.ts",
    right: "if (error instanceof TimeoutError) taken?.kill();",
    wrong: "",
    caughtBy: { file: "tests/http/sql-query.test.ts", title: "a query without end runs" },
  },
  {
    name: "connection-keeps-advisory-lock",
    what: "a connection that ran foreign SQL goes back to the pool",
    file: "src/tools/builtin/postgres-database.ts",
    right: 'const isReusable = mode === "READ WRITE";',
    wrong: "const isReusable = true;",
    caughtBy: { file: "src/tools/builtin/postgres-database.test.ts", title: "L9" },
  },
  {
    name: "lists-give-whole-records",
    what: "a list sends inputs of any length",
    file: "src/http/routes/interactions.ts",
    right: "if (value.length <= MOST_TEXT) return value;",
    wrong: "if (value.length >= 0) return value;",
    caughtBy: { file: HEAVY, title: "100 large proposals" },
  },
  {
    name: "questions-without-quota",
    what: "one agent asks people without end",
    file: "src/gate/session.ts",
    right: "if (!context.quota.has(agent, id)) await context.quota.check(agent, bytes);",
    wrong: "",
    caughtBy: { file: HEAVY, title: "one agent may have so many open, in number" },
  },
];
