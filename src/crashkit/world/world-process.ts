/**
 * Production as a separate process: whatever happens to Sallyport's processes, it keeps what reached it. Every effect is one
 * line of its ledger, synced before the answer is sent. There are three kinds of targets: `keyed` ones accept each key once,
 * `probed` ones can be asked what they have done and refuse fences older than one they have seen, `plain` ones execute every
 * request.
 *
 * Arguments: the ledger's file, the port (0: any free one), and the maximum delay before an effect and before its answer, in
 * milliseconds. It prints the port it listens on.
 */

import { createServer } from "node:http";
import { systemClock } from "../../util/clock.ts";
import { sha256Hex } from "../../util/hash.ts";
import { systemTimers } from "../../util/timers.ts";
import { appendLines, createDice, followLines } from "../child.ts";

import {
  type FenceLine,
  isEffect,
  type LedgerLine,
  type Sent,
  type Target,
  type WorldAnswer,
} from "./world.ts";

const NOTHING: WorldAnswer = { text: "", refused: false, late: false, happened: false };
const [file = "", port = "0", slowMs = "0"] = process.argv.slice(2);
// A restart must not lose anything.
const known = followLines<LedgerLine | FenceLine>(file).read();
const lines: LedgerLine[] = known.filter(isEffect);
const byKey = Map.groupBy(lines, ({ key }) => key);
const fences = new Map<string, number>();
for (const line of known) seen(line.key, isEffect(line) ? line.fence : line.seenFence);
const dice = createDice(port);
const ledger = appendLines<LedgerLine | FenceLine>(file);

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
  request.on("end", async () => {
    const sent: Sent = JSON.parse(body);
    await dawdle(sent);
    const answer = serve(sent);
    await dawdle(sent);
    if (answer === "cut") response.destroy();
    else response.end(JSON.stringify({ ...NOTHING, ...answer }));
  });
});
server.listen(Number(port), "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object") process.stdout.write(`${address?.port}\n`);
});
// The parent holds the other end: the process must not outlive the run.
process.stdin.on("end", () => {
  ledger.close();
  process.exit(0);
});
process.stdin.resume();

/** So that a kill interrupts something. */
async function dawdle({ ask }: Sent): Promise<void> {
  if (ask === "do" && slowMs !== "0") await systemTimers.sleep(dice.below(Number(slowMs)));
}

function serve(sent: Sent): Partial<WorldAnswer> | "cut" {
  const { ask, kind, key, fence, fault } = sent;
  const target: Target = JSON.parse(sent.input);
  if (ask === "version") return { text: `v${changesOf(target)}` };
  const happened = (byKey.get(key) ?? []).some(({ applied }) => applied);
  const isLate = kind === "probed" && fence < (fences.get(key) ?? 0);
  if (ask === "probe") {
    if (fence > (fences.get(key) ?? 0)) ledger.write({ key, seenFence: fence });
    seen(key, fence);
    return { text: textOf(target), happened };
  }
  if (target.refuse) return { text: "production refuses this", refused: true };
  const isNew = !byKey.has(key);
  const takes = kind === "plain" || (kind === "keyed" ? !happened : !isLate);
  append({ ...target, ...facts(sent), applied: takes });
  if (isLate) return { text: "another attempt has taken this over", late: true };
  if (isNew && fault === "die") process.kill(process.pid, "SIGKILL");
  return isNew && fault === "cut" ? "cut" : { text: textOf(target), happened };
}

function changesOf({ run, step }: Target): number {
  return lines.filter((line) => line.applied && line.run === run && line.step === step).length;
}

function seen(key: string, fence: number): void {
  fences.set(key, Math.max(fence, fences.get(key) ?? 0));
}

function facts({ kind, key, fence, input }: Sent) {
  return { kind, key, fence, inputSha256: sha256Hex(input), at: systemClock.now() };
}

function append(line: LedgerLine): void {
  ledger.write(line);
  lines.push(line);
  byKey.set(line.key, [...(byKey.get(line.key) ?? []), line]);
  seen(line.key, line.fence);
}

function textOf({ run, step, undo }: Target): string {
  return `${undo ? "undid" : "did"} ${run}/${step}`;
}
