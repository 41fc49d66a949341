import type { Bug } from "./bug.ts";

/** Mistakes about files and folders: the judged place, working folders, previews. */
export const FILES_BUGS: readonly Bug[] = [
  {
    name: "judged-place-ignored",
    what: "file tools open whatever a path leads to when they run, not what the gate judged",
    file: "src/tools/builtin/file-place.ts",
    right: "if (places === undefined || places[index] === found) return found;",
    wrong: "if (places === undefined || index >= 0) return found;",
    caughtBy: {
      file: "tests/gate/judged-places.test.ts",
      title: "after the gate looked is not followed",
    },
  },
  {
    name: "dry-run-of-another-place",
    what: "a dry run looks at whatever a path leads to by now, judged or not",
    file: "src/gate/show.ts",
    right: "const facts = { sessionId, callId, input, workingDirectory, places };",
    wrong:
      "const facts = { sessionId, callId, input, workingDirectory, places: places && undefined };",
    caughtBy: { file: "tests/gate/judged-places.test.ts", title: "a dry run shows nothing" },
  },
  {
    name: "recovery-follows-link",
    what: "a recovered call is executed where a link leads by now",
    file: "src/gate/recover.ts",
    right:
      'if (isLinked) throw new Error("a path of the call leads to a place that was not allowed");',
    wrong: 'if (isLinked && takesBack) throw new Error("a path leads elsewhere");',
    caughtBy: { file: "tests/gate/judged-places.test.ts", title: "a recovered call" },
  },
  {
    name: "any-session-folder",
    what: "over HTTP a session opens in whatever folder the agent names",
    file: "src/gate/judge.ts",
    right: "if (found !== undefined && isBelow(found, await resolveFolder(one))) return found;",
    wrong: "if (found !== undefined) return found;",
    caughtBy: { file: "tests/http/session-folders.test.ts", title: "over HTTP a session opens" },
  },
  {
    name: "rule-in-any-folder",
    what: "a rule for a command holds in every folder",
    file: "src/policy/policy.ts",
    right: "return here.length === folder.length && isWithin(here, folder);",
    wrong: "return here.length >= 0;",
    caughtBy: { file: "tests/http/session-folders.test.ts", title: "in its own folder" },
  },
  {
    name: "rule-after-cd",
    what: "a rule for a command holds after the command changed the folder",
    file: "src/policy/policy.ts",
    right: "if (moves && (part.wrappers.length > 0 || !changesFolder(part.words))) return false;",
    wrong: "",
    caughtBy: { file: "tests/http/session-folders.test.ts", title: "moves to another folder" },
  },
  {
    name: "child-folder-anywhere",
    what: "a sub-agent gets whatever folder its parent names",
    file: "src/delegation/delegations.ts",
    right: "if (found !== undefined && outer !== undefined && isInside(found, [outer])) {",
    wrong: "if (found !== undefined && outer !== undefined) {",
    caughtBy: { file: "tests/http/session-folders.test.ts", title: "a sub-agent gets a folder" },
  },
  {
    name: "script-not-in-version",
    what: "an approval of a command does not look at the scripts it names",
    file: "src/tools/builtin/command-files.ts",
    right: "const seen = files.map(({ place, version }) => [place, version]);",
    wrong: "const seen = files.map(({ place }) => [place]);",
    caughtBy: { file: "tests/gate/scripts-in-review.test.ts", title: "changed after the yes" },
  },
  {
    name: "hidden-content-reversible",
    what: "content that nobody can inspect keeps the class of its tool",
    file: "src/gate/show.ts",
    right: 'return isHidden ? "irreversible" : safetyClassOf(tool);',
    wrong: "return safetyClassOf(tool);",
    caughtBy: { file: "tests/gate/content-shown.test.ts", title: "cannot be shown says so" },
  },
  {
    name: "restore-by-agents",
    what: "an agent calls files.restore by itself",
    file: "src/gate/judge.ts",
    right: "if (tool.undoOnly === true && !isUndo) return onlyAsUndo(tool);",
    wrong: "",
    caughtBy: {
      file: "tests/gate/judged-places.test.ts",
      title: "files.restore is refused as a call",
    },
  },
  {
    name: "detached-process-stays",
    what: "a process that left the command's group is not ended",
    file: "src/tools/builtin/shell-run.ts",
    right: 'if (process.platform !== "linux") return;',
    wrong: 'if (process.platform !== "plan9") return;',
    caughtBy: { file: "tests/gate/left-behind.test.ts", title: "without our pipes" },
  },
  {
    name: "found-files-not-judged",
    what: "a search opens whatever it finds below an allowed folder",
    file: "src/gate/judge.ts",
    right: 'return isApproved || answer === "review" ? "allow" : answer;',
    wrong: 'return isApproved || answer !== "allow" ? "allow" : answer;',
    caughtBy: {
      file: "tests/gate/find-files.test.ts",
      title: "find what may be read and nothing else",
    },
  },
  {
    name: "approved-folder-opens-secrets",
    what: "a person who approved a folder approved the secrets in it",
    file: "src/gate/judge.ts",
    right:
      'const isApproved = answer === "ask" && findings.every(({ policy }) => approved.has(policy));',
    wrong: 'const isApproved = answer === "ask" && approved.size > 0;',
    caughtBy: {
      file: "tests/gate/find-files.test.ts",
      title: "did not approve the secrets in it",
    },
  },
];
