// The definitions of upstream tools as the operator accepted them. The first one that is seen is accepted; one that changes
// later (a "rug pull") loses what the operator said about the tool until it is accepted too.

import {
  closeSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { SallyportError } from "../model/errors.ts";
import { parseJson } from "../model/names.ts";
import { type DefinitionChange, definitionDifference } from "../tools/registry.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { systemClock } from "../util/clock.ts";
import { errorCodeOf, errorText } from "../util/error-text.ts";
import { PRIVATE_FILE } from "../util/files.ts";
import { isJsonObject, type JsonObject } from "../util/json.ts";

export interface Pins {
  /**
   * What differs from the accepted definition; nothing for one that is seen for the first time, which is accepted. Throws when
   * the pins cannot be read, and for a new tool of an upstream that has named too many: such a tool must not be offered.
   */
  check(upstream: string, tool: string, definition: JsonObject): readonly DefinitionChange[];
  /** Forgets what was accepted, so that the next definition counts. Returns the names of the tools. */
  forget(upstream: string, tool?: string): readonly string[];
  /** Writes what this accepts in one go. Shape: callback. */
  together<Answer>(work: () => Answer): Answer;
}

/** An upstream that invents names must fill neither the disk nor the memory. */
const MOST_PINS = 2_000;
const MOST_PINNED = 8 * 1024 * 1024;
const LARGEST_FILE = 64 * 1024 * 1024;

/** Pins in a file, or in memory alone without one. Throws damaged_record for a file that cannot be read. */
export function openPins(file?: string): Pins {
  let known: JsonObject = {};
  /** Which version of the file is known. */
  let version = "";

  function read(): JsonObject {
    if (file === undefined) return known;
    const now = versionOf(file);
    if (now === version) return known;
    known = now === "" ? {} : readPins(file);
    version = now;
    return known;
  }

  /** The lock while changes are made together; undefined before the first of them. */
  let release: (() => void) | undefined;
  let depth = 0;

  /** Two processes that add to the file at the same time must not lose what the other one added. */
  function together<Answer>(work: () => Answer): Answer {
    depth += 1;
    try {
      return work();
    } finally {
      depth -= 1;
      if (depth === 0) write();
    }
  }

  function write(): void {
    const unlock = release;
    release = undefined;
    if (unlock === undefined || file === undefined) return;
    try {
      const draft = `${file}.${process.pid}`;
      writeFileSync(draft, `${JSON.stringify(known, null, 1)}\n`, { mode: PRIVATE_FILE });
      renameSync(draft, file);
      version = versionOf(file);
    } finally {
      unlock();
    }
  }

  /** The pins to change, which no other process changes until they are written. */
  function held(): JsonObject {
    if (file === undefined || release !== undefined) return known;
    release = lock(`${file}.lock`);
    return read();
  }

  return {
    together,
    check(upstream, tool, definition) {
      const pinned = acceptedIn(release === undefined ? read() : known, upstream, tool);
      if (pinned !== undefined) return definitionDifference(pinned, definition);
      return together(() => {
        const pins = held();
        // Another process may have been first.
        const accepted = acceptedIn(pins, upstream, tool);
        if (accepted !== undefined) return definitionDifference(accepted, definition);
        const text = canonicalJson(definition);
        const tools = toolsOf(pins, upstream);
        const size = (sizes.get(tools) ?? JSON.stringify(tools).length) + text.length;
        checkSize(upstream, Object.keys(tools).length + 1, size);
        const next = { ...tools, [tool]: JSON.parse(text) };
        sizes.set(next, size);
        known = { ...pins, [upstream]: next };
        return [];
      });
    },
    forget: (upstream, tool) =>
      together(() => {
        const pins = held();
        const tools = toolsOf(pins, upstream);
        const gone = Object.keys(tools).filter((one) => tool === undefined || one === tool);
        const rest = Object.entries(tools).filter(([one]) => !gone.includes(one));
        known = { ...pins, [upstream]: Object.fromEntries(rest) };
        return gone;
      }),
  };
}

const sizes = new WeakMap<JsonObject, number>();

function checkSize(upstream: string, count: number, size: number): void {
  if (count <= MOST_PINS && size <= MOST_PINNED) return;
  const hint = `${upstream} has named more tools than are remembered (${MOST_PINS}, or ${MOST_PINNED} characters). If that is right, forget the old ones: sallyport mcp --accept ${upstream}`;
  throw new SallyportError("invalid_input", { what: upstream, hint });
}

function acceptedIn(pins: JsonObject, upstream: string, tool: string): JsonObject | undefined {
  const tools = toolsOf(pins, upstream);
  const accepted = Object.hasOwn(tools, tool) ? tools[tool] : undefined;
  return isJsonObject(accepted) ? accepted : undefined;
}

function toolsOf(pins: JsonObject, upstream: string): JsonObject {
  const tools = Object.hasOwn(pins, upstream) ? pins[upstream] : undefined;
  return isJsonObject(tools) ? tools : {};
}

/** Empty when there is no such file. */
function versionOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false, bigint: true });
  return found === undefined ? "" : `${found.ino} ${found.size} ${found.mtimeNs}`;
}

function readPins(file: string): JsonObject {
  try {
    const pins = parseJson(readFileSync(file), { maxBytes: LARGEST_FILE, maxNodes: 1_000_000 });
    if (isJsonObject(pins)) return pins;
    throw new Error("it is not an object");
  } catch (error) {
    const hint = `${file} cannot be read (${errorText(error)}). Remove it to accept the definitions of all tools anew.`;
    throw new SallyportError("damaged_record", { id: file, hint }, error);
  }
}

/** A writer needs milliseconds; one that was killed leaves its lock behind. */
const ABANDONED_MS = 5_000;
const LOOK_AGAIN_MS = 5;
const MOST_LOOKS = 2_000;

/** Returns what releases it. Throws store_unavailable when another process holds it for too long. */
function lock(file: string): () => void {
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    try {
      closeSync(openSync(file, "wx", PRIVATE_FILE));
      return () => rmSync(file, { force: true });
    } catch (error) {
      if (errorCodeOf(error) !== "EEXIST") throw error;
    }
    const held = statSync(file, { throwIfNoEntry: false });
    if (held !== undefined && systemClock.now() - held.mtimeMs > ABANDONED_MS) {
      rmSync(file, { force: true });
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_AGAIN_MS);
  }
  throw new SallyportError("store_unavailable", { hint: `${file} is held by another process.` });
}
