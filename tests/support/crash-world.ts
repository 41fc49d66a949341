/**
 * Production, as a process of its own: whatever happens to Sallyport's processes, it remembers what reached it. Every effect
 * it receives is one line of its ledger, synced before the answer goes out. It knows three kinds of targets: `keyed` ones
 * take a key once, `probed` ones can be asked what they have done, `plain` ones do whatever they are told, each time.
 *
 * Arguments: the ledger's file and the port (0: any free one). It prints the port it listens on.
 */

import { createHash } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { createServer } from "node:http";

export type Kind = "keyed" | "probed" | "plain";

/** What happens right after an effect, once per key: the line is cut, or production itself dies before it answers. */
export type Fault = "none" | "cut" | "die";

export interface Sent {
  readonly ask: "do" | "probe" | "version";
  readonly kind: Kind;
  readonly key: string;
  readonly fence: number;
  /** The bytes of the tool's input. */
  readonly input: string;
  readonly fault: Fault;
}

/** The input of all tools: which step of which case, whether it takes that step back, and whether production refuses it. */
export interface Target {
  readonly run: string;
  readonly step: number;
  readonly undo: boolean;
  readonly refuse: boolean;
}

export interface LedgerLine extends Target {
  readonly kind: Kind;
  readonly key: string;
  readonly fence: number;
  readonly inputSha256: string;
  /** False for a key that a keyed target has seen before. */
  readonly applied: boolean;
  readonly at: number;
}

/** Happened already, or nothing did: `text` says what. */
export interface WorldAnswer {
  readonly text: string;
  readonly refused: boolean;
  readonly happened: boolean;
}

const [file = "", port = "0"] = process.argv.slice(2);
// A death and a new start in between must not make it forget.
const lines: LedgerLine[] = existsSync(file)
  ? readFileSync(file, "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  : [];
const ledger = openSync(file, "a");

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
  request.on("end", () => {
    const answer = serve(JSON.parse(body));
    if (answer === "cut") response.destroy();
    else response.end(JSON.stringify({ text: "", refused: false, happened: false, ...answer }));
  });
});
server.listen(Number(port), "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object") process.stdout.write(`${address?.port}\n`);
});
// Whoever started it holds the other end: it must not outlive the tests.
process.stdin.on("end", () => {
  closeSync(ledger);
  process.exit(0);
});
process.stdin.resume();

function serve(sent: Sent): Partial<WorldAnswer> | "cut" {
  const target: Target = JSON.parse(sent.input);
  if (sent.ask === "version") {
    const { run, step } = target;
    const changes = lines.filter((line) => line.applied && line.run === run && line.step === step);
    return { text: `v${changes.length}` };
  }
  const happened = lines.some(({ key, applied }) => applied && key === sent.key);
  if (sent.ask === "probe") return { text: textOf(target), happened };
  if (target.refuse) return { text: "production refuses this", refused: true };
  const isNew = !lines.some(({ key }) => key === sent.key);
  append({ ...target, ...facts(sent), applied: !(happened && sent.kind === "keyed") });
  if (isNew && sent.fault === "die") process.kill(process.pid, "SIGKILL");
  return isNew && sent.fault === "cut" ? "cut" : { text: textOf(target), happened };
}

function facts({ kind, key, fence, input }: Sent) {
  const inputSha256 = createHash("sha256").update(input).digest("hex");
  return { kind, key, fence, inputSha256, at: Date.now() };
}

function append(line: LedgerLine): void {
  writeSync(ledger, `${JSON.stringify(line)}\n`);
  fsyncSync(ledger);
  lines.push(line);
}

function textOf({ run, step, undo }: Target): string {
  return `${undo ? "took back" : "did"} ${run}/${step}`;
}
