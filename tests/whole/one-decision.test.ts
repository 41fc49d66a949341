import { type Gate, verifyStore } from "sallyport";
import { sessionStory } from "sallyport/audit";
import type { DelegationId } from "sallyport/delegation";
import { expect, test } from "vitest";
import type { StoryLine } from "../../src/audit/trail.ts";
import { forEachStore } from "../support/for-each-store.ts";
import {
  ADA,
  buildWarehouse,
  call,
  LEAD,
  LEASE_MS,
  nextProcess,
  PICKER,
  sayYes,
  TENANT,
  waitingFor,
} from "./warehouse.ts";

const PROMISE = { id: "p-order", statement: "Order 7 is packed.", evidence: [] };

/** The lead's run: its plan lists the shelves, and a person agreed to it. */
async function planned(gate: Gate) {
  const run = await gate.runs.start({
    feature: "order-7",
    lead: LEAD,
    promise: PROMISE,
    documents: "",
    evidenceFolder: "",
    budget: 50,
  });
  for (const phase of ["spec", "plan"] as const)
    await gate.runs.enter(run.id, phase, { actor: LEAD });
  await gate.runs.approvePlan(run.id, ["shelf:bolt", "shelf:nut"], { actor: ADA });
  await gate.runs.enter(run.id, "execute", { actor: LEAD });
  return run.id;
}

forEachStore("one decision through all five parts [I-80]", (open) => {
  test("a task is claimed, delegated, staged, confirmed after restarts, executed, reported, completed and proved, and all of it is one story [I-80 I-82]", async () => {
    const place = await open();
    const warehouse = buildWarehouse();
    let gate = await nextProcess(place, warehouse);

    // A task, claimed under a lease; the lead works under that claim.
    const runId = await planned(gate);
    const { id: task } = await gate.tasks.add({ subject: "pack order 7", by: ADA });
    const { version: fence } = await gate.tasks.claim({
      id: task,
      claimer: LEAD,
      leaseMs: LEASE_MS,
    });
    const lead = gate.sessions.open({ id: runId, agent: LEAD, claim: { id: task, fence } });

    // Handed to a sub-agent: two shelves, three tools, no more.
    const handed = await lead.delegate({
      agent: PICKER,
      role: "code",
      task: "Take 10 bolts and 20 nuts for order 7.",
      capsule: "The shelves are called bolt and nut.",
      promise: PROMISE.id,
      tools: ["stock.*"],
    });
    if (handed.answer !== "delegated") throw new Error(JSON.stringify(handed));
    const { delegation, token } = handed;
    await gate.tasks.link({ id: task, fence, sessionId: runId, delegationId: delegation.id });
    const attach = async (to: Gate) => {
      const { session, watch } = await to.delegations.attach(delegation.id as DelegationId, token);
      watch.stop();
      return session;
    };
    let picker = await attach(gate);

    // Calls of one message through the orchestrator: reads run concurrently, calls outside the plan are denied.
    const looked: [string, string][] = [];
    for await (const { tool, answer } of picker.callAll([
      call("stock.count", { sku: "bolt" }),
      call("stock.count", { sku: "nut" }),
      call("stock.set", { sku: "lamp", amount: 0 }),
    ])) {
      looked.push([tool, answer.answer === "done" ? answer.text : answer.answer]);
    }
    expect(looked.toSorted()).toEqual([
      ["stock.count", "40"],
      ["stock.count", "60"],
      ["stock.set", "denied"],
    ]);

    // A question of its own, stored; answered in another process, and found there by the same id.
    const question = {
      callId: "q-1",
      text: "Metric or imperial?",
      choices: ["metric", "imperial"],
    };
    const asked = await picker.ask(question);
    expect(asked.answer).toBe("pending");
    gate = await nextProcess(place, warehouse);
    const { hash } = await gate.interactions.get(asked.interactionId);
    await gate.interactions.answer(asked.interactionId, { hash, by: ADA, answer: "metric" });
    picker = await attach(gate);
    expect(await picker.ask(question)).toMatchObject({ answer: "answered", value: "metric" });

    // The outcome: two writes as one record, reviewed twice, waiting for a person.
    const bundle = [
      call("stock.set", { sku: "bolt", amount: 30 }, { key: "bolts" }),
      call("stock.set", { sku: "nut", amount: 40 }, { key: "nuts" }),
    ];
    const decision = waitingFor(await picker.stage(bundle));
    await gate.tasks.link({ id: task, fence, decisionIds: [decision] });
    expect(await gate.decisions.get(decision)).toMatchObject({
      state: "pending_ml",
      techVerdict: { approved: true, validator: "known-shelf" },
    });
    expect(warehouse.ledger).toEqual([]);
    const complete = (to: Gate) => to.tasks.complete({ id: task, fence, result: "packed" });
    await expect(complete(gate)).rejects.toThrow(/is pending_ml, not executed.*dependency_denied/s);

    // Confirmed in a process that never saw the agent: both run, once, and the outcome is reported back.
    gate = await nextProcess(place, warehouse);
    expect((await sayYes(gate, decision)).map(({ answer }) => answer)).toEqual(["done", "done"]);
    expect(warehouse.ledger).toEqual(["set bolt 30", "set nut 40"]);
    expect(await gate.decisions.get(decision)).toMatchObject({
      state: "executed",
      bizVerdict: { approved: true, validator: ADA },
      executionProof: { steps: 2 },
    });

    // The sub-agent comes back, finds its answers, and reports; the promise is fulfilled, so the task can be completed.
    picker = await attach(gate);
    expect((await picker.resultOf("nuts"))?.answer).toBe("done");
    await expect(complete(gate), "the sub-agent has not reported yet").rejects.toMatchObject({
      code: "dependency_denied",
    });
    const outcome = await gate.delegations.report(delegation.id, "10 bolts, 20 nuts.", token);
    expect(outcome).toMatchObject({ state: "reported", promiseMet: true });
    expect((await complete(gate)).status).toBe("completed");
    expect(warehouse.ledger).toHaveLength(2);

    // One story under one id, and nothing of another session in it.
    const other = gate.sessions.open({ id: "other-run", agent: LEAD });
    expect((await other.call(call("stock.count", { sku: "bolt" }))).answer).toBe("done");
    const { id: elsewhere } = await gate.tasks.add({ subject: "something else", by: ADA });
    const story: StoryLine[] = [];
    for await (const line of sessionStory(place.store.tenant(TENANT).audit, runId))
      story.push(line);
    const subjectsOf = (chapter: StoryLine["chapter"]) =>
      new Set(story.filter((line) => line.chapter === chapter).map(({ subject }) => subject));
    const operations = await gate.operations.listBySession(delegation.id, {});
    expect(operations.map(({ tool }) => tool).toSorted()).toEqual([
      ...["stock.count", "stock.count", "stock.set", "stock.set"],
    ]);
    expect(subjectsOf("task")).toEqual(new Set([task]));
    expect(subjectsOf("plan")).toEqual(new Set([runId, delegation.id]));
    expect(subjectsOf("gate"), "the trace of the plan's evaluation").toContain(
      handed.verdict.gate?.traceId,
    );
    expect(subjectsOf("decision")).toEqual(new Set([decision]));
    expect(subjectsOf("operation")).toEqual(new Set(operations.map(({ id }) => id)));
    expect(subjectsOf("interaction")).toContain(asked.interactionId);
    expect(story.some(({ subject }) => subject === elsewhere)).toBe(false);
    expect(story.some(({ session }) => session === "other-run")).toBe(false);
    expect(await verifyStore(place.store)).toMatchObject({ ok: true, problems: [] });
  });
});
