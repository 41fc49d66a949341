// Random changes for two engines over one database, of which one writes everything by the general path: what a real gate
// writes for approved calls, with mistakes, repeats, switches and clocks that go wrong.

import { isDeepStrictEqual } from "node:util";
import type pg from "pg";
import { createGate } from "../../src/gate/create-gate.ts";
import { RECORDS } from "../../src/model/records.ts";
import type { Change, ChangeResult, Conditions, Engine, Step } from "../../src/store/engine.ts";
import { memoryEngine } from "../../src/store/memory/index.ts";
import { createStore } from "../../src/store/store.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { decisionIdOf, PERSON } from "../support/port-world.ts";

/** Numbers that a seed determines. */
export function luckOf(seed: number): (below: number) => number {
  let state = seed >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** The same salts on both sides, however many each of them needs. */
export const SAME_SALTS = { bytes: (count: number) => new Uint8Array(count) };

export interface MovedClock {
  now(): number;
  time: number;
}

/** The changes of one call, or of a switch, in their order. */
interface Story {
  readonly tenant: string;
  readonly changes: readonly Change[];
  next: number;
  tries: number;
}

/** What a gate on an engine in memory writes for these calls. */
export async function storiesOf(
  tenants: readonly string[],
  calls: number,
  { clock, luck }: { readonly clock: MovedClock; readonly luck: (below: number) => number },
): Promise<{ readonly founding: Story[]; readonly calls: Story[]; readonly switches: Story[] }> {
  const memory = memoryEngine({ clock, random: SAME_SALTS });
  const written: Change[] = [];
  const engine: Engine = {
    ...memory,
    newId: () => `${tenants[0]}-${memory.newId()}`,
    commit(tenant, change) {
      written.push(change);
      return memory.commit(tenant, change);
    },
  };
  const store = createStore(engine, { redact: (_, data) => data });
  const pay = defineTool({
    name: "bank.pay",
    description: "Pays.",
    input: { type: "object", properties: { cents: { type: "integer" } } },
    safety: { effect: "external" },
    execute: ({ input }) => {
      if (Number(input["cents"]) % 7 === 3) throw new Error("the bank said no");
      return "paid";
    },
  });
  const look = defineTool({
    name: "bank.look",
    description: "Looks.",
    input: { type: "object", properties: { cents: { type: "integer" } } },
    safety: { effect: "read" },
    execute: () => "seen",
  });
  const founding: Story[] = [];
  const all: Story[] = [];
  const switches: Story[] = [];
  for (const tenant of tenants) {
    const gate = createGate({ store, tenant, tools: [pay, look], clock });
    const session = gate.sessions.open({ agent: "agent:one" });
    const told = (to: Story[]) => {
      to.push({ tenant, changes: written.splice(0), next: 0, tries: 0 });
    };
    for (let nr = 0; nr < calls; nr += 1) {
      clock.time += luck(3);
      const keyed = luck(3) === 0 ? { key: `key-${nr}` } : {};
      const tool = luck(8) === 0 ? look.name : pay.name;
      const call = { callId: `c-${nr}`, tool, input: { cents: luck(calls) }, ...keyed };
      const answer = await session.call(call);
      if (answer.answer === "pending") {
        const id = decisionIdOf(answer);
        const { hash } = await gate.interactions.get(id);
        const reason = luck(2) === 0 ? {} : { reason: "looks right" };
        await gate.interactions.approve(id, { hash, by: PERSON, ...reason });
      }
      told(nr === 0 ? founding : all);
    }
    const own = store.tenant(tenant);
    await own.killSwitch.stop("stop", { actor: PERSON });
    await own.killSwitch.resume("go on", { actor: PERSON });
    told(switches);
    if (luck(2) === 0) continue;
    await own.epoch.begin(`epoch-${tenant}`, "restored", { actor: PERSON });
    told(switches);
  }
  return { founding, calls: all, switches };
}

type Luck = (below: number) => number;

/** The same change with something about it that may not hold, or cannot be stored. */
function mistaken(change: Change, luck: Luck, now: number): Change {
  const steps = copied(change.steps);
  const place = luck(steps.length);
  const step = steps[place];
  if (step === undefined) return change;
  steps[place] = mistakenStep(step, luck, now);
  return { ...change, steps };
}

/** Tables are compared by identity. */
function copied(steps: readonly Step[]): Step[] {
  return steps.map((step) => ({ ...step }));
}

function mistakenStep(step: Step, luck: Luck, now: number): Step {
  if (step.op === "insert") {
    const row = { ...step.row };
    if (Object.hasOwn(row, "due_at")) row[luck(2) === 0 ? "due_at" : "deadline"] = now + 5;
    else if (luck(6) === 0 && "facts" in row) row["facts"] = "half a \ud800";
    else if (luck(3) === 0) row["created_at"] = now;
    return { ...step, row };
  }
  if (step.op === "take") return step;
  const where: Record<string, Conditions[string]> = { ...step.where };
  const [column] = Object.keys(where).slice(luck(Math.max(Object.keys(where).length, 1)));
  if (column === undefined) return step;
  const test = where[column];
  if (luck(5) === 0) delete where[column];
  else if (typeof test === "number") where[column] = test + 1 - luck(3);
  else if (typeof test === "string") where[column] = `${test}x`;
  return { ...step, where };
}

interface Sides {
  readonly tested: Engine;
  readonly oracle: Engine;
  readonly clock: MovedClock;
  readonly luck: Luck;
  /** The size of the largest group. */
  readonly most: number;
}

/** Writes the stories in groups, mixed, through both engines. Returns how many changes; throws at the first difference. */
export async function writtenAlike(
  { founding, calls, switches }: Awaited<ReturnType<typeof storiesOf>>,
  { tested, oracle, clock, luck, most }: Sides,
): Promise<number> {
  let changes = 0;
  async function group(members: readonly (readonly [Story, Change])[]): Promise<boolean[]> {
    changes += members.length;
    const on = (engine: Engine) =>
      Promise.all(members.map(([{ tenant }, change]) => answerOf(engine.commit(tenant, change))));
    const [is, should] = [await on(tested), await on(oracle)];
    for (const [index, answer] of is.entries()) {
      if (isDeepStrictEqual(answer, should[index])) continue;
      const types = members[index]?.[1].events.map(({ type }) => type);
      const both = [answer, should[index]].map((one) => JSON.stringify(one));
      throw new Error(`two answers to ${types}:\n${both.join("\n")}`);
    }
    return is.map((answer) => "committed" in answer && answer.committed === true);
  }
  for (const story of founding) {
    for (const change of story.changes) await group([[story, change]]);
  }
  let live = [...calls];
  const waiting = [...switches];
  while (live.length > 0) {
    clock.time += luck(40);
    const isWrong = luck(100) === 0 ? 120_000 : 0;
    clock.time -= isWrong;
    const chosen = new Set(Array.from({ length: 1 + luck(most) }, () => live[luck(live.length)]));
    if (luck(60) === 0) chosen.add(waiting.shift());
    const members = [...chosen].flatMap((story): (readonly [Story, Change, boolean])[] => {
      const change = story?.changes[story.next];
      if (story === undefined || change === undefined) return [];
      if (luck(7) === 0) return [[story, mistaken(change, luck, clock.time), false]];
      const before = story.changes[story.next - 1];
      if (luck(12) === 0 && before !== undefined) return [[story, before, false]];
      return [[story, change, true]];
    });
    const done = await group(members.map(([story, change]) => [story, change]));
    clock.time += isWrong;
    for (const [index, [story, , isOwn]] of members.entries()) {
      story.tries += 1;
      if (done[index] === true && isOwn) story.next += 1;
      if (switches.includes(story) && story.next < story.changes.length) live.push(story);
    }
    live = live.filter(({ next, tries, changes: all }) => next < all.length && tries < 12);
  }
  return changes;
}

/** Without the place of a row in its table, which a change that was rolled back uses up. */
async function answerOf(committing: Promise<ChangeResult>): Promise<object> {
  try {
    const result = await committing;
    const plain = ({ ord: _, ...row }: Record<string, unknown>) => row;
    if (result.committed) return { ...result, rows: result.rows.map(plain) };
    return { ...result, current: result.current && plain(result.current) };
  } catch (error) {
    const { code, details } = error as { code?: string; details?: object };
    if (code === undefined) throw error;
    return { code, details };
  }
}

/** Everything that is stored, as text, but for the places of rows. */
export async function storedIn(client: pg.Client, schema: string): Promise<Map<string, string[]>> {
  const stored = new Map<string, string[]>();
  const kept = async (name: string, text: string) => {
    const { rows } = await client.query<{ line: string }>(text);
    stored.set(
      name,
      rows.map(({ line }) => line),
    );
  };
  for (const { name } of RECORDS) {
    await kept(
      name,
      `SELECT (to_jsonb(r) - 'ord')::text AS line FROM ${schema}.${name} AS r ORDER BY ord`,
    );
  }
  const blocks = `${schema}.audit_blocks`;
  await kept(
    "blocks",
    `SELECT to_jsonb(b)::text AS line FROM ${blocks} AS b ORDER BY tenant, last`,
  );
  await kept("chains", `SELECT tenant AS line FROM ${schema}.chains ORDER BY tenant`);
  return stored;
}
