import { type ChildProcess, spawn } from "node:child_process";
import { flushCompileCache } from "node:module";
import path from "node:path";

/** From source a child needs to be told how `sallyport` is resolved; built code needs nothing. */
const SOURCE = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];

export interface ChildOptions {
  /** The module that starts it, as `import.meta.filename`, and the name of the file beside it that runs in the child. */
  readonly beside: string;
  readonly name: string;
  readonly args: readonly string[];
  /** Where compiled code is kept: hundreds of children compile the same files. */
  readonly cache: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a file of the kit as a process of its own: `.ts` in a checkout, `.js` in the built package. */
export function startChild({ beside, name, args, cache, env = {} }: ChildOptions): ChildProcess {
  const extension = path.extname(beside);
  const file = path.join(path.dirname(beside), `${name}${extension}`);
  const flags = extension === ".ts" ? SOURCE : [];
  return spawn(process.execPath, [...flags, file, ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { NODE_COMPILE_CACHE: cache, ...process.env, ...env },
  });
}

/** To be called in a child once it is loaded: Node keeps compiled code when a process ends, and a killed one does not end. */
export function keepCompiled(): void {
  flushCompileCache();
}

/** Runs `work` over all items, so many at a time. */
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
