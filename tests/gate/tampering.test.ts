import { expect, test } from "vitest";
import { DECISIONS } from "../../src/model/decision.ts";
import { INTERACTIONS, type Preview, previewHash } from "../../src/model/interaction.ts";
import type { Cell, Row, Table } from "../../src/store/engine.ts";
import { definitionHash } from "../../src/tools/registry.ts";
import { sha256Hex } from "../../src/util/hash.ts";
import { decodeValue, encodeValue } from "../../src/util/value-codec.ts";
import { createDice, type Dice } from "../support/dice.ts";
import { forEachStore } from "../support/for-each-store.ts";
import {
  AGENT,
  approve,
  decisionIdOf,
  type GateWorld,
  isApproval,
  openGate,
  request,
  TENANT,
} from "../support/port-world.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";

const FULL = process.env["SCALE"] === "full";
const MUTATIONS = scaled({ test: 1_000, proof: 2_000, full: 100_000 });
/** A real file is slower, and its rows are the same. */
const ON_DISK = FULL ? 10_000 : 400;
/** After so many a fresh port: what an old one remembers is of no use any more. */
const PER_PORT = 1_000;
const CONTROL_EVERY = 10;

/** One change behind everybody's back, to the row of a decision or of what was shown for it. */
interface Mutation {
  readonly table: Table;
  change(row: Row, dice: Dice, world: GateWorld): Readonly<Record<string, Cell>>;
}

type Action = { v: number; calls: { tool: string; definition: string; input: Fields }[] };
type Fields = Record<string, unknown>;

function flipBytes(bytes: Uint8Array, dice: Dice): Uint8Array {
  const flipped = new Uint8Array(bytes);
  const at = dice.below(flipped.length);
  flipped[at] = (flipped[at] ?? 0) ^ (1 << dice.below(8));
  return flipped;
}

/** Within seven bits, so that it stays a text that every engine can store; NUL is the one it may not become. */
function flipText(text: string, dice: Dice): string {
  for (;;) {
    const at = dice.below(text.length);
    const code = text.charCodeAt(at) ^ (1 << dice.below(7));
    if (code !== 0) return text.slice(0, at) + String.fromCharCode(code) + text.slice(at + 1);
  }
}

/** Rewrites the payload as a careful forger would: valid JSON, only saying something else or in another spelling. */
function payload(edit: (action: Action, world: GateWorld) => unknown): Mutation {
  return {
    table: DECISIONS,
    change({ raw }, _, world) {
      const action = JSON.parse(Buffer.from(raw as Uint8Array).toString()) as Action;
      const edited = edit(action, world);
      const text = typeof edited === "string" ? edited : JSON.stringify(action);
      return { raw: new TextEncoder().encode(text) };
    },
  };
}

function input(patch: (input: Fields) => Fields): Mutation {
  return payload(({ calls }) => {
    for (const call of calls) call.input = { ...call.input, ...patch(call.input) };
  });
}

function preview(patch: Partial<Preview>): Mutation {
  return {
    table: INTERACTIONS,
    change: ({ preview: text }) => ({
      preview: encodeValue({ ...(decodeValue(String(text)) as Preview), ...patch }),
    }),
  };
}

const MUTATIONS_BY_NAME: Readonly<Record<string, Mutation>> = {
  "a bit of the payload": {
    table: DECISIONS,
    change: ({ raw }, dice) => ({ raw: flipBytes(raw as Uint8Array, dice) }),
  },
  "a bit of the preview": {
    table: INTERACTIONS,
    change: ({ preview: text }, dice) => ({ preview: flipText(String(text), dice) }),
  },
  "a bit of the hash": {
    table: INTERACTIONS,
    change: ({ hash }, dice) => ({ hash: flipText(String(hash), dice) }),
  },
  "another value": input(() => ({ value: 666 })),
  "another type": input(({ value }) => ({ value: String(value) })),
  "another key": input(({ key }) => ({ key: `${key}2` })),
  "a key with a space": input(({ key }) => ({ key: `${key} ` })),
  "an additional field": input(() => ({ approved: true })),
  "another order of keys": payload(({ calls }) => {
    for (const call of calls) call.input = Object.fromEntries(Object.entries(call.input).reverse());
  }),
  whitespace: payload((action) => JSON.stringify(action, null, 1)),
  "a byte more": payload((action) => `${JSON.stringify(action)}\n`),
  "another tool": payload(({ calls }, { tools }) => {
    for (const call of calls) {
      // With its right definition: the pin alone must not be what saves us.
      const other = call.tool === "world.blind" ? tools.set : tools.blind;
      call.tool = other.name;
      call.definition = definitionHash(other);
    }
  }),
  "an alias of the tool": payload(({ calls }) => {
    for (const call of calls) call.tool = "world.put";
  }),
  "one call more": payload(({ calls }) => void calls.push(...calls.slice(0, 1))),
  "no call": payload(({ calls }) => void calls.splice(0)),
  "the action hash": preview({ actionHash: sha256Hex("else") }),
  "the nonce": preview({ nonce: "again" }),
  "the askers": preview({ askers: ["agent:else"] }),
  "the session": preview({ sessionId: "s-else" }),
  "who asked, in the decision": {
    table: DECISIONS,
    change: ({ diff_metadata: text }) => ({
      diff_metadata: encodeValue({
        ...(decodeValue(String(text)) as Fields),
        chain: ["agent:else"],
      }),
    }),
  },
  "the machine's verdict, in the decision": {
    table: DECISIONS,
    change: ({ machine_verdict: text }) => ({
      machine_verdict: encodeValue((decodeValue(String(text)) as unknown[]).with(1, 0.99)),
    }),
  },
  "the machine's verdict that was shown": preview({ machine: { score: 0.99 } }),
  "the epoch": preview({ epoch: "another life" }),
  "the shown expiry": preview({ expiresAt: "2030-01-01T00:00:00.000Z" }),
  "the shown dry run": preview({ dryRun: [{ summary: "harmless" }] }),
  "the shown version": preview({ stateVersion: ["0"] }),
  "the safety class": preview({ safetyClass: "read" }),
  "the policy": preview({ policyHash: sha256Hex("lax") }),
  "the tenant": preview({ tenant: "other" }),
  "the decision": preview({ decisionId: "other" }),
};
const KINDS = Object.keys(MUTATIONS_BY_NAME);

/** Stages one call, has it approved, and changes a row after the yes and before anything is looked at again. */
async function approveWith(
  world: GateWorld,
  id: string,
  mutation: Mutation | undefined,
  dice: Dice,
) {
  const { tap, gate } = world;
  let changed = false;
  tap.isApart = true;
  tap.after = async (change) => {
    if (mutation === undefined || changed || !isApproval(change)) return;
    const row = await tap.engine.get(TENANT, mutation.table, id);
    if (row === undefined) throw new Error("nothing to change");
    await tap.tamper(mutation.table, id, mutation.change(row, dice, world));
    changed = true;
  };
  try {
    return await approve(gate, id);
  } catch {
    // To refuse by throwing is as good as any refusal: the ledger tells whether it was one.
    return [];
  } finally {
    tap.after = () => {};
    // Otherwise an attack that never took place would count as one that failed.
    expect(changed).toBe(mutation !== undefined);
  }
}

/** As many mutations as told, and one untouched call to every ten of them. */
async function attack(count: number, openWorld: () => GateWorld): Promise<void> {
  const dice = createDice("mutations");
  const executed: Record<string, number> = {};
  const refused: string[] = [];
  let world = openWorld();
  const one = async (tool: string, key: string, mutation: Mutation | undefined) => {
    const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(request(tool, { key, value: 1 })));
    const before = world.effects.length;
    const answers = await approveWith(world, id, mutation, dice);
    return { answers, happened: world.effects.slice(before) };
  };
  for (let i = 0; i < count; i += 1) {
    if (i > 0 && i % PER_PORT === 0) world = openWorld();
    const tool = dice.pick(["world.set", "world.blind"]);
    const kind = KINDS[i % KINDS.length] ?? "";
    const { answers, happened } = await one(tool, `k${i}`, MUTATIONS_BY_NAME[kind]);
    if (happened.length > 0 || answers.some(({ answer }) => answer === "done")) {
      const name = `${tool}: ${kind}`;
      executed[name] = (executed[name] ?? 0) + 1;
    }
    if (i % CONTROL_EVERY > 0) continue;
    const control = await one(tool, `control${i}`, undefined);
    const meant = `${tool} {"key":"control${i}","value":1}`;
    if (control.answers[0]?.answer !== "done" || control.happened.join() !== meant) {
      refused.push(meant);
    }
  }
  const wrong = Object.values(executed).reduce((sum, times) => sum + times, 0);
  const figures = { mutations: count, executed: wrong, "untouched refused": refused.length };
  record({ goal: "T3", what: "changes between approval and execution", figures });
  expect(executed).toEqual({});
  expect(refused).toEqual([]);
}

test("what was changed between approval and execution is not executed, in memory [T3 I1 I2]", async () => {
  await attack(MUTATIONS, () => openGate());
}, 1_800_000);

forEachStore(
  "changed rows",
  (open) => {
    test("what was changed between approval and execution is not executed [T3 I1 I2]", async () => {
      const place = await open();
      await attack(ON_DISK, () => openGate({}, place));
    }, 1_800_000);
  },
  ["sqlite"],
);

test("payload, preview and hash that are changed together are still not what somebody said yes to [T3 I1]", async () => {
  for (const tool of ["world.set", "world.blind"]) {
    const { gate, tap, effects } = openGate();
    const session = gate.sessions.open({ agent: AGENT });
    const id = decisionIdOf(await session.call(request(tool, { key: "a", value: 1 })));
    tap.isApart = true;
    tap.after = async (change) => {
      if (!isApproval(change)) return;
      const row = await tap.engine.get(TENANT, DECISIONS, id);
      const text = Buffer.from(row?.["raw"] as Uint8Array).toString();
      const raw = new TextEncoder().encode(text.replace('"value":1', '"value":666'));
      await tap.tamper(DECISIONS, id, { raw });
      const shown = (await gate.interactions.shown(id))?.preview;
      const dryRun = JSON.parse(JSON.stringify(shown?.dryRun).replaceAll("-> 1", "-> 666"));
      const forged = { ...shown, dryRun, actionHash: sha256Hex(raw) } as Preview;
      await tap.tamper(INTERACTIONS, id, {
        preview: encodeValue(forged),
        hash: previewHash(forged),
      });
    };
    await approve(gate, id).catch(() => {});
    expect(effects, tool).toEqual([]);
  }
});

test("an expiry that is moved in its column makes no approval last longer than was shown [T3 I4 I13]", async () => {
  for (const columns of [[], ["deadline"], ["due_at"], ["deadline", "due_at"]]) {
    const { gate, tap, effects, clock } = openGate({ approvalMs: 60_000 });
    const session = gate.sessions.open({ agent: AGENT });
    const id = decisionIdOf(await session.call(request("world.set", { key: "a", value: 1 })));
    const later = clock.now() + 3_600_000;
    await tap.tamper(INTERACTIONS, id, Object.fromEntries(columns.map((name) => [name, later])));
    clock.advance(60_001);
    await approve(gate, id).catch(() => {});
    expect(effects).toEqual([]);
  }
});

test("an approval is good for one execution, however often its row is put back [T3 I7]", async () => {
  const { gate, tap, effects } = openGate();
  const session = gate.sessions.open({ agent: AGENT });
  const id = decisionIdOf(await session.call(request("world.blind", { key: "a", value: 1 })));
  await approve(gate, id);
  expect(effects).toHaveLength(1);
  for (const state of ["pending_ml", "approved"]) {
    await tap.tamper(DECISIONS, id, { state });
    await approve(gate, id).catch(() => {});
  }
  expect(effects).toHaveLength(1);
});
