import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, fsyncSync, openSync, readSync, writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { createServer } from "node:net";
import path from "node:path";
import { seededRandom } from "../util/random.ts";

/** From source, a child needs the condition that resolves `sallyport`; built code needs nothing. */
const SOURCE = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];

interface ChildOptions {
  /** The module that starts it, as `import.meta.filename`; `name` is the file beside it that runs in the child. */
  readonly beside: string;
  readonly name: string;
  readonly args: readonly string[];
  /** The compile cache: hundreds of children compile the same files. */
  readonly cache: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a file of the kit as a child process: `.ts` in a checkout, `.js` in the built package. */
export function startChild({ beside, name, args, cache, env = {} }: ChildOptions): ChildProcess {
  const extension = path.extname(beside);
  const file = path.join(path.dirname(beside), `${name}${extension}`);
  const flags = extension === ".ts" ? SOURCE : [];
  return spawn(process.execPath, [...flags, file, ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { NODE_COMPILE_CACHE: cache, ...process.env, ...env },
  });
}

/** Call it in a child once it is loaded: Node writes its compile cache at exit, and a killed process does not exit. */
export function keepCompiled(): void {
  flushCompileCache();
}

/** Runs `work` over all items, at most `limit` concurrently. */
export async function inParallel<Item>(
  items: readonly Item[],
  limit: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const worker = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: limit }, worker));
}

/** A file of lines, each on disk before `write` returns, so that the history survives a kill. */
interface LinesWriter<Line> {
  write(line: Line): void;
  close(): void;
}

export function appendLines<Line>(file: string): LinesWriter<Line> {
  const handle = openSync(file, "a");
  return {
    write(line) {
      writeSync(handle, `${JSON.stringify(line)}\n`);
      fsyncSync(handle);
    },
    close: () => closeSync(handle),
  };
}

/** All lines of the file by now; earlier ones are not read again. */
export interface LinesReader<Line> {
  read(): readonly Line[];
}

const CHUNK = 64 * 1024;

/** The last line of a killed process may be incomplete: it was not synced, so nothing relies on it. */
export function followLines<Line>(file: string): LinesReader<Line> {
  const lines: Line[] = [];
  let offset = 0;
  return {
    read() {
      if (!existsSync(file)) return lines;
      const handle = openSync(file, "r");
      try {
        const parts: Buffer[] = [];
        for (let at = offset; ; ) {
          const chunk = Buffer.alloc(CHUNK);
          const length = readSync(handle, chunk, 0, CHUNK, at);
          if (length === 0) break;
          parts.push(chunk.subarray(0, length));
          at += length;
        }
        const bytes = Buffer.concat(parts);
        const end = bytes.lastIndexOf(0x0a) + 1;
        const whole = bytes.subarray(0, end).toString("utf8").split("\n").filter(Boolean);
        offset += end;
        lines.push(...whole.map((line) => JSON.parse(line) as Line));
        return lines;
      } finally {
        closeSync(handle);
      }
    },
  };
}

/** Random choices from a seed, so that a failed run can be repeated. */
export interface Dice {
  /** An integer from 0 to `limit` - 1. */
  below(limit: number): number;
  pick<Item>(items: readonly Item[]): Item;
  /** True with this probability. */
  percent(chance: number): boolean;
}

export function createDice(seed: number | string): Dice {
  const random = seededRandom(seed);
  const below = (limit: number): number => {
    const [a = 0, b = 0, c = 0, d = 0] = random.bytes(4);
    return (((a << 24) | (b << 16) | (c << 8) | d) >>> 0) % limit;
  };
  return {
    below,
    pick(items) {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error("nothing to pick from");
      return item;
    },
    percent: (chance) => below(100) < chance,
  };
}

/** An unused port, for a process that must restart at the same address after a kill. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (typeof address !== "object" || address === null) throw new Error("no port is free");
  return address.port;
}
