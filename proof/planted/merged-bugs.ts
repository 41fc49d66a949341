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
    name: "question-told-before-commit",
    what: "the agent is told that people are asked before decision, verdict, preview and question are durable",
    file: "src/gate/propose.ts",
    right:
      "const interaction = await store.interactions.show({ ...showing, before: this.#unwritten }, by);",
    wrong:
      'const parts = this.#unwritten; const late = () => void store.interactions.show({ ...showing, before: parts }, by); setTimeout(late, 1); const { id } = this.#decision; const interaction = { ...showing.question, id, decisionId: id, type: "confirm", status: "open", votes: [] } as unknown as Interaction;',
    caughtBy: { file: "tests/gate/one-write.test.ts", title: "not answered before its one write" },
  },
  {
    name: "yes-told-before-commit",
    what: "a person is told that the call was executed before their yes and its intent are durable",
    file: "src/gate/run.ts",
    right: "const executed = await runOrder(context, { ...ready.order, yes });",
    wrong:
      'if (decision.id !== "") { setTimeout(() => void runOrder(context, { ...ready.order, yes }), 1); return { interaction: { id: decision.id, decisionId: decision.id, status: "approved", votes: [] }, answers: [{ answer: "done", text: "done" }] } as unknown as AnsweredRun; }\n  const executed = await runOrder(context, { ...ready.order, yes });',
    caughtBy: { file: "tests/gate/one-write.test.ts", title: "before the yes and its intent" },
  },
  {
    name: "yes-without-its-conditions",
    what: "the yes is written with the intent, and the kill switch and the hash are not conditions of that write",
    file: "src/store/operations.ts",
    right: "const before = required.map(([, step]): Along => ({ step }));",
    wrong: "const before = (yes.length > 0 ? [] : required).map(([, step]): Along => ({ step }));",
    caughtBy: {
      file: "tests/gate/one-write.test.ts",
      title: "everything is stopped between the look",
    },
  },
  {
    name: "act-before-merged-intent",
    what: "a tool is called before the yes and the intent of its call are durable",
    file: "src/gate/attempt.ts",
    right: "const begun = await store.operations.start({",
    wrong:
      "if (order.yes !== undefined) await order.tool.execute(callOf(context, order, { id: order.operationId, fence: 1 } as Operation, new AbortController().signal));\n  const begun = await store.operations.start({",
    caughtBy: { file: "tests/gate/one-write.test.ts", title: "before the yes and its intent" },
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
