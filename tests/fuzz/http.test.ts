// G16, T25, T26, I21, I22, I24: bad input over real HTTP against a server in a process of its own.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { createDice, type Dice } from "../support/dice.ts";
import { record } from "../support/record.ts";
import { SCALE, scaled } from "../support/scale.ts";
import { hostileRequest, KIND_NAMES } from "./hostile-requests.ts";
import { hostileStreams, sendStream, slowSenders } from "./hostile-sockets.ts";
import type { Loot } from "./http-child.ts";
import { type Attacked, startAttacked } from "./http-process.ts";
import { connections, faultOf, send } from "./judge-answer.ts";
import type { LoopFigures } from "./loop-watch.ts";
import { fuzzSeed } from "./seed.ts";

const REQUESTS = scaled({ test: 1_500, proof: 20_000, full: 100_000 });
const SLOW = scaled({ test: 100, proof: 300, full: 1_000 });
const CHUNK = 250;
const AT_ONCE = 8;
/** One in so many is sent alone, to see that a refused one has written nothing. */
const ALONE = 10;
const STALL_MS = 100;
/** A stall is only believed when the same requests cause one so many times in a row: what holds up the machine does not. */
const MEASURED = 3;
const GROWTH = 1.1;

test("every route, mutated: it lives, does not stall, keeps its prototypes, and refuses with a code [G16 T24 T25 T26 T32 I22 I24]", async () => {
  const seed = fuzzSeed();
  const attacked = await startAttacked();
  const agent = connections(AT_ONCE);
  onTestFinished(() => agent.destroy());
  const counts = {
    requests: 0,
    refused: 0,
    accepted: 0,
    alone: 0,
    streams: 0,
    "slow senders": SLOW,
  };
  const kinds: Record<string, number> = {};
  const routes = new Set<string>();
  const faults: string[] = [];
  let loot = await attacked.ask("loot");
  const { port } = new URL(loot.url);
  const slow = slowSenders(Number(port), loot.tokens.operator, SLOW);
  onTestFinished(() => slow.close());

  async function attack(dice: Dice): Promise<void> {
    const request = hostileRequest(dice, loot);
    const answer = await send(loot.url, request, agent);
    counts.requests += 1;
    kinds[request.kind] = (kinds[request.kind] ?? 0) + 1;
    routes.add(request.route);
    counts[answer.status < 400 && answer.status > 0 ? "accepted" : "refused"] += 1;
    const fault = faultOf(request, answer) ?? foreignIn(answer.text, request.headers, loot);
    if (fault !== undefined) {
      const { kind, method, path } = request;
      faults.push(`${kind} ${method} ${path.slice(0, 200)}: ${fault}`);
    }
  }

  /** Alone, so that whatever is written in the meantime was written by it. */
  async function attackAlone(dice: Dice): Promise<void> {
    const { seq } = await attacked.ask("state");
    const { refused } = counts;
    await attack(dice);
    counts.alone += 1;
    if (counts.refused === refused) return;
    const written = (await attacked.ask("since", seq)).filter((type) => !ALLOWED.test(type));
    if (written.length > 0) faults.push(`refused, and yet wrote ${written}`);
  }

  async function attackOften(dice: Dice): Promise<void> {
    const alone = Math.floor(CHUNK / ALONE);
    for (let nth = 0; nth < alone; nth += 1) await attackAlone(dice);
    let left = CHUNK - alone;
    const worker = async () => {
      while (left > 0) {
        left -= 1;
        await attack(dice);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }

  const stalls: LoopFigures[] = [];
  let before = 0;
  while (counts.requests < REQUESTS) {
    const chunkSeed = seed + stalls.length;
    stalls.push(await stallOf(attacked, () => attackOften(createDice(chunkSeed))));
    // Caches and compiled code have their size after a tenth; from then on nothing may grow.
    if (before === 0 && counts.requests >= REQUESTS / 10) before = await attacked.ask("memory");
    loot = await attacked.ask("loot");
  }
  const streams = hostileStreams(`127.0.0.1:${port}`, loot.tokens.operator);
  let lines: string[][] = [];
  const sendAll = async () => {
    lines = await Promise.all(streams.map((text, nth) => sendStream(Number(port), text, nth)));
  };
  stalls.push(await stallOf(attacked, sendAll));
  for (const [nth, text] of streams.entries()) {
    counts.streams += 1;
    const broken = lines[nth]?.filter((line) => / 5\d\d$/.test(line)) ?? [];
    if (broken.length > 0) faults.push(`${broken} for ${JSON.stringify(text.slice(0, 80))}`);
  }
  const after = await attacked.ask("memory");
  const { polluted, problems } = await attacked.ask("state");
  for (let round = 0; round < 100 && slow.cutOff() < SLOW / 2; round += 1) await sleep(50);
  const most = (of: (figures: LoopFigures) => number) => round(Math.max(...stalls.map(of)));
  const figures = {
    ...counts,
    routes: routes.size,
    crashes: attacked.ended() === undefined ? 0 : 1,
    "5xx or no code": faults.length,
    polluted: polluted.length,
    "stall p99.9 ms": most(({ wall }) => wall.usualMs),
    "own stall p99.9 ms": most(({ own }) => own.usualMs),
    "longest ms": most(({ wall }) => wall.longestMs),
    "own longest ms": most(({ own }) => own.longestMs),
    "slow bodies cut off": slow.cutOff(),
    "heap growth %": round((after / before - 1) * 100),
    ...Object.fromEntries(Object.entries(kinds).map(([kind, count]) => [`kind ${kind}`, count])),
  };
  for (const goal of ["G16", "T25", "T26"]) {
    record({ goal, what: "bad input over HTTP, server in its own process", figures, seed });
  }
  expect(faults.slice(0, 10)).toEqual([]);
  expect({ polluted, problems, ended: attacked.ended() }).toEqual({
    polluted: [],
    problems: [],
    ended: undefined,
  });
  expect(counts.requests, "void: too few requests").toBeGreaterThanOrEqual(REQUESTS);
  expect(Object.keys(kinds).toSorted(), "void: a kind never came up").toEqual(
    KIND_NAMES.toSorted(),
  );
  expect(counts.refused, "void: hardly anything was refused").toBeGreaterThan(REQUESTS / 3);
  expect(slow.cutOff(), "slow bodies are cut off").toBe(Math.floor(SLOW / 2));
  expect(stalls.filter(isStall), "parts of the attack that stall each time").toEqual([]);
  if (SCALE !== "test") expect(after / before).toBeLessThan(GROWTH);
  await stillServes(attacked, loot);
}, 3_600_000);

/** The longest stalls of the server during this part of the attack, without what does not come back. */
async function stallOf(attacked: Attacked, attack: () => Promise<void>): Promise<LoopFigures> {
  for (let round = 1; ; round += 1) {
    await attacked.ask("loop");
    await attack();
    const figures = await attacked.ask("loop");
    if (round === MEASURED || !isStall(figures)) return figures;
  }
}

/** The time in which the server waited for a CPU is not its own; the wall clock is right where the kernel does not tell it. */
function isStall({ wall, own }: LoopFigures): boolean {
  return Math.min(wall.longestMs, own.longestMs) >= STALL_MS;
}

/** Keys are kept for refused requests too, and a use of a token is not a change. */
const ALLOWED = /^request\./;

/** I22: nothing of the other tenant may come back to a token of this one. */
function foreignIn(
  text: string,
  headers: Readonly<Record<string, unknown>>,
  { foreignToken }: Loot,
): string | undefined {
  if (headers["authorization"] === `Bearer ${foreignToken}`) return undefined;
  return text.includes("canary-bolt") ? "shows another tenant's data" : undefined;
}

async function stillServes(attacked: Attacked, { url, tokens }: Loot): Promise<void> {
  const headers = {
    authorization: `Bearer ${tokens.operator}`,
    "content-type": "application/json",
  };
  const made = await fetch(`${url}/v1/tasks`, {
    method: "POST",
    headers,
    body: '{"subject":"fine"}',
  });
  expect(made.status).toBe(201);
  expect(attacked.ended()).toBeUndefined();
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
