import assert from "node:assert/strict";
import fc from "fast-check";
import type { Session } from "../../src/gate/session.ts";
import type { Interaction } from "../../src/model/interaction.ts";
import { decisionIdOf, type GateWorld, openGate, request } from "../support/port-world.ts";
import { type Given, InboxModel, PEOPLE } from "./inbox-model.ts";
import { choices, chosen, command, type Ground, prove, said, tenantOf } from "./prove.ts";

interface Real {
  readonly ground: Ground;
  readonly world: GateWorld;
  readonly session: Session;
  readonly ids: string[];
}

const APPROVAL_MS = 2_000;
const OWNER = "person:owner";
const people = fc.constantFrom("person:ada", "person:ada", "person:bob", ...PEOPLE);
const given = fc.record<Given>({
  which: choices,
  by: people,
  rightHash: fc.constantFrom(true, true, true, true, false),
});
const outcomeOf = ({ outcome }: Interaction) => outcome ?? "open";

/** Where the decision behind a question stands once that is closed. */
const DECIDED = {
  open: "pending_ml",
  answered: "",
  approved: "executed",
  rejected: "rejected_ml",
  expired: "rejected_ml",
  canceled: "rejected_ml",
};

prove<InboxModel, Real>({
  what: "interactions and approvals: asked, answered once, in time, by whoever may [G15]",
  commands: [
    command("ask", fc.tuple(fc.nat({ max: 3 }), fc.constantFrom(1_000, 10_000)), ask),
    command("propose", fc.constantFrom(1, 2), propose),
    command("answer", fc.tuple(given, fc.constantFrom("north", "south")), answer),
    command("approve", given, approve),
    command("approve", given, approve),
    command("reject", given, async (model: InboxModel, real: Real, choice) => {
      const no = among(real, choice);
      const { gate } = real.world;
      const call = gate.interactions.reject(idOf(real, no), await shown(real, no));
      assert.equal(await said(call, outcomeOf), model.reject(no, real.ground.clock.now()));
    }),
    command("withdraw", given, async (model: InboxModel, real: Real, choice) => {
      const off = among(real, choice);
      const call = real.world.gate.interactions.cancel(idOf(real, off), {
        by: off.by,
        reason: "no longer needed",
      });
      assert.equal(await said(call, outcomeOf), model.cancel(off));
    }),
    command(
      "handOver",
      fc.tuple(given, people),
      async (model: InboxModel, real: Real, [choice, to]) => {
        const from = among(real, choice);
        const call = real.world.gate.interactions.handOver(idOf(real, from), { by: from.by, to });
        assert.equal(await said(call, outcomeOf), model.handOver(from, to));
      },
    ),
    command("sweep", fc.constant(0), async (model: InboxModel, { ground, world }: Real) => {
      const { expired } = await world.gate.interactions.sweep();
      assert.equal(expired.length, model.sweep(ground.clock.now()));
    }),
    command("wait", fc.constantFrom(1, 999, 1_001, 2_001), async (_, real: Real, ms) => {
      real.ground.clock.advance(ms);
    }),
  ],
  seen: ({ questions }) => questions.map(({ outcome }) => outcome),
  mustSee: Object.keys(DECIDED),
  begin(ground) {
    const world = openGate(
      {
        tenant: ground.tenant,
        approvalMs: APPROVAL_MS,
        review: [{ tools: ["world.set"], requires: [{ name: "review", count: 2 }] }],
      },
      { engine: ground.harness.engine, clock: ground.clock },
    );
    const session = world.gate.sessions.open({ id: "s-1", agent: "agent:one", owner: OWNER });
    return { model: new InboxModel(), real: { ground, world, session, ids: [] } };
  },
  async end(model, { ground, world, ids }) {
    const store = tenantOf(ground, 1);
    for (const [index, asked] of model.questions.entries()) {
      const stored = await store.interactions.get(ids[index] ?? "");
      const by = asked.outcome === "expired" ? "deadline" : asked.closedBy;
      assert.deepEqual(
        [outcomeOf(stored), stored.answeredBy, stored.answer ?? "", stored.assignedTo],
        [asked.outcome, by, asked.answer, asked.assignedTo],
      );
      assert.deepEqual(
        stored.votes.map((vote) => vote.by),
        asked.votes,
      );
      if (asked.type === "confirm") {
        const { state } = await store.decisions.get(stored.decisionId);
        assert.equal(state, DECIDED[asked.outcome]);
      }
    }
    const open = model.questions.filter(({ outcome }) => outcome === "open");
    assert.equal((await world.gate.interactions.list()).length, open.length);
    // I1, I7: what reached production is what was approved in full, each once.
    assert.equal(world.effects.length, model.effects);
    assert.equal(new Set(world.effects).size, model.effects);
  },
});

/** Asked again under the same id it is the same question, and its first deadline stays. */
async function ask(model: InboxModel, real: Real, [call, ms]: [number, number]) {
  const got = await real.session.ask({ callId: `q-${call}`, text: `${call}?`, deadlineMs: ms });
  const known = model.byCall.get(call);
  if (known === undefined) {
    model.byCall.set(call, model.open("ask_user", 1, real.ground.clock.now() + ms));
    real.ids.push(got.interactionId);
    assert.equal(got.answer, "pending");
    return;
  }
  const expected = { open: "pending", answered: "answered" }[known.outcome as "open" | "answered"];
  assert.equal(got.answer, expected ?? "unanswered");
  if (got.answer === "answered") {
    assert.deepEqual([got.value, got.by], [known.answer, known.closedBy]);
  }
}

async function propose(model: InboxModel, real: Real, needs: number) {
  // A key of its own, so that no proposal changes what another one was shown.
  const key = `k-${real.ids.length}`;
  const tool = needs === 2 ? "world.set" : "world.blind";
  const id = decisionIdOf(await real.session.call(request(tool, { key, value: 1 }, key)));
  real.ids.push(id);
  model.open("confirm", needs, real.ground.clock.now() + APPROVAL_MS);
}

async function answer(model: InboxModel, real: Real, [choice, text]: [Given, string]) {
  const how = among(real, choice);
  const given_ = { ...(await shown(real, how)), answer: text };
  const call = real.world.gate.interactions.answer(idOf(real, how), given_);
  assert.equal(await said(call, outcomeOf), model.answer(how, text, real.ground.clock.now()));
}

async function approve(model: InboxModel, real: Real, choice: Given) {
  const yes = among(real, choice);
  const { gate } = real.world;
  const call = gate.interactions.approve(idOf(real, yes), await shown(real, yes));
  const heard = await said(call, ({ interaction }) => outcomeOf(interaction));
  assert.equal(heard, model.approve(yes, real.ground.clock.now()));
}

async function shown({ world, ids }: Real, { which, rightHash, by }: Given) {
  const id = ids[which];
  const hash = id !== undefined && rightHash ? (await world.gate.interactions.get(id)).hash : "";
  return { hash: hash || "f".repeat(64), by };
}

function among({ ids }: Real, choice: Given): Given {
  return { ...choice, which: chosen(choice.which, ids.length) };
}

function idOf({ ids }: Real, { which }: Given): string {
  return ids[which] ?? "nowhere";
}
