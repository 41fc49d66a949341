// T33: random trees of delegations that ask for too much, act on every path and are revoked in the middle. What may happen
// is decided a second time here, from what each node was given, by plain sets.

import { expect, test } from "vitest";
import type { DelegationRequest } from "../../src/delegation/plan.ts";
import type { Session } from "../../src/gate/session.ts";
import type { DelegationId } from "../../src/model/delegation.ts";
import { createDice } from "../support/dice.ts";
import { approve, collected } from "../support/port-world.ts";
import { record } from "../support/record.ts";
import { type BoxWorld, codes, openBox, put, startRun } from "./port-delegation.ts";
import { ADA, LEAD } from "./world.ts";

interface Dice extends ReturnType<typeof createDice> {
  int(from: number, to: number): number;
  chance(share: number): boolean;
}

function diceOf(seed: string): Dice {
  const dice = createDice(seed);
  return {
    ...dice,
    int: (from, to) => from + dice.below(to - from + 1),
    chance: (share) => dice.below(1_000) < share * 1_000,
  };
}

const FULL = process.env["SCALE"] === "full";
const TREES = FULL ? 10_000 : 200;
const TREES_PER_PORT = 25;
const TOOLS = ["box.put", "box.keyed", "box.asked", "box.burn", "box.look"];
const NOT_SAID: readonly string[] = [];
const WISHES = [
  ["*"],
  ["box.*"],
  ["box.put"],
  ["box.put", "box.burn"],
  ["box.keyed", "box.asked", "box.look"],
  ["bin.*"],
  NOT_SAID,
];
const SLOTS = ["a", "b", "c", "d"];
const PLAN = ["a", "b", "c"];

/** What a node may do, as sets; the root may do everything that the plan says. */
interface Node {
  readonly name: string;
  readonly id: DelegationId | "";
  readonly session: Session;
  readonly parent: Node | undefined;
  readonly tools: ReadonlySet<string>;
  readonly slots: ReadonlySet<string>;
  readonly expiresAt: number;
  readonly depth: number;
  calls: number;
  revokedAt: number | undefined;
}

interface Count {
  widenings: string[];
  handedOver: number;
  refused: number;
  effects: number;
  afterRevoke: number;
  burntUnasked: number;
}

function up(node: Node | undefined): Node[] {
  return node === undefined ? [] : [node, ...up(node.parent)];
}

const covered = (patterns: readonly string[]) =>
  new Set(
    TOOLS.filter((tool) =>
      patterns.some((p) => p === "*" || p === tool || (p === "box.*" && tool.startsWith("box."))),
    ),
  );

/** The one that is written down: may this node have this effect now? */
function mayHappen(node: Node, tool: string, slot: string, now: number): boolean {
  return up(node).every(
    (one) =>
      one.tools.has(tool) &&
      one.slots.has(slot) &&
      one.revokedAt === undefined &&
      now <= one.expiresAt &&
      one.calls >= 1,
  );
}

async function grow(world: BoxWorld, nodes: Node[], dice: Dice, count: Count): Promise<void> {
  const parent = dice.pick(nodes);
  const name = dice.chance(0.1) ? dice.pick(up(parent)).name : `agent:${nodes.length}`;
  const tools = parent.id !== "" && dice.chance(0.5) ? NOT_SAID : dice.pick(WISHES);
  const planFiles = dice.chance(0.5)
    ? undefined
    : SLOTS.filter(() => dice.chance(0.5)).map((slot) => `slot:${slot}`);
  const isCode = dice.chance(0.8);
  const depth = dice.chance(0.7) ? Math.max(0, Math.min(3, parent.depth - 1)) : dice.int(0, 9);
  const { tools: _tools, ...request } = codes({ agent: name, depth });
  // What is left out is what a parent has itself.
  const asked: DelegationRequest = {
    ...request,
    role: isCode ? "code" : "research",
    ...(dice.chance(0.5) ? {} : { ttlMs: dice.int(1, 120) * 1_000 }),
    ...(dice.chance(0.5) ? {} : { calls: dice.int(1, 12) }),
    ...(tools === NOT_SAID ? {} : { tools }),
    ...(planFiles === undefined ? {} : { planFiles }),
  };
  const given = await parent.session.delegate(asked);
  if (given.answer !== "delegated") {
    count.refused += 1;
    return;
  }
  count.handedOver += 1;
  const { id, scope, agents } = given.delegation;
  const { session, watch } = await world.gate.delegations.attach(id, given.token);
  watch.stop();
  const node: Node = {
    name,
    id,
    session,
    parent,
    tools: covered(scope.tools),
    slots: new Set(isCode ? scope.planFiles.map((file) => file.slice("slot:".length)) : []),
    expiresAt: Date.parse(scope.expiresAt),
    depth: scope.depth,
    calls: scope.calls,
    revokedAt: undefined,
  };
  nodes.push(node);
  const wider = (what: string) => count.widenings.push(`${what}: ${agents.join(" < ")}`);
  for (const above of up(parent)) {
    if (above.revokedAt !== undefined) wider("below something revoked");
    if (![...node.tools].every((tool) => above.tools.has(tool))) wider("tools");
    if (![...node.slots].every((slot) => above.slots.has(slot))) wider("slots");
    if (node.expiresAt > above.expiresAt) wider("time");
    if (node.calls > above.calls) wider("calls");
    if (above.name === name) wider("cycle");
  }
  if (node.depth >= parent.depth) wider("depth");
}

/** One call on one of the paths; whatever it leads to has to be allowed by the sets. */
async function act(world: BoxWorld, nodes: Node[], dice: Dice, count: Count): Promise<void> {
  const node = dice.pick(nodes);
  if (node.id === "") return;
  const tool = dice.pick(TOOLS.slice(0, 4));
  const slot = dice.pick(SLOTS);
  const before = world.effects.length;
  const mayBefore = mayHappen(node, tool, slot, world.clock.now());
  const wasOver = up(node).some(({ revokedAt }) => revokedAt !== undefined);
  const request = put(slot, tool);
  const path = dice.int(0, 2);
  let answer =
    path === 0
      ? await node.session.call(request)
      : path === 1
        ? (await collected(node.session.callAll([request])))[0]!.answer
        : await node.session.stage([request]);
  if (tool === "box.burn" && path !== 2 && answer.answer === "done") count.burntUnasked += 1;
  if (answer.answer === "pending") {
    const shown = await world.gate.interactions.shown(answer.decisionId);
    if (tool === "box.burn" && shown?.preview.safetyClass !== "irreversible")
      count.burntUnasked += 1;
    if (dice.chance(0.4)) await revoke(world, nodes, dice);
    if (dice.chance(0.2)) world.clock.advance(dice.int(1, 30) * 1_000);
    const may = mayHappen(node, tool, slot, world.clock.now());
    const [ran] = await approve(world.gate, answer.decisionId);
    answer = ran!;
    if (!may && answer.answer === "done")
      count.widenings.push(`${tool} of ${slot} by ${node.name} after approval`);
  } else if (!mayBefore && answer.answer === "done") {
    count.widenings.push(`${tool} of ${slot} by ${node.name}`);
  }
  const happened = world.effects.slice(before);
  count.effects += happened.length;
  if (wasOver) count.afterRevoke += happened.length;
  // Every start spends a call of everybody above, whether the tool then succeeds or not.
  if (happened.length > 0) for (const one of up(node)) one.calls -= 1;
}

async function revoke(world: BoxWorld, nodes: Node[], dice: Dice): Promise<void> {
  const node = dice.pick(nodes);
  if (node.id === "" || node.revokedAt !== undefined) return;
  await world.gate.delegations.revoke(node.id, "stop", ADA);
  node.revokedAt = world.clock.now();
}

async function tree(world: BoxWorld, dice: Dice, count: Count): Promise<void> {
  const { session } = await startRun(world.gate, PLAN);
  const root: Node = {
    name: LEAD,
    id: "",
    session,
    parent: undefined,
    tools: new Set(TOOLS),
    slots: new Set(PLAN),
    expiresAt: Number.POSITIVE_INFINITY,
    depth: 9,
    calls: Number.POSITIVE_INFINITY,
    revokedAt: undefined,
  };
  const nodes = [root];
  for (let step = 0; step < 30; step += 1) {
    const die = dice.int(0, 19);
    if (die < 8) await grow(world, nodes, dice, count);
    else if (die < 17) await act(world, nodes, dice, count);
    else if (die < 18) await revoke(world, nodes, dice);
    else world.clock.advance(dice.int(1, 20) * 1_000);
  }
  // Mid-run: after the first generation is revoked, everybody below is tried once more.
  for (const one of nodes)
    if (one.parent === root && one.revokedAt === undefined) {
      await world.gate.delegations.revoke(one.id as DelegationId, "the end", ADA);
      one.revokedAt = world.clock.now();
    }
  const before = world.effects.length;
  for (const one of nodes.slice(1)) await one.session.call(put("a"));
  count.afterRevoke += world.effects.length - before;
}

test(`${TREES} random trees: no child gets more than its parent, and no effect follows a revocation [I26 T33]`, async () => {
  const count: Count = {
    widenings: [],
    handedOver: 0,
    refused: 0,
    effects: 0,
    afterRevoke: 0,
    burntUnasked: 0,
  };
  let world = openBox();
  for (let n = 0; n < TREES; n += 1) {
    if (n % TREES_PER_PORT === 0) world = openBox();
    await tree(world, diceOf(`tree ${n}`), count);
  }
  record({
    goal: "T33",
    what: "random trees of delegations",
    figures: {
      trees: TREES,
      delegations: count.handedOver,
      refused: count.refused,
      effects: count.effects,
      widenings: count.widenings.length,
      "after revoke": count.afterRevoke,
      "unasked irreversible": count.burntUnasked,
    },
  });
  expect(count).toMatchObject({ widenings: [], afterRevoke: 0, burntUnasked: 0 });
  // Otherwise nothing was tried.
  expect(count.handedOver).toBeGreaterThan(TREES);
  expect(count.refused).toBeGreaterThan(TREES);
  expect(count.effects).toBeGreaterThan(TREES / 2);
  if (FULL) console.log(`T33: ${JSON.stringify(count)}`);
}, 1_200_000);
