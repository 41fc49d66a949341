import { type AtPoint, type CrashPoint, type Gate, type GateOptions, verifyStore } from "sallyport";
import { describe, expect, test } from "vitest";
import { forEachStore } from "../support/for-each-store.ts";
import { scaled } from "../support/scale.ts";
import { STORE_NAMES, type StoreName } from "../support/stores.ts";
import {
  ADA,
  buildWarehouse,
  call,
  eventsOf,
  LEASE_MS,
  nextProcess,
  PICKER,
  sayYes,
  waitingFor,
} from "./warehouse.ts";

const OPEN = { id: "s-1", agent: PICKER };
const takeTen = () => call("stock.set", { sku: "bolt", amount: 30 }, { key: "ten" });

/** For a process that is gone at this point. */
function cutOffAfter(point: CrashPoint): AtPoint {
  return (passed) => {
    if (passed === point) throw new Error("cut off");
  };
}

/** Where people's decisions are counted, a yes is written before its intent. */
const COUNTED = { attention: { onProblem: () => {} } };

/** Postgres has its turn in every proof; in `npm test` it would cost seconds that the story of one decision takes already. */
const STORES = scaled<readonly StoreName[]>({
  test: ["memory", "sqlite"],
  proof: STORE_NAMES,
  full: STORE_NAMES,
});

forEachStore(
  "the warehouse [I-83]",
  (open) => {
    async function start(over: Partial<GateOptions> = {}) {
      const place = await open();
      const warehouse = buildWarehouse();
      const gate = await nextProcess(place, warehouse, over);
      /** Nothing but this was done to the shelves, and the trail is whole. */
      const ends = async (...done: readonly string[]) => {
        expect(warehouse.ledger).toEqual(done);
        expect(await verifyStore(place.store)).toMatchObject({ ok: true, problems: [] });
      };
      const { clock } = place;
      const restart = (more: Partial<GateOptions> = {}) => nextProcess(place, warehouse, more);
      return { warehouse, gate, session: gate.sessions.open(OPEN), ends, clock, restart };
    }

    const stateOf = async (gate: Gate, id: string) => (await gate.decisions.get(id)).state;

    describe("every outcome of a decision [I-83]", () => {
      test("happy path: reviewed twice, confirmed, written once, reported [I-83]", async () => {
        const { gate, session, ends, warehouse } = await start();
        const id = waitingFor(await session.call(takeTen()));
        await ends();
        expect((await sayYes(gate, id))[0]).toMatchObject({ answer: "done", text: "bolt: 30" });
        expect(await stateOf(gate, id)).toBe("executed");
        expect(warehouse.shelves.get("bolt")).toBe(30);
        expect((await session.call(takeTen())).answer, "asked for again: the same answer").toBe(
          "done",
        );
        await ends("set bolt 30");
      });

      test("tech rejection: an unknown shelf is rejected before a person is asked [I-83]", async () => {
        const { gate, session, ends } = await start();
        const answer = await session.call(call("stock.set", { sku: "unicorn", amount: 1 }));
        expect(answer).toMatchObject({ answer: "denied" });
        expect(answer.text).toContain("known-shelf does not hold");
        expect(await gate.interactions.list()).toEqual([]);
        const [decision] = await gate.decisions.list();
        expect(decision).toMatchObject({
          state: "rejected_tech",
          techVerdict: { approved: false },
        });
        await ends();
      });

      test("business rejection: too many items are rejected by the business review [I-83]", async () => {
        const { gate, session, ends } = await start();
        const answer = await session.call(call("stock.set", { sku: "bolt", amount: 500 }));
        expect(answer).toMatchObject({ answer: "denied" });
        expect(answer.text).toContain("below-hundred does not hold");
        expect(await gate.interactions.list()).toEqual([]);
        const [decision] = await gate.decisions.list();
        expect(decision).toMatchObject({
          state: "rejected_ml",
          techVerdict: { approved: true },
          bizVerdict: { approved: false, validator: "below-hundred" },
        });
        await ends();
      });

      test("guard denial then retry: denied at both reviews, asked again, executed [I-83]", async () => {
        const { gate, session, ends, warehouse, clock } = await start();
        warehouse.counting = true;
        const id = waitingFor(await session.call(takeTen()));
        expect(await stateOf(gate, id), "nothing stored").toBe("pending_tech");
        expect(await gate.interactions.list()).toEqual([]);
        clock.advance(LEASE_MS);
        expect((await gate.recover()).left, "still counting").toMatchObject([{ id }]);
        warehouse.counting = false;
        expect((await gate.recover()).proposals).toEqual([{ id, asked: true }]);
        warehouse.counting = true;
        await expect(sayYes(gate, id)).rejects.toMatchObject({ code: "dependency_denied" });
        expect(await gate.interactions.get(id)).toMatchObject({ status: "open", votes: [] });
        expect(await stateOf(gate, id)).toBe("pending_ml");
        await ends();
        warehouse.counting = false;
        await sayYes(gate, id);
        expect(await stateOf(gate, id)).toBe("executed");
        await ends("set bolt 30");
      });

      test("checkpoint denied: the person at the shelf says no [I-83]", async () => {
        const asked: string[] = [];
        const { session, gate, ends } = await start({
          checkpoint({ tool }) {
            asked.push(tool);
            return { answer: "refuse", reason: "somebody ordered these" };
          },
        });
        const answer = await session.call(call("stock.scrap", { sku: "lamp" }));
        expect(answer).toMatchObject({ answer: "denied", findings: [{ policy: "checkpoint" }] });
        expect(answer.text).toContain("somebody ordered these");
        expect(asked).toEqual(["stock.scrap"]);
        expect(await eventsOf(gate)).toEqual(["call.denied"]);
        await ends();
      });

      test("confidence too low: denied with the required value; with enough a person is asked [I-83]", async () => {
        const { session, gate, ends } = await start();
        const ship = (sure: number) =>
          session.call(call("parcels.ship", { sku: "lamp", amount: 1, _confidence: sure }));
        const unsure = await ship(79);
        expect(unsure).toMatchObject({ answer: "denied", findings: [{ policy: "confidence" }] });
        expect(unsure.text).toContain("80");
        await ends();
        await sayYes(gate, waitingFor(await ship(80)));
        await ends("ship lamp 1");
      });

      test("confirmation rejected: final, returned to the agent, and nothing stays approved [I-83]", async () => {
        const { session, gate, ends, clock } = await start();
        const id = waitingFor(await session.call(takeTen()));
        const { hash } = await gate.interactions.get(id);
        await gate.interactions.reject(id, { hash, by: ADA, reason: "they are reserved" });
        const answer = await session.resultOf("ten");
        expect(answer).toMatchObject({ answer: "denied" });
        expect(answer?.text).toContain("they are reserved");
        await expect(sayYes(gate, id)).rejects.toMatchObject({ code: "already_answered" });
        clock.advance(LEASE_MS);
        expect(await gate.decisions.listStuck("approved", 0)).toEqual([]);
        expect((await gate.recover()).decisions).toEqual([]);
        await ends();
      });

      test("crash between approval and report: found by listStuck, executed once or asked about, never twice [I-83]", async () => {
        const { session, ends, clock, restart, warehouse } = await start();
        const id = waitingFor(await session.call(takeTen()));
        const dying = await restart({ at: cutOffAfter("S4.after"), ...COUNTED });
        await expect(sayYes(dying, id)).rejects.toThrow("cut off");
        expect(await stateOf(dying, id)).toBe("approved");
        await ends();
        const gate = await restart();
        expect(await gate.decisions.listStuck("approved", LEASE_MS)).toEqual([]);
        clock.advance(LEASE_MS);
        expect((await gate.decisions.listStuck("approved", LEASE_MS)).map((one) => one.id)).toEqual(
          [id],
        );
        expect((await gate.recover()).decisions).toMatchObject([
          { id, answers: [{ answer: "done" }] },
        ]);
        expect(await stateOf(gate, id)).toBe("executed");

        // The other moment: it happened without a report. A person finds out; nothing is repeated.
        warehouse.silentCarrier = true;
        const parcel = call("parcels.ship", { sku: "lamp", amount: 1, _confidence: 90 });
        const shipping = waitingFor(await gate.sessions.open(OPEN).call(parcel));
        void sayYes(await restart(), shipping);
        while (warehouse.ledger.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
        clock.advance(LEASE_MS + 1);
        const stuck = await gate.decisions.listStuck("approved", LEASE_MS);
        expect(stuck.map((one) => one.id)).toEqual([shipping]);
        expect((await gate.recover()).operations).toMatchObject([
          { answer: { answer: "unknown" } },
        ]);
        const [lost] = await gate.interactions.list();
        expect(lost?.type).toBe("connection_lost");
        const found = { hash: lost?.hash ?? "", by: ADA, happened: true } as const;
        await gate.interactions.settle(lost?.id ?? "", found);
        expect(await stateOf(gate, shipping)).toBe("executed");
        expect((await gate.recover()).operations).toEqual([]);
        await ends("set bolt 30", "ship lamp 1");
      });

      test("rollback of a message: its calls are undone in reverse order, earlier ones stay [I-83]", async () => {
        const { session, gate, ends, warehouse } = await start();
        const set = (sku: string, amount: number, messageId: string) =>
          session.call(call("stock.set", { sku, amount }, { messageId }));
        for (const answer of [
          await set("bolt", 30, "m-1"),
          await set("bolt", 20, "m-2"),
          await set("nut", 50, "m-2"),
        ]) {
          const id = waitingFor(answer);
          const [ran] = await sayYes(gate, id);
          // The second one was shown before the first had changed the shelf: it is asked about again.
          if (ran?.answer === "pending") await sayYes(gate, waitingFor(ran));
        }
        const report = await session.rollback(ADA, { messageId: "m-2" });
        expect(report.undone).toHaveLength(2);
        expect([...warehouse.shelves]).toEqual([
          ["bolt", 30],
          ["nut", 60],
          ["lamp", 5],
        ]);
        expect((await session.rollback(ADA, { messageId: "m-2" })).undone).toEqual([]);
        await ends("set bolt 30", "set bolt 20", "set nut 50", "set nut 60", "set bolt 30");
      });

      test("two workers race for one task: one gets it, and only the holder can execute [I-83]", async () => {
        const { gate, restart, ends, clock } = await start();
        const other = await restart();
        const { id } = await gate.tasks.add({ subject: "take ten bolts" });
        const workers = [gate, other] as const;
        const claims = await Promise.allSettled(
          workers.map((one, n) =>
            one.tasks.claim({ id, claimer: `agent:${n}`, leaseMs: LEASE_MS }),
          ),
        );
        const won = claims.findIndex(({ status }) => status === "fulfilled");
        const lost = claims[1 - won];
        expect(claims.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
        const code = lost?.status === "rejected" ? lost.reason.code : "";
        expect(["not_claimable", "concurrent_modification"]).toContain(code);
        const [winner, loser] = won === 0 ? [gate, other] : [other, gate];
        const { version: fence } = await winner.tasks.get(id);
        const take = (of: Gate, agent: string, claim: { id: string; fence: number }) =>
          of.sessions.open({ agent, claim }).call(call("stock.set", { sku: "bolt", amount: 30 }));
        const waiting = waitingFor(await take(winner, `agent:${won}`, { id, fence }));
        expect((await take(loser, `agent:${1 - won}`, { id, fence: fence + 1 })).answer).toBe(
          "denied",
        );
        // The winner falls asleep; the loser takes over, and what the winner had asked for does not run any more.
        clock.advance(LEASE_MS + 1);
        const again = await loser.tasks.claim({
          id,
          claimer: `agent:${1 - won}`,
          leaseMs: LEASE_MS,
        });
        expect((await sayYes(gate, waiting))[0]?.answer).toBe("failed");
        await ends();
        const mine = { id, fence: again.version };
        await sayYes(gate, waitingFor(await take(loser, `agent:${1 - won}`, mine)));
        await ends("set bolt 30");
        await expect(winner.tasks.complete({ id, fence, result: "I did" })).rejects.toMatchObject({
          code: "claim_lost",
        });
        expect((await loser.tasks.complete({ ...mine, result: "done" })).status).toBe("completed");
      });
    });
  },
  STORES,
);
