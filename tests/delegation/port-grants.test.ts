import { expect, test } from "vitest";
import type { GatePolicy } from "../../src/policy/decide.ts";
import type { NewGrant } from "../../src/store/grants.ts";
import { openGate } from "../support/port-world.ts";
import { child, codes, openBox, put, startRun } from "./port-delegation.ts";
import { ADA, asks, LEAD } from "./world.ts";

const house: GatePolicy = {
  name: "house",
  points: ["pre-tool"],
  check: () => [{ severity: "soft-deny", policy: "house", message: "not on a Sunday" }],
};
const grant = (more: Partial<NewGrant> = {}): NewGrant => ({
  sessionId: "session-1",
  finding: { policy: "house", message: "not on a Sunday" },
  grantor: "user",
  scope: { kind: "finding" },
  by: "person:ada",
  reason: "the shop is closed, nobody is hurt",
  ...more,
});
const look = (callId = "c-1") => ({ callId, tool: "box.look", input: {} });

test("a grant lifts a soft denial of a call, and the audit log names the grant and its grantor [I-59]", async () => {
  const { gate, clock } = openBox({ gatePolicies: [house] });
  const session = gate.sessions.open({ id: "session-1", agent: LEAD });
  const other = gate.sessions.open({ id: "session-2", agent: LEAD });
  expect((await session.call(look())).answer).toBe("denied");
  const { id } = await gate.grants.give(grant());
  expect((await session.call(look())).answer).toBe("done");
  expect((await other.call(look())).answer).toBe("denied");
  const trail = await gate.audit.read({ after: 0, limit: 100 });
  const given = trail.find(({ type }) => type === "grant.given");
  expect(given).toMatchObject({ subject: id, actor: "person:ada" });
  const evaluated = trail.filter(({ type }) => type === "gate.evaluated");
  expect(evaluated.map(({ data }) => JSON.parse(String(data)))).toMatchObject([
    { allowed: false, overridden: [] },
    { allowed: true, overridden: [{ policy: "house", grant: id }] },
    { allowed: false, overridden: [] },
  ]);
  clock.advance(30 * 60_000);
  expect((await session.call(look())).answer).toBe("denied");
});

test("no grant lifts a hard denial, and a grant for a root applies to its sub-agents [I-59]", async () => {
  const hard: GatePolicy = {
    ...house,
    check: () => [{ severity: "hard-deny", policy: "house", message: "not on a Sunday" }],
  };
  const strict = openBox({ gatePolicies: [hard] });
  await strict.gate.grants.give(grant());
  const session = strict.gate.sessions.open({ id: "session-1", agent: LEAD });
  expect((await session.call(look())).answer).toBe("denied");

  const world = openBox({ gatePolicies: [house] });
  const root = world.gate.sessions.open({ id: "session-1", agent: LEAD });
  const { session: below } = await child(world.gate, root, asks());
  expect((await below.call(look())).answer).toBe("denied");
  await world.gate.grants.give(grant());
  expect((await below.call(look())).answer).toBe("done");
});

test("no grant widens a scope [I-59 T33]", async () => {
  const world = openBox();
  const { session: lead, run } = await startRun(world.gate, ["a"]);
  const { session, id } = await child(world.gate, lead, codes());
  const denied = await session.call(put("b"));
  if (denied.answer !== "denied") throw new Error(denied.text);
  for (const { policy, message } of denied.findings) {
    for (const sessionId of ["", run.id, id]) {
      const finding = { policy, message };
      await world.gate.grants.give(
        grant({ sessionId, finding, scope: { kind: "point", point: "pre-tool" } }),
      );
    }
  }
  expect((await session.call(put("b"))).answer).toBe("denied");
  expect(world.effects).toEqual([]);
});

test("only a listed person gives a grant, not the lead or a sub-agent [I-59]", async () => {
  const world = openBox();
  const { session: lead, run } = await startRun(world.gate, ["a"]);
  const { id } = await child(world.gate, lead, codes({ agent: "agent:coder" }));
  const refused = { code: "not_allowed" };
  await expect(
    world.gate.grants.give(grant({ sessionId: run.id, by: LEAD })),
  ).rejects.toMatchObject(refused);
  for (const by of ["agent:coder", LEAD, "Agent:Coder"]) {
    await expect(world.gate.grants.give(grant({ sessionId: id, by })), by).rejects.toMatchObject(
      refused,
    );
  }
  await world.gate.grants.give(grant({ sessionId: id }));
  const { gate } = openGate({ people: [{ id: "person:ada" }] });
  await expect(gate.grants.give(grant({ by: "person:mallory" }))).rejects.toMatchObject(refused);
  await gate.grants.give(grant());
  expect((await gate.grants.revoke("AUTH001", "no more", ADA)).revoked).toBe(true);
});

test("a command in a run is softly denied until a person lifts it for the phase; files stay limited to the plan [I-62]", async () => {
  const { gate, effects } = openGate();
  const { session, run } = await startRun(gate, ["a"]);
  const shell = { callId: "c-1", tool: "world.shell", input: { command: "npm test" } };
  const denied = await session.call(shell);
  if (denied.answer !== "denied") throw new Error(`expected no, got ${denied.answer}`);
  const found = denied.findings.filter(({ severity }) => severity !== "warning");
  expect(found).toMatchObject([{ severity: "soft-deny", policy: "run.phase" }]);
  const finding = { policy: "run.phase", message: "" };
  await gate.grants.give(
    grant({ sessionId: run.id, finding, scope: { kind: "phase", phase: "execute" } }),
  );
  // What a person would be asked anyway is asked.
  expect((await session.call(shell)).answer).toBe("pending");
  await gate.runs.enter(run.id, "verify", { actor: LEAD });
  expect((await session.call(shell)).answer).toBe("denied");
  expect(effects).toEqual([]);
});

test("a failing ledger is reported, and the gate's decision holds", async () => {
  const problems: unknown[] = [];
  const world = openBox({
    gatePolicies: [house],
    onLedgerProblem: (one) => void problems.push(one),
  });
  const session = world.gate.sessions.open({ id: "session-1", agent: LEAD });
  await world.gate.grants.give(grant());
  world.tap.before = ({ events }) => {
    if (events.some(({ type }) => type === "gate.evaluated")) throw new Error("disk full");
  };
  expect((await session.call(look())).answer).toBe("done");
  expect(problems).toMatchObject([{ error: new Error("disk full") }]);
});
