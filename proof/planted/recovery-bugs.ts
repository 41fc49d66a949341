import type { Bug } from "./bug.ts";

/** Mistakes about recovery, lost outcomes and what others staged. */
export const RECOVERY_BUGS: readonly Bug[] = [
  {
    name: "recovery-first-page",
    what: "recovery looks at one page and never at what is behind it",
    file: "src/gate/recover.ts",
    right: "if (next !== undefined) after = next;",
    wrong: "if (next !== undefined) return { place: 0, ended: true };",
    caughtBy: {
      file: "tests/gate/recovery-pages.test.ts",
      title: "calls whose tool is elsewhere",
    },
  },
  {
    name: "metadata-as-facts",
    what: "the metadata of another platform is read as the gate's own facts",
    file: "src/gate/show.ts",
    right: 'return origin === "port" ? metadata : {};',
    wrong: "void origin; return metadata;",
    caughtBy: {
      file: "tests/gate/outside-metadata.test.ts",
      title: "a list of sessions names nobody",
    },
  },
  {
    name: "outside-as-port",
    what: "what another platform stages is marked as the gate's own",
    file: "src/store/decisions.ts",
    right: 'unasked: draft.origin === "port" ? NOW : null,',
    wrong: "unasked: NOW,",
    caughtBy: { file: "tests/gate/outside-metadata.test.ts", title: "recovery leaves decisions" },
  },
  {
    name: "lost-outcome-expires",
    what: "a question about a lost outcome that nobody answers is closed as a no",
    file: "src/gate/upkeep.ts",
    right: 'if (type !== "connection_lost") {',
    wrong: 'if (type !== ("never" as string)) {',
    caughtBy: { file: "tests/interactions/lost-for-long.test.ts", title: "SH11" },
  },
  {
    name: "lost-outcome-too-late",
    what: "what a person found out about a lost call does not count after the deadline",
    file: "src/gate/decide.ts",
    right: "{ hash, assigned_to: question.assignedTo, ...stillAsked(question) },",
    wrong:
      "{ hash, assigned_to: question.assignedTo, ...stillAsked(question), due_at: { atLeast: { nowPlusMs: 0 } } },",
    caughtBy: { file: "tests/interactions/lost-for-long.test.ts", title: "not asked again yet" },
  },
  {
    name: "damaged-row-hides-all",
    what: "one record that cannot be read makes every list fail",
    file: "src/store/tenant-engine.ts",
    right: 'if (!isSallyportError(error, "damaged_record")) throw error;',
    wrong: "if (isSallyportError(error)) throw error;",
    caughtBy: { file: "tests/gate/recovery-pages.test.ts", title: "B5a" },
  },
  {
    name: "recovery-one-at-a-time",
    what: "recovery waits for one target before it turns to the next session",
    file: "src/gate/recover.ts",
    right: "const AT_ONCE = 8;",
    wrong: "const AT_ONCE = 1;",
    caughtBy: { file: "tests/gate/upkeep.test.ts", title: "SM7" },
  },
  {
    name: "upkeep-in-one-line",
    what: "deadlines wait until recovery has come to its end",
    file: "src/gate/upkeep.ts",
    right: `tell({ recovered: await gate.recover() })),
    startLoop(options, async () => tell({ swept: await gate.interactions.sweep() })),`,
    wrong: "tell({ recovered: await gate.recover(), swept: await gate.interactions.sweep() })),",
    caughtBy: { file: "tests/gate/upkeep.test.ts", title: "SM7" },
  },
];
