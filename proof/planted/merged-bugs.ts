import type { Bug } from "./bug.ts";

/** Mistakes in steps of a call that are committed together. */
export const MERGED_BUGS: readonly Bug[] = [
  {
    name: "merged-verdict-untold",
    what: "a proposal that is written once has its technical verdict, and no entry of it",
    file: "src/gate/propose.ts",
    right: "this.#unwritten = [...this.#unwritten, reviewMove(tier, id, verdict)];",
    wrong:
      "this.#unwritten = [...this.#unwritten, { step: reviewMove(tier, id, verdict).step } as Along];",
    caughtBy: { file: "tests/gate/one-write.test.ts", title: "that is reviewed promptly" },
  },
  {
    name: "told-before-merged-commit",
    what: "the answer to a proposal that the review refuses is given before its commit",
    file: "src/store/decisions.ts",
    right: "const { committed } = await engine.commit(along(parts));",
    wrong: "const committed = true; setImmediate(() => void engine.commit(along(parts)));",
    caughtBy: { file: "tests/gate/one-write.test.ts", title: "review refuses is one write" },
  },
  {
    name: "act-before-merged-intent",
    what: "a tool is called before the yes and the intent of its call are durable",
    file: "src/gate/attempt.ts",
    right: "const begun = await store.operations.start({",
    wrong:
      "if (order.yes !== undefined) await order.tool.execute(callOf(context, order, { id: order.operationId, fence: 1 } as Operation, new AbortController().signal));\n  const begun = await store.operations.start({",
    caughtBy: { file: "tests/interactions/cut-off.test.ts", title: "with its intent" },
  },
  {
    name: "merged-condition-dropped",
    what: "of two parts about one record only the conditions of the first are kept",
    file: "src/store/engine.ts",
    right: "if (!isSet) where[column] = test;",
    wrong: "",
    caughtBy: { file: "src/store/along.test.ts", title: "conditions" },
  },
];
