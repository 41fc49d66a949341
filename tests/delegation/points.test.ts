import { expect, test } from "vitest";
import { GATE_POINTS, type GatePoint } from "../../src/model/finding.ts";
import type { GatePolicy } from "../../src/policy/decide.ts";
import { approve, decisionIdOf } from "../support/port-world.ts";
import { child, codes, openBox, put, startRun } from "./port-delegation.ts";
import { LEAD } from "./world.ts";

/** Notes every point at which it is asked, and at some of them says something. */
function listener(says: readonly GatePoint[] = []) {
  const asked: GatePoint[] = [];
  const policy: GatePolicy = {
    name: "listener",
    points: [],
    check({ point }) {
      asked.push(point);
      if (!says.includes(point)) return [];
      return [{ severity: "soft-deny", policy: "listener", message: `heard at ${point}` }];
    },
  };
  return { asked, policy };
}

test("policies are evaluated before and after calls, writes and delegations, and before a phase [I-55 I-56]", async () => {
  const { asked, policy } = listener();
  const world = openBox({ gatePolicies: [policy] });
  const { session: lead } = await startRun(world.gate, ["a"]);
  expect(new Set(asked.splice(0))).toEqual(new Set(["pre-phase-transition"]));
  await lead.call({ callId: "c-1", tool: "box.look", input: {} });
  expect(asked.splice(0)).toEqual(["pre-tool", "post-tool"]);
  await lead.call(put("a"));
  expect(asked.splice(0)).toEqual(["pre-tool", "pre-write", "post-tool", "post-write"]);
  const { id, token } = await child(world.gate, lead, codes());
  await world.gate.delegations.report(id, "done", token);
  expect(asked.splice(0)).toEqual(["pre-delegation", "post-delegation"]);
  const known = new Set<string>(GATE_POINTS);
  known.delete("pre-verify-command");
  expect(known.size).toBe(7);
});

test("findings after a call reach the agent and the audit log, also after an approval; nothing is undone [I-55]", async () => {
  const { policy } = listener(["post-write"]);
  const world = openBox({ gatePolicies: [policy] });
  const { session: lead } = await startRun(world.gate, ["a"]);
  const answer = await lead.call(put("a"));
  expect(answer).toMatchObject({ answer: "done", text: "put\nheard at post-write" });
  const asked = await lead.call(put("a", "box.asked"));
  const [later] = await approve(world.gate, decisionIdOf(asked));
  expect(later?.text).toContain("heard at post-write");
  expect(world.effects).toHaveLength(2);
  const trail = await world.gate.audit.read({ after: 0, limit: 200 });
  const told = trail.filter(
    ({ type, data }) => type === "gate.evaluated" && data?.includes("post-write"),
  );
  expect(told).toHaveLength(2);
  expect(told[0]?.actor).toBe(LEAD);
  // What was refused has not happened, so there is nothing to say afterwards.
  expect((await lead.call(put("b"))).text).not.toContain("heard at");
});

test("a policy sees the run, the phase and the role of the caller [I-53]", async () => {
  const seen: unknown[] = [];
  const policy: GatePolicy = {
    name: "reader",
    points: ["pre-tool"],
    check({ run, phase, role, tool }) {
      seen.push({ run, phase, role, tool });
      return [];
    },
  };
  const world = openBox({ gatePolicies: [policy] });
  const { session: lead, run } = await startRun(world.gate, ["a"]);
  const { session } = await child(world.gate, lead, codes());
  await session.call(put("a"));
  await lead.call(put("a"));
  const other = world.gate.sessions.open({ id: "session-1", agent: LEAD });
  await other.call(put("a"));
  const where = { run: run.id, phase: "execute", tool: "box.put" };
  expect(seen).toEqual([
    { ...where, role: "code" },
    { ...where, role: undefined },
    { run: "session-1", phase: undefined, role: undefined, tool: "box.put" },
  ]);
});
