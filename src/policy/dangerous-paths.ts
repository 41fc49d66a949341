import type { GateAnswer } from "../model/finding.ts";
import { type Access, deny, joinAnswers, shown } from "./answers.ts";
import { isWithin, matchPath, matchText, segmentsOf } from "./patterns.ts";
import type { SeenCall } from "./seen-call.ts";
import { resolveIn } from "./shell/folder.ts";
import { type ShellScript, UNKNOWN } from "./shell/script.ts";

/** Places where a file has effects beyond its content. Data, so that an operator can read it and pass another list. */
export interface DangerousPath {
  readonly id: string;
  /** Patterns of whole names, compared case-insensitively; a leading `**` matches anywhere. */
  readonly patterns: readonly string[];
  /** Whether writing is dangerous, or reading as well. */
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

/** Files in `/dev` that accept any write and store nothing. */
const HARMLESS_DEVICES = new Set(["null", "stdout", "stderr", "tty", "zero", "full"]);

/** All entries that match this path and access, ignoring case. */
export function dangersOf(
  segments: readonly string[],
  access: Access,
  table: readonly DangerousPath[] = DANGEROUS_PATHS,
): readonly DangerousPath[] {
  if (isHarmlessDevice(segments)) return [];
  // Some file systems ignore case; ignoring it here can only refuse more.
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

/** Parsing the patterns costs more than comparing them, and one table serves thousands of paths. */
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

const POLICY = "danger.gate-files";
/** The default name of the data folder. Protected everywhere, also when it belongs to another server. */
const DATA_FOLDER = ".sallyport";
/** The short name that Windows gives the same folder. */
const SHORT_NAME = /^sallyp~\d+$/;

export interface ProtectedState {
  /** Absolute paths of folders and files that hold the gate's own records, tokens and keys. */
  readonly protectedPaths?: readonly string[];
  readonly workingDirectory?: string;
}

/**
 * The gate's own files: tokens, keys, the store, the anchors. A call may neither read nor write them, whatever its
 * permission class. This is a hard denial: no rule, grant or person overrides it.
 */
export function checkProtected(call: SeenCall, state: ProtectedState): GateAnswer | undefined {
  const folders = (state.protectedPaths ?? []).flatMap((path) => {
    const segments = segmentsOf(path);
    return segments === undefined ? [] : [segments.map(foldedName)];
  });
  const refused = [
    ...call.files
      .filter(({ path, segments }) => isProtected(segments, folders) || namesDataFolder(path))
      .map(({ resolved }) => refusal(`The file ${shown(resolved)}`)),
    ...(call.scripts.some((script) => touches(script, folders, state.workingDirectory)) ||
    // Includes places that the parser skips: comments, here-documents, braces.
    call.facts.resources.some((one) => one.kind === "command" && namesDataFolder(one.command))
      ? [refusal("The command")]
      : []),
  ];
  return refused.length === 0 ? undefined : joinAnswers(refused);
}

function refusal(what: string): GateAnswer {
  return deny(
    POLICY,
    `${what} is refused: it reaches the gate's own records and keys. Nothing was executed. No rule or person can allow it; leave these files alone.`,
  );
}

function isProtected(
  segments: readonly string[],
  folders: readonly (readonly string[])[],
): boolean {
  const names = segments.map(foldedName);
  return names.some(isDataFolder) || folders.some((folder) => isWithin(names, folder));
}

function isDataFolder(name: string): boolean {
  return name === DATA_FOLDER || SHORT_NAME.test(name);
}

/**
 * Folds a name as the most lenient file system compares it: ignoring case, compatibility forms, invisible characters,
 * trailing dots and spaces (Windows) and stream names (`:`, NTFS). Folding can only refuse more.
 */
function foldedName(name: string): string {
  const visible = name.normalize("NFKC").replaceAll(/\p{Default_Ignorable_Code_Point}/gu, "");
  const [plain = ""] = visible.toLowerCase().split(":", 1);
  const end = plain.replaceAll(/[. ]/g, " ").trimEnd().length;
  // A drive (`C:`) keeps its letter; a name of dots only is unchanged.
  return end === 0 ? visible.toLowerCase() : plain.slice(0, end);
}

/** Matches a whole name inside any text: `HEAD:.sallyport/x`, `open('.sallyport/x')`. */
const IN_TEXT = /(?<![\p{L}\p{N}_-])\.sallyport[. ]*(?![\p{L}\p{N}_.-])/u;

function namesDataFolder(text: string): boolean {
  const folded = text
    .normalize("NFKC")
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, "")
    .toLowerCase();
  return IN_TEXT.test(folded) || folded.split(/[\\/]/).some((name) => SHORT_NAME.test(name));
}

/** Checks every word, including those of wrappers and redirections, after quote removal. */
function touches(
  { parts, redirects }: ShellScript,
  folders: readonly (readonly string[])[],
  workingDirectory: string | undefined,
): boolean {
  const start = workingDirectory === "" ? undefined : workingDirectory;
  const reaches = (text: string, folder: string | undefined) =>
    namesDataFolder(text) ||
    pathsIn(text).some((path) => mayReach(placeOf(path, folder, start), folders));
  return (
    // A command that starts inside such a folder needs no path.
    (start !== undefined && isProtected(start.split("/"), folders)) ||
    redirects.some(({ target, folder }) => reaches(target.text, folder)) ||
    parts.some(({ words, wrappers, folder }) =>
      [...wrappers, words].some((layer) => layer.some(({ text }) => reaches(text, folder))),
    )
  );
}

/** The word itself and the parts of it after `=`, `:`, `@`, `,` or an option letter. */
function pathsIn(text: string): readonly string[] {
  const inside = text.split(/[=:@,]/);
  const behindOption = /^-[A-Za-z]+(?=[/.~])/.exec(text)?.[0];
  return behindOption === undefined
    ? [text, ...inside]
    : [text, ...inside, text.slice(behindOption.length)];
}

/** The parser does not know the folder in which a script starts and leaves a null character in its place. */
function placeOf(path: string, folder: string | undefined, start: string | undefined): string {
  if (start === undefined) return resolveIn(folder, path);
  const from = folder?.startsWith(`${UNKNOWN}/`) ? `${start}${folder.slice(1)}` : folder;
  return resolveIn(from ?? start, path);
}

/**
 * A wildcard may stand for any name it matches. A null character, which only the shell can resolve, matches nothing
 * here.
 */
function mayReach(place: string, folders: readonly (readonly string[])[]): boolean {
  const names = place.split("/").map((name) => (isPattern(name) ? name : foldedName(name)));
  const isNamed = (name: string) => isPattern(name) && matchesName(name, DATA_FOLDER);
  if (names.some((name) => isDataFolder(name) || isNamed(name))) return true;
  const [root = "", ...rest] = names;
  // Only the shell knows the start of the path (`~`, `$HOME`, the tool's own folder), so its end is compared.
  const least = root.startsWith("~") ? 1 : root.includes(UNKNOWN) ? 2 : undefined;
  if (least === undefined) return folders.some((folder) => startsWith(names, folder));
  return folders.some((folder) => tailsOf(folder, least).some((tail) => startsWith(rest, tail)));
}

function tailsOf(folder: readonly string[], least: number): readonly (readonly string[])[] {
  return folder.flatMap((_, from) =>
    from > 0 && folder.length - from >= least ? [folder.slice(from)] : [],
  );
}

function startsWith(names: readonly string[], folder: readonly string[]): boolean {
  return (
    folder.length <= names.length &&
    folder.every((name, index) => {
      const given = names[index] ?? "";
      return given === name || (isPattern(given) && matchesName(given, name));
    })
  );
}

function isPattern(name: string): boolean {
  return /[*?]|\[[^\]]+\]|\{[^}]*,/.test(name);
}

/** `?`, sets and braces match any text: a pattern is refused rather than expanded. A bare `*` skips hidden names. */
function matchesName(pattern: string, name: string): boolean {
  const loose = pattern.toLowerCase().replaceAll(/\[[^\]]*\]|\{[^}]*\}|[?[\]{}]/g, "*");
  if (name.startsWith(".") && !pattern.startsWith(".") && !/^[{[]/.test(pattern)) return false;
  return matchText(name, loose);
}
