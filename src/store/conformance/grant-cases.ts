import assert from "node:assert/strict";
import type { Run, RunEvent } from "../../model/delegation.ts";
import { USER_GRANT_MS } from "../../model/finding.ts";
import type { NewGrant } from "../grants.ts";
import { cases, type EngineHarness, TENANT } from "./case.ts";

import { refuses, START, soundTrail, together } from "./samples.ts";

const BY = { actor: "person:ada" };

function grant(over: Partial<NewGrant> = {}): NewGrant {
  return {
    sessionId: "session-1",
    finding: { policy: "run.phase", message: "no \u0000" },
    grantor: "user",
    scope: { kind: "finding" },
    by: "person:ada",
    reason: "I looked",
    ...over,
  };
}

const RUN: Run = {
  id: "run-1",
  feature: "refunds",
  lead: "agent:lead",
  phase: "discuss",
  status: "open",
  artefacts: {},
  documents: "",
  evidenceFolder: "",
  planFiles: [],
  promises: [],
  evidence: [],
  budget: 3,
  rounds: 0,
  stage: "",
  reason: "",
  version: 1,
};
const EVENT: RunEvent = { kind: "phase_changed", from: "discuss", to: "spec" };

/** Permissions to override findings, what gates have said, and runs. */
export const grantCases = cases<EngineHarness>((test) => {
  test("grants: numbered from AUTH001 without gaps, each with a person's name in the trail, whoever gives at once [I-59]", async (harness) => {
    const { store, engine } = harness;
    const { grants } = store.tenant(TENANT);
    const given = await together(9, () => grants.give(grant()));
    const ids = given.map(({ id }) => id).toSorted();
    assert.deepEqual(
      ids,
      Array.from({ length: 9 }, (_, index) => `AUTH00${index + 1}`),
    );
    assert.equal((await grants.give(grant())).id, "AUTH010");
    const trail = await soundTrail(engine);
    assert.ok(trail.every(({ type, actor }) => type === "grant.given" && actor === "person:ada"));
    assert.deepEqual(
      await grants.get("AUTH001"),
      given.find(({ id }) => id === "AUTH001"),
    );
  });
  test("grants: a user's lapses after half an hour by the store's clock, the others last until they are revoked [I-59]", async (harness) => {
    const { store } = harness;
    const { grants } = store.tenant(TENANT);
    assert.equal((await grants.give(grant())).expiresAt, START + USER_GRANT_MS);
    for (const grantor of ["plan-revision", "evidence-update"] as const) {
      assert.equal((await grants.give(grant({ grantor }))).expiresAt, undefined);
    }
    assert.equal((await grants.give(grant({ lastsMs: 5 }))).expiresAt, START + 5);
    for (const lastsMs of [0, -1, Number.NaN, 1.5]) {
      await refuses("invalid_input", () => grants.give(grant({ lastsMs })));
    }
    const revoked = await grants.revoke("AUTH002", "changed my mind", BY);
    assert.equal(revoked.revoked, true);
    await refuses("illegal_transition", () => grants.revoke("AUTH002", "again", BY));
    await refuses("not_found", () => grants.revoke("AUTH999", "x", BY));
    await refuses("invalid_input", () => grants.give(grant({ by: "" })));
  });
  test("grants: a session sees its own and those for all, of its own tenant [R28]", async (harness) => {
    const { store } = harness;
    const { grants } = store.tenant(TENANT);
    await grants.give(grant());
    await grants.give(grant({ sessionId: "" }));
    await grants.give(grant({ sessionId: "session-2" }));
    const ids = async (session: string) => (await grants.listFor(session)).map(({ id }) => id);
    assert.deepEqual(await ids("session-1"), ["AUTH001", "AUTH002"]);
    assert.deepEqual(await ids("session-2"), ["AUTH002", "AUTH003"]);
    const foreign = store.tenant("other").grants;
    assert.deepEqual(await foreign.listFor("session-1"), []);
    await refuses("not_found", () => foreign.revoke("AUTH001", "x", BY));
  });
  test("gate ledger: an evaluation is an entry of the trail under its trace id, with its findings [I-56]", async (harness) => {
    const { store, engine } = harness;
    const finding = { severity: "soft-deny", policy: "p", message: "m" } as const;
    await store.tenant(TENANT).gateLedger.record({
      traceId: "trace-1",
      point: "pre-delegation",
      sessionId: "session-1",
      actor: "agent:lead",
      allowed: false,
      findings: [finding],
      overridden: [{ finding: { ...finding, policy: "q" }, grant: "AUTH001" }],
    });
    const [entry] = await soundTrail(engine);
    assert.deepEqual(
      [entry?.type, entry?.subject, entry?.session, entry?.actor],
      ["gate.evaluated", "trace-1", "session-1", "agent:lead"],
    );
    assert.deepEqual(JSON.parse(String(entry?.data)), {
      point: "pre-delegation",
      allowed: false,
      findings: [finding],
      overridden: [{ ...finding, policy: "q", grant: "AUTH001" }],
    });
  });
  test("runs: of many who move a run at once one does, and the trail holds the whole event [I-60]", async (harness) => {
    const { store, engine } = harness;
    const { runs } = store.tenant(TENANT);
    await runs.create(RUN, { kind: "stopped", reason: "as an example" }, BY);
    await refuses("already_exists", () => runs.create(RUN, EVENT, BY));
    assert.deepEqual(await runs.get("run-1"), RUN);
    const next: Run = { ...RUN, phase: "spec", version: 2 };
    const moved = await together(8, () => runs.move(next, EVENT, BY));
    assert.equal(moved.filter((one) => one !== undefined).length, 1);
    assert.deepEqual(await runs.get("run-1"), next);
    assert.deepEqual(await runs.list("open"), [next]);
    await refuses("not_found", () => runs.get("run-2"));
    await refuses("not_found", () => store.tenant("other").runs.get("run-1"));
    const trail = await soundTrail(engine);
    assert.deepEqual(
      trail.map(({ type, subject, data }) => [type, subject, JSON.parse(String(data))]),
      [
        ["run.stopped", "run-1", { reason: "as an example" }],
        ["run.phase_changed", "run-1", { from: "discuss", to: "spec" }],
      ],
    );
  });
});
