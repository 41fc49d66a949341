import { programName, type Token } from "./token.ts";

/**
 * Programs that run whatever their words, files or input say, in ways we do not take apart. No rule can allow them, a
 * person is asked each time.
 */
// biome-ignore format: a table
const OPAQUE: ReadonlySet<string> = new Set([
  // the shell's own ways to run text or to change what later words mean
  "eval", "source", ".", "trap", "alias", "unalias", "bind", "complete", "compgen", "enable", "hash", "let", "declare",
  "typeset", "local", "readonly", "read", "unset", "mapfile", "readarray", "getopts", "shopt", "history", "fc", "coproc",
  "ulimit", "umask", "export", "pushd", "popd",
  // programs whose words are a command line
  "su", "runuser", "pkexec", "run0", "chroot", "unshare", "nsenter", "capsh", "setpriv", "flock", "systemd-run",
  "systemd-nspawn", "start-stop-daemon", "run-parts", "ssh", "mosh", "rsh", "telnet", "parallel", "rush", "watch",
  "script", "expect", "unbuffer", "entr", "strace", "ltrace", "gdb", "lldb", "perf", "valgrind", "screen", "tmux",
  "dtach", "rlwrap", "setarch", "linux32", "linux64", "i386", "x86_64", "taskset", "chrt", "numactl", "cgexec",
  "firejail", "bwrap", "proot", "fakeroot", "fakechroot", "xvfb-run", "dbus-launch", "dbus-run-session", "nsexec",
  "socat", "ncat", "nc", "netcat", "at", "batch", "crontab", "ed", "ex", "vi", "vim", "nvim", "view", "emacs", "nano",
  "less", "more", "man", "pg", "osascript", "wsl", "wine", "mintty", "xterm", "gnome-terminal", "ip", "nmap",
]);

/** Subcommands that run a program named behind them: a rule for one must spell out every word. */
// biome-ignore format: a table
const LITERAL_ONLY: readonly (readonly string[])[] = [
  ["npx"], ["bunx"], ["uvx"], ["pipx"], ["npm", "exec"], ["npm", "x"], ["npm", "install"], ["npm", "i"], ["pnpm", "exec"],
  ["pnpm", "dlx"], ["yarn", "exec"], ["yarn", "dlx"], ["bun", "x"], ["deno", "run"], ["uv", "run"], ["poetry", "run"],
  ["pipenv", "run"], ["hatch", "run"], ["conda", "run"], ["bundle", "exec"], ["mise", "exec"], ["asdf", "exec"],
  ["direnv", "exec"], ["doppler", "run"], ["op", "run"], ["docker", "run"], ["docker", "exec"], ["docker", "compose"],
  ["podman", "run"], ["podman", "exec"], ["kubectl", "exec"], ["kubectl", "run"], ["kubectl", "debug"],
  ["git", "bisect"], ["git", "submodule"], ["git", "filter-branch"], ["git", "config"], ["git", "difftool"],
  ["git", "mergetool"], ["git", "clone"], ["git", "fetch"], ["git", "pull"], ["git", "ls-remote"], ["git", "remote"],
  ["go", "run"], ["go", "generate"], ["cargo", "run"], ["make"], ["just"], ["rake"], ["ansible"], ["vagrant", "ssh"],
  ["python"], ["python2"], ["python3"], ["node"], ["deno"], ["bun"], ["perl"], ["ruby"], ["php"], ["lua"], ["rscript"],
  ["tclsh"], ["java"], ["psql"], ["mysql"], ["sqlite3"], ["mongosh"], ["redis-cli"], ["aws"], ["gcloud"], ["az"],
];

export function isOpaque(name: string): boolean {
  // The dynamic loader runs the program that is its argument.
  return OPAQUE.has(name) || /^ld(-linux.*|-musl.*|)\.so(\.\d+)?$/.test(name);
}

/** True when the command starts, apart from options, with words that carry another program. */
export function carriesLiterally(words: readonly Token[]): boolean {
  const name = programName(words[0]).replace(/(?<=\D)[\d.]+$/, "");
  const operands = words.slice(1).filter(({ text }) => !text.startsWith("-"));
  return LITERAL_ONLY.some(
    ([program, ...rest]) =>
      (program === name || program === programName(words[0])) &&
      rest.every((word) => operands.some(({ text }) => text === word)),
  );
}
