import { expect, test } from "vitest";
import type { GatePolicy } from "../../src/policy/decide.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { AGENT, openGate, request, rules } from "../support/port-world.ts";

const policy = rules({ id: "a", effect: "allow", tool: "disk.*", reason: "r" });
const quiet: GatePolicy = { name: "quiet", points: ["pre-tool", "pre-write"], check: () => [] };
const picky: GatePolicy = {
  name: "picky",
  points: ["pre-write"],
  check: () => [{ severity: "hard-deny", policy: "picky", message: "not written" }],
};
const writes = defineTool({
  name: "disk.write",
  description: "Writes.",
  input: { type: "object" },
  permissionClass: "file",
  resources: () => [{ kind: "file", path: "/tmp/ledger-test/x", access: "write" }],
  execute: () => "written",
});

async function evaluated(policies: readonly GatePolicy[]) {
  const fileRoots = [{ path: "/tmp/ledger-test", access: "write" as const }];
  const { gate } = openGate({ tools: [writes], policy, gatePolicies: policies, fileRoots });
  const answer = await gate.sessions.open({ agent: AGENT }).call(request("disk.write", {}));
  const trail = await gate.audit.read({ after: 0, limit: 100 });
  const entries = trail.filter(({ type }) => type === "gate.evaluated");
  return { answer, entries, said: entries.map(({ data }) => JSON.parse(data ?? "{}")) };
}

test("every evaluation of the gate policies before a call is in the ledger, with a trace id, also when they find nothing [I-54 I-56]", async () => {
  const { entries, said } = await evaluated([quiet]);
  const about = { allowed: true, findings: [], call: { tool: "disk.write", callId: "c-1" } };
  expect(said).toMatchObject([
    { point: "pre-tool", ...about },
    { point: "pre-write", ...about },
  ]);
  expect(new Set(entries.map(({ subject }) => subject)).size).toBe(2);
});

test("a finding is in the ledger with its message, at the point where it was made [I-56]", async () => {
  const { answer, said } = await evaluated([quiet, picky]);
  expect(answer.answer).toBe("denied");
  expect(said).toMatchObject([
    { point: "pre-tool", allowed: true },
    { point: "pre-write", allowed: false, findings: [{ policy: "picky", message: "not written" }] },
  ]);
});

test("where there are no gate policies nothing is evaluated and nothing is written [I-56]", async () => {
  expect((await evaluated([])).entries).toEqual([]);
});
