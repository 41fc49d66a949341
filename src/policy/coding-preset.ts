import type { Policy, Rule } from "./policy.ts";

export interface CodingProject {
  /** The folder of the project, as an absolute path without links. */
  readonly project: string;
  /** More commands that may run in this folder, such as `["make", "check"]`. */
  readonly commands?: readonly (readonly string[])[];
}

/** Programs that only look. Each allowed with its operands and the named options, in the project's own folder. */
// biome-ignore format: a table
const LOOKING: readonly { readonly command: readonly string[]; readonly options?: readonly string[] }[] = [
  { command: ["ls", "**"], options: ["-l", "-a", "-la", "-al", "-1", "-R"] },
  { command: ["pwd"] },
  { command: ["echo", "**"] },
  { command: ["cat", "**"], options: ["-n"] },
  { command: ["head", "**"], options: ["-n", "-c"] },
  { command: ["tail", "**"], options: ["-n", "-c"] },
  { command: ["wc", "**"], options: ["-l", "-c", "-w"] },
  { command: ["grep", "**"], options: ["-r", "-n", "-i", "-l", "-rn", "-E"] },
  { command: ["git", "status", "**"], options: ["--short", "--porcelain", "-s"] },
  { command: ["git", "log", "**"], options: ["--oneline", "-n", "--stat"] },
  { command: ["git", "diff", "**"], options: ["--stat", "--cached", "--staged", "--name-only"] },
  { command: ["git", "show", "**"], options: ["--stat"] },
];

/** Tests, linters and type checks. */
// biome-ignore format: a table
const CHECKING: readonly { readonly command: readonly string[]; readonly options?: readonly string[] }[] = [
  { command: ["npm", "test", "**"] },
  { command: ["npm", "run", "test"] },
  { command: ["npm", "run", "lint"] },
  { command: ["npm", "run", "check"] },
  { command: ["npm", "run", "build"] },
  { command: ["pytest", "**"], options: ["-q", "-x", "-v"] },
  { command: ["cargo", "test", "**"] },
  { command: ["cargo", "check"] },
  { command: ["go", "test", "**"] },
  { command: ["go", "vet", "**"] },
  { command: ["tsc", "**"], options: ["--noEmit", "-p"] },
  { command: ["eslint", "**"] },
  { command: ["biome", "check", "**"] },
  { command: ["make", "test"] },
];

/** What asks in every folder although a rule might allow the program: it reaches the network, or it cannot be undone. */
const ASKING: readonly (readonly string[])[] = [
  ["npm", "install", "**"],
  ["npm", "publish", "**"],
  ["pip", "install", "**"],
  ["cargo", "install", "**"],
  ["git", "push", "**"],
  ["curl", "**"],
  ["wget", "**"],
  ["ssh", "**"],
  ["rm", "**"],
];

const DENYING: readonly { readonly command: readonly string[]; readonly reason: string }[] = [
  {
    command: ["git", "push", "--force*", "**"],
    reason: "A force-push destroys the history of others.",
  },
  { command: ["git", "push", "-f", "**"], reason: "A force-push destroys the history of others." },
  { command: ["rm", "-rf", "**"], reason: "Deleting whole folders cannot be undone." },
  { command: ["rm", "-fr", "**"], reason: "Deleting whole folders cannot be undone." },
];

/**
 * Rules for coding agents: reading and searching the project is free, edits inside it are recorded and undoable, tests and
 * linters run, and everything else asks a person. Files that hold secrets, credentials and settings of agents are refused or
 * asked about by the gate's own tables, whatever the rules say. Data: print it, compare it, add to it.
 */
export function codingPolicy({ project, commands = [] }: CodingProject): Policy {
  const inside = `${project === "/" ? "" : project}/**`;
  const command = (
    kind: string,
    reason: string,
    list: readonly { readonly command: readonly string[]; readonly options?: readonly string[] }[],
  ) =>
    list.map(
      (one, index): Rule => ({
        id: `coding.${kind}.${index}.${one.command.slice(0, 2).join("-").replaceAll("*", "")}`,
        effect: "allow",
        tool: "coding.shell",
        folder: project,
        reason,
        ...one,
      }),
    );
  const files = (
    id: string,
    tool: string,
    path: string,
    access: "read" | "write",
    reason: string,
  ) => ({ id, effect: "allow", tool, path, access, reason }) as const;
  const rules: Rule[] = [
    files("coding.read", "coding.read", inside, "read", "The project may be read."),
    files("coding.read.folder", "coding.read", project, "read", "The project may be read."),
    files("coding.edit", "coding.edit", inside, "write", "Edits inside the project can be undone."),
    files(
      "coding.restore",
      "coding.restore",
      inside,
      "write",
      "Undoing an edit restores the file.",
    ),
    {
      id: "coding.inner",
      effect: "allow",
      tool: ["coding.inner", "coding.agent"],
      reason: "It touches nothing outside the host; the calls of its sub-agents are gated.",
    },
    ...command("look", "It only looks.", LOOKING),
    ...command("check", "Tests and linters of the project may run.", CHECKING),
    ...command(
      "own",
      "Allowed by the operator.",
      commands.map((words) => ({ command: words })),
    ),
    ...ASKING.map(
      (words, index): Rule => ({
        id: `coding.ask.${index}.${words.slice(0, 2).join("-").replaceAll("*", "")}`,
        effect: "ask",
        tool: "coding.shell",
        command: words,
        reason: "It reaches the network, changes what others see, or cannot be undone.",
      }),
    ),
    ...DENYING.map(
      ({ command: words, reason }, index): Rule => ({
        id: `coding.deny.${index}.${words.slice(0, 2).join("-").replaceAll("*", "")}`,
        effect: "deny",
        tool: "coding.shell",
        command: words,
        reason,
      }),
    ),
  ];
  return { version: "coding-1", rules };
}
