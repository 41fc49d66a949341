import type { Bug } from "./bug.ts";

const DIFFERENTIAL = "src/policy/shell/differential.test.ts";
const UNDERSTOOD = "src/policy/shell/understood.test.ts";
const THROUGH_THE_PORT = "tests/gate/shell-gate.test.ts";

/** Mistakes about the shell gate. */
export const SHELL_BUGS: readonly Bug[] = [
  {
    name: "shell-arithmetic-understood",
    what: "a script with arithmetic in it counts as understood",
    file: "src/policy/shell/read-shell.ts",
    right: '"DoubleQuoted", "Glob",',
    wrong: '"DoubleQuoted", "Glob", "ArithmeticExpansion", "ArithmeticWord",',
    caughtBy: { file: UNDERSTOOD, title: "any expansion" },
  },
  {
    name: "shell-parameters-understood",
    what: "a script with indirection, slices or prompt expansion counts as understood",
    file: "src/policy/shell/read-shell.ts",
    right: '"DoubleQuoted", "Glob",',
    wrong: '"DoubleQuoted", "Glob", "ParameterExpansion", "Transform", "Slice", "Default",',
    caughtBy: { file: UNDERSTOOD, title: "any expansion" },
  },
  {
    name: "shell-values-not-checked",
    what: "of an assignment only the name is judged",
    file: "src/policy/shell/read-command.ts",
    right: "return known && /^[\\w.:/@+-]*$/.test(text);",
    wrong: 'return known || text !== "";',
    caughtBy: { file: THROUGH_THE_PORT, title: "values in front of a command" },
  },
  {
    name: "shell-wait-with-words",
    what: "wait is glue whatever its words are",
    file: "src/policy/shell/unwrap.ts",
    right: "wait: (rest) => rest.length === 0,",
    wrong: "wait: () => true,",
    caughtBy: { file: THROUGH_THE_PORT, title: "commands run by bash" },
  },
  {
    name: "shell-bash-options",
    what: "options of a nested shell that change what its text means are not looked at",
    file: "src/policy/shell/unwrap.ts",
    right: "if (!/^-[celu]*o?$/.test(text) || (isSetting",
    wrong: 'if (text === "" || (isSetting',
    caughtBy: { file: DIFFERENTIAL, title: "wherever it stands" },
  },
  {
    name: "shell-here-document-evaluated",
    what: "the text of a here document is not looked at",
    file: "src/policy/shell/read-shell.ts",
    right: "return delimiter.quoted || !/[$`\\\\]/.test(body.text);",
    wrong: "return delimiter.text !== body.text;",
    caughtBy: { file: UNDERSTOOD, title: "here documents" },
  },
  {
    name: "shell-proc-root",
    what: "a rule lets a word through that leads to the root by /proc",
    file: "src/policy/shell/folder.ts",
    right: "  [/^proc$/i, /^(self|thread-self|\\d+)$/i],\n",
    wrong: "",
    caughtBy: { file: THROUGH_THE_PORT, title: "[M10]" },
  },
  {
    name: "shell-steps-back",
    what: "a rule lets a word through that steps back out of a link",
    file: "src/policy/shell/folder.ts",
    right: 'if (name === ".." && before !== "" && before !== "..") return true;',
    wrong: "",
    caughtBy: { file: THROUGH_THE_PORT, title: "[M10]" },
  },
  {
    name: "shell-second-cd",
    what: "a script is believed to be where its last cd wanted to go",
    file: "src/policy/shell/folder.ts",
    right: 'if (folder !== undefined) return "it changes the folder more than once";',
    wrong: "",
    caughtBy: { file: "src/policy/shell/understood.test.ts", title: "changes the folder twice" },
  },
  {
    name: "shell-denial-behind-root",
    what: "what may never be read can be read behind /proc/self/root, when a person says yes",
    file: "src/policy/shell/find-dangers.ts",
    right: "...(other === path ? [] : dangersAt(other)),",
    wrong: "",
    caughtBy: { file: THROUGH_THE_PORT, title: "[M10]" },
  },
  {
    name: "shell-denial-above",
    what: "a rule lets ../../etc/shadow through",
    file: "src/policy/shell/find-dangers.ts",
    right: "...(above === undefined ? [] : dangersAt(above).map(unsure)),",
    wrong: "",
    caughtBy: { file: THROUGH_THE_PORT, title: "[M10]" },
  },
  {
    name: "shell-odd-glue-by-rule",
    what: "a rule for test allows test -v, which evaluates its word",
    file: "src/policy/shell/read-command.ts",
    right: 'if (glue === "never")',
    wrong: 'if (glue === "never" && words.length === 0)',
    caughtBy: { file: THROUGH_THE_PORT, title: "commands run by bash" },
  },
  {
    name: "shell-two-readings",
    what: "a redirection behind which dash starts another program counts as understood",
    file: "src/policy/shell/read-command.ts",
    right: 'if (operator.includes("&"))',
    wrong: 'if (operator === "")',
    caughtBy: { file: THROUGH_THE_PORT, title: "two shells read differently" },
  },
];
