// How calls of upstream tools are undone: by another tool of the same upstream, whose input is made from the input, the output
// and a snapshot that a read tool took before. Ready-made profiles for well-known servers.

import type { UndoRecipe } from "../tools/tool-call.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../util/json.ts";
import { textIn } from "./answers.ts";
import type { McpToolConfig, UndoConfig } from "./config.ts";
import type { ResponseMessage } from "./message.ts";

/** What was there before a write: the text of the snapshot, or why there is none. */
export type Snapshot =
  | { readonly text: string }
  /** The read tool refused, as it does where there is nothing yet. */
  | { readonly missing: string }
  /** It was taken before an earlier attempt, by a process that ended. */
  | { readonly lost: true };

export function snapshotOf({ result, error }: ResponseMessage): Snapshot {
  if (result === undefined) return { missing: String(error?.["message"] ?? "it was refused") };
  if (result["isError"] === true) return { missing: textIn(result) };
  return { text: textIn(result) };
}

/** The input of the read tool that takes the snapshot. Throws when the input lacks a named place. */
export function snapshotInput(
  { input: template }: { readonly input: JsonObject },
  input: JsonObject,
): JsonObject {
  return fillTemplate(template, { input }) as JsonObject;
}

/** The undo of a call that has just succeeded. Throws when it cannot be made; the call then counts as irreversible. */
export function undoOf(
  config: UndoConfig,
  upstream: string,
  call: {
    readonly input: JsonObject;
    readonly result: JsonObject;
    readonly snapshot: Snapshot | undefined;
  },
): UndoRecipe {
  if ("irreversible" in config) return { irreversible: true, manualGuide: config.manualGuide };
  const { input, result, snapshot } = call;
  const { tool, description } = config;
  if (snapshot !== undefined && "lost" in snapshot) {
    const manualGuide =
      "What was there before this call is not known any more: its first answer was lost. Restore it from a backup.";
    return { irreversible: true, manualGuide };
  }
  if (snapshot !== undefined && "missing" in snapshot) {
    const guide = config.whenMissing ?? "There was nothing before this call. Remove what it made.";
    return { irreversible: true, manualGuide: guide };
  }
  // The server could not read it as text, so the text is not what was there.
  if (snapshot?.text.includes("\ufffd") === true) {
    const manualGuide = "What was there before is not text. Restore it from a backup.";
    return { irreversible: true, manualGuide };
  }
  const values: JsonObject = { input, output: outputOfResult(result) };
  if (snapshot !== undefined) values["before"] = snapshot.text;
  return {
    tool: `${upstream}.${tool}`,
    input: fillTemplate(config.input, values),
    ...(description === undefined ? {} : { description }),
  };
}

/** What `{output}` stands for: the structured content, or the text where there is none. */
export function outputOfResult(result: JsonObject): JsonValue {
  const structured = result["structuredContent"];
  return isJsonObject(structured) ? structured : textIn(result);
}

const WHOLE = /^\{([a-zA-Z][\w.*-]*)\}$/;

/**
 * A template with its places filled in. `"{input.path}"` becomes the value at that place, `*` stands for every item of a list.
 * `{"each": "{output.results}", "as": …}` makes a list; `{item.…}` is the item. Everything else is taken as it is.
 */
export function fillTemplate(template: JsonValue, values: JsonObject): JsonValue {
  if (typeof template === "string") {
    const [, place] = WHOLE.exec(template) ?? [];
    return place === undefined ? template : valueAt(values, place);
  }
  if (Array.isArray(template)) return template.map((one) => fillTemplate(one, values));
  if (!isJsonObject(template)) return template;
  const { each, as } = template;
  if (typeof each === "string" && as !== undefined && Object.keys(template).length === 2) {
    const list = fillTemplate(each, values);
    if (!Array.isArray(list)) throw new Error(`${each} is not a list`);
    return list.map((item) => fillTemplate(as, { ...values, item }));
  }
  return Object.fromEntries(
    Object.entries(template).map(([key, one]) => [key, fillTemplate(one, values)]),
  );
}

function valueAt(values: JsonObject, place: string): JsonValue {
  let found: JsonValue = values;
  const steps = place.split(".");
  for (const [index, step] of steps.entries()) {
    if (step === "*") {
      if (!Array.isArray(found)) throw new Error(`there is no list at {${place}}`);
      const rest = steps.slice(index + 1).join(".");
      return rest === ""
        ? found
        : found.map((item) => valueAt(isJsonObject(item) ? item : {}, rest));
    }
    if (!isJsonObject(found) || !Object.hasOwn(found, step)) {
      throw new Error(`there is nothing at {${place}}`);
    }
    found = found[step] as JsonValue;
  }
  return found;
}

const read = { effect: "read" } as const;
const readRepository: McpToolConfig = { ...read, paths: { read: ["path"] } };

const RESTORE_FILE: McpToolConfig = {
  paths: { write: ["path"] },
  undo: {
    snapshot: { tool: "read_text_file", input: { path: "{input.path}" } },
    tool: "write_file",
    input: { path: "{input.path}", content: "{before}" },
    description: "Writes the file's earlier content.",
    whenMissing: "The file did not exist before this call. Delete it.",
  },
};

/** What is known about the tools of published servers, by the name of the profile. */
export const PROFILES: Readonly<Record<string, Readonly<Record<string, McpToolConfig>>>> = {
  /** `@modelcontextprotocol/server-filesystem` */
  filesystem: {
    read_file: { ...read, paths: { read: ["path"] } },
    read_text_file: { ...read, paths: { read: ["path"] } },
    read_media_file: { ...read, paths: { read: ["path"] } },
    read_multiple_files: { ...read, paths: { read: ["paths"] } },
    list_directory: { ...read, paths: { read: ["path"] } },
    list_directory_with_sizes: { ...read, paths: { read: ["path"] } },
    directory_tree: { ...read, paths: { read: ["path"] } },
    search_files: { ...read, paths: { read: ["path"] } },
    get_file_info: { ...read, paths: { read: ["path"] } },
    list_allowed_directories: read,
    write_file: RESTORE_FILE,
    edit_file: RESTORE_FILE,
    move_file: {
      paths: { write: ["source", "destination"] },
      undo: {
        tool: "move_file",
        input: { source: "{input.destination}", destination: "{input.source}" },
        description: "Moves it back.",
      },
    },
    create_directory: {
      paths: { write: ["path"] },
      undo: { irreversible: true, manualGuide: "Remove the folder if this call made it." },
    },
  },
  /** `@modelcontextprotocol/server-memory` */
  memory: {
    read_graph: read,
    search_nodes: read,
    open_nodes: read,
    create_entities: {
      undo: { tool: "delete_entities", input: { entityNames: "{output.entities.*.name}" } },
    },
    create_relations: {
      undo: { tool: "delete_relations", input: { relations: "{output.relations}" } },
    },
    add_observations: {
      undo: {
        tool: "delete_observations",
        input: {
          deletions: {
            each: "{output.results}",
            as: { entityName: "{item.entityName}", observations: "{item.addedObservations}" },
          },
        },
      },
    },
  },
  /** `@cyanheads/git-mcp-server`. Its hints call nothing destructive, though it resets and deletes. */
  git: {
    git_blame: readRepository,
    git_changelog_analyze: readRepository,
    git_diff: readRepository,
    git_log: readRepository,
    git_reflog: readRepository,
    git_show: readRepository,
    git_status: readRepository,
    git_wrapup_instructions: read,
    git_add: {
      paths: { write: ["path"] },
      undo: {
        snapshot: { tool: "git_status", input: { path: "{input.path}" } },
        tool: "git_reset",
        input: { path: "{input.path}", mode: "mixed", paths: "{input.paths}" },
        description: "Takes the files out of the index.",
      },
    },
    git_commit: {
      paths: { write: ["path"] },
      undo: {
        // Where another commit followed, the log is another one, and nothing is reset.
        snapshot: { tool: "git_log", input: { path: "{input.path}", maxCount: 1 } },
        tool: "git_reset",
        input: { path: "{input.path}", mode: "soft", target: "HEAD~1" },
        description: "Removes the commit and keeps its changes in the index.",
        whenMissing: "This was the first commit of the repository. Delete the branch.",
      },
    },
    git_branch: {
      paths: { write: ["path"] },
      undo: { irreversible: true, manualGuide: "Find the branch's commit with git_reflog." },
    },
    git_push: {
      effect: "external",
      paths: { write: ["path"] },
      undo: { irreversible: true, manualGuide: "Others may have fetched it. Push a revert." },
    },
    git_clone: { effect: "external", paths: { write: ["path"] }, urls: ["url"] },
  },
  /** `@bytebase/dbhub`. One tool both reads and writes; what statements changed is not known to it, so there is no undo. */
  dbhub: {
    search_objects: read,
    execute_sql: {
      sql: ["sql"],
      undo: {
        irreversible: true,
        manualGuide:
          "No undo: the server does not say which rows a statement has changed. Write the statement that puts them back, or restore them from a backup.",
      },
    },
  },
};
