import { expect, test } from "vitest";
import { PHASES, type Run } from "../model/run.ts";
import type { CallFacts, ResolvedResource } from "../policy/answers.ts";
import { runPolicies } from "../policy/gate-policy.ts";
import { phasePolicy } from "./bounds.ts";
import { replayRun } from "./runs.ts";
import { VERIFY_COMMAND } from "./verify.ts";

const base = replayRun("run-1", [
  {
    kind: "started",
    feature: "f",
    lead: "agent:lead",
    documents: "/w/docs",
    evidenceFolder: "/w/docs/evidence",
    promise: { id: "p", statement: "s", evidence: [] },
    budget: 5,
  },
]) as Run;
const run: Run = { ...base, planFiles: ["/w/a.ts"], artefacts: { spec: "/w/spec.md" } };

const write = (resolved: string): ResolvedResource => ({
  kind: "file",
  path: "x",
  resolved,
  access: "write",
});
function severities(of: Partial<Run>, ...resources: ResolvedResource[]) {
  return call(of, { resources });
}
function call(of: Partial<Run>, more: Partial<CallFacts>) {
  const payload: CallFacts = {
    tool: "files.write",
    permissionClass: "file",
    input: {},
    resources: [],
    tenant: "acme",
    sessionId: "run-1",
    chain: [],
    now: 0,
    ...more,
  };
  const found = runPolicies([phasePolicy({ ...run, ...of })], { point: "pre-tool", payload });
  return found.map(({ severity }) => severity);
}

test.each(PHASES)(
  "I-62 in %s production is written only if it is execute, and only where the plan says",
  (phase) => {
    const isExecute = phase === "execute";
    expect(severities({ phase }, write("/w/a.ts"))).toEqual(isExecute ? [] : ["hard-deny"]);
    expect(severities({ phase }, write("/w/b.ts"))).toEqual(["hard-deny"]);
    expect(severities({ phase }, write("/w/a.ts"), write("/w/b.ts"))).toContain("hard-deny");
    expect(severities({ phase }, write("/w/docs/notes.md"))).toEqual([]);
    expect(severities({ phase }, write("/w/docs-old/notes.md"))).toEqual(["hard-deny"]);
  },
);

test("I-62 the artefact of the phase may be written in its phase alone", () => {
  expect(severities({ phase: "spec" }, write("/w/spec.md"))).toEqual([]);
  expect(severities({ phase: "plan" }, write("/w/spec.md"))).toEqual(["hard-deny"]);
});

test("I-62 I-64 evidence is not written as a file, only through its tools", () => {
  expect(severities({}, write("/w/docs/evidence/1.json"))).toEqual(["hard-deny"]);
  const command = { kind: "command", command: "npm test" } as const;
  const verify = { tool: VERIFY_COMMAND, permissionClass: "bash", resources: [command] } as const;
  expect(call({ phase: "verify" }, verify)).toEqual([]);
});

test("I-62 of a command nobody can say what it writes: a person may lift that", () => {
  const resources = [{ kind: "command", command: "make" }] as const;
  const shell = { tool: "shell.run", permissionClass: "bash", resources } as const;
  expect(call({ phase: "execute" }, shell)).toEqual(["soft-deny"]);
});

test("I-62 in a run that was stopped nothing is written any more; reading goes on", () => {
  const stopped = { phase: "execute", status: "stopped" } as const;
  expect(severities(stopped, write("/w/a.ts"))).toEqual(["hard-deny"]);
  expect(severities(stopped, write("/w/docs/notes.md"))).toEqual(["hard-deny"]);
  expect(severities(stopped, { ...write("/w/a.ts"), access: "read" } as ResolvedResource)).toEqual(
    [],
  );
});
