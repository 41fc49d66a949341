import { expect, test } from "vitest";
import { DECISIONS } from "../../src/model/decision.ts";
import { INTERACTIONS } from "../../src/model/interaction.ts";
import { OPERATIONS } from "../../src/model/operation.ts";
import type { Cell, Change, Table } from "../../src/store/engine.ts";
import { definitionHash } from "../../src/tools/registry.ts";
import {
  AGENT,
  approve,
  createWorld,
  decisionIdOf,
  isApproval,
  isIntent,
  openGate,
  request,
  rules,
  TENANT,
} from "../support/port-world.ts";

// The long way from a yes to its execution: the process died in between, and another one goes on with what is stored.

const MEANT = 'world.blind {"key":"a","value":1}';

/** A port whose process dies right after a write, and all that another one needs to go on. */
async function died(after: (change: Change) => boolean) {
  const { tools, effects } = createWorld();
  // Keyed, so that recovery may call it again; and another tool to be mistaken for it.
  const keyed = { ...tools.blind, idempotency: "keyed" } as const;
  const world = openGate({ tools: [keyed, tools.set] });
  const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
  const id = decisionIdOf(await session.call(request("world.blind", { key: "a", value: 1 })));
  world.tap.isApart = true;
  world.tap.after = (change) => {
    if (after(change)) throw new Error("the process died");
  };
  await expect(approve(world.gate, id)).rejects.toThrow("the process died");
  world.tap.after = () => {};
  expect(effects).toEqual([]);
  world.clock.advance(30_001);
  const cell = async (table: Table, row: string, column: string): Promise<Cell> =>
    (await world.tap.engine.get(TENANT, table, row))?.[column] ?? null;
  return { ...world, effects, id, cell, tools };
}

type Died = Awaited<ReturnType<typeof died>>;

async function editPayload({ tap, id, cell }: Died, edit: (text: string) => string): Promise<void> {
  const text = Buffer.from((await cell(DECISIONS, id, "raw")) as Uint8Array).toString();
  const edited = edit(text);
  expect(edited).not.toBe(text);
  await tap.tamper(DECISIONS, id, { raw: new TextEncoder().encode(edited) });
}

const CHANGED_DECISIONS: Readonly<Record<string, (left: Died) => Promise<void>>> = {
  "another value": (left) => editPayload(left, (text) => text.replace('"value":1', '"value":666')),
  "a byte more": (left) => editPayload(left, (text) => `${text} `),
  "the hash": ({ tap, id }) => tap.tamper(INTERACTIONS, id, { hash: "0".repeat(64) }),
  "the preview": async ({ tap, id, cell }) => {
    const text = String(await cell(INTERACTIONS, id, "preview"));
    await tap.tamper(INTERACTIONS, id, { preview: text.replace('"nonce":"', '"nonce":"0') });
  },
};

test("a decision that was changed while nobody carried it out is not carried on [T3 I1]", async () => {
  const untouched = await died(isApproval);
  await untouched.gate.recover();
  expect(untouched.effects).toEqual([MEANT]);
  const executed: string[] = [];
  for (const [what, change] of Object.entries(CHANGED_DECISIONS)) {
    const left = await died(isApproval);
    await change(left);
    await left.again().recover();
    if (left.effects.length > 0) executed.push(`${what}: ${left.effects.join()}`);
  }
  expect(executed).toEqual([]);
});

const CHANGED_OPERATIONS: Readonly<Record<string, (left: Died) => Readonly<Record<string, Cell>>>> =
  {
    "another value": () => ({ input: '{"key":"a","value":666}' }),
    "a byte more": () => ({ input: '{"key":"a","value":1} ' }),
    "another tool": ({ tools }) => ({
      tool: "world.set",
      definition_hash: definitionHash(tools.set),
    }),
    "another definition": () => ({ definition_hash: "0".repeat(64) }),
  };

test("an operation that was changed while its outcome was open is not repeated as something else [T3 I1 I2]", async () => {
  const untouched = await died(isIntent);
  await untouched.gate.recover();
  expect(untouched.effects).toEqual([MEANT]);
  const executed: string[] = [];
  for (const [what, cells] of Object.entries(CHANGED_OPERATIONS)) {
    const left = await died(isIntent);
    await left.tap.tamper(OPERATIONS, `${left.id}.0`, cells(left));
    await left.again().recover();
    if (left.effects.length > 0) executed.push(`${what}: ${left.effects.join()}`);
  }
  expect(executed).toEqual([]);
});

test("what the rules deny by now is not carried on by a recovery [T5 I4 I-26]", async () => {
  const policy = rules({ id: "no", effect: "deny", tool: "world.blind", reason: "closed today" });
  const left = await died(isApproval);
  await left.again({ policy }).recover();
  expect(left.effects).toEqual([]);
});

test("what expired while nobody carried it out is not carried on [T3 I4]", async () => {
  const left = await died(isApproval);
  left.clock.advance(25 * 3_600_000);
  await left.gate.recover();
  expect(left.effects).toEqual([]);
});
