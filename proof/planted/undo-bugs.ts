import type { Bug } from "./bug.ts";

/** Mistakes around calls that share records, calls that were undone, and writes that were cut off half way. */
export const UNDO_BUGS: readonly Bug[] = [
  {
    name: "bundle-accepts-foreign-change",
    what: "a change of somebody else between two calls of a bundle is taken for the bundle's own",
    file: "src/gate/run.ts",
    right: "const asExpected = later.filter((one) => before.get(one) === expected[one]);",
    wrong:
      'const asExpected = later.filter((one) => before.has(one)); for (const one of asExpected) expected[one] = before.get(one) ?? "";',
    caughtBy: { file: "tests/gate/shared-records.test.ts", title: "between two calls of a bundle" },
  },
  {
    name: "bundle-expects-only-what-was-shown",
    what: "a call of a bundle is refused because an earlier call of the same bundle changed its target",
    file: "src/gate/run.ts",
    right: "versions.done(step, executed.operation);",
    wrong: "void versions;",
    caughtBy: { file: "tests/gate/shared-records.test.ts", title: "share a record is executed" },
  },
  {
    name: "rollback-adopts-foreign-change",
    what: "a call vouches for the target of an earlier one that somebody else had changed",
    file: "src/gate/order.ts",
    right: "knownVersions(one, inEffect).includes(before(one))",
    wrong: 'before(one) !== "" && knownVersions(one, inEffect).length > 0',
    caughtBy: {
      file: "tests/gate/shared-records.test.ts",
      title: "somebody else's change is kept",
    },
  },
  {
    name: "undo-under-a-later-call",
    what: "an earlier call is undone while a later one on the same record is in effect",
    file: "src/gate/undo.ts",
    right: "if (above !== undefined) return underneath(above);",
    wrong: "void underneath(above ?? planned);",
    caughtBy: {
      file: "tests/gate/shared-records.test.ts",
      title: "not undone under a later one",
    },
  },
  {
    name: "undo-of-a-lost-call",
    what: "the intent to undo is written although the store does not have the call to be undone as finished",
    file: "src/store/operations.ts",
    right:
      'const undone = intent.undoOf === "" ? [] : [requireStep(OPERATIONS, intent.undoOf, FINISHED)];',
    wrong:
      'const undone = intent.undoOf === "never" ? [requireStep(OPERATIONS, "never", FINISHED)] : [];',
    caughtBy: {
      file: "tests/store/memory.test.ts",
      title: "the intent to undo a call needs that call finished and not undone",
    },
  },
  {
    name: "undone-is-done",
    what: "a keyed call that was rolled back still answers done",
    file: "src/gate/answers.ts",
    right: 'return { answer: "failed", text: UNDONE, operationId };',
    wrong: 'return { answer: "done", text, operationId, truncated, storedPath };',
    caughtBy: { file: "tests/gate/undone-answers.test.ts", title: "D6" },
  },
  {
    name: "blocked-call-not-undone",
    what: "a rollback skips a call that failed after its effect",
    file: "src/gate/rollback.ts",
    right: "return operation.undo === undefined\n",
    wrong: 'return operation.status === "failed"\n',
    caughtBy: { file: "tests/gate/undone-answers.test.ts", title: "B4" },
  },
  {
    name: "half-written-is-safe",
    what: "an error of the store after a proposal was stored says that it is safe to repeat",
    file: "src/gate/propose.ts",
    right: "if (!(error instanceof SallyportError) || !isStoreFailure(error)) return error;",
    wrong: "if (!(error instanceof SallyportError) || isStoreFailure(error)) return error;",
    caughtBy: { file: "tests/gate/half-written.test.ts", title: "F1" },
  },
  {
    name: "delete-loses-hidden-columns",
    what: "a row is deleted whose undeclared columns cannot be put back",
    file: "src/tools/builtin/sql-rows.ts",
    right: "if (Object.keys(whole).some((column) => !declared.has(column.toLowerCase()))) {",
    wrong: "if (declared.size === 0 && Object.keys(whole).length > 0) {",
    caughtBy: { file: "tests/gate/sql-rows.test.ts", title: "could not be undone exactly" },
  },
  {
    name: "undo-of-insert-ignores-version",
    what: "the undo of an insert removes a row that somebody changed since",
    file: "src/tools/builtin/sql-rows.ts",
    right: "if (before[table.version] !== version) throw changedMeanwhile(table, before, version);",
    wrong:
      "if (before[table.version] === undefined) throw changedMeanwhile(table, before, version);",
    caughtBy: { file: "tests/gate/sql-rows.test.ts", title: "between the last look" },
  },
];
