import type { Bug } from "./bug.ts";

/** Mistakes about groups that are written in one statement. */
export const HOT_BUGS: readonly Bug[] = [
  {
    name: "hot-rows-not-counted",
    what: "a step that changes no row does not stop the statement that it is a part of",
    file: "src/store/postgres/hot-function.ts",
    right: "IF v_count <> json_array_length(",
    wrong: "IF v_count > json_array_length(",
    caughtBy: { file: "tests/store/hot-path.test.ts", title: "random changes" },
  },
  {
    name: "hot-condition-not-counted",
    what: "what a change only requires is not compared by the statement",
    file: "src/store/postgres/hot-function.ts",
    right: 'const { text, expected } = requireSql("$schema", step, works);',
    wrong: 'const { text } = requireSql("$schema", step, works); const expected = "v_count";',
    caughtBy: { file: "tests/store/hot-path.test.ts", title: "random changes" },
  },
  {
    name: "hot-clock-not-judged",
    what: "a statement commits with the time of a clock that has jumped",
    file: "src/store/postgres/hot-function.ts",
    right: "IF v_now < earliest OR v_now > latest THEN",
    wrong: "IF v_now < 0 THEN",
    caughtBy: { file: "tests/store/hot-path.test.ts", title: "a clock that jumped" },
  },
  {
    name: "hot-lost-tail-not-noticed",
    what: "a statement commits on a chain that lost what this process saw of it",
    file: "src/store/postgres/hot-function.ts",
    right: "IF v_found IS DISTINCT FROM decode(seen_heads[i], 'hex') THEN",
    wrong: "IF v_found IS NULL AND v_last IS NULL THEN",
    caughtBy: { file: "tests/store/hot-path.test.ts", title: "a trail that lost" },
  },
  {
    name: "hot-late-statement-written",
    what: "a statement that was given up is written when it reaches the server later",
    file: "src/store/postgres/hot-function.ts",
    right: "IF v_chain.fence <> fences[array_position(tenants, v_chain.tenant)] THEN",
    wrong: "IF v_chain.fence < fences[array_position(tenants, v_chain.tenant)] THEN",
    caughtBy: { file: "tests/store/hot-path.test.ts", title: "after it was given up" },
  },
  {
    name: "hot-told-before-answer",
    what: "a statement whose answer was lost counts as written without being looked up",
    file: "src/store/postgres/session.ts",
    right: "if (found === undefined) throw error;",
    wrong: "if (found === undefined) return { results: [], ends: new Map() };",
    caughtBy: { file: "tests/store/hot-path.test.ts", title: "whose answer does not come" },
  },
  {
    name: "hot-result-made-up",
    what: "the result of a lost answer is read from a record that was changed since",
    file: "src/store/postgres/hot.ts",
    right: 'return isLeft ? resultsOf(group, parts, places, left) : "changed since";',
    wrong:
      "return isLeft || places.length > 0 ? resultsOf(group, parts, places, left) : undefined;",
    caughtBy: { file: "tests/store/hot-path.test.ts", title: "not made up" },
  },
  {
    name: "hot-fatal-error-believed",
    what: "an error that ends the connection or the server is told as: nothing was written",
    file: "src/store/postgres/connection.ts",
    right: 'return error instanceof Error && "severity" in error && error.severity === "ERROR";',
    wrong: 'return error instanceof Error && "severity" in error;',
    caughtBy: {
      file: "tests/store/hot-path.test.ts",
      title: "and was written is reported as written",
    },
  },
];
