import { metadataOf, type ToolMetadata } from "./metadata.ts";

/**
 * The operation in a tool's audit entries: what it declares, whatever word that is, else a guess from its name, else
 * `invoke`. No tool's name is known here, so a third-party tool only has to declare its word.
 */
export function auditOperationOf(tool: {
  readonly name: string;
  readonly metadata?: Partial<ToolMetadata>;
}): string {
  return metadataOf(tool).auditOperation || guessOperation(tool.name);
}

/** Gravest first: `read_and_delete` is a deletion. */
const VERBS: readonly (readonly [operation: string, verbs: ReadonlySet<string>])[] = [
  ["delete", words("delete del remove rm drop destroy purge erase unlink truncate wipe revoke")],
  [
    "execute",
    words("execute exec run bash shell sh command cmd eval deploy start stop restart kill"),
  ],
  [
    "write",
    words("write create add insert put save upload append post send publish copy store new"),
  ],
  ["edit", words("edit update patch modify change rename move replace set merge assign")],
  [
    "read",
    words(
      "read get list ls search find fetch show view query describe count check cat grep glob select",
    ),
  ],
];

export function guessOperation(name: string): string {
  const found = wordsOf(name);
  return VERBS.find(([, verbs]) => found.some((word) => verbs.has(word)))?.[0] ?? "invoke";
}

function words(line: string): ReadonlySet<string> {
  return new Set(line.split(" "));
}

/** `fs.readFile2` has the words fs, read and file. */
function wordsOf(name: string): readonly string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z]+/);
}
