// A tenant whose agents flood the server: each sends at a fixed rate and ignores the answers.

import { Agent, request } from "node:http";
import { createClient } from "../../../src/client/index.ts";

export interface FloodPlan {
  readonly url: string;
  readonly tokens: readonly string[];
  /** Of all together. */
  readonly perSecond: number;
}

/** How many answers there were, by status. */
export type Flooded = Readonly<Record<string, number>>;

const { url, tokens, perSecond } = JSON.parse(process.argv[2] ?? "") as FloodPlan;
/** As many lines as it has; what finds none free is not sent, or the flood would continue after its end. */
const LINES = 64;
const agent = new Agent({ keepAlive: true, maxSockets: LINES });
const answers: Record<string, number> = {};
let [nth, underWay] = [0, 0];

function send(path: string, token: string): void {
  nth += 1;
  if (underWay >= LINES) return;
  underWay += 1;
  const body = JSON.stringify({ callId: `c-${nth}`, tool: "world.look", input: { key: "k" } });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const sent = request(`${url}${path}`, { method: "POST", agent, headers }, (answer) => {
    const status = String(answer.statusCode);
    answers[status] = (answers[status] ?? 0) + 1;
    answer.resume();
  });
  sent.on("error", () => {
    answers["broken"] = (answers["broken"] ?? 0) + 1;
  });
  sent.on("close", () => {
    underWay -= 1;
  });
  sent.end(body);
}

const sessions = await Promise.all(
  tokens.map(async (token) => (await createClient({ url, token }).sessions.open({})).id),
);
const TICK_MS = 10;
let ticking: NodeJS.Timeout | undefined;
let [last, owed] = [0, 0];
/** By the clock: a machine that is late with its ticks does not make the flood a smaller one. */
const flood = () => {
  const now = performance.now();
  for (owed += ((now - last) * perSecond) / 1_000; owed >= 1; owed -= 1) {
    const who = nth % tokens.length;
    send(`/v1/sessions/${sessions[who]}/calls`, tokens[who] ?? "");
  }
  last = now;
};
process.on("message", (order: "begin" | "pause") => {
  clearInterval(ticking);
  [last, owed] = [performance.now(), 0];
  if (order === "begin") ticking = setInterval(flood, TICK_MS);
  else process.send?.({ ...answers } satisfies Flooded);
});
process.on("disconnect", () => process.exit(0));
process.send?.("ready");
