// The single-use right of an external executor to execute one approved decision.

import { expect, test } from "vitest";
import type { PermitOutcome } from "../../src/gate/permit.ts";
import { newDraft } from "../../src/model/decision.ts";
import {
  codeOf,
  counted,
  DAY,
  GIVE_UP,
  HAPPENED,
  OTHER,
  onlyOpen,
  onStores,
  REPEAT,
  seen,
  yes,
} from "../interactions/inbox-world.ts";
import { AGENT, decisionIdOf, rules } from "../support/port-world.ts";
import { STORE_NAMES } from "../support/stores.ts";
import {
  approvedOne,
  deploy,
  deployTool,
  EXECUTOR,
  executed,
  failed,
  held,
  LEASE,
  SECOND,
  stagedOutside,
  take,
} from "./permit-world.ts";

onStores(
  "permits",
  (open) => {
    test("the executor gets the approved bytes, reports, and the agent reads the outcome", async () => {
      const { gate, id } = await approvedOne(open, { ...deploy(), key: "k" });
      const permit = await take(gate, id);
      const { hash } = await gate.interactions.get(id);
      expect(permit).toMatchObject({ decisionId: id, sessionId: "s-1", fence: 1, hash });
      expect(permit.calls?.[0]).toMatchObject({ tool: "ops.deploy", input: { version: 1 } });
      expect(permit.raw).toEqual((await gate.decisions.get(id)).diff.raw);
      const session = gate.sessions.open({ id: "s-1", agent: AGENT });
      expect(await session.resultOf("k")).toMatchObject({ answer: "pending" });
      const closed = await gate.permits.report(permit.id, executed(permit));
      expect(closed).toMatchObject({ state: "executed", executionProof: { run: 7 } });
      expect(await session.resultOf("k")).toMatchObject({ answer: "done", text: "deployed" });
      const rolledBack = await session.rollback("person:ada");
      expect(rolledBack.irreversible.map(({ tool }) => tool)).toEqual(["ops.deploy"]);
    });

    test("an approval does not execute a tool of external executors, nor does recovery", async () => {
      const { gate, id, clock } = await approvedOne(open);
      clock.advance(10 * LEASE);
      expect((await gate.recover()).decisions).toEqual([]);
      expect((await gate.decisions.get(id)).state).toBe("approved");
      expect(await gate.operations.listBySession("s-1")).toEqual([]);
    });

    test("of twenty executors that take at the same time one gets the permit, and it is used once", async () => {
      const { gate, id } = await approvedOne(open);
      const tries = Array.from({ length: 20 }, (_, n) =>
        take(gate, id, `exec:${n}`).then(
          (permit) => ({ permit, by: `exec:${n}` }),
          (error) => error.code,
        ),
      );
      const answers = await Promise.all(tries);
      const taken = answers.flatMap((one) => (typeof one === "string" ? [] : [one]));
      expect(taken).toHaveLength(1);
      expect(answers.filter((one) => one === "permit_taken")).toHaveLength(19);
      const { permit, by } = taken[0] as (typeof taken)[number];
      await gate.permits.report(permit.id, { ...executed(permit), by });
      expect(["permit_taken", "illegal_transition"]).toContain(await codeOf(take(gate, id)));
      expect((await counted(gate))["operation.started"]).toBe(1);
    });

    test("no permit before approval, after the deadline, for another hash, or while stopped", async () => {
      const world = await open({ tools: [deployTool()], leaseMs: LEASE });
      const { gate, clock } = world;
      const session = gate.sessions.open({ id: "s-1", agent: AGENT });
      const id = decisionIdOf(await session.call(deploy()));
      expect(await codeOf(take(gate, id))).toBe("illegal_transition");
      await yes(gate, id);
      const other = gate.permits.take(id, { by: EXECUTOR, hash: "0".repeat(64) });
      expect(await codeOf(other)).toBe("approval_void");
      await gate.killSwitch.stop("something is wrong", { actor: "person:op" });
      expect(await codeOf(take(gate, id))).toBe("stopped");
      await gate.killSwitch.resume("it was nothing", { actor: "person:op" });
      clock.advance(2 * DAY);
      expect(await codeOf(take(gate, id))).toBe("approval_void");
      expect(await gate.operations.listBySession("s-1")).toEqual([]);
    });

    test("a stop between the look and the write refuses the permit in its own transaction", async () => {
      const world = await approvedOne(open);
      const { gate, id, tap } = world;
      tap.before = async ({ steps }) => {
        if (!steps.some(({ op, table }) => op === "insert" && table.name === "operations")) return;
        tap.before = () => {};
        await gate.killSwitch.stop("now", { actor: "person:op" });
      };
      expect(await codeOf(take(gate, id))).toBe("stopped");
      expect(await gate.operations.listBySession("s-1")).toEqual([]);
    });

    test("a permit is refused once the tool or the rules have changed, and people are asked anew", async () => {
      const { id, restart } = await approvedOne(open);
      const changed = await restart({ tools: [deployTool("Deploys a service, and restarts it.")] });
      expect(await codeOf(take(changed, id))).toBe("approval_void");
      expect((await changed.decisions.get(id)).state).toBe("failed");
      expect((await onlyOpen(changed)).id).not.toBe(id);
      const second = await approvedOne(open);
      const policy = rules({ id: "no", effect: "deny", tool: "ops.deploy", reason: "a freeze" });
      const frozen = await second.restart({ policy });
      expect(await codeOf(take(frozen, second.id))).toBe("approval_void");
      expect((await frozen.decisions.get(second.id)).state).toBe("failed");
    });

    test("a decision that the gate executes itself has no permit, and calls of both kinds are not staged together", async () => {
      const world = await open({ leaseMs: LEASE });
      const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
      const own = { callId: "c", tool: "world.set", input: { key: "a", value: 1 } };
      const id = decisionIdOf(await session.call(own));
      await world.gate.killSwitch.stop("held", { actor: "person:op" });
      await yes(world.gate, id);
      expect(await codeOf(take(world.gate, id))).toBe("not_allowed");
      const both = await open({ tools: [deployTool(), world.tools.set] });
      const mixed = await both.gate.sessions.open({ agent: AGENT }).stage([own, deploy()]);
      expect(mixed).toMatchObject({ answer: "failed", text: expect.stringContaining("apart") });
    });

    test("only its executor reports, renews and gives back, and only under its fence", async () => {
      const { gate, id } = await approvedOne(open);
      const permit = await take(gate, id);
      const foreign = { ...executed(permit), by: SECOND };
      expect(await codeOf(gate.permits.report(permit.id, foreign))).toBe("not_allowed");
      expect(await codeOf(gate.permits.renew(permit.id, held(permit, SECOND)))).toBe("not_allowed");
      expect(await codeOf(gate.permits.giveBack(permit.id, held(permit, SECOND)))).toBe(
        "not_allowed",
      );
      for (const fence of [0, 2]) {
        const wrong = { ...executed(permit), fence };
        expect(await codeOf(gate.permits.report(permit.id, wrong))).toBe("permit_lost");
        expect(await codeOf(gate.permits.renew(permit.id, wrong))).toBe("permit_lost");
        expect(await codeOf(gate.permits.giveBack(permit.id, wrong))).toBe("permit_lost");
      }
      expect((await gate.decisions.get(id)).state).toBe("approved");
    });

    test("the same report again changes nothing, another one is refused", async () => {
      const { gate, id } = await approvedOne(open);
      const permit = await take(gate, id);
      await gate.permits.report(permit.id, executed(permit));
      const again = await gate.permits.report(permit.id, executed(permit, { run: 8 }));
      expect(again.executionProof).toEqual({ run: 7 });
      expect(await codeOf(gate.permits.report(permit.id, failed(permit)))).toBe("already_final");
      expect((await counted(gate))["decision.executed"]).toBe(1);
    });

    test("a failure that the executor reports fails the decision with its reason", async () => {
      const { gate, id } = await approvedOne(open);
      const permit = await take(gate, id);
      const closed = await gate.permits.report(permit.id, failed(permit));
      expect(closed).toMatchObject({ state: "failed", executionError: "no such host" });
      expect((await gate.operations.get(permit.id)).status).toBe("failed");
    });

    test("a renewed lease is not taken for lost, and the executor hears that everything was stopped", async () => {
      const { gate, id, clock } = await approvedOne(open);
      const permit = await take(gate, id);
      for (let n = 0; n < 3; n += 1) {
        clock.advance(LEASE - 1_000);
        expect((await gate.permits.renew(permit.id, held(permit))).stopped).toBe(false);
        expect((await gate.recover()).operations).toEqual([]);
      }
      await gate.killSwitch.stop("something is wrong", { actor: "person:op" });
      expect((await gate.permits.renew(permit.id, held(permit))).stopped).toBe(true);
      expect((await gate.permits.report(permit.id, executed(permit))).state).toBe("executed");
    });

    test("a permit without a report becomes a question to a person, and nobody else gets it", async () => {
      const { gate, id, clock } = await approvedOne(open);
      const permit = await take(gate, id);
      clock.advance(LEASE + 1);
      expect(await codeOf(take(gate, id, SECOND))).toBe("permit_taken");
      expect(await codeOf(gate.permits.renew(permit.id, held(permit)))).toBe("permit_lost");
      const { operations } = await gate.recover();
      expect(operations).toMatchObject([{ id: permit.id, answer: { answer: "unknown" } }]);
      expect((await gate.recover()).operations).toEqual([]);
      const question = await onlyOpen(gate);
      expect(question).toMatchObject({ type: "connection_lost", operationId: permit.id });
      expect(await codeOf(take(gate, id, SECOND))).toBe("permit_taken");
      expect(await codeOf(gate.permits.renew(permit.id, held(permit)))).toBe("permit_lost");
      expect(await codeOf(gate.permits.giveBack(permit.id, held(permit)))).toBe("permit_lost");
    });

    test.each([
      ["that it happened closes the decision as executed", HAPPENED, "executed", "success"],
      ["that it did not closes it as failed", GIVE_UP, "failed", "failed"],
      ["that it should be tried again leaves it to another permit", REPEAT, "approved", "returned"],
    ] as const)("a person's word %s", async (_, found, state, status) => {
      const { gate, id, clock } = await approvedOne(open);
      const permit = await take(gate, id);
      clock.advance(LEASE + 1);
      await gate.recover();
      const question = await onlyOpen(gate);
      await gate.interactions.settle(question.id, { ...(await seen(gate, question.id)), ...found });
      expect((await gate.decisions.get(id)).state).toBe(state);
      expect((await gate.operations.get(permit.id)).status).toBe(status);
      const late = await codeOf(gate.permits.report(permit.id, failed(permit)).then(never));
      expect(late, "the late report hears who was first").toBe("already_answered");
      if (found !== REPEAT) return;
      const second = await take(gate, id, SECOND);
      expect(second.fence).toBe(permit.fence + 1);
      expect(await codeOf(gate.permits.report(second.id, executed(permit)))).toBe("not_allowed");
      const old = { ...executed(permit), by: SECOND };
      expect(await codeOf(gate.permits.report(second.id, old))).toBe("permit_lost");
      const done = await gate.permits.report(second.id, { ...executed(second), by: SECOND });
      expect(done.state).toBe("executed");
    });

    test("a late report counts while nobody has answered, and calls the question off", async () => {
      const { gate, id, clock } = await approvedOne(open);
      const permit = await take(gate, id);
      clock.advance(LEASE + 1);
      await gate.recover();
      const question = await onlyOpen(gate);
      expect((await gate.permits.report(permit.id, executed(permit))).state).toBe("executed");
      expect(await gate.interactions.get(question.id)).toMatchObject({
        status: "canceled",
        answeredBy: EXECUTOR,
      });
      const answer = { ...(await seen(gate, question.id)), ...GIVE_UP };
      expect(await codeOf(gate.interactions.settle(question.id, answer))).toBe("already_answered");
      expect((await gate.decisions.get(id)).state).toBe("executed");
    });

    test("a report and a person's answer at the same moment: one of them counts, and the records agree", async () => {
      const { gate, id, clock } = await approvedOne(open);
      const permit = await take(gate, id);
      clock.advance(LEASE + 1);
      await gate.recover();
      const question = await onlyOpen(gate);
      const answer = { ...(await seen(gate, question.id)), ...GIVE_UP };
      const both = await Promise.allSettled([
        gate.permits.report(permit.id, executed(permit)),
        gate.interactions.settle(question.id, answer),
      ]);
      expect(both.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      const { state } = await gate.decisions.get(id);
      const { status } = await gate.operations.get(permit.id);
      expect([state, status]).toEqual(
        both[0].status === "fulfilled" ? ["executed", "success"] : ["failed", "failed"],
      );
    });

    test("an unused permit that is given back can be taken again, under a new fence", async () => {
      const { gate, id } = await approvedOne(open);
      const first = await take(gate, id);
      await gate.permits.giveBack(first.id, held(first));
      expect(await codeOf(gate.permits.report(first.id, executed(first)))).toBe("permit_lost");
      const second = await take(gate, id, SECOND);
      expect([second.fence, second.idempotencyKey]).toEqual([2, first.idempotencyKey]);
      expect(await codeOf(gate.permits.giveBack(first.id, held(first)))).toBe("not_allowed");
      const done = { ...executed(second), by: SECOND };
      expect((await gate.permits.report(second.id, done)).state).toBe("executed");
    });

    test("a payload of another platform: approved here, executed there, byte for byte", async () => {
      const world = await open({ leaseMs: LEASE });
      const id = await stagedOutside(world, "move 3 boxes\u0000\u00ff");
      const permit = await take(world.gate, id);
      expect(new TextDecoder().decode(permit.raw)).toBe("move 3 boxes\u0000\u00ff");
      expect(permit.calls).toBeUndefined();
      await world.gate.permits.report(permit.id, executed(permit));
      expect((await world.gate.decisions.get(id)).state).toBe("executed");
      const lost = await stagedOutside(world);
      await take(world.gate, lost);
      world.clock.advance(LEASE + 1);
      await world.gate.recover();
      const question = await onlyOpen(world.gate);
      const answer = { ...(await seen(world.gate, question.id, OTHER)), ...HAPPENED };
      await world.gate.interactions.settle(question.id, answer);
      expect((await world.gate.decisions.get(lost)).state).toBe("executed");
    });

    test("a report without a permit takes it in the same transaction, and another permit is in its way", async () => {
      const world = await open({ leaseMs: LEASE });
      const { gate } = world;
      const by = { actor: EXECUTOR };
      const id = await stagedOutside(world);
      const closed = await gate.decisions.markExecuted(id, { run: 1 }, by);
      expect(closed).toMatchObject({ state: "executed", executionProof: { run: 1 } });
      expect(await gate.operations.get(`${id}.0`)).toMatchObject({
        status: "success",
        executor: EXECUTOR,
      });
      const again = await gate.decisions.markExecuted(id, { run: 2 }, { actor: SECOND });
      expect(again.executionProof).toEqual({ run: 1 });
      expect(await codeOf(take(gate, id))).toBe("illegal_transition");
      const heldOne = await stagedOutside(world);
      await take(gate, heldOne);
      for (const outcome of ["executed", "failed"] as const) {
        expect(await codeOf(mark(outcome, heldOne, SECOND))).toBe("permit_taken");
      }
      const staging = gate.decisions;
      expect((await staging.markFailed(heldOne, "broken", by)).state).toBe("failed");
      expect((await gate.operations.get(`${heldOne}.0`)).status).toBe("failed");

      function mark(outcome: PermitOutcome["outcome"], decision: string, actor: string) {
        return outcome === "executed"
          ? gate.decisions.markExecuted(decision, {}, { actor })
          : gate.decisions.markFailed(decision, "no", { actor });
      }
    });

    test("what nobody reviewed cannot be taken", async () => {
      const { gate } = await open({ leaseMs: LEASE });
      const diff = {
        sourceTool: "robot.move",
        raw: Uint8Array.of(1),
        metadata: { origin: "port" },
      };
      const draft = newDraft("outside-1", diff, "2026-11-15T06:00:00.000Z");
      const { id } = await gate.decisions.stage(draft);
      expect(await codeOf(take(gate, id))).toBe("illegal_transition");
      expect(await codeOf(take(gate, "no-such"))).toBe("not_found");
      const lease = gate.permits.take(id, { by: EXECUTOR, leaseMs: 1 });
      expect(await codeOf(lease)).toBe("invalid_input");
    });
  },
  STORE_NAMES,
);

function never(): never {
  throw new Error("a late report was accepted");
}
