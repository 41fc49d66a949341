import { DANGEROUS_PATHS, type DangerousPath, dangersOf } from "../dangerous-paths.ts";
import { behindRoot, resolveIn } from "./folder.ts";
import {
  programName,
  type ShellPart,
  type ShellRedirect,
  type StructureDanger,
  type Token,
} from "./script.ts";

export interface Danger {
  readonly id: string;
  readonly answer: "deny" | "ask";
  readonly reason: string;
}

/** The dangers of one program with its arguments. */
export function dangersOfPart(
  part: ShellPart,
  commands: readonly DangerousCommand[],
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

function isDanger(
  danger: DangerousCommand,
  program: string,
  rest: readonly Token[],
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

function hasOption(rest: readonly Token[], option: string): boolean {
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
export const DANGEROUS_COMMANDS: readonly DangerousCommand[] = [
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
function accessOf(program: string, words: readonly Token[], index: number): "read" | "write" {
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
function hasTargetOption(words: readonly Token[]): boolean {
  return words.some(({ text }) => /^-\w*t|^--target/.test(text));
}
