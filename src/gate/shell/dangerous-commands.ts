import type { StructureDanger } from "./shell-script.ts";

/** Kinds of place an operand can point at; `find-dangers.ts` knows how to recognise them. */
export type Place = "root" | "null-device";

/**
 * Commands that do harm no rule can weigh. `deny` can never be lifted; `ask` means that a person looks each time, also
 * where a rule allows the command. Data, so that an operator can read it and pass another list.
 */
export interface DangerousCommand {
  readonly id: string;
  readonly answer: "deny" | "ask";
  /** Names of programs in lower case, or a beginning and `*`. Where they lie does not matter. */
  readonly programs: readonly string[];
  /** Words that must be there, in this order, options aside. */
  readonly words?: readonly string[];
  /** Of each group one option must be there. `-r` is also found in `-rf`, `--recursive` also when shortened. */
  readonly options?: readonly (readonly string[])[];
  /** One operand must point there. */
  readonly place?: Place;
  /** One word must be one of these; where they end or begin with a sign, a word that starts like it. */
  readonly operands?: readonly string[];
  /** The last word must be one of these. */
  readonly last?: readonly string[];
  /** What is wrong, as the rest of a sentence. */
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
    "push", "unpublish", "yank"], reason: "what is published cannot be taken back" },
  { id: "infrastructure", answer: "ask", programs: ["terraform", "tofu", "pulumi", "cdk"], operands: ["destroy", "apply", "up"],
    reason: "it changes or destroys infrastructure" },
  { id: "infrastructure", answer: "ask", programs: ["kubectl", "helm", "oc"], operands: ["delete", "drain", "uninstall", "replace"],
    reason: "it changes or destroys infrastructure" },
  { id: "containers", answer: "ask", programs: ["docker", "podman"], options: [["--privileged", "-v", "--volume", "--mount", "--pid"]],
    reason: "a container that shares the machine is not contained" },
];

/** Dangers that lie in how commands are joined. */
export const STRUCTURE_DANGERS: Readonly<Record<StructureDanger, string>> = {
  "code-from-network": "it runs code from the network that nobody has seen",
  "code-from-decoder": "it runs code that was made unreadable",
  "fork-bomb": "it starts itself without end",
};
