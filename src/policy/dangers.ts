import type { GateAnswer } from "../model/finding.ts";
import { shown } from "../util/error-text.ts";
import { type Access, deny, joinAnswers, type SeenCall } from "./answers.ts";
import { isWithin, matchPath, matchText, segmentsOf } from "./patterns.ts";
import {
  behindRoot,
  programName,
  resolveIn,
  type ShellPart,
  type ShellRedirect,
  type ShellScript,
  type ShellWord,
  type StructureDanger,
  UNKNOWN,
} from "./shell/script.ts";

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
const DANGEROUS_PATHS: readonly DangerousPath[] = [
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
    ...(call.scripts.some(
      (script) =>
        touches(script, folders, state.workingDirectory) ||
        script.linked.some(({ segments }) => isProtected(segments, folders)),
    ) ||
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
    wordsIn(text).some((path) => mayReach(placeOf(path, folder, start), folders));
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
function wordsIn(text: string): readonly string[] {
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

export interface Danger {
  readonly id: string;
  readonly answer: "deny" | "ask";
  readonly reason: string;
}

/** The dangers of one program with its arguments. */
export function dangersOfPart(
  part: ShellPart,
  commands: readonly DangerousCommand[] = DANGEROUS_COMMANDS,
  paths: readonly DangerousPath[] = DANGEROUS_PATHS,
): readonly Danger[] {
  const program = programName(part.words[0]);
  const rest = part.words.slice(1);
  const known = commands.filter((danger) => isDanger(danger, program, rest, part.folder));
  const touched = rest.flatMap((_, index) =>
    pathsIn(rest[index]?.text ?? "", accessOf(program, rest, index), part.folder, paths),
  );
  return [...known, ...touched];
}

/** The dangers of a file that the shell itself opens. */
export function dangersOfRedirect(
  { target, access, folder }: ShellRedirect,
  paths: readonly DangerousPath[] = DANGEROUS_PATHS,
): readonly Danger[] {
  return pathsIn(target.text, access, folder, paths);
}

/** The dangers of a place that a word leads to through a link. Whether the program writes there is not known. */
export function dangersBehindLink(
  segments: readonly string[],
  paths: readonly DangerousPath[] = DANGEROUS_PATHS,
): readonly Danger[] {
  const writing = dangersOf(segments, "write", paths).filter(({ answer }) => answer === "deny");
  return [
    ...dangersOf(segments, "read", paths),
    ...writing.map(({ id, reason }) => ({ id, answer: "ask" as const, reason })),
  ];
}

function isDanger(
  danger: DangerousCommand,
  program: string,
  rest: readonly ShellWord[],
  folder: string | undefined,
): boolean {
  const { programs, words = [], options = [], operands, last, place } = danger;
  if (!programs.some((name) => fits(name, program))) return false;
  if (!options.every((group) => group.some((option) => hasOption(rest, option)))) return false;
  const texts = rest.map(({ text }) => text);
  if (!isInOrder(words, texts)) return false;
  if (
    operands !== undefined &&
    !texts.some((text) => operands.some((one) => isOperand(text, one)))
  ) {
    return false;
  }
  if (last !== undefined && !last.includes(texts.at(-1) ?? "")) return false;
  return place === undefined || texts.some((text) => isAt(text, place, folder));
}

/** Matches a whole word, or a prefix where the entry ends in a symbol or is a single digit (`4755`, `+main`). */
function isOperand(text: string, one: string): boolean {
  if (/^\d$/.test(one)) return text === one || (/^\d{4}$/.test(text) && text.startsWith(one));
  return /^\W|\W$/.test(one) ? text.startsWith(one) : text === one;
}

function isInOrder(words: readonly string[], texts: readonly string[]): boolean {
  let next = 0;
  for (const text of texts) if (text === words[next]) next += 1;
  return next === words.length;
}

function hasOption(rest: readonly ShellWord[], option: string): boolean {
  return rest.some(({ text }) => {
    const given = text.split("=", 1)[0] ?? "";
    if (given === option) return true;
    if (option.startsWith("--")) return given.length > 2 && option.startsWith(given);
    const isCluster = option.length === 2 && /^-[A-Za-z]+$/.test(text) && !text.startsWith("--");
    return isCluster && text.includes(option.slice(1));
  });
}

function isAt(text: string, place: Place, folder: string | undefined): boolean {
  const path = behindRoot(resolveIn(folder, pathOf(text)));
  return place === "null-device" ? path === "/dev/null" : isRoot(path);
}

/** The root, a home, the parent of all homes, system folders; also all their contents (`/*`). */
function isRoot(path: string): boolean {
  const bare = path.replace(/\/[.*]+$/, "") || "/";
  // biome-ignore format: a list of folders
  const isSystem = /^\/(bin|boot|dev|etc|home|lib\d*|opt|proc|root|sbin|srv|sys|usr|var|mnt|media|Users|System|Library|Applications|private)$/i;
  return (
    bare === "/" || bare === "~" || isSystem.test(bare) || /^\/(home|Users)\/[^/]+$/.test(bare)
  );
}

function pathsIn(
  text: string,
  access: "read" | "write",
  folder: string | undefined,
  paths: readonly DangerousPath[],
): readonly Danger[] {
  const path = resolveIn(folder, pathOf(text));
  const dangersAt = (at: string) => dangersOf(at.split("/"), access, paths);
  const other = behindRoot(path);
  const above = pathAbove(folder, pathOf(text));
  return [
    ...dangersAt(path),
    ...(other === path ? [] : dangersAt(other)),
    ...(above === undefined ? [] : dangersAt(above).map(unsure)),
  ];
}

/** The target of `../../etc/shadow` if it reaches the root; the depth of the starting folder is unknown here. */
function pathAbove(folder: string | undefined, path: string): string | undefined {
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (folder !== undefined || path.startsWith("/") || names[0] !== "..") return undefined;
  return resolveIn(undefined, `/${names.join("/")}`);
}

function unsure({ id, reason }: Danger): Danger {
  return { id, answer: "ask", reason: `${reason}, if its path leads that far up` };
}

/** The path in `of=/dev/sda`, `--output=/etc/x`, `-o/etc/x` and `@/etc/shadow`. */
function pathOf(text: string): string {
  return text.replace(/^[^/=~]*=|^-[A-Za-z]+(?=[/~])|^@/, "");
}

function fits(name: string, program: string): boolean {
  return name.endsWith("*") ? program.startsWith(name.slice(0, -1)) : name === program;
}

/** Kinds of place that an operand can name. */
type Place = "root" | "null-device";

/**
 * Commands whose harm no rule can weigh. `deny` is never overridden; `ask` requires a person each time, also where a
 * rule allows the command. Data, so that an operator can read it and pass another list.
 */
export interface DangerousCommand {
  readonly id: string;
  readonly answer: "deny" | "ask";
  /** Names of programs in lower case, or a prefix and `*`. Their folder does not matter. */
  readonly programs: readonly string[];
  /** Words that must be present in this order, ignoring options. */
  readonly words?: readonly string[];
  /**
   * One option of each group must be present. `-r` is also found in `-rf`, and abbreviations of `--recursive` match.
   */
  readonly options?: readonly (readonly string[])[];
  /** One operand must name such a place. */
  readonly place?: Place;
  /** One word must be in this list; an entry that starts or ends with a symbol matches as a prefix. */
  readonly operands?: readonly string[];
  /** The last word must be in this list. */
  readonly last?: readonly string[];
  /** The problem, as the rest of a sentence. */
  readonly reason: string;
}

const RECURSIVE = ["-r", "-R", "--recursive"];

// biome-ignore format: a table
const DANGEROUS_COMMANDS: readonly DangerousCommand[] = [
  { id: "delete-root", answer: "deny", programs: ["rm", "unlink", "shred", "srm", "trash"], options: [RECURSIVE], place: "root",
    reason: "it deletes the system or a whole home folder" },
  { id: "delete-root", answer: "deny", programs: ["rm"], options: [["--no-preserve-root"]],
    reason: "it switches off the protection of the root folder" },
  { id: "delete-root", answer: "deny", programs: ["find", "gfind"], options: [["-delete"]], place: "root",
    reason: "it deletes the system or a whole home folder" },
  { id: "delete-root", answer: "deny", programs: ["mv"], place: "null-device", reason: "what is moved there is gone" },
  { id: "move-root", answer: "deny", programs: ["mv"], place: "root", reason: "it moves the system or a whole home folder away" },
  { id: "rights-on-root", answer: "deny", programs: ["chmod", "chown", "chgrp", "setfacl", "chattr"], options: [RECURSIVE],
    place: "root", reason: "it changes the rights of the whole system or home folder" },
  { id: "format-disk", answer: "deny", programs: ["mkfs*", "mke2fs", "mkswap", "wipefs", "blkdiscard", "sgdisk", "sfdisk", "fdisk",
    "cfdisk", "gdisk", "parted", "hdparm", "badblocks", "diskutil", "format", "cryptsetup", "zpool", "lvremove", "vgremove", "pvremove"],
    reason: "it can erase disks" },
  { id: "power", answer: "deny", programs: ["shutdown", "reboot", "halt", "poweroff", "telinit"], reason: "it stops the machine" },
  { id: "power", answer: "deny", programs: ["init"], operands: ["0", "6"], reason: "it stops the machine" },
  { id: "power", answer: "deny", programs: ["systemctl", "loginctl"], operands: ["poweroff", "reboot", "halt", "kexec",
    "suspend", "hibernate", "emergency", "rescue"], reason: "it stops the machine" },
  { id: "kill-all", answer: "deny", programs: ["kill"], last: ["-1"], reason: "it ends every process it can reach" },
  { id: "kill-all", answer: "deny", programs: ["killall5"], reason: "it ends every process it can reach" },
  { id: "open-rights", answer: "ask", programs: ["chmod"], operands: ["777", "0777", "a+w", "o+w", "ugo+w", "u+s", "g+s", "+s",
    "a+rwx", "4", "2", "6"], reason: "it opens files to everybody or gives them their owner's rights" },
  { id: "reverse-shell", answer: "deny", programs: ["nc", "ncat", "netcat"], options: [["-e", "-c", "--exec", "--sh-exec"]],
    reason: "it gives a shell to the network" },
  { id: "reverse-shell", answer: "deny", programs: ["socat"], operands: ["exec:", "EXEC:", "system:", "SYSTEM:"],
    reason: "it gives a shell to the network" },
  { id: "firewall", answer: "deny", programs: ["iptables", "ip6tables"], options: [["-F", "--flush"]], reason: "it opens the firewall" },
  { id: "firewall", answer: "deny", programs: ["nft"], words: ["flush"], reason: "it opens the firewall" },
  { id: "firewall", answer: "deny", programs: ["ufw"], words: ["disable"], reason: "it opens the firewall" },
  { id: "guards-off", answer: "deny", programs: ["setenforce"], operands: ["0", "permissive"], reason: "it switches protection off" },
  { id: "guards-off", answer: "deny", programs: ["csrutil", "spctl"], reason: "it switches protection off" },
  { id: "accounts", answer: "ask", programs: ["passwd", "chpasswd", "useradd", "adduser", "usermod", "userdel", "deluser",
    "groupadd", "groupmod", "gpasswd", "visudo", "chsh"], reason: "it changes who may enter this machine" },
  { id: "scheduled", answer: "ask", programs: ["crontab", "at", "batch", "launchctl"], reason: "it runs something later, without a gate" },
  { id: "kernel", answer: "ask", programs: ["insmod", "modprobe", "rmmod", "sysctl", "mount", "umount", "swapoff", "kexec"],
    reason: "it changes the running system" },
  { id: "services", answer: "ask", programs: ["systemctl", "service", "rc-service"], operands: ["stop", "disable", "mask", "kill",
    "restart", "edit", "link", "enable"], reason: "it changes which services run" },
  { id: "git-force-push", answer: "ask", programs: ["git"], words: ["push"], options: [["-f", "--force", "--force-with-lease",
    "--mirror", "--delete", "-d", "--prune"]], reason: "it rewrites or deletes history that others have" },
  { id: "git-force-push", answer: "ask", programs: ["git"], words: ["push"], operands: ["+", ":"],
    reason: "it rewrites or deletes history that others have" },
  { id: "git-discard", answer: "ask", programs: ["git"], words: ["reset"], options: [["--hard"]], reason: "it throws work away" },
  { id: "git-discard", answer: "ask", programs: ["git"], words: ["clean"], options: [["-f", "--force"]], reason: "it throws work away" },
  { id: "git-discard", answer: "ask", programs: ["git"], words: ["branch"], options: [["-D"]], reason: "it throws work away" },
  { id: "git-discard", answer: "ask", programs: ["git"], words: ["filter-branch"], reason: "it rewrites history" },
  { id: "git-discard", answer: "ask", programs: ["git"], words: ["reflog", "expire"], reason: "it throws work away" },
  { id: "git-settings", answer: "ask", programs: ["git"], options: [["-c", "--config-env", "--exec-path"]],
    reason: "its settings can name programs to run" },
  { id: "publish", answer: "ask", programs: ["npm", "pnpm", "yarn", "cargo", "twine", "gem", "dotnet"], operands: ["publish", "upload",
    "push", "unpublish", "yank"], reason: "a publication cannot be undone" },
  { id: "infrastructure", answer: "ask", programs: ["terraform", "tofu", "pulumi", "cdk"], operands: ["destroy", "apply", "up"],
    reason: "it changes or destroys infrastructure" },
  { id: "infrastructure", answer: "ask", programs: ["kubectl", "helm", "oc"], operands: ["delete", "drain", "uninstall", "replace"],
    reason: "it changes or destroys infrastructure" },
  { id: "containers", answer: "ask", programs: ["docker", "podman"], options: [["--privileged", "-v", "--volume", "--mount", "--pid"]],
    reason: "a container that shares the machine is not contained" },
];

/** Dangers of the combination of commands. */
export const STRUCTURE_DANGERS: Readonly<Record<StructureDanger, string>> = {
  "code-from-network": "it runs unseen code from the network",
  "code-from-decoder": "it runs code that was made unreadable",
  "fork-bomb": "it starts itself without end",
};

/** Which arguments of a program are files that it changes. */
type Writes = "all" | "last" | "of=" | "in-place" | "output-option";

// biome-ignore format: a table
const WRITES: Readonly<Record<string, Writes>> = {
  tee: "all", truncate: "all", touch: "all", rm: "all", unlink: "all", shred: "all", srm: "all", mkdir: "all",
  rmdir: "all", chmod: "all", chown: "all", chgrp: "all", setfacl: "all", chattr: "all", patch: "all", sponge: "all",
  vi: "all", vim: "all", nvim: "all", nano: "all", ed: "all", ex: "all", mv: "all", cp: "last", ln: "last",
  install: "last", rsync: "last", scp: "last", dd: "of=", sed: "in-place", gsed: "in-place", perl: "in-place",
  curl: "output-option", wget: "output-option", sort: "output-option", tar: "output-option", unzip: "output-option",
  gcc: "output-option", git: "output-option",
};

/** `-o file`, `-O file`, `-C folder`, `-d folder`, also with the value in the same word. */
const OUTPUT =
  /^(-[oOCd]|--(output|output-document|output-dir|directory|target-directory))(=|$)|^-[oOCd][/~.]/;

/** Whether the program reads or changes the file that this word names, if any. */
function accessOf(program: string, words: readonly ShellWord[], index: number): "read" | "write" {
  const text = words[index]?.text ?? "";
  const writes = Object.hasOwn(WRITES, program) ? WRITES[program] : undefined;
  const isWritten = () => {
    switch (writes) {
      case undefined:
        return false;
      case "all":
        return true;
      case "last":
        return index === words.length - 1 || hasTargetOption(words);
      case "of=":
        return text.startsWith("of=");
      case "in-place":
        return words.some((word) => /^-\w*i|^--in-place/.test(word.text));
      case "output-option":
        return OUTPUT.test(text) || OUTPUT.test(words[index - 1]?.text ?? "");
    }
  };
  return isWritten() ? "write" : "read";
}

/** With `cp -t folder` the last word is not the target. */
function hasTargetOption(words: readonly ShellWord[]): boolean {
  return words.some(({ text }) => /^-\w*t|^--target/.test(text));
}
