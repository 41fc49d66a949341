import type { Bug } from "./bug.ts";

const test = "tests/coding-agents/hook.test.ts";

/** Mistakes after which a coding agent runs a tool that nobody allowed, or waits for ever. */
export const HOOK_BUGS: readonly Bug[] = [
  {
    name: "hook-without-guard",
    what: "the settings start the hook without the shell that refuses for it",
    file: "src/coding-agents/guard.ts",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: source text
    right: "return `${shellWords(inner)} || ${shellWords(last)}`;",
    wrong: "return inner.length > 0 ? shellWords(words) : shellWords(last);",
    caughtBy: { file: test, title: "it says nothing: refused" },
  },
  {
    name: "hook-noise-passed-on",
    what: "the guard passes on everything that the hook printed",
    file: "src/coding-agents/guard.ts",
    right: `'[ "$a" = "$b$m$n" ] && [ "\${#b}" = "$n" ] || no "gave no valid answer";',`,
    wrong: `'[ "$a" != "" ] || no "gave no valid answer"; b="$a";',`,
    caughtBy: { file: test, title: "a line before the answer" },
  },
  {
    name: "hook-watchdog-dropped",
    what: "a hook that is stopped is waited for without end",
    file: "src/coding-agents/guard.ts",
    right: "wait $s; kill -9 $p; sleep 1; kill -9 $$; }",
    wrong: "wait $s; }",
    caughtBy: { file: test, title: "it hangs: refused" },
  },
  {
    name: "hook-deadline-dropped",
    what: "the hook waits for a server that never answers",
    file: "src/coding-agents/hook.ts",
    right: "systemTimers.after(options.deadlineMs, () =>",
    wrong: "systemTimers.after(options.deadlineMs * 100, () =>",
    caughtBy: { file: test, title: "a server that never answers" },
  },
  {
    name: "hook-reason-dropped",
    what: "a refusal has no reason, which Codex takes for no refusal",
    file: "src/coding-agents/hosts.ts",
    right: "permissionDecisionReason: answer.reason,",
    wrong: 'permissionDecisionReason: "",',
    caughtBy: { file: test, title: "allow, deny and a call that waits" },
  },
  {
    name: "hook-defers-siblings",
    what: "every call of a turn is deferred, and the host drops all but one",
    file: "src/coding-agents/hook.ts",
    right: "return oldest === undefined || oldest.id === interactionId;",
    wrong: "return oldest === undefined || interactionId !== '';",
    caughtBy: { file: test, title: "of three calls in one turn" },
  },
];
