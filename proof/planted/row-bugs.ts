import type { Bug } from "./bug.ts";

/** One mistake for each row of docs/spec whose tests once looked at inner parts alone. */
export const ROW_BUGS: readonly Bug[] = [
  {
    name: "failed-decision-stays-open",
    what: "a decision whose executor reports a failure is closed as executed, so that its part counts as the whole",
    file: "src/gate/permit.ts",
    right: 'return report.outcome === "executed"\n    ? executedMove(id, report.proof, by)',
    wrong:
      'return report.outcome !== "unknown"\n    ? executedMove(id, report.proof ?? { rows: 1 }, by)',
    caughtBy: { file: "tests/http/staging.test.ts", title: "touches three tables is one record" },
  },
  {
    name: "resumed-run-calls-anew",
    what: "a run that is resumed from an older state makes its call under another key, and it is executed again",
    file: "src/flow/nodes.ts",
    right: "    callId: id,\n    key: id,\n",
    wrong: "    callId: id + run.revision,\n    key: id + run.revision,\n",
    caughtBy: { file: "tests/flow/port-flow.test.ts", title: "a saved state executes, repeats" },
  },
  {
    name: "question-as-confirmation",
    what: "a question of the model interrupts the flow as the confirmation of a call",
    file: "src/flow/runtime-state.ts",
    right: 'return openInteraction(state, opening, { type: "ask_user" });',
    wrong: 'return openInteraction(state, opening, { type: "confirm" });',
    caughtBy: {
      file: "tests/flow/port-flow.test.ts",
      title: "interrupt the flow and are no tools",
    },
  },
  {
    name: "conflict-retried-unasked",
    what: "sql.update_row meets a conflict and writes over the newer row without being told to retry",
    file: "src/tools/builtin/sql-update-row.ts",
    right: "{ retryBudget = 0, ...options }",
    wrong: "{ retryBudget = 1, ...options }",
    caughtBy: { file: "tests/gate/sql-rows.test.ts", title: "reported without a retry" },
  },
  {
    name: "story-without-sub-agents",
    what: "the story of a session leaves out what its sub-agents did",
    file: "src/audit/trail.ts",
    right: 'if (type === "delegation.started") sessions.add(subject);',
    wrong: 'if (type === "delegation.began") sessions.add(subject);',
    caughtBy: { file: "tests/whole/one-decision.test.ts", title: "all of it is one story" },
  },
  {
    name: "level-2-not-undone",
    what: "a tool with a dry run takes no part in a rollback",
    file: "src/tools/tool.ts",
    right: 'return typeof tool.generateUndo === "function";',
    wrong: 'return typeof tool.generateUndo === "function" && tool.dryRun === undefined;',
    caughtBy: { file: "tests/gate/tool-safety.test.ts", title: "tools of level 2 are tried" },
  },
  {
    name: "files-have-no-dry-run",
    what: "a tool that names a file is not tried before the person decides",
    file: "src/gate/show.ts",
    right: "const dryRun = await previewCall(tool, call);",
    wrong:
      'const dryRun = tool.name.startsWith("files.") ? undefined : await previewCall(tool, call);',
    caughtBy: { file: "tests/gate/tool-safety.test.ts", title: "declare their safety by the same" },
  },
  {
    name: "preview-executes",
    what: "a preview executes the tool",
    file: "src/tools/tool-call.ts",
    right: "return tool.dryRun({ ...call, context:",
    wrong: "await tool.execute(call);\n  return tool.dryRun({ ...call, context:",
    caughtBy: { file: "tests/gate/tool-safety.test.ts", title: "it never executes" },
  },
  {
    name: "doc-may-write-nothing",
    what: "the role for documents has another default permission than the documented one",
    file: "src/model/delegation.ts",
    right: '  doc: "docs-and-current-phase-artifact",\n',
    wrong: '  doc: "none",\n',
    caughtBy: {
      file: "tests/delegation/roles.test.ts",
      title: "stored with its default permission",
    },
  },
  {
    name: "task-list-ends-at-a-page",
    what: "the list of tasks reads pages that are shorter than those it expects, and ends after the first",
    file: "src/store/engine-tasks.ts",
    right: "await engine.find(table, { afterOrd, limit: PAGE });\n    for",
    wrong: "await engine.find(table, { afterOrd, limit: 1_000 });\n    for",
    caughtBy: { file: "tests/tasks/whole-list.test.ts", title: "beyond a page" },
  },
];
