import type { JsonObject } from "../../util/json.ts";

/** Properties that several file tools have in common, so that they mean the same everywhere. */
export const FILE_INPUTS = {
  path: {
    type: "string",
    minLength: 1,
    maxLength: 4096,
    description: "Path of the file, absolute or from the working directory.",
  },
  expectedSha256: {
    type: "string",
    pattern: "^([0-9a-f]{64}|absent)$",
    description:
      'The hash that files.read gave, or "absent". If the file is something else by now, nothing is done.',
  },
  encoding: {
    enum: ["utf8", "base64"],
    description: "How the content is written down; utf8 when left out.",
  },
} as const satisfies Record<string, JsonObject>;
