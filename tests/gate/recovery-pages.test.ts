// Recovery at the thousandth row: what cannot be carried on hides nothing behind it.

import { expect, test } from "vitest";
import { allowAlways, createStaging } from "../../src/gate/review.ts";
import { DECISIONS } from "../../src/model/decision.ts";
import { INTERACTIONS } from "../../src/model/interaction.ts";
import { type InboxWorld, lossy, onStores, yes } from "../interactions/inbox-world.ts";
import { AGENT, decisionIdOf, openGate, request } from "../support/port-world.ts";
import { scaled } from "../support/scale.ts";
import { sampleVerdictValidator, slowReview } from "../support/validators.ts";

const LEASE_MS = 1_000;
/** More than any page; the full count takes six seconds. */
const FAR = scaled({ test: 1_500, proof: 5_000, full: 5_000 });
const send = (what: string) => request("far.send", { what }, what);

/** This many approved calls with an unknown outcome. */
async function loseMany({ gate }: Pick<InboxWorld, "gate">, count: number): Promise<void> {
  const AT_ONCE = 250;
  for (let begun = 0; begun < count; begun += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - begun) }, (_, n) => begun + n);
    await Promise.all(
      some.map(async (n) => {
        const session = gate.sessions.open({ id: `lost-${n}`, agent: AGENT });
        const id = decisionIdOf(await session.call(send(`lost-${n}`)));
        expect((await yes(gate, id)).answers[0]?.answer).toBe("unknown");
      }),
    );
  }
}

/** Approved by a process that then went away. */
async function leaveApproved(
  { again, tap }: Pick<InboxWorld, "again" | "tap">,
  what = "last",
): Promise<string> {
  const dying = again({
    at(point) {
      if (point === "S4.after") throw new Error("gone");
    },
  });
  const session = dying.sessions.open({ id: "last", agent: AGENT });
  const id = decisionIdOf(await session.call(send(what)));
  tap.isApart = true;
  await expect(yes(dying, id)).rejects.toThrow("gone");
  tap.isApart = false;
  return id;
}

/** Beside the gate, as a platform does that stages, reviews and executes by itself. */
function outsideOf({ gate, clock }: Pick<InboxWorld, "gate" | "clock">) {
  return createStaging({
    store: gate.decisions,
    tech: sampleVerdictValidator("schema"),
    business: sampleVerdictValidator("limits"),
    guard: allowAlways,
    clock,
  });
}

test(`${FAR} lost outcomes in front do not keep recovery from an approved decision [B1]`, async () => {
  const far = lossy();
  const world = openGate({ tools: [far.tool], leaseMs: LEASE_MS });
  far.losses.left = FAR;
  await loseMany(world, FAR);
  const id = await leaveApproved(world);
  world.clock.advance(5 * LEASE_MS);
  expect((await world.gate.recover()).decisions.map((one) => one.id)).toEqual([id]);
  expect((await world.gate.decisions.get(id)).state).toBe("executed");
  expect(far.sent.filter((what) => what === "last")).toHaveLength(1);
  expect(await world.gate.recover()).toEqual({
    operations: [],
    decisions: [],
    proposals: [],
    left: [],
  });
}, 120_000);

onStores(
  "1,050 in front",
  (open) => {
    test("lost outcomes do not keep recovery from an approved decision [B1]", async () => {
      const far = lossy();
      const world = await open({ tools: [far.tool], leaseMs: LEASE_MS });
      far.losses.left = 1_050;
      await loseMany(world, 1_050);
      const id = await leaveApproved(world);
      world.clock.advance(5 * LEASE_MS);
      expect((await world.gate.recover()).decisions.map((one) => one.id)).toEqual([id]);
      expect(far.sent.filter((what) => what === "last")).toHaveLength(1);
    }, 120_000);

    test("decisions of another platform hide neither an approved call nor a proposal that was cut off [B1]", async () => {
      const far = lossy();
      const world = await open({ tools: [far.tool], leaseMs: LEASE_MS });
      const outside = outsideOf(world);
      const diff = { sourceTool: "erp", raw: new Uint8Array([1]), metadata: {} };
      await Promise.all(
        Array.from({ length: 1_050 }, async () => {
          await outside.stage("erp", diff);
          const { id } = await outside.stage("erp", diff);
          await outside.validateTech(id);
          await outside.validateBiz(id);
        }),
      );
      const id = await leaveApproved(world);
      const cut = world.again(
        slowReview((point) => {
          if (point === "S1.after") throw new Error("gone");
        }),
      );
      const session = cut.sessions.open({ id: "cut", agent: AGENT });
      await expect(session.call(send("cut"))).rejects.toThrow("gone");
      world.clock.advance(5 * LEASE_MS);
      const { decisions, proposals, left } = await world.gate.recover();
      expect(decisions.map((one) => one.id)).toEqual([id]);
      expect(proposals).toMatchObject([{ asked: true }]);
      expect(left).toEqual([]);
      // Another platform's own are left to it.
      const rejected = { states: ["rejected_tech", "rejected_ml", "failed"] } as const;
      expect(await outside.list({ sessionId: "erp", ...rejected })).toEqual([]);
    }, 120_000);

    test("a damaged record hides only itself: lists and recovery go on, and recovery names it [B5a]", async () => {
      const far = lossy();
      const world = await open({ tools: [far.tool], leaseMs: LEASE_MS });
      const broken = await leaveApproved(world);
      const session = world.gate.sessions.open({ id: "asked", agent: AGENT });
      const asked = decisionIdOf(await session.call(send("asked")));
      const second = decisionIdOf(await session.call(send("second")));
      const id = await leaveApproved(world, "the last");
      await world.tap.tamper(DECISIONS, broken, { tech_verdict: "no verdict" });
      await world.tap.tamper(INTERACTIONS, asked, { facts: "no facts" });
      const ids = (list: readonly { readonly id: string }[]) => list.map((one) => one.id);
      expect(ids(await world.gate.decisions.list())).toEqual([asked, second, id]);
      expect(ids(await world.gate.decisions.list({ limit: 1 }))).toEqual([asked]);
      expect(ids(await world.gate.interactions.list())).toEqual([second]);
      await expect(world.gate.decisions.get(broken)).rejects.toThrow("damaged_record");
      world.clock.advance(5 * LEASE_MS);
      expect(ids(await world.gate.decisions.listStuck("approved", LEASE_MS))).toEqual([id]);
      const { decisions, left } = await world.gate.recover();
      expect(ids(decisions)).toEqual([id]);
      expect(left).toMatchObject([{ id: broken, reason: expect.stringContaining("damaged") }]);
      world.clock.advance(25 * 3_600_000);
      expect((await world.gate.interactions.sweep()).expired).toEqual([second]);
    });
  },
  ["memory", "sqlite"],
);

test("calls whose tool is elsewhere do not keep recovery from the calls behind them [B1]", async () => {
  const far = lossy();
  const other = lossy("elsewhere.send");
  const world = openGate({ tools: [far.tool, other.tool], leaseMs: LEASE_MS });
  const dying = world.again({
    at(point) {
      if (point === "S5.after") throw new Error("gone");
    },
  });
  const calls = [...Array.from({ length: 1_020 }, () => "elsewhere.send"), "far.send"];
  for (const [n, tool] of calls.entries()) {
    const session = dying.sessions.open({ id: `s-${n}`, agent: AGENT });
    const id = decisionIdOf(await session.call(request(tool, { what: `${n}` }, `c-${n}`)));
    await yes(dying, id).catch(() => {});
  }
  world.clock.advance(5 * LEASE_MS);
  const here = world.again({ tools: [far.tool] });
  const { operations, left } = await here.recover();
  expect(operations).toHaveLength(1);
  expect(left).toHaveLength(1_020);
}, 120_000);

test("recovery does not report a proposal as left that it has just closed as overtaken [D9b]", async () => {
  const far = lossy();
  const world = openGate({ tools: [far.tool], leaseMs: LEASE_MS });
  const dying = world.again(
    slowReview((point) => {
      if (point === "S3.before") throw new Error("gone");
    }),
  );
  const call = { ...send("a"), key: "k" };
  const cut = dying.sessions.open({ id: "s", agent: AGENT });
  await expect(cut.call(call)).rejects.toThrow("gone");
  // The agent comes back and asks for the same call before anybody recovers.
  const id = decisionIdOf(await world.gate.sessions.open({ id: "s", agent: AGENT }).call(call));
  world.clock.advance(5 * LEASE_MS);
  const recovered = await world.gate.recover();
  expect(recovered).toMatchObject({ proposals: [{ asked: false }], left: [] });
  expect((await world.gate.interactions.list()).map((one) => one.id)).toEqual([id]);
});
