// T6: every way to decide, tried by everybody who has asked for the call in one way or another. Nothing of it may count.

import { expect, test } from "vitest";
import type { Gate } from "../../src/gate/create-gate.ts";
import type { GateOptions } from "../../src/gate/options.ts";
import { ONE_PERSON } from "../../src/model/interaction.ts";
import type { CallRequest } from "../../src/model/operation.ts";
import { manualClock } from "../../src/util/clock.ts";
import { manualTimers } from "../support/manual-timers.ts";
import { AGENT, decisionIdOf, PERSON, request, rules } from "../support/port-world.ts";
import { record } from "../support/record.ts";
import {
  codeOf,
  GIVE_UP,
  HAPPENED,
  type InboxWorld,
  lossy,
  OTHER,
  onlyOpen,
  onStores,
  REPEAT,
  set,
} from "./inbox-world.ts";

const OWNER = "person:olga";
/** Has an automation: what that asks for, he has asked for. */
const PAUL = "person:paul";
const CHAIN = [AGENT, "agent:boss", "service:cron", OWNER];
const ASKED = { id: "s-1", agent: AGENT, delegatedBy: CHAIN.slice(1, 3), owner: OWNER };
/** On the list are also some who must not decide this. */
const PEOPLE = [
  { id: PERSON },
  { id: OTHER, groups: ["group:bank"] },
  { id: PAUL, agents: [AGENT] },
  { id: "person:ines", agents: ["agent:boss"] },
  ...CHAIN.map((id) => ({ id })),
];
const NOBODY = ["", " ", "\t", "\u0000", "a\nb", "\ud800", "x".repeat(600), "\u200b"];
/** The same name for a person who reads it, and another one for a machine. */
const ALIKE = [...CHAIN, PERSON].flatMap((name) => [
  name.toUpperCase(),
  ` ${name}`,
  `${name} `,
  `${name}\u00a0`,
  `${name}\u200b`,
  name.replace(":", "\uff1a"),
  name.replace("e", "\uff45"),
]);
const CYRILLIC = CHAIN.map((name) => name.replace("e", "\u0435"));

/** Who must be refused, with a list of people and without one. */
const SELVES: readonly [string, Partial<GateOptions>, readonly string[]][] = [
  ["without a list of people", {}, [...CHAIN, ...NOBODY, ...ALIKE.filter((name) => !isAda(name))]],
  [
    "with a list of people",
    { people: PEOPLE },
    [...CHAIN, PAUL, "person:ines", "person:eve", "group:bank", ...NOBODY, ...ALIKE, ...CYRILLIC],
  ],
];

function isAda(name: string): boolean {
  return /ada/i.test(name);
}

type Attempt = (gate: Gate, id: string, by: string, hash: string) => Promise<unknown>;

/** How a question comes about, and what can be tried on it. */
interface Way {
  readonly ask: (world: InboxWorld, far: ReturnType<typeof lossy>) => Promise<string>;
  readonly tries: Readonly<Record<string, Attempt>>;
}

const confirm: Way["ask"] = async ({ gate }) =>
  decisionIdOf(await gate.sessions.open(ASKED).call(set("a", 1)));

const send = request("far.send", { what: "money" });
const settled: Way["tries"] = {
  happened: (gate, id, by, hash) => gate.interactions.settle(id, { hash, by, ...HAPPENED }),
  repeat: (gate, id, by, hash) => gate.interactions.settle(id, { hash, by, ...REPEAT }),
  give_up: (gate, id, by, hash) => gate.interactions.settle(id, { hash, by, ...GIVE_UP }),
};
const always: Way["tries"] = {
  "hand over to oneself": (gate, id, by) => gate.interactions.handOver(id, { by, to: by }),
  cancel: (gate, id, by) => gate.interactions.cancel(id, { by, reason: "no" }),
  "ask back": (gate, id, by) => gate.interactions.askBack(id, { by, text: "why?" }),
};

/** Approved by a person, lost on the way: the question about it is as much theirs as the call was. */
const lostAfterYes: Way["ask"] = async ({ gate }, far) => {
  far.losses.left = 1;
  const id = decisionIdOf(await gate.sessions.open(ASKED).call(send));
  const { hash } = await gate.interactions.get(id);
  await gate.interactions.approve(id, { hash, by: PERSON });
  return (await onlyOpen(gate)).id;
};

const WAYS: Readonly<Record<string, Way>> = {
  "a confirmation": {
    ask: confirm,
    tries: {
      "interactions.approve": (gate, id, by, hash) => gate.interactions.approve(id, { hash, by }),
      "interactions.approve for a factor": (gate, id, by, hash) =>
        gate.interactions.approve(id, { hash, by, factor: "review" }),
      "interactions.approveAll": async (gate, id, by, hash) => {
        const [item] = await gate.interactions.approveAll([{ id, hash }], { by });
        if (item?.outcome === "refused") throw Object.assign(new Error(), { code: item.code });
      },
      "interactions.approveAll with a veto": async (gate, id, by, hash) => {
        const [item] = await gate.interactions.approveAll([{ id, hash }], { by, veto: [id] });
        if (item?.outcome === "refused") throw Object.assign(new Error(), { code: item.code });
      },
      "interactions.edit": (gate, id, by, hash) =>
        gate.interactions.edit(id, { hash, by, inputs: { 0: { key: "a", value: 2 } } }),
      "interactions.reject": (gate, id, by, hash) => gate.interactions.reject(id, { hash, by }),
      ...always,
    },
  },
  "a confirmation that somebody else has edited": {
    async ask(world, far) {
      const id = await confirm(world, far);
      const { hash } = await world.gate.interactions.get(id);
      const inputs = { 0: { key: "a", value: 2 } };
      const edited = await world.gate.interactions.edit(id, { hash, by: OTHER, inputs });
      if (!edited.edited) throw new Error(edited.text);
      return edited.interaction.id;
    },
    tries: {
      "interactions.approve": (gate, id, by, hash) => gate.interactions.approve(id, { hash, by }),
      ...always,
    },
  },
  "the second of two votes": {
    async ask(world, far) {
      const id = await confirm(world, far);
      const { hash } = await world.gate.interactions.get(id);
      await world.gate.interactions.approve(id, { hash, by: OTHER });
      return id;
    },
    tries: {
      "interactions.approve": (gate, id, by, hash) => gate.interactions.approve(id, { hash, by }),
      ...always,
    },
  },
  "a question of the agent": {
    async ask({ gate }) {
      const asked = await gate.sessions.open(ASKED).ask({ callId: "q-1", text: "May I?" });
      return asked.interactionId;
    },
    tries: {
      answer: (gate, id, by, hash) => gate.interactions.answer(id, { hash, by, answer: "yes" }),
      ...always,
    },
  },
  "a lost call that the rules had allowed": {
    async ask({ gate }, far) {
      far.losses.left = 1;
      await gate.sessions.open(ASKED).call({ ...send, tool: "far.allowed" });
      return (await onlyOpen(gate)).id;
    },
    tries: { ...settled, ...always },
  },
  "a lost call that was approved": { ask: lostAfterYes, tries: { ...settled, ...always } },
  "a lost call that was repeated and lost again": {
    async ask(world, far) {
      const first = await lostAfterYes(world, far);
      far.losses.left = 1;
      const { hash } = await world.gate.interactions.get(first);
      await world.gate.interactions.settle(first, { hash, by: OTHER, ...REPEAT });
      return (await onlyOpen(world.gate)).id;
    },
    tries: { ...settled, ...always },
  },
  "an approved call that was lost and that a recovery has found": {
    ask: (world) => foundLost(world, send),
    tries: { ...settled, ...always },
  },
  "an allowed call that was lost and that a recovery has found": {
    ask: (world) => foundLost(world, { ...send, tool: "far.allowed" }),
    tries: { ...settled, ...always },
  },
};

/** The process goes away while the tool works; the next one cannot know what became of it. */
async function foundLost(world: InboxWorld, call: CallRequest): Promise<string> {
  // Timers of its own, never moved: a process that is gone renews nothing.
  const dying = world.again({ timers: manualTimers(manualClock(0)) });
  world.tap.before = ({ steps }) => {
    const settles = steps.some(({ op, table }) => op === "update" && table.name === "operations");
    if (settles) throw new Error("gone");
  };
  const answer = await dying.sessions
    .open(ASKED)
    .call(call)
    .catch(() => undefined);
  if (answer?.answer === "pending") {
    const { hash } = await dying.interactions.get(answer.decisionId);
    await dying.interactions.approve(answer.decisionId, { hash, by: PERSON }).catch(() => {});
  }
  world.tap.before = () => {};
  world.clock.advance(60_000);
  await world.gate.recover();
  return (await onlyOpen(world.gate)).id;
}

onStores("nobody decides what they asked for", (open) => {
  for (const [list, over, selves] of SELVES) {
    for (const [name, { ask, tries }] of Object.entries(WAYS)) {
      test(`${name}, ${list}: 0 accepted [T6]`, async () => {
        const far = lossy();
        const allowed = { ...far.tool, name: "far.allowed" };
        const policy = rules({ id: "a", effect: "allow", tool: "far.allowed", reason: "a test" });
        const two = [{ ...ONE_PERSON[0], name: "review", count: 2 }];
        const review = name.includes("votes") ? [{ tools: ["world.*"], requires: two }] : [];
        const base = { ...over, policy, review };
        const world = await open(base);
        world.gate.tools.register(far.tool);
        world.gate.tools.register(allowed);
        const again: InboxWorld["again"] = (more = {}) =>
          world.again({ ...base, tools: world.gate.tools, ...more });
        const id = await ask({ ...world, again }, far);
        const { gate, effects } = world;
        const before = await gate.interactions.get(id);
        const done = [...effects, ...far.sent];
        const accepted: string[] = [];
        for (const by of selves) {
          for (const [how, attempt] of Object.entries(tries)) {
            await attempt(gate, id, by, before.hash).then(
              () => accepted.push(`${JSON.stringify(by)}: ${how}`),
              (error: unknown) => {
                expect(error, `${by}: ${how}`).toHaveProperty("code", "not_allowed");
              },
            );
          }
        }
        const attempts = selves.length * Object.keys(tries).length;
        const figures = { attempts, accepted: accepted.length };
        record({ goal: "T6", what: "self-approval", figures });
        expect(accepted).toEqual([]);
        expect(await gate.interactions.get(id)).toEqual(before);
        expect([...effects, ...far.sent]).toEqual(done);
        // It was not refused for another reason: a person who did not ask gets through each first way.
        const [first] = Object.values(tries);
        await first?.(gate, id, PERSON, before.hash);
        expect((await gate.interactions.get(id)).status).toBe("resolved");
      });
    }
  }

  test("nothing is handed to somebody who asked for it, also by others [T6]", async () => {
    const { gate } = await open({ people: PEOPLE });
    const id = decisionIdOf(await gate.sessions.open(ASKED).call(set("a", 1)));
    for (const to of [...CHAIN, PAUL, "person:ines", ...NOBODY]) {
      const code = await codeOf(gate.interactions.handOver(id, { by: PERSON, to }));
      expect(code, to).toBe("not_allowed");
    }
    expect((await gate.interactions.get(id)).assignedTo).toBe("");
  });

  test("one person is one vote, under whatever spelling [T6]", async () => {
    const requires = [{ name: "review", count: 2 }];
    const { gate, effects } = await open({ review: [{ requires }] });
    const id = decisionIdOf(await gate.sessions.open(ASKED).call(set("a", 1)));
    const { hash } = await gate.interactions.get(id);
    for (const by of [PERSON, ...ALIKE.filter(isAda)]) {
      const { missing } = await gate.interactions.approve(id, { hash, by });
      expect(missing, by).toMatchObject([{ count: 1 }]);
    }
    expect(effects).toEqual([]);
    await gate.interactions.approve(id, { hash, by: OTHER });
    expect(effects).toHaveLength(1);
  });
});
