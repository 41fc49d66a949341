// One system in a process of its own. It gets its orders over the channel of its parent, one at a time.

import { appendFileSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Cycles, Effect, Memory, Order, Peer, Place, Reply, ToolMode } from "./peer.ts";
import { systemOf } from "./systems/index.ts";

const REFUND = { invoice: "INV-2041", cents: 12_900 };
const SLOW_MS = 150;
let runs = 0;
let peer: Peer | undefined;

function effectOf(mode: ToolMode, { dir }: Place): Effect {
  const preview = () =>
    mode === "count"
      ? "would pay back 12900 cents"
      : `rate ${readFileSync(`${dir}/world`, "utf8")}`;
  return {
    preview,
    async run() {
      runs += 1;
      if (mode === "count") return "paid back";
      appendFileSync(`${dir}/effects`, `${preview()}\n`);
      process.send?.({ event: "in the tool" });
      if (mode === "slow") await sleep(SLOW_MS);
      // Something has to keep the process alive until it is killed.
      if (mode === "hang") await sleep(600_000);
      return "paid back";
    },
  };
}

async function cycles(callers: number, ms: number): Promise<Cycles> {
  const system = opened();
  const latenciesMs: number[] = [];
  const before = runs;
  const cpu = process.cpuUsage();
  const start = performance.now();
  const caller = async (): Promise<void> => {
    while (performance.now() - start < ms) {
      const began = performance.now();
      const told = await system.approve(await system.propose(REFUND));
      if (told !== "executed") throw new Error(`told "${told}" instead of executed`);
      latenciesMs.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  const seconds = (performance.now() - start) / 1_000;
  const { user, system: kernel } = process.cpuUsage(cpu);
  const done = latenciesMs.length;
  if (runs - before !== done)
    throw new Error(`${done} cycles, but the tool ran ${runs - before} times`);
  return { rate: done / seconds, cpuUs: (user + kernel) / done, latenciesMs };
}

async function pend(count: number): Promise<Memory> {
  const system = opened();
  let left = count;
  const caller = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await system.propose(REFUND);
    }
  };
  await Promise.all(Array.from({ length: 64 }, caller));
  return memory();
}

function memory(): Memory {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let times = 0; times < 4; times += 1) collect();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heap: heapUsed + external, rss };
}

function opened(): Peer {
  if (peer === undefined) throw new Error("nothing is open");
  return peer;
}

async function obey(order: Order): Promise<unknown> {
  switch (order.do) {
    case "open": {
      const { system, place, tool, role, root } = order;
      const open = await systemOf(system).load();
      peer = await open({ ...place, effect: effectOf(tool, place), role, root });
      return "open";
    }
    case "cycles":
      return cycles(order.callers, order.ms);
    case "pend":
      return pend(order.count);
    case "propose":
      return opened().propose(REFUND);
    case "look":
      return opened().look?.(order.id);
    case "approve":
      return opened().approve(order.id);
    case "recover":
      return opened().recover(order.id);
    case "close":
      await opened().close();
      return "closed";
  }
}

process.on("message", (order: Order) => {
  obey(order).then(
    (ok) => process.send?.({ ok } satisfies Reply),
    (error: unknown) => process.send?.({ error: String(error) } satisfies Reply),
  );
});
process.on("disconnect", () => process.exit(0));
