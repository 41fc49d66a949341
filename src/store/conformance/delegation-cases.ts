import assert from "node:assert/strict";
import { type Delegation, delegationId } from "../../model/delegation.ts";
import { isSallyportError } from "../../model/errors.ts";
import { toIso } from "../../util/clock.ts";
import type { DelegationStore, NewDelegation } from "../delegations.ts";
import { delegationSteps } from "../delegations.ts";
import type { Engine } from "../engine.ts";
import type { Intent } from "../operations.ts";
import { cases, type EngineHarness, TENANT } from "./case.ts";

import { event, refuses, START, soundTrail, together } from "./samples.ts";

const BY = { actor: "person:ada" };
const HOUR = 3_600_000;
const LEASE = 30_000;
const INTENT: Omit<Intent, "id" | "sessionId"> = {
  messageId: "m-1",
  callId: "c-1",
  turn: 1,
  tool: "box.put",
  effect: "write",
  definitionHash: "d".repeat(64),
  input: "{}",
  workingDirectory: "",
  step: 0,
  undoOf: "",
  approval: undefined,
  leaseMs: LEASE,
  actor: "agent:b",
};
const REPORT = {
  state: "reported",
  output: "done \u0000 \ud800",
  promiseMet: true,
  missing: [],
} as const;

function draft(name: string, over: Partial<NewDelegation> = {}): NewDelegation {
  const parent = over.parent;
  return {
    id: delegationId(name),
    parent,
    parentSession: parent?.id ?? "session-1",
    rootSession: "session-1",
    agents: [`agent:${name}`, ...(parent?.agents ?? ["agent:lead"])],
    owner: "person:olga",
    runId: "",
    traceId: "t-1",
    task: "look \u0000",
    capsule: "all there is \ud800",
    promise: { id: "p-1", statement: "it is known", evidence: [{ name: "tests" }] },
    scope: {
      planId: "plan-1-0001",
      role: "research",
      writePermission: "none",
      planFiles: ["/w/a.ts"],
      documents: [],
      artefact: "",
      tools: ["*"],
      calls: 10,
      depth: 2,
    },
    ...(parent === undefined ? { ttlMs: HOUR } : {}),
    atOnce: 4,
    workingDirectory: "/w",
    tokenHash: "h".repeat(64),
    actor: parent?.agents[0] ?? "agent:lead",
    ...over,
  };
}

async function made(store: DelegationStore, given: NewDelegation): Promise<Delegation> {
  const answer = await store.create(given);
  assert.ok(answer.created, `should have been created: ${JSON.stringify(answer)}`);
  return answer.delegation;
}

async function refusal(store: DelegationStore, given: NewDelegation): Promise<string> {
  const answer = await store.create(given);
  assert.ok(!answer.created, "should have been refused");
  return answer.reason;
}

/** Something that happens under a delegation, as an operation does when it is started. */
async function acts(engine: Engine, { chain }: Delegation, kind: "spends-a-call" | "goes-on") {
  const steps = delegationSteps(chain, kind);
  return (await engine.commit(TENANT, { steps, events: [event("effect")] })).committed;
}

/** Who was handed what: it only shrinks, it is revocable, and what hangs on it ends with it. */
export const delegationCases = cases<EngineHarness>((test) => {
  test("delegations: what was handed over comes back as given, and its end names plan, trace and promise [S3-41]", async (harness) => {
    const { store, engine } = harness;
    const { delegations } = store.tenant(TENANT);
    const one = await made(delegations, draft("a"));
    assert.deepEqual([one.state, one.chain, one.promiseMet], ["active", ["dlg-a"], undefined]);
    assert.equal(one.scope.expiresAt, toIso(START + HOUR));
    assert.equal(one.capsule, "all there is \ud800");
    assert.deepEqual(await delegations.get("dlg-a"), one);
    const done = await delegations.close("dlg-a", REPORT, BY);
    assert.deepEqual([done.state, done.output, done.promiseMet], ["reported", REPORT.output, true]);
    const trail = await soundTrail(engine);
    assert.deepEqual(
      trail.map(({ type, session }) => [type, session]),
      [
        ["delegation.started", "session-1"],
        ["delegation.reported", "session-1"],
      ],
    );
    const { plan, trace, promise } = JSON.parse(String(trail[1]?.data));
    assert.deepEqual([plan, trace, promise], ["plan-1-0001", "t-1", "p-1"]);
  });
  test("delegations: each ends once, whoever tries, and an unknown one is not found", async (harness) => {
    const { store } = harness;
    const { delegations } = store.tenant(TENANT);
    await made(delegations, draft("a"));
    const ends = await together(8, (n) =>
      delegations
        .close("dlg-a", n % 2 === 0 ? REPORT : { state: "revoked", reason: "enough" }, BY)
        .then(
          () => true,
          (error: unknown) => {
            assert.ok(isSallyportError(error, "illegal_transition"));
            return false;
          },
        ),
    );
    assert.equal(ends.filter(Boolean).length, 1);
    await refuses("not_found", () => delegations.get("dlg-x"));
    await refuses("not_found", () => delegations.get("session-1" as "dlg-"));
    await refuses("not_found", () => delegations.close("dlg-x", REPORT, BY));
  });
  test("delegations: two plans with the same id are two delegations [S3-10]", async ({ store }) => {
    const { delegations } = store.tenant(TENANT);
    await made(delegations, draft("a"));
    await made(delegations, draft("b"));
    await refuses("already_exists", () => delegations.create(draft("a")));
    assert.equal((await delegations.list({ rootSession: "session-1" })).length, 2);
  });
  test("delegations: a child gets no more time and no more calls than its parent has left, and hangs on its parent [T33]", async (harness) => {
    const { store, engine, clock } = harness;
    const { delegations } = store.tenant(TENANT);
    const parent = await made(delegations, draft("a"));
    const asked = (calls: number) => ({ ...draft("x").scope, calls });
    assert.equal(
      await refusal(delegations, draft("b", { parent, scope: asked(11) })),
      "parent_exceeded",
    );
    assert.equal(
      await refusal(delegations, draft("b", { parent, ttlMs: HOUR + 1 })),
      "parent_exceeded",
    );
    const child = await made(delegations, draft("b", { parent, ttlMs: HOUR }));
    assert.deepEqual(child.chain, ["dlg-a", "dlg-b"]);
    const inherits = await made(delegations, draft("c", { parent }));
    assert.equal(inherits.scope.expiresAt, parent.scope.expiresAt);
    // What the parent had when it was read is not what it has now.
    for (let n = 0; n < 3; n += 1) assert.ok(await acts(engine, parent, "spends-a-call"));
    assert.equal(
      await refusal(delegations, draft("d", { parent, scope: asked(8) })),
      "parent_exceeded",
    );
    // A grandchild shares what is left further up.
    await made(delegations, draft("e", { parent: inherits, scope: asked(7) }));
    assert.equal(
      await refusal(delegations, draft("f", { parent: inherits, scope: asked(8) })),
      "parent_exceeded",
    );
    clock.advance(1);
    assert.equal(
      await refusal(delegations, draft("d", { parent, ttlMs: HOUR })),
      "parent_exceeded",
    );
  });
  test("delegations: all children together make no more calls than their parent may [T33]", async (harness) => {
    const { store, engine } = harness;
    const { delegations } = store.tenant(TENANT);
    const parent = await made(
      delegations,
      draft("a", { scope: { ...draft("a").scope, calls: 5 } }),
    );
    const scope = { ...draft("x").scope, calls: 5 };
    const children = [
      await made(delegations, draft("b", { parent, scope })),
      await made(delegations, draft("c", { parent, scope })),
    ];
    const spent = await together(20, (n) =>
      acts(engine, children[n % 2] as Delegation, "spends-a-call"),
    );
    assert.equal(spent.filter(Boolean).length, 5);
    assert.equal((await delegations.get("dlg-a")).scope.calls, 0);
    assert.equal(await acts(engine, children[0] as Delegation, "spends-a-call"), false);
    // To go on with what was begun is no new call.
    assert.equal(await acts(engine, children[0] as Delegation, "goes-on"), true);
  });
  test("delegations: revoking stops everything below, at once and for good; so does time [T33]", async (harness) => {
    const { store, engine, clock } = harness;
    const { delegations } = store.tenant(TENANT);
    const a = await made(delegations, draft("a"));
    const b = await made(delegations, draft("b", { parent: a }));
    const c = await made(delegations, draft("c", { parent: b, ttlMs: 1_000 }));
    const other = await made(delegations, draft("o"));
    assert.ok(await acts(engine, c, "spends-a-call"));
    clock.advance(1_000);
    assert.ok(await acts(engine, c, "goes-on"));
    clock.advance(1);
    assert.equal(await acts(engine, c, "goes-on"), false);
    assert.match(String(await delegations.whyOver("dlg-c")), /time/);
    assert.equal(await delegations.whyOver("dlg-b"), undefined);
    await delegations.close("dlg-a", { state: "revoked", reason: "stop" }, BY);
    for (const one of [a, b]) {
      assert.equal(await acts(engine, one, "spends-a-call"), false);
      assert.equal(await acts(engine, one, "goes-on"), false);
      assert.match(String(await delegations.whyOver(one.id)), /dlg-a was revoked/);
    }
    assert.equal(await refusal(delegations, draft("d", { parent: b })), "parent_exceeded");
    assert.equal(await refusal(delegations, draft("d", { parent: a })), "parent_exceeded");
    await refuses("illegal_transition", () => delegations.close("dlg-b", REPORT, BY));
    assert.ok(await acts(engine, other, "spends-a-call"));
  });
  test("delegations: at most four work for one parent at a time, however many ask at once [I-63 T33]", async (harness) => {
    const { store, clock } = harness;
    const { delegations } = store.tenant(TENANT);
    const tried = await together(12, (n) => delegations.create(draft(`n${n}`)));
    const first = tried.flatMap((answer) => (answer.created ? [answer.delegation] : []));
    assert.equal(first.length, 4);
    // Another parent has places of its own.
    await made(delegations, draft("q1", { parent: first[0] }));
    await delegations.close((first[1] as Delegation).id, REPORT, BY);
    const again = await together(6, (n) => delegations.create(draft(`m${n}`)));
    assert.equal(again.filter(({ created }) => created).length, 1);
    clock.advance(HOUR + 1);
    const later = await together(8, (n) => delegations.create(draft(`l${n}`)));
    assert.equal(later.filter(({ created }) => created).length, 4);
    assert.equal((await delegations.overdue(100)).length, 5);
  });
  test("delegations: the intent of an operation, and every further attempt at it, holds only while the chain does [R3 T33]", async (harness) => {
    const { store, clock } = harness;
    const { delegations, operations } = store.tenant(TENANT);
    const a = await made(delegations, draft("a"));
    const b = await made(delegations, draft("b", { parent: a }));
    const start = (id: string, more: Partial<Intent> = {}) =>
      operations.start({ ...INTENT, id, sessionId: b.id, ...more });
    assert.ok((await start("op-1")).started);
    assert.ok((await start("op-2")).started);
    assert.equal((await delegations.get("dlg-a")).scope.calls, 8);
    await operations.settle("op-2", {
      fence: 1,
      outcome: { status: "unknown", error: "lost" },
      actor: "executor",
    });
    await delegations.close("dlg-a", { state: "revoked", reason: "stop" }, BY);
    const refused = await start("op-3");
    assert.deepEqual(refused, { started: false, reason: "delegation_ended" });
    const again = { leaseMs: LEASE, actor: "person:ada", along: [] };
    assert.equal(await operations.tryAgain("op-1", 1, again), undefined);
    clock.advance(LEASE);
    assert.equal(await operations.takeOver("op-1", LEASE, "recovery"), undefined);
    assert.equal(await operations.reopen("op-2", again), undefined);
    // An undo is bound by what binds the one who asks for it.
    const found = { status: "failed", error: "too late", output: "" } as const;
    await operations.settle("op-2", { fence: 1, outcome: found, actor: "person:ada" });
    const undo = { undoOf: "op-2" } as const;
    assert.ok(!(await start("u-1", { ...undo, actor: "agent:b" })).started);
    assert.ok(!(await start("u-2", { ...undo, actor: "agent:a" })).started);
    assert.ok((await start("u-3", { ...undo, actor: "agent:lead" })).started);
    assert.ok((await start("u-4", { ...undo, actor: "person:ada" })).started);
    clock.advance(LEASE);
    assert.notEqual(await operations.takeOver("u-4", LEASE, "recovery"), undefined);
    // A session that only bears the name of a delegation starts nothing.
    const nobody = await start("op-4", { sessionId: "dlg-nobody" });
    assert.deepEqual(nobody, { started: false, reason: "delegation_ended" });
  });
  test("delegations: nothing is handed over while everything is stopped", async ({ store }) => {
    const { delegations, killSwitch } = store.tenant(TENANT);
    await killSwitch.stop("fire", BY);
    assert.equal(await refusal(delegations, draft("a")), "stopped");
    await killSwitch.resume("out", BY);
    await made(delegations, draft("a"));
  });
  test("delegations: one tenant sees, stops and uses nothing of another's [R28]", async (harness) => {
    const { store, engine } = harness;
    const a = store.tenant(TENANT).delegations;
    const b = store.tenant("other").delegations;
    const own = await made(a, draft("a"));
    await refuses("not_found", () => b.get("dlg-a"));
    await refuses("not_found", () => b.chainOf("dlg-a"));
    await refuses("not_found", () => b.close("dlg-a", { state: "revoked", reason: "x" }, BY));
    assert.deepEqual(await b.list({ rootSession: "session-1" }), []);
    assert.equal(await refusal(b, draft("b", { parent: own })), "parent_exceeded");
    const steps = delegationSteps(own.chain, "spends-a-call");
    const result = await engine.commit("other", { steps, events: [event("effect")] });
    assert.equal(result.committed, false);
    assert.equal((await a.get("dlg-a")).scope.calls, 10);
  });
});
