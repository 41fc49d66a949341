// The definitions of upstream tools as the operator accepted them. The first one that is seen is accepted; one that changes
// later (a "rug pull") loses what the operator said about the tool until it is accepted too.

import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { SallyportError } from "../model/errors.ts";
import { parseJson } from "../model/names.ts";
import { type DefinitionChange, definitionDifference } from "../tools/registry.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { PRIVATE_FILE } from "../util/files.ts";
import { isJsonObject, type JsonObject } from "../util/json.ts";

export interface Pins {
  /** What differs from the accepted definition; nothing for one that is seen for the first time, which is accepted. */
  check(upstream: string, tool: string, definition: JsonObject): readonly DefinitionChange[];
  /** Forgets what was accepted, so that the next definition counts. Returns the names of the tools. */
  forget(upstream: string, tool?: string): readonly string[];
}

/** Pins in a file, or in memory alone without one. Throws damaged_record for a file that cannot be read. */
export function openPins(file?: string): Pins {
  const read = (): JsonObject => (file !== undefined && existsSync(file) ? readPins(file) : own);
  let own: JsonObject = {};
  const write = (pins: JsonObject) => {
    own = pins;
    if (file === undefined) return;
    const next = `${file}.${process.pid}`;
    writeFileSync(next, `${JSON.stringify(pins, null, 1)}\n`, { mode: PRIVATE_FILE });
    renameSync(next, file);
  };
  return {
    check(upstream, tool, definition) {
      const pins = read();
      const tools = toolsOf(pins, upstream);
      const accepted = Object.hasOwn(tools, tool) ? tools[tool] : undefined;
      if (isJsonObject(accepted)) return definitionDifference(accepted, definition);
      const copy = JSON.parse(canonicalJson(definition));
      write({ ...pins, [upstream]: { ...tools, [tool]: copy } });
      return [];
    },
    forget(upstream, tool) {
      const pins = read();
      const tools = toolsOf(pins, upstream);
      const gone = Object.keys(tools).filter((one) => tool === undefined || one === tool);
      const rest = Object.entries(tools).filter(([one]) => !gone.includes(one));
      write({ ...pins, [upstream]: Object.fromEntries(rest) });
      return gone;
    },
  };
}

function toolsOf(pins: JsonObject, upstream: string): JsonObject {
  const tools = Object.hasOwn(pins, upstream) ? pins[upstream] : undefined;
  return isJsonObject(tools) ? tools : {};
}

function readPins(file: string): JsonObject {
  try {
    const pins = parseJson(readFileSync(file), { maxBytes: 64 * 1024 * 1024, maxNodes: 1_000_000 });
    if (isJsonObject(pins)) return pins;
    throw new Error("it is not an object");
  } catch (error) {
    const hint = `${file} cannot be read (${errorText(error)}). Remove it to accept the definitions of all tools anew.`;
    throw new SallyportError("damaged_record", { id: file, hint }, error);
  }
}
