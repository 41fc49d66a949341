// `sallyport mcp` killed at random points, while its client calls and people decide elsewhere, over one SQLite file. The ledger of
// the server behind it says what happened, its wire log what reached it.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createGate } from "sallyport";
import { sqliteStore } from "sallyport/store/sqlite";
import { expect, test } from "vitest";
import { type CliPlace, cliPlace } from "../cli/cli-process.ts";
import { createDice } from "../support/dice.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { startMcp, tinyServer } from "./cli-world.ts";
import { handshake, type McpClient } from "./world.ts";

const KILLS = scaled({ test: 3, proof: 200, full: 400 });
const LANES = scaled({ test: 1, proof: 2, full: 2 });
const SEED = 20_261_118;
const FLAGS = ["--upstream", tinyServer, "--hold", "100", "--session", "killed"];

const linesOf = ({ folder }: CliPlace, name: string) => {
  const file = path.join(folder, name);
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : [];
};

interface Story {
  /** What people have said yes to, noted before they said it. */
  readonly approved: Set<string>;
  /** Results that reached the client, by line. */
  readonly delivered: Map<string, number>;
}

/** Decides about everything that comes up: yes, except for each third line. */
async function decider(place: CliPlace, { approved }: Story) {
  const store = await sqliteStore({ file: path.join(place.data, "sallyport.db") });
  const gate = createGate({ store });
  const asked = new Set<string>();
  let isOver = false;
  const work = (async () => {
    while (!isOver) {
      for (const { id, hash, type } of await gate.interactions.list()) {
        if (type !== "confirm") continue;
        const { diff } = await gate.decisions.get(id);
        const line = /"line":"([^"]+)"/.exec(Buffer.from(diff.raw).toString("utf8"))?.[1] ?? "";
        // One yes per line: asked for again after its outcome was lost on the way, it would be another effect.
        const isYes = Number(line.split("-")[1]) % 3 !== 2 && !asked.has(id) && !approved.has(line);
        asked.add(id);
        if (isYes) approved.add(line);
        const by = "person:ada";
        // Another life of the gateway may have withdrawn or replaced it in between.
        await (isYes
          ? gate.interactions.approve(id, { hash, by })
          : gate.interactions.reject(id, { hash, by, reason: "not now" })
        ).catch(() => {});
      }
      await sleep(20);
    }
  })();
  return {
    gate,
    async end() {
      isOver = true;
      await work;
      await gate.close();
      await store.close();
    },
  };
}

/** One life: asks for new lines and for those of lives before, until it is killed. */
async function life(place: CliPlace, story: Story, number: number, afterMs: number): Promise<void> {
  const listed = () => linesOf(place, "wire.log").filter((line) => line.includes("tools/list"));
  const before = listed().length;
  const { client, child, ended } = startMcp(place, FLAGS);
  const ask = async (line: string) => {
    const { text, isError } = await client.call("append", { line });
    if (isError || text !== `appended ${line}`) return;
    story.delivered.set(line, (story.delivered.get(line) ?? 0) + 1);
  };
  const work = async (one: McpClient) => {
    await handshake(one);
    for (let n = 0; ; n += 1) {
      const lines = [`${number}-${n}`, `${number - 1}-${n}`];
      await Promise.all(lines.filter((line) => !story.delivered.has(line)).map(ask));
    }
  };
  // It ends with the process: an answer that does not come is never waited for.
  void work(client);
  // The first sign of life, so that the moments spread over its work and not over the start of the program.
  await Promise.race([
    expect.poll(() => listed().length, { timeout: 20_000 }).toBeGreaterThan(before),
    ended,
  ]);
  await sleep(afterMs);
  child.kill("SIGKILL");
  await ended;
}

/** What must not be found. */
const FOUND = ["lost", "twice", "ungated", "deliveredTwice", "orphans"] as const;
type Found = (typeof FOUND)[number];

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function lane(seed: number, kills: number) {
  const place = cliPlace();
  const story: Story = { approved: new Set(), delivered: new Map() };
  const dice = createDice(seed);
  await life(place, story, 0, 1_000);
  const people = await decider(place, story);
  for (let number = 1; number <= kills; number += 1) {
    await life(place, story, number, dice.below(1_200));
  }
  // The last life does what the killed ones left, and is not killed.
  const { client, ended } = startMcp(place, FLAGS);
  await handshake(client);
  await client.request("tools/list");
  const openOnes = async () => {
    const done = await people.gate.operations.listBySession("killed");
    const begun = new Set(done.map(({ input }) => JSON.parse(input).line as string));
    return [...story.approved].filter((line) => !begun.has(line));
  };
  await expect
    .poll(async () => (await openOnes()).length, { timeout: 60_000, interval: 200 })
    .toBe(0)
    .catch(() => {});
  const lost = await openOnes();
  await people.end();
  client.end();
  await ended;
  const ledger = linesOf(place, "ledger.txt");
  const reached = linesOf(place, "wire.log")
    .filter((line) => line.includes('"tools/call"'))
    .map((line) => JSON.parse(line).params.arguments.line as string);
  const orphans = linesOf(place, "pids.txt").map(Number).filter(isAlive);
  return {
    effects: ledger.length,
    lost,
    twice: ledger.filter((line, index) => ledger.indexOf(line) !== index),
    ungated: reached.filter((line) => !story.approved.has(line)),
    deliveredTwice: [...story.delivered].filter(([, times]) => times > 1),
    orphans,
  };
}

test(`mcp: a gateway that is killed at ${KILLS} random points repeats nothing, passes nothing that was not approved, and leaves no server behind`, {
  timeout: 580_000,
}, async () => {
  const each = Math.ceil(KILLS / LANES);
  const lanes = await Promise.all(
    Array.from({ length: LANES }, (_, index) => lane(SEED + index, each)),
  );
  const all = (key: Found) => lanes.flatMap((one): readonly unknown[] => one[key]);
  const figures = {
    kills: each * LANES,
    effects: lanes.reduce((sum, { effects }) => sum + effects, 0),
    lost: all("lost").length,
    twice: all("twice").length,
    violations: all("ungated").length + all("orphans").length + all("deliveredTwice").length,
  };
  record({
    goal: "MCP-kill",
    what: "sallyport mcp over SQLite, killed at random",
    figures,
    seed: SEED,
  });
  console.info(JSON.stringify(figures));
  expect(figures.effects).toBeGreaterThan(0);
  for (const key of FOUND) {
    expect([key, all(key)]).toEqual([key, []]);
  }
});
