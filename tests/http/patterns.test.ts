// T27: tools whose schemas were written to stall the validation of an input, called over HTTP with texts made for it.

import { expect, test } from "vitest";
import { defineTool } from "../../src/tools/define-tool.ts";
import { createRegistry } from "../../src/tools/registry.ts";
import type { JsonObject } from "../../src/util/json.ts";
import { createDice } from "../support/dice.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { credentials, openHttp, raw } from "./http-world.ts";

const SEED = process.env["PATTERNS_SEED"] ?? "patterns";
const COUNT = scaled({ test: 60, proof: 200, full: 1_000 });
/** A call may keep the loop to itself for so long, all of the server's other work on it included. */
const MOST_CPU_MS = 100;

/** Shapes that are known to go back for ever, with an alphabet to fill in. */
const SHAPES: readonly ((a: string, b: string) => string)[] = [
  (a) => `^(${a}+)+$`,
  (a) => `^(${a}*)*$`,
  (a) => `^(${a}|${a})*$`,
  (a) => `^(${a}|${a}${a})+$`,
  (a, b) => `(${a}*)*${b}`,
  (a, b) => `^(${a}|${a}?)+${b}$`,
  (a, b) => `^((${a}+)${b}?)*$`,
  (a) => `(.*${a}){20}`,
  (a) => `^(.*?${a}){12}$`,
  (a, b) => `^(?:${a}*${b}?){50}$`,
  (a) => `^(([${a}-z])+.)+[A-Z]([${a}-z])+$`,
  (a) => `(?=(${a}+)+$)x`,
  (a) => `^(?!(${a}+)+$).*$`,
  (a, b) => `^(${a}{1,30}){1,30}${b}$`,
  (a, b) => `\\s*(${a}|\\s*)*${b}`,
  (a) => `(${a})\\1+`,
  (a) => `(?<=(${a}+)+)x`,
  (a) => `(?:(?:${a}{500}){500}){500}`,
];
const LETTERS = [..."abcdefghijkxyz01"];

function hostileTool(index: number, pattern: string, schema: "pattern" | "names" | "deep") {
  const text: JsonObject = { type: "string", pattern };
  const shapes = {
    pattern: { properties: { text }, required: ["text"] },
    names: { patternProperties: { [pattern]: { type: "string" } }, propertyNames: text },
    deep: { properties: { text: { anyOf: [text, { allOf: [text, { not: text }] }, text] } } },
  } as const;
  return defineTool({
    name: `odd.t${index}`,
    description: "Comes from an unknown author.",
    input: { type: "object", ...shapes[schema] } as JsonObject,
    safety: { effect: "read", concurrencySafe: true },
    permissionClass: "readonly",
    execute: () => "fine",
  });
}

test("no pattern of a tool stalls the loop, whatever an agent sends to it [T27]", async () => {
  const { pick, below } = createDice(SEED);
  const tools = createRegistry();
  const names = new Map<string, string>();
  const slow: string[] = [];
  let refused = 0;
  for (let index = 0; index < COUNT; index += 1) {
    const a = pick(LETTERS);
    const pattern = (SHAPES[index % SHAPES.length] ?? pick(SHAPES))(a, pick(LETTERS));
    const before = process.threadCpuUsage();
    try {
      tools.register(hostileTool(index, pattern, pick(["pattern", "names", "deep"])));
      names.set(`odd.t${index}`, a);
    } catch {
      refused += 1;
    }
    const ms = cpuMs(before);
    if (ms > MOST_CPU_MS) slow.push(`${pattern} was read in ${ms} ms`);
  }
  const world = await openHttp({ port: { tools } });
  const headers = credentials(await world.pass("acme", "agent"));
  const post = (path: string, body: object) =>
    raw(`${world.server.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const { id } = JSON.parse((await post("/v1/sessions", {})).text) as { id: string };
  let calls = 0;
  let worst = 0;
  for (const [tool, a] of names) {
    const text = a.repeat([29, 300, 5_000, 60_000][below(4)] ?? 29) + pick(["!", "", "\u0000", a]);
    const input = { text, [text.slice(0, 200)]: text };
    const before = process.threadCpuUsage();
    const { status } = await post(`/v1/sessions/${id}/calls`, { callId: tool, tool, input });
    const ms = cpuMs(before);
    calls += 1;
    worst = Math.max(worst, ms);
    if (ms > MOST_CPU_MS) slow.push(`${tool}: ${ms} ms`);
    if (status !== 200) slow.push(`${tool}: ${status}`);
  }
  record({
    goal: "T27",
    what: "patterns of tools that hang a matcher that goes back",
    figures: {
      patterns: COUNT,
      refused,
      calls,
      "worst call cpu ms": worst,
      violations: slow.length,
    },
    seed: SEED,
  });
  console.info(`hostile patterns: ${COUNT}, ${refused} refused, ${calls} calls, worst ${worst} ms`);
  expect(calls, "void: too few calls").toBeGreaterThan(COUNT / 2);
  expect(slow, `PATTERNS_SEED=${SEED}`).toEqual([]);
  expect(world.problems).toEqual([]);
}, 600_000);

/** Processor time of the serving thread alone. */
function cpuMs(before: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(before);
  return Math.round((user + system) / 1_000);
}
