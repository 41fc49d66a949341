import { definedFields } from "../../util/defined-fields.ts";
import { programName, type ShellWord, UNKNOWN_TOKEN } from "./script.ts";

/** What follows the first word of a command. */
type Unwrapped =
  /** Nothing: the command is not a wrapper. */
  | { readonly kind: "plain" }
  /** Another command, without its wrapper. */
  | {
      readonly kind: "command";
      readonly words: readonly ShellWord[];
      readonly variables: readonly ShellWord[];
      readonly consent?: string;
    }
  /** A text that a shell will parse. */
  | { readonly kind: "script"; readonly text: ShellWord; readonly why?: string }
  /** Not parseable; the reason as the rest of a sentence. */
  | { readonly kind: "unreadable"; readonly why: string };

const PLAIN: Unwrapped = { kind: "plain" };

export function unwrap(words: readonly ShellWord[]): Unwrapped {
  const name = programName(words[0]);
  if (READABLE_SHELLS.has(name)) return shellScript(words, name);
  if (OTHER_SHELLS.has(name)) return unreadable(`${name} is a shell of its own kind`);
  if (name === "eval") return evaluated(words);
  if (isOpaque(name)) return unreadable(`"${name}" can run anything`);
  const wrapper = wrapperNamed(name);
  return wrapper === undefined ? PLAIN : withoutWrapper(words, wrapper, name);
}

function unreadable(why: string): Unwrapped {
  return { kind: "unreadable", why };
}

/** Searched for dangers but never allowed: the arguments of eval have already been expanded once. */
function evaluated(words: readonly ShellWord[]): Unwrapped {
  const text = words.slice(1).map((word) => word.text);
  const known = words.every((word) => word.known);
  return { kind: "script", text: { text: text.join(" "), known }, why: '"eval" can run anything' };
}

/** `sh -c text`, `bash -lc text`, `bash -euo pipefail -c text`; a shell that runs a file or its input is unreadable. */
function shellScript(words: readonly ShellWord[], name: string): Unwrapped {
  let hasScript = false;
  let why: string | undefined;
  for (let at = 1; at < words.length; at += 1) {
    const { text, known } = words[at] ?? UNKNOWN_TOKEN;
    // A single dash ends the options, as two do, and the text follows.
    if (!known || text === "-") break;
    if (!/^[-+]/.test(text)) {
      return hasScript
        ? definedFields({ kind: "script" as const, text: words[at] ?? UNKNOWN_TOKEN, why })
        : unreadable(`${name} would run a file; run the file itself, such as ./build.sh`);
    }
    if (/^--(login|noprofile|norc)$/.test(text)) continue;
    if (!/^[-+][abefhiklmnprtuvxBCEHPTDcoO]+$/.test(text)) break;
    if (text.startsWith("-") && text.includes("c")) hasScript = true;
    // Each o or O takes a word; more than one in a cluster is not realistic.
    if (/[oO].*[oO]/.test(text)) break;
    const isSetting = /[oO]/.test(text);
    if (!/^-[celu]*o?$/.test(text) || (isSetting && words[at + 1]?.text !== "pipefail")) {
      // -k accepts assignments after the program, -x evaluates PS4, -i reads more files: only searched for dangers.
      why = `options of ${name} change what its text means`;
    }
    if (isSetting) at += 1;
  }
  return unreadable(`what ${name} would run cannot be seen`);
}

function withoutWrapper(words: readonly ShellWord[], wrapper: Wrapper, name: string): Unwrapped {
  if (name === "command" && /^-p?[vV]$/.test(words[1]?.text ?? "")) return PLAIN;
  let at = 1;
  for (; at < words.length; at += 1) {
    const { text, known } = words[at] ?? UNKNOWN_TOKEN;
    if (!known) return unreadable(`the options of ${name} are not fixed`);
    if (text === "--") {
      at += 1;
      break;
    }
    if (!text.startsWith("-") || text === "-") break;
    const taken = wordsTaken(text, wrapper);
    if (taken === undefined) return unreadable(`the option ${text} of ${name} is not known here`);
    at += taken - 1;
  }
  const rest = words.slice(at + (wrapper.operands ?? 0));
  // Also with an empty name: `env =x ls` runs ls.
  const isVariable = ({ text }: ShellWord) => wrapper.setsVariables === true && text.includes("=");
  const start = rest.findIndex((word) => !isVariable(word));
  // Without a program a wrapper only prints something, as `env` does.
  if (start < 0) return rest.length === 0 ? PLAIN : unreadable(`${name} only sets variables`);
  return {
    kind: "command",
    words: [...rest.slice(start), ...(wrapper.addsWords === true ? [UNKNOWN_TOKEN] : [])],
    variables: rest.slice(0, start),
    ...definedFields({ consent: wrapper.consent }),
  };
}

/** True when the word means the usual program of that name: `env`, `/usr/bin/env`, but not `./env` or `ENV`. */
export function isStandard(word: ShellWord | undefined): boolean {
  const text = word?.text ?? "";
  const name = programName(word);
  return (
    text === name || (/^(\/usr(\/local)?)?\/s?bin\/[^/]+$/.test(text) && text.endsWith(`/${name}`))
  );
}

/** The number of words an option takes, including itself; undefined when it is not in the table. */
function wordsTaken(option: string, wrapper: Wrapper): number | undefined {
  if (option.startsWith("--")) {
    const [long = "", value] = option.slice(2).split(/=(.*)/s);
    if (wrapper.longFlags?.includes(long) === true && value === undefined) return 1;
    if (wrapper.longValued?.includes(long) === true) return value === undefined ? 2 : 1;
    return undefined;
  }
  if (wrapper.numberFlag === true && /^-\d+$/.test(option)) return 1;
  for (let at = 1; at < option.length; at += 1) {
    const letter = option[at] ?? "";
    if (wrapper.valued?.includes(letter) === true) return at === option.length - 1 ? 2 : 1;
    if (wrapper.flags?.includes(letter) !== true) return undefined;
  }
  return 1;
}

/**
 * Programs that run another program given after their own options. They are removed, so that the program that will run
 * is judged. Options that are not listed make the whole command unreadable, because a wrong reading is worse than an
 * ask.
 */
interface Wrapper {
  readonly names: readonly string[];
  /** Letters of options without a value. */
  readonly flags?: string;
  /** Letters of options with a value, glued or in the next word. */
  readonly valued?: string;
  readonly longFlags?: readonly string[];
  /** Long options with a value, as `--name=value` or in the next word. */
  readonly longValued?: readonly string[];
  /** Words of its own before the program, such as the duration of timeout. */
  readonly operands?: number;
  /** Takes `NAME=value` before the program. */
  readonly setsVariables?: boolean;
  /** Accepts `-10` for `-n 10`. */
  readonly numberFlag?: boolean;
  /** Adds words from its input, so the program's arguments are unknown. */
  readonly addsWords?: boolean;
  /** Why a person must agree, whatever runs inside. */
  readonly consent?: string;
}

// biome-ignore format: a table
const WRAPPERS: readonly Wrapper[] = [
  // Not -i and -u: without PATH a shell searches default folders, which may include the current one.
  { names: ["env"], flags: "0v", longFlags: ["null", "debug"], setsVariables: true },
  { names: ["nohup", "builtin"] },
  { names: ["setsid"], flags: "cfw", longFlags: ["ctty", "fork", "wait"] },
  { names: ["stdbuf"], valued: "ioe", longValued: ["input", "output", "error"] },
  { names: ["nice"], valued: "n", longValued: ["adjustment"], numberFlag: true },
  { names: ["ionice"], flags: "t", valued: "cn", longFlags: ["ignore"], longValued: ["class", "classdata"] },
  { names: ["timeout", "gtimeout"], flags: "v", valued: "ks", longFlags: ["preserve-status", "foreground", "verbose"],
    longValued: ["kill-after", "signal"], operands: 1 },
  { names: ["time"], flags: "pv", longFlags: ["portability", "verbose"] },
  { names: ["command"], flags: "p" },
  // Not -a: some programs behave differently under another name.
  { names: ["exec"] },
  { names: ["busybox", "toybox"] },
  { names: ["xargs", "gxargs"], flags: "0rtx", valued: "ILnPsadE", longFlags: ["null", "no-run-if-empty", "verbose",
    "exit", "open-tty"], longValued: ["max-args", "max-procs", "max-lines", "max-chars", "delimiter", "arg-file"], addsWords: true },
  { names: ["sudo"], flags: "AbEHknPS", valued: "CDghpRTtUur", longFlags: ["askpass", "background", "preserve-env",
    "set-home", "non-interactive", "stdin"], longValued: ["user", "group", "chdir", "host", "prompt"],
    setsVariables: true, consent: "it runs with another user's rights" },
  { names: ["doas"], flags: "n", valued: "uC", consent: "it runs with another user's rights" },
];

/** Shells whose syntax is supported; their `-c` text is parsed. */
export const READABLE_SHELLS: ReadonlySet<string> = new Set(["sh", "bash", "dash", "ash", "rbash"]);

/** Shells with a different syntax. */
// biome-ignore format: a table
export const OTHER_SHELLS: ReadonlySet<string> = new Set([
  "zsh", "ksh", "ksh93", "mksh", "pdksh", "yash", "fish", "csh", "tcsh", "elvish", "nu", "xonsh", "pwsh", "powershell",
  "powershell.exe", "cmd", "cmd.exe",
]);

const BY_NAME = new Map(
  WRAPPERS.flatMap((wrapper) => wrapper.names.map((name) => [name, wrapper] as const)),
);

export function wrapperNamed(name: string): Wrapper | undefined {
  return BY_NAME.get(name);
}

/**
 * Programs that run their arguments, files or input in ways that are not parsed here. No rule can allow them; a person
 * is asked each time.
 */
// biome-ignore format: a table
const OPAQUE: ReadonlySet<string> = new Set([
  // builtins that run text or change the meaning of later words
  "eval", "source", ".", "trap", "alias", "unalias", "bind", "complete", "compgen", "enable", "hash", "let", "declare",
  "typeset", "local", "readonly", "export", "read", "unset", "mapfile", "readarray", "getopts", "shopt", "history", "fc",
  "pushd", "popd", "jobs", "compopt",
  // programs whose arguments are a command line
  "su", "sg", "newgrp", "runuser", "pkexec", "run0", "chroot", "unshare", "nsenter", "capsh", "setpriv", "flock", "systemd-run",
  "systemd-nspawn", "start-stop-daemon", "run-parts", "ssh", "mosh", "rsh", "telnet", "parallel", "rush", "watch",
  "script", "expect", "unbuffer", "entr", "strace", "ltrace", "gdb", "lldb", "perf", "valgrind", "screen", "tmux",
  "dtach", "rlwrap", "setarch", "linux32", "linux64", "i386", "x86_64", "taskset", "chrt", "numactl", "cgexec",
  "firejail", "bwrap", "proot", "fakeroot", "fakechroot", "xvfb-run", "dbus-launch", "dbus-run-session", "socat", "ncat",
  "nc", "netcat", "at", "batch", "crontab", "ed", "ex", "vi", "vim", "nvim", "view", "emacs", "nano", "less", "more",
  "man", "osascript", "wsl", "wine", "xterm", "gnome-terminal",
]);

/** Programs whose arguments or subcommands contain code or another program: a rule must spell out every word. */
// biome-ignore format: a table
const LITERAL_ONLY: readonly (readonly string[])[] = [
  ["npx"], ["bunx"], ["uvx"], ["pipx"], ["npm", "exec"], ["npm", "x"], ["pnpm", "exec"], ["pnpm", "dlx"], ["yarn", "exec"],
  ["yarn", "dlx"], ["bun"], ["deno"], ["uv", "run"], ["poetry", "run"], ["pipenv", "run"], ["hatch", "run"],
  ["conda", "run"], ["bundle", "exec"], ["mise", "exec"], ["asdf", "exec"], ["direnv", "exec"], ["doppler", "run"],
  ["op", "run"], ["docker", "run"], ["docker", "exec"], ["podman", "run"], ["podman", "exec"], ["kubectl", "exec"],
  ["kubectl", "run"], ["kubectl", "debug"], ["git", "bisect"], ["git", "submodule"], ["git", "filter-branch"],
  ["git", "config"], ["git", "difftool"], ["git", "mergetool"], ["go", "run"], ["go", "generate"], ["make"], ["gmake"],
  ["just"], ["rake"], ["ansible"], ["vagrant", "ssh"], ["ip", "netns"], ["python"], ["pypy"], ["node"], ["perl"],
  ["ruby"], ["php"], ["lua"], ["rscript"], ["tclsh"], ["java"], ["sqlite3"], ["redis-cli"], ["awk"], ["gawk"], ["mawk"],
  ["nawk"], ["sed"], ["gsed"], ["tar"], ["gtar"], ["bsdtar"], ["dd"], ["printf"],
];

/** Interpreters: without a file they run their input. */
// biome-ignore format: a table
const INTERPRETERS: ReadonlySet<string> = new Set([
  "python", "pypy", "node", "bun", "deno", "perl", "ruby", "php", "lua", "rscript", "tclsh", "irb", "ghci", "scala",
  "groovy", "jshell",
]);

/** Clients and calculators: their input is always code. */
// biome-ignore format: a table
const READS_CODE: ReadonlySet<string> = new Set([
  "psql", "mysql", "mariadb", "sqlite3", "sqlite", "mongosh", "redis-cli", "sqlcmd", "bc", "dc", "m4",
]);

export function isOpaque(name: string): boolean {
  // The dynamic loader runs the program in its argument.
  return OPAQUE.has(name) || /^ld(-linux.*|-musl.*|)\.so(\.\d+)?$/.test(name);
}

/** True when its input would be code: an interpreter without a file, or a client with input. */
export function readsCode(words: readonly ShellWord[], isFed: boolean): boolean {
  const name = withoutVersion(programName(words[0]));
  if (isFed && (READS_CODE.has(name) || READS_CODE.has(programName(words[0])))) return true;
  if (!INTERPRETERS.has(name)) return false;
  const rest = words.slice(1).map(({ text }) => text);
  const onlySays = rest.some((text) => /^(-V|-v|--version|--help)$/.test(text));
  return !onlySays && rest.every((text) => text.startsWith("-"));
}

/** True when the command contains another program or code, which wildcards must not match. */
export function carriesLiterally(words: readonly ShellWord[]): boolean {
  const name = programName(words[0]);
  const operands = words.slice(1).filter(({ text }) => !text.startsWith("-"));
  return LITERAL_ONLY.some(
    ([program, ...rest]) =>
      (program === name || program === withoutVersion(name)) &&
      rest.every((word) => operands.some(({ text }) => text === word)),
  );
}

/** `python` for `python3.12`. By hand: looking for the end of a long row of digits with a pattern takes quadratic time. */
function withoutVersion(name: string): string {
  let end = name.length;
  while (end > 0 && "0123456789.".includes(name[end - 1] ?? "")) end -= 1;
  return end === 0 ? name : name.slice(0, end);
}

type Words = readonly string[];

/**
 * Shell builtins that join commands and do nothing by themselves: they need no rule and allow nothing. Only forms that
 * evaluate nothing are accepted; others do: `test -v 'a[$(id)]'` and `wait -p 'a[$(id)]'` run a program.
 */
const FORMS: Readonly<Record<string, (rest: Words) => boolean>> = {
  ":": (rest) => rest.every(isSafe),
  true: (rest) => rest.every(isSafe),
  false: (rest) => rest.every(isSafe),
  break: isNumber,
  continue: isNumber,
  exit: isNumber,
  return: isNumber,
  pwd: (rest) => rest.length === 0,
  wait: (rest) => rest.length === 0,
  set: isStrictness,
  command: ([option = "", ...names]) => /^-p?[vV]$/.test(option) && names.every(isSafe),
  test: isTest,
  "[": (rest) => rest.at(-1) === "]" && isTest(rest.slice(0, -1)),
  // Never glue; `-v` evaluates the name after it.
  printf: () => false,
};

/** `never` for a builtin used in a way that no rule may allow. */
type Glue = "glue" | "other" | "never";

export function glueOf(words: readonly ShellWord[]): Glue {
  const [name, ...rest] = words.map(({ text }) => text);
  const form = name !== undefined && Object.hasOwn(FORMS, name) ? FORMS[name] : undefined;
  if (form === undefined) return "other";
  if (words.every(({ known }) => known) && form(rest)) return "glue";
  return name === "printf" && !rest.some((word) => word.startsWith("-v")) ? "other" : "never";
}

/** Text that no shell evaluates, whatever the builtin does with it. */
function isSafe(word: string): boolean {
  return /^[\w.:/@+,=% -]*$/.test(word);
}

function isNumber(rest: Words): boolean {
  return rest.length === 0 || (rest.length === 1 && /^\d{1,3}$/.test(rest[0] ?? ""));
}

/** `set -e`, `set -euo pipefail`. Not `-x`: the shell evaluates PS4 for each line that it prints. */
function isStrictness(rest: Words): boolean {
  return (
    rest.length > 0 &&
    rest.every((word, index) =>
      word === "pipefail"
        ? /^[-+][eu]*o$/.test(rest[index - 1] ?? "")
        : /^[-+][eu]+$/.test(word) || (/^[-+][eu]*o$/.test(word) && rest[index + 1] === "pipefail"),
    )
  );
}

/** One test of one file or text. Numeric comparison is excluded: some shells evaluate both sides. */
function isTest(rest: Words): boolean {
  const [first = "", second = "", third] = rest[0] === "!" ? rest.slice(1) : rest;
  const length = rest[0] === "!" ? rest.length - 1 : rest.length;
  if (length === 2) return /^-[bcdefghknprsuwxzLS]$/.test(first) && isSafe(second);
  return length === 3 && /^!?=$/.test(second) && isSafe(first) && isSafe(third ?? "");
}
