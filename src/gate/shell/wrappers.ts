/**
 * Programs whose job is to run another program that stands behind their own options. They are taken off, so that what
 * is judged is what will run. Options that are not listed here make the whole command unreadable: better asked than
 * misread.
 */
export interface Wrapper {
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
  /** Adds words from its input, so the program's arguments are not known. */
  readonly addsWords?: boolean;
  /** Why a person has to agree whatever runs inside. */
  readonly consent?: string;
}

// biome-ignore format: a table
export const WRAPPERS: readonly Wrapper[] = [
  // Not -i and -u: without PATH a shell looks for programs in places of its own, the current folder among them.
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
  // Not -a: some programs are another one under another name.
  { names: ["exec"] },
  { names: ["busybox", "toybox"] },
  { names: ["xargs", "gxargs"], flags: "0rtx", valued: "ILnPsadE", longFlags: ["null", "no-run-if-empty", "verbose",
    "exit", "open-tty"], longValued: ["max-args", "max-procs", "max-lines", "max-chars", "delimiter", "arg-file"], addsWords: true },
  { names: ["sudo"], flags: "AbEHknPS", valued: "CDghpRTtUur", longFlags: ["askpass", "background", "preserve-env",
    "set-home", "non-interactive", "stdin"], longValued: ["user", "group", "chdir", "host", "prompt"],
    setsVariables: true, consent: "it runs with another user's rights" },
  { names: ["doas"], flags: "n", valued: "uC", consent: "it runs with another user's rights" },
];

/** Shells that read what we can read; their `-c` is looked into. */
export const READABLE_SHELLS: ReadonlySet<string> = new Set(["sh", "bash", "dash", "ash", "rbash"]);

/** Shells with a language of their own. */
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
