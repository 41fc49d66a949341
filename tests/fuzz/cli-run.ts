import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { Readable } from "node:stream";
import { main } from "../../src/cli/main.ts";

export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The program's own main, in this process: a hundred times as many as with a process for each. */
export async function runHere(args: readonly string[], limitMs = 20_000): Promise<Ended> {
  const written = { out: "", err: "" };
  const { stdout, stderr } = process;
  const writes = { out: stdout.write, err: stderr.write };
  stdout.write = ((piece: string | Uint8Array) => {
    written.out += String(piece);
    return true;
  }) as typeof stdout.write;
  stderr.write = ((piece: string | Uint8Array) => {
    written.err += String(piece);
    return true;
  }) as typeof stderr.write;
  // Commands that ask get Enter for an answer, not the test runner's input.
  const input = Object.getOwnPropertyDescriptor(process, "stdin");
  Object.defineProperty(process, "stdin", {
    value: Readable.from(["\n".repeat(8)]),
    configurable: true,
  });
  const before = process.exitCode;
  process.exitCode = undefined;
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`no end: ${args.join(" ")}`)), limitMs);
  try {
    const code = await Promise.race([main(args), late.promise]);
    return { code, ...written };
  } finally {
    clearTimeout(timer);
    stdout.write = writes.out;
    stderr.write = writes.err;
    if (input !== undefined) Object.defineProperty(process, "stdin", input);
    process.exitCode = before;
  }
}

const BIN = path.join(import.meta.dirname, "../../src/cli/bin.ts");

/** A real process, for what happens around main: exit codes, unhandled rejections, handles that keep it alive. */
export function runApart(args: readonly string[], cwd: string, limitMs = 60_000): Promise<Ended> {
  const node = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning", BIN];
  const child = spawn(process.execPath, [...node, ...args], { cwd });
  child.stdin.end();
  return new Promise((resolve, reject) => {
    const written = { out: "", err: "" };
    child.stdout.on("data", (piece) => (written.out += piece));
    child.stderr.on("data", (piece) => (written.err += piece));
    const timer = setTimeout(() => child.kill("SIGKILL"), limitMs);
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ code: code ?? -1, ...written, err: written.err + (signal ?? "") });
    });
  });
}

const STACK =
  /\n\s+at .+:\d+:\d+|node:internal|Cannot read prop|is not a function|\[object Object\]/;
/** What would move the cursor, colour the screen or turn text around. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const ACTIVE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

/** What is wrong with how a command ended; undefined when that is fine. */
export function faultOf(
  { code, out, err }: Ended,
  may: "fail" | "fail or succeed",
): string | undefined {
  if (code === 0 && may === "fail or succeed") return activeIn(out);
  if (code < 1 || code > 4) return `ended with ${code}: ${err.slice(0, 300)}`;
  const told = `${err}${out}`;
  if (STACK.test(told)) return `a trace instead of an answer: ${told.slice(0, 600)}`;
  if (told.trim().length < 10) return `says nothing useful: "${told}"`;
  return activeIn(told);
}

function activeIn(text: string): string | undefined {
  const [found] = ACTIVE.exec(text) ?? [];
  if (found === undefined) return undefined;
  return `prints U+${found.charCodeAt(0).toString(16)}: ${JSON.stringify(text.slice(0, 200))}`;
}

/** Everything in a folder with what is in it, to see that it stayed as it was. */
export function pictureOf(folder: string): string {
  if (!existsSync(folder)) return "nothing";
  if (!lstatSync(folder).isDirectory()) return hashOf(folder);
  const names = readdirSync(folder).toSorted();
  return JSON.stringify(names.map((name) => [name, pictureOf(path.join(folder, name))]));
}

function hashOf(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}
