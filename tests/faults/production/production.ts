/**
 * Production, as a process of its own: it remembers what reached it, whatever happens to those who asked. Every request to
 * change something is one line of its ledger, synced before the answer goes out. `keyed` targets take a key once, `probed`
 * ones can be asked what they did and refuse fences older than one they were asked under, `plain` ones do whatever they are
 * told, each time.
 *
 * Arguments: the ledger's file, and how many milliseconds it works before and after an effect, so that faults find something
 * under way. It prints its port, and ends when its parent closes its standard input.
 */

import { fsyncSync, openSync, writeSync } from "node:fs";
import { createServer } from "node:http";
import { setTimeout } from "node:timers/promises";

export const KINDS = ["keyed", "probed", "plain"] as const;
export type Kind = (typeof KINDS)[number];

/** What production makes of a call: it does it, refuses it, or does it and cuts the line before it has answered. */
export type Mode = "ok" | "refuse" | "cut";

export interface Sent {
  /** `look`: a person asks whether the thing was done, by any caller and under any key. */
  readonly ask: "do" | "probe" | "look";
  readonly kind: Kind;
  /** Which thing is to be done; the same one done twice is what must not happen. */
  readonly id: string;
  readonly mode: Mode;
  readonly key: string;
  readonly fence: number;
}

export interface LedgerLine extends Omit<Sent, "ask"> {
  /** False for a key that a keyed target has seen before, and for what comes to a probed one too late. */
  readonly applied: boolean;
  readonly at: number;
}

export interface ProductionAnswer {
  readonly text: string;
  readonly refused: boolean;
  readonly happened: boolean;
}

if (process.argv[1] === import.meta.filename) await main();

async function main(): Promise<void> {
  const [file = "", workMs = "0"] = process.argv.slice(2);
  const ledger = openSync(file, "a");
  const seen = new Set<string>();
  const fences = new Map<string, number>();
  const done = new Set<string>();

  async function serve({ ask, ...sent }: Sent): Promise<ProductionAnswer | "cut"> {
    const text = `did ${sent.id}`;
    if (ask === "probe") {
      fences.set(sent.key, Math.max(sent.fence, fences.get(sent.key) ?? 0));
      return { text, refused: false, happened: seen.has(sent.key) };
    }
    if (ask === "look") return { text, refused: false, happened: done.has(sent.id) };
    await setTimeout(Math.random() * Number(workMs));
    if (sent.mode === "refuse") return { text: "refused", refused: true, happened: false };
    const isNew = !seen.has(sent.key);
    // A caller was paused before it sent this request, and meanwhile another one has asked and continued.
    const isLate = sent.kind === "probed" && sent.fence < (fences.get(sent.key) ?? 0);
    const applied = !isLate && (isNew || sent.kind !== "keyed");
    const line = { ...sent, applied, at: Date.now() };
    writeSync(ledger, `${JSON.stringify(line satisfies LedgerLine)}\n`);
    fsyncSync(ledger);
    if (isLate) return { text: "too late", refused: true, happened: false };
    seen.add(sent.key);
    done.add(sent.id);
    await setTimeout(Math.random() * Number(workMs));
    return isNew && sent.mode === "cut" ? "cut" : { text, refused: false, happened: true };
  }

  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", async () => {
      const answer = await serve(JSON.parse(body));
      if (answer === "cut") response.destroy();
      else response.end(JSON.stringify(answer));
    });
  });
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    if (typeof address === "object") process.stdout.write(`${address?.port}\n`);
  });
  process.stdin.on("end", () => process.exit(0)).resume();
}
