import { programName, type Token } from "./token.ts";

/**
 * Programs that run whatever their words, files or input say, in ways we do not take apart. No rule can allow them, a
 * person is asked each time.
 */
// biome-ignore format: a table
const OPAQUE: ReadonlySet<string> = new Set([
  // the shell's own ways to run text or to change what later words mean
  "eval", "source", ".", "trap", "alias", "unalias", "bind", "complete", "compgen", "enable", "hash", "let", "declare",
  "typeset", "local", "readonly", "export", "read", "unset", "mapfile", "readarray", "getopts", "shopt", "history", "fc",
  "pushd", "popd", "jobs", "compopt",
  // programs whose words are a command line
  "su", "sg", "newgrp", "runuser", "pkexec", "run0", "chroot", "unshare", "nsenter", "capsh", "setpriv", "flock", "systemd-run",
  "systemd-nspawn", "start-stop-daemon", "run-parts", "ssh", "mosh", "rsh", "telnet", "parallel", "rush", "watch",
  "script", "expect", "unbuffer", "entr", "strace", "ltrace", "gdb", "lldb", "perf", "valgrind", "screen", "tmux",
  "dtach", "rlwrap", "setarch", "linux32", "linux64", "i386", "x86_64", "taskset", "chrt", "numactl", "cgexec",
  "firejail", "bwrap", "proot", "fakeroot", "fakechroot", "xvfb-run", "dbus-launch", "dbus-run-session", "socat", "ncat",
  "nc", "netcat", "at", "batch", "crontab", "ed", "ex", "vi", "vim", "nvim", "view", "emacs", "nano", "less", "more",
  "man", "osascript", "wsl", "wine", "xterm", "gnome-terminal",
]);

/** Programs whose words or subcommands carry code or another program: a rule for one must spell out every word. */
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

/** Interpreters: without a file they run what they read. */
// biome-ignore format: a table
const INTERPRETERS: ReadonlySet<string> = new Set([
  "python", "pypy", "node", "bun", "deno", "perl", "ruby", "php", "lua", "rscript", "tclsh", "irb", "ghci", "scala",
  "groovy", "jshell",
]);

/** Clients and calculators: what they are fed is always code. */
// biome-ignore format: a table
const READS_CODE: ReadonlySet<string> = new Set([
  "psql", "mysql", "mariadb", "sqlite3", "sqlite", "mongosh", "redis-cli", "sqlcmd", "bc", "dc", "m4",
]);

export function isOpaque(name: string): boolean {
  // The dynamic loader runs the program that is its argument.
  return OPAQUE.has(name) || /^ld(-linux.*|-musl.*|)\.so(\.\d+)?$/.test(name);
}

/** True when its input would be code: an interpreter without a file, a client that is fed. */
export function readsCode(words: readonly Token[], isFed: boolean): boolean {
  const name = withoutVersion(programName(words[0]));
  if (isFed && (READS_CODE.has(name) || READS_CODE.has(programName(words[0])))) return true;
  if (!INTERPRETERS.has(name)) return false;
  const rest = words.slice(1).map(({ text }) => text);
  const onlySays = rest.some((text) => /^(-V|-v|--version|--help)$/.test(text));
  return !onlySays && rest.every((text) => text.startsWith("-"));
}

/** True when the command carries another program or code, so that wildcards must not stand for it. */
export function carriesLiterally(words: readonly Token[]): boolean {
  const name = programName(words[0]);
  const operands = words.slice(1).filter(({ text }) => !text.startsWith("-"));
  return LITERAL_ONLY.some(
    ([program, ...rest]) =>
      (program === name || program === withoutVersion(name)) &&
      rest.every((word) => operands.some(({ text }) => text === word)),
  );
}

/** `python` for `python3.12`. */
function withoutVersion(name: string): string {
  return name.replace(/[\d.]+$/, "") || name;
}
