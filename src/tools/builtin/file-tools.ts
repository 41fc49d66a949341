import type { Tool } from "../tool.ts";
import type { FileToolOptions } from "./file-place.ts";
import { filesDelete } from "./files-delete.ts";
import { filesEdit } from "./files-edit.ts";
import { filesMove } from "./files-move.ts";
import { filesRead } from "./files-read.ts";
import { filesRestore } from "./files-restore.ts";
import { filesWrite } from "./files-write.ts";

/** All file tools over the same options. `files.restore` belongs to them: the undo of the others is a call of it. */
export function fileTools(options: FileToolOptions = {}): readonly Tool[] {
  return [filesRead, filesWrite, filesEdit, filesDelete, filesMove, filesRestore].map((make) =>
    make(options),
  );
}
