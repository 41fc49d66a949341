import type { Access } from "./call-facts.ts";
import { matchPath } from "./path-pattern.ts";

/** Places where a file has power beyond its content. Data, so that an operator can read it and pass another list. */
export interface DangerousPath {
  readonly id: string;
  /** Patterns by whole names, compared without regard to case; a leading `**` means anywhere. */
  readonly patterns: readonly string[];
  /** What is dangerous about it: writing, or reading as well. */
  readonly access: Access;
  readonly answer: "deny" | "ask";
  readonly reason: string;
}

// biome-ignore format: a table
export const DANGEROUS_PATHS: readonly DangerousPath[] = [
  { id: "devices", access: "write", answer: "deny", reason: "writing to a device can destroy the machine's data",
    patterns: ["/dev/**"] },
  { id: "raw-memory", access: "read", answer: "deny", reason: "it shows the memory or the secrets of processes",
    patterns: ["/dev/mem", "/dev/kmem", "/proc/kcore", "/proc/*/mem", "/proc/*/environ", "/proc/*/task/*/environ"] },
  { id: "network-devices", access: "read", answer: "deny", reason: "the shell opens a network connection for it",
    patterns: ["/dev/tcp/**", "/dev/udp/**"] },
  { id: "kernel", access: "write", answer: "deny", reason: "it controls the running system",
    patterns: ["/proc/**", "/sys/**", "/boot/**"] },
  { id: "accounts", access: "write", answer: "deny", reason: "it decides who may enter this machine",
    patterns: ["/etc/passwd*", "/etc/shadow*", "/etc/gshadow*", "/etc/group*", "/etc/sudoers", "/etc/sudoers.d/**",
      "/etc/pam.d/**", "/etc/ssh/**", "/etc/ld.so.preload", "/etc/ld.so.conf*", "/etc/profile", "/etc/profile.d/**",
      "/etc/bash.bashrc", "/etc/zsh/**", "/etc/environment"] },
  { id: "scheduled", access: "write", answer: "deny", reason: "what is written there runs later, without a gate",
    patterns: ["/etc/cron*/**", "/etc/crontab", "/var/spool/cron/**", "/etc/systemd/**", "/usr/lib/systemd/**",
      "/lib/systemd/**", "/etc/init.d/**", "/etc/rc.local", "**/.config/systemd/**", "**/.config/autostart/**",
      "**/Library/LaunchAgents/**", "**/Library/LaunchDaemons/**"] },
  { id: "shell-profile", access: "write", answer: "deny", reason: "every later shell runs what is written there",
    patterns: ["**/.bashrc", "**/.bash_profile", "**/.bash_login", "**/.bash_logout", "**/.bash_aliases", "**/.profile",
      "**/.zshrc", "**/.zshenv", "**/.zprofile", "**/.zlogin", "**/.zlogout", "**/.kshrc", "**/.cshrc", "**/.tcshrc",
      "**/.login", "**/.inputrc", "**/.envrc", "**/.xinitrc", "**/.xprofile", "**/.config/fish/**", "**/.vimrc",
      "**/.emacs", "**/.pythonrc*", "**/.Rprofile"] },
  { id: "ssh", access: "write", answer: "deny", reason: "it decides who can log in, and where to",
    patterns: ["**/.ssh/**"] },
  { id: "private-keys", access: "read", answer: "deny", reason: "private keys and passwords are kept there",
    patterns: ["**/.ssh/id_*", "**/.ssh/*_key", "**/.ssh/*.pem", "**/.gnupg/**", "/etc/shadow*", "/etc/gshadow*",
      "/etc/sudoers", "/etc/sudoers.d/**", "/etc/ssh/*_key", "**/.aws/**", "**/.azure/**", "**/.config/gcloud/**",
      "**/.kube/config", "**/.docker/config.json", "**/.netrc", "**/_netrc", "**/.pgpass", "**/.my.cnf",
      "**/.git-credentials", "**/.config/gh/hosts.yml", "**/.npmrc", "**/.pypirc", "**/.vault-token",
      "**/.terraform.d/credentials*", "**/.password-store/**", "**/Library/Keychains/**"] },
  { id: "environment-files", access: "read", answer: "ask", reason: "such files usually hold secrets",
    patterns: ["**/.env", "**/.env.*", "**/*.pem", "**/*.p12", "**/*.pfx", "**/*.key", "**/*.kdbx"] },
  { id: "git-hooks", access: "write", answer: "deny", reason: "git runs programs that are named there",
    patterns: ["**/.git/hooks/**", "**/.git/config*", "**/.git/info/attributes", "**/.gitconfig", "**/.config/git/**",
      "**/.husky/**"] },
  { id: "agent-settings", access: "write", answer: "ask", reason: "it tells agents and editors what they may run",
    patterns: ["**/.claude/**", "**/.mcp.json", "**/.cursor/**", "**/.vscode/**", "**/.idea/**", "**/.codex/**",
      "**/AGENTS.md", "**/CLAUDE.md", "**/.github/workflows/**", "**/.gitlab-ci.yml"] },
  { id: "system", access: "write", answer: "ask", reason: "the operating system's own files are there",
    patterns: ["/etc/**", "/usr/**", "/bin/**", "/sbin/**", "/lib/**", "/lib32/**", "/lib64/**", "/opt/**", "/root/**",
      "/var/lib/**", "/var/log/**", "/var/run/**", "/run/**", "/System/**", "/Library/**", "/Applications/**",
      "/private/etc/**", "/private/var/**", "C:/Windows/**", "C:/Program Files/**", "C:/Program Files (x86)/**",
      "C:/ProgramData/**"] },
];

/** Files in `/dev` that take anything and keep nothing. */
const HARMLESS_DEVICES = new Set(["null", "stdout", "stderr", "tty", "zero", "full"]);

/** Every entry that this path falls under for this access, however its letters are cased. */
export function dangersOf(
  segments: readonly string[],
  access: Access,
  table: readonly DangerousPath[] = DANGEROUS_PATHS,
): readonly DangerousPath[] {
  if (isHarmlessDevice(segments)) return [];
  // File systems that ignore case exist; here ignoring it can only refuse more.
  const path = segments.map((name) => name.toLowerCase());
  return compiled(table)
    .filter(({ entry, patterns }) => {
      const matters = access === "write" || entry.access === "read";
      return matters && patterns.some((pattern) => matchPath(path, pattern));
    })
    .map(({ entry }) => entry);
}

interface Compiled {
  readonly entry: DangerousPath;
  readonly patterns: readonly (readonly string[])[];
}

/** Taking the patterns apart costs more than comparing them, and there is one table for thousands of paths. */
const known = new WeakMap<readonly DangerousPath[], readonly Compiled[]>();

function compiled(table: readonly DangerousPath[]): readonly Compiled[] {
  const found = known.get(table);
  if (found !== undefined) return found;
  const made = table.map((entry) => ({
    entry,
    patterns: entry.patterns.map((pattern) => pattern.toLowerCase().split("/")),
  }));
  known.set(table, made);
  return made;
}

function isHarmlessDevice(segments: readonly string[]): boolean {
  const [root, folder, name] = segments;
  return (
    segments.length === 3 && root === "" && folder === "dev" && HARMLESS_DEVICES.has(name ?? "")
  );
}
