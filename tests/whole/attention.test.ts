import { allowAlways, type Gate, type GateOptions, verifyStore } from "sallyport";
import { createStore, type Engine } from "sallyport/store";
import { expect, test } from "vitest";
import { openHttp } from "../http/http-world.ts";
import { createDice } from "../support/dice.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { STORE_NAMES, type StoreName, startStores } from "../support/stores.ts";
import {
  ADA,
  buildWarehouse,
  call,
  eventsOf,
  LEASE_MS,
  nextProcess,
  openGate,
  PICKER,
  waitingFor,
} from "./warehouse.ts";

const BOB = "person:bob";
const OPERATOR = "person:op";
const SEED = process.env["ATTENTION_SEED"] ?? String(Date.now());
/** Only these questions are about lamps. */
const BAD = { agent: PICKER, tool: "stock.set", input: { sku: "lamp", amount: 66 } } as const;
const isBad = (question: { readonly pendingTool?: { readonly args_json: string } | undefined }) =>
  question.pendingTool?.args_json.includes("lamp") === true;

/** Postgres has its turn in every proof; in `npm test` it would cost seconds that the story of one decision takes already. */
const STORES = scaled<readonly StoreName[]>({
  test: ["memory", "sqlite"],
  proof: STORE_NAMES,
  full: STORE_NAMES,
});

forEachStore(
  "reviewers who approve without reading [T2]",
  (open) => {
    async function start(attention: Partial<NonNullable<GateOptions["attention"]>> = {}) {
      const place = await open();
      const warehouse = buildWarehouse();
      const problems: unknown[] = [];
      const watched = {
        decoys: [BAD],
        rate: 1,
        onProblem: (error: unknown) => problems.push(error),
        ...attention,
      };
      const over = { guard: allowAlways, validators: agreeing(), attention: watched };
      const gate = await nextProcess(place, warehouse, over);
      const blind = () =>
        nextProcess(place, warehouse, { guard: allowAlways, validators: agreeing() });
      const { ledger } = warehouse;
      return { place, gate, blind, ledger, problems, clock: place.clock };
    }

    const take = async (gate: Gate, n = 1) =>
      waitingFor(
        await gate.sessions
          .open({ agent: PICKER })
          .call(call("parcels.ship", { sku: "nut", amount: n, _confidence: 90 })),
      );

    const say =
      (gate: Gate, by: string) =>
      async (question: { readonly id: string; readonly hash: string }) =>
        gate.interactions.approve(question.id, { hash: question.hash, by });

    test("a reviewer who approves everything loses the right after three decoys, none of which is executed [T2]", async () => {
      const { gate, ledger, problems, place } = await start();
      for (let n = 1; n <= 5; n += 1) await take(gate, n);
      const questions = await gate.interactions.list();
      expect(questions).toHaveLength(10);
      let stopped = 0;
      for (const question of questions) {
        const answer = await say(gate, ADA)(question).catch((error: unknown) => error);
        if (answer instanceof Error) {
          expect(answer).toMatchObject({ code: "not_allowed" });
          expect(answer.message).toContain("An operator has to restore");
          stopped += 1;
        }
      }
      const [ada] = await gate.reviewers.list();
      expect(ada).toMatchObject({ id: ADA, status: "suspended", missed: 3, approved: 3 });
      expect(stopped, "everything after the third decoy").toBe(4);
      expect(ledger).toEqual(["ship nut 1", "ship nut 2", "ship nut 3"]);
      expect(await eventsOf(gate)).toContain("reviewer.suspended");

      // Others continue; only another operator restores the right.
      const [left] = (await gate.interactions.list()).filter((one) => !isBad(one));
      const self = gate.reviewers.restore(ADA, { by: ADA, reason: "I will look" });
      await expect(self).rejects.toMatchObject({ code: "not_allowed" });
      await say(gate, BOB)(left!);
      expect(ledger).toHaveLength(4);
      await gate.reviewers.restore(ADA, { by: OPERATOR, reason: "we talked" });
      const [last] = (await gate.interactions.list()).filter((one) => !isBad(one));
      await say(gate, ADA)(last!);
      expect(ledger).toHaveLength(5);
      expect(problems).toEqual([]);
      expect(await verifyStore(place.store)).toMatchObject({ ok: true });
    });

    test("a careful reviewer keeps the right, and the record shows the decisions [T2]", async () => {
      const { gate, ledger } = await start();
      for (let n = 1; n <= 4; n += 1) await take(gate, n);
      for (const question of await gate.interactions.list()) {
        const { id, hash } = question;
        if (isBad(question)) await gate.interactions.reject(id, { hash, by: ADA, reason: "no" });
        else await say(gate, ADA)(question);
      }
      const [ada] = await gate.reviewers.list();
      expect(ada).toMatchObject({
        status: "trusted",
        approved: 4,
        rejected: 0,
        caught: 4,
        missed: 0,
      });
      expect(ledger).toHaveLength(4);
    });

    test("no path executes a decoy: without a watch, edited, recovered, reassigned, asked twice [T2]", async () => {
      const { gate, blind, ledger, clock } = await start();
      for (let n = 1; n <= 3; n += 1) await take(gate, n);
      const [one, two, three] = (await gate.interactions.list()).filter(isBad);
      // A process that was started without the option knows nothing of decoys, and executes none.
      const unwatched = await blind();
      expect((await say(unwatched, ADA)(one!)).answers).toMatchObject([{ answer: "failed" }]);
      const inputs = { 0: { sku: "lamp", amount: 5 } };
      const edited = await gate.interactions.edit(two!.id, { hash: two!.hash, by: BOB, inputs });
      expect(edited).toMatchObject({ edited: false });
      await gate.interactions.handOver(three!.id, { by: ADA, to: BOB });
      await say(gate, BOB)(three!);
      await expect(say(gate, BOB)(three!)).rejects.toMatchObject({ code: "already_answered" });
      clock.advance(LEASE_MS * 2);
      for (const each of [gate, unwatched]) await each.recover();
      expect(ledger).toEqual([]);
      const bad = await gate.decisions.list({ states: ["executed", "approved"] });
      expect(bad).toEqual([]);
    });

    test("a decoy looks like any other question to people, in the audit log and to a recovery [T2]", async () => {
      const { gate, clock } = await start();
      await take(gate, 1);
      const [real, decoy] = await gate.interactions.list();
      expect(Object.keys(decoy!).toSorted()).toEqual(Object.keys(real!).toSorted());
      expect(JSON.stringify([decoy, await gate.decisions.get(decoy!.id)])).not.toMatch(
        // As words: ids are made of letters too.
        /decoy|\bbad\b/i,
      );
      const trail = await gate.audit.read({ after: 0, limit: 100 });
      const typesOf = (id: string) =>
        trail.filter(({ subject }) => subject === id).map(({ type }) => type);
      expect(typesOf(decoy!.id)).toEqual(typesOf(real!.id));
      clock.advance(LEASE_MS * 2);
      expect((await gate.recover()).proposals).toEqual([]);
    });

    test("an interrupted decoy becomes no question, and the real one is asked [T2]", async () => {
      const { place, blind, problems, clock } = await start();
      const engine: Engine = {
        ...place.engine,
        async commit(tenant, change) {
          if (change.steps.some((step) => step.table.name === "decoys")) throw new Error("cut off");
          return place.engine.commit(tenant, change);
        },
      };
      const watched = {
        decoys: [BAD],
        rate: 1,
        onProblem: (error: unknown) => problems.push(error),
      };
      const over = { guard: allowAlways, validators: agreeing(), attention: watched, clock };
      const store = createStore(engine, { redact: (_tenant, data) => data });
      await take(openGate(store, buildWarehouse(), over));
      expect(problems).toHaveLength(1);
      clock.advance(LEASE_MS * 2);
      const gate = await blind();
      expect((await gate.recover()).proposals).toEqual([]);
      expect((await gate.interactions.list()).filter(isBad)).toEqual([]);
      expect(await gate.interactions.list()).toHaveLength(1);
    });

    test("approvals per hour are limited to what a person can read [T2]", async () => {
      const { gate, ledger, clock } = await start({ rate: 0, yesesPerHour: 3 });
      for (let n = 1; n <= 5; n += 1) await take(gate, n);
      const questions = await gate.interactions.list();
      for (const question of questions.slice(0, 3)) await say(gate, ADA)(question);
      const fourth = say(gate, ADA)(questions[3]!);
      await expect(fourth).rejects.toMatchObject({ code: "not_allowed" });
      await expect(fourth).rejects.toThrow("Hand it over");
      expect(ledger).toHaveLength(3);
      // A rejection always counts, and so does another person's approval.
      const { id, hash } = questions[4]!;
      await gate.interactions.reject(id, { hash, by: ADA, reason: "no" });
      clock.advance(3_600_001);
      await say(gate, ADA)(questions[3]!);
      expect(ledger).toHaveLength(4);
    });
  },
  STORES,
);

test(`at one or two decoys in a hundred a blind approver is detected, a careful one is not (seed ${SEED}) [T2]`, async () => {
  const CALLS = scaled({ test: 300, proof: 1_000, full: 10_000 });
  const figures = {
    questions: 0,
    decoys: 0,
    "decoys executed": 0,
    "misses before suspension": 0,
    "careful ones suspended": 0,
    "caught by the careful one %": 0,
  };
  const stores = await startStores.memory();
  const place = await stores.open();
  const warehouse = buildWarehouse();
  const dice = createDice(SEED);
  const gate = await nextProcess(place, warehouse, {
    guard: allowAlways,
    validators: agreeing(),
    random: { bytes: (length) => Uint8Array.from({ length }, () => dice.below(256)) },
    attention: {
      decoys: [BAD],
      rate: 0.02,
      onProblem: (error) => expect.unreachable(String(error)),
    },
  });
  for (let n = 1; n <= CALLS; n += 1) {
    const session = gate.sessions.open({ id: "s", agent: PICKER });
    await session.call(call("parcels.ship", { sku: "nut", amount: n, _confidence: 90 }));
    for (const question of await gate.interactions.list()) {
      figures.questions += 1;
      const { id, hash } = question;
      if (isBad(question)) figures.decoys += 1;
      const careful = { hash, by: BOB };
      // Half of them go to a careful reviewer, half to a careless one.
      const isBlind = dice.below(2) === 0;
      const blind = isBlind
        ? await gate.interactions.approve(id, { hash, by: ADA }).catch(() => undefined)
        : undefined;
      if (blind !== undefined) continue;
      if (isBad(question)) await gate.interactions.reject(id, { ...careful, reason: "no" });
      else await gate.interactions.approve(id, careful);
    }
  }
  const [ada, bob] = [ADA, BOB].map((id) =>
    gate.reviewers.list().then((all) => all.find((one) => one.id === id)),
  );
  const [blindOne, carefulOne] = [await ada, await bob];
  figures["misses before suspension"] = blindOne?.missed ?? 0;
  figures["careful ones suspended"] = carefulOne?.status === "suspended" ? 1 : 0;
  figures["decoys executed"] = warehouse.ledger.filter((line) => line.includes("lamp")).length;
  const seen = (carefulOne?.caught ?? 0) + (carefulOne?.missed ?? 0);
  figures["caught by the careful one %"] =
    seen === 0 ? 0 : (100 * (carefulOne?.caught ?? 0)) / seen;
  record({
    goal: "T2",
    what: "decoys at 2 %, one blind and one careful reviewer",
    figures,
    seed: SEED,
  });
  await place.close();
  await stores.stop();
  if (figures.decoys >= 12) expect(blindOne?.status, `ATTENTION_SEED=${SEED}`).toBe("suspended");
  expect(figures.decoys, `void: too few decoys, ATTENTION_SEED=${SEED}`).toBeGreaterThan(0);
  expect(figures).toMatchObject({ "decoys executed": 0, "careful ones suspended": 0 });
  expect(figures["misses before suspension"]).toBeLessThanOrEqual(3);
});

test("over HTTP only another operator sees blind approvers and restores the right [T2]", async () => {
  const decoy = { agent: "agent:one", tool: "world.blind", input: { key: "bad" } };
  const onProblem = (error: unknown) => expect.unreachable(String(error));
  const world = await openHttp({
    port: { attention: { decoys: [decoy], rate: 1, misses: 1, onProblem } },
  });
  const [agent, ada, operator] = await Promise.all([
    world.client("acme", "agent"),
    world.client("acme", "reviewer", ADA),
    world.client("acme", "operator", OPERATOR),
  ]);
  const { id } = await agent.sessions.open({});
  await agent.sessions.call({ id, callId: "c", tool: "world.set", input: { key: "a", value: 1 } });
  const { items } = await ada.interactions.list({});
  const [real, bad] = items;
  await ada.interactions.approve({ id: bad!.id, hash: bad!.hash });
  const refused = ada.interactions.approve({ id: real!.id, hash: real!.hash });
  await expect(refused).rejects.toMatchObject({ code: "not_allowed" });
  expect(world.worlds.acme.effects).toEqual([]);
  expect((await operator.reviewers.list({})).items).toMatchObject([
    { id: ADA, status: "suspended", missed: 1 },
  ]);
  for (const client of [ada, agent]) {
    await expect(client.reviewers.restore({ id: ADA, reason: "please" })).rejects.toMatchObject({
      code: "not_allowed",
    });
  }
  await operator.reviewers.restore({ id: ADA, reason: "we talked" });
  await ada.interactions.approve({ id: real!.id, hash: real!.hash });
  expect(world.worlds.acme.effects).toHaveLength(1);
});

function agreeing() {
  const yes = (name: string) => ({
    name,
    review: () =>
      ({
        approved: true,
        score: 1,
        severity: "",
        reason: "",
        validator: name,
        policyVersion: "1",
      }) as const,
  });
  return { tech: yes("tech"), business: yes("business") };
}
