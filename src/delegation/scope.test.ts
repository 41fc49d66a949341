import { describe, expect, test } from "vitest";
import {
  type AgentRole,
  DEFAULT_PERMISSION,
  PHASES,
  type Run,
  type Scope,
  WRITE_PERMISSIONS,
  type WritePermission,
} from "../model/delegation.ts";
import type { CallFacts, ResolvedResource } from "../policy/answers.ts";
import { runPolicies } from "../policy/decide.ts";
import type { DelegationPlan } from "./plan.ts";
import { replayRun } from "./runs.ts";
import {
  type Bounds,
  coversTool,
  MOST_DEPTH,
  narrowScope,
  phasePolicy,
  type ScopeRequest,
  scopePolicy,
  VERIFY_COMMAND,
  VERIFY_RESULT,
} from "./scope.ts";

const plan = (more: Partial<DelegationPlan> = {}): DelegationPlan => ({
  planId: "plan-1-0001",
  role: "code" as AgentRole,
  task: "t",
  capsule: "c",
  writePermission: "plan-approved-files-only",
  promiseId: "p",
  traceId: "t",
  ...more,
});
const parent: Scope = {
  planId: "plan-0-0000",
  role: "code",
  writePermission: "plan-approved-files-only",
  planFiles: ["/w/a.ts", "/w/b.ts", "sql:shop/orders"],
  documents: [],
  artefact: "",
  tools: ["files.*", "sql.query"],
  calls: 10,
  expiresAt: "2026-11-15T07:00:00.000Z",
  depth: 2,
};
const docs: Scope = {
  ...parent,
  role: "doc",
  writePermission: "docs-and-current-phase-artifact",
  planFiles: [],
  documents: ["/w/docs"],
  artefact: "/w/spec.md",
};
const narrow = (asked: ScopeRequest, bounds: Bounds = { scope: parent }, of = plan()) =>
  narrowScope(of, asked, bounds);
const refusals = (...given: Parameters<typeof narrow>) =>
  narrow(...given).errors.map(({ message }) => message);

test("an omitted field is inherited, or less", () => {
  expect(narrow({})).toEqual({
    scope: {
      planId: "plan-1-0001",
      role: "code",
      writePermission: "plan-approved-files-only",
      planFiles: parent.planFiles,
      documents: [],
      artefact: "",
      tools: parent.tools,
      calls: 10,
      depth: 0,
    },
    ttlMs: undefined,
    errors: [],
  });
});

test("a child may delegate further only if its scope says so, and less deep than its parent [I-63]", () => {
  expect(narrow({}).scope.depth).toBe(0);
  expect(refusals({}, { scope: { ...parent, depth: 0 } })).toHaveLength(1);
  expect(refusals({ depth: 1 })).toEqual([]);
  expect(refusals({ depth: 2 })).toHaveLength(1);
  expect(refusals({ depth: -1 })).toHaveLength(1);
  expect(refusals({ depth: 0.5 })).toHaveLength(1);
  const root = { run: { phase: "execute", planFiles: [], documents: "", artefacts: {} } } as const;
  expect(refusals({ tools: ["*"], depth: MOST_DEPTH - 1 }, root)).toEqual([]);
  expect(refusals({ tools: ["*"], depth: MOST_DEPTH }, root)).toHaveLength(1);
});

test("asking for more than the parent has is refused, with one finding for each [T33]", () => {
  expect(refusals({ planFiles: ["/w/a.ts"] })).toEqual([]);
  expect(refusals({ planFiles: ["/w/a.ts", "/w/c.ts", "/w"] })).toHaveLength(2);
  expect(refusals({ tools: ["files.read", "files.*", "sql.query"] })).toEqual([]);
  expect(refusals({ tools: ["*"] })).toHaveLength(1);
  expect(refusals({ tools: ["sql.*", "filesystem.x", "files"] })).toHaveLength(3);
  expect(refusals({ tools: [] })).toHaveLength(1);
  expect(refusals({ calls: 10 })).toEqual([]);
  for (const calls of [11, 0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(refusals({ calls }), String(calls)).toHaveLength(1);
  }
  for (const ttlMs of [0, -5, Number.NaN, 2.5]) expect(refusals({ ttlMs })).toHaveLength(1);
});

test("a write permission is delegated unchanged, or as none [T33]", () => {
  for (const own of WRITE_PERMISSIONS) {
    for (const writePermission of WRITE_PERMISSIONS) {
      const scope = { ...parent, writePermission: own };
      const { errors } = narrow(
        { planFiles: [], documents: [] },
        { scope },
        plan({ writePermission }),
      );
      const isFine = writePermission === "none" || writePermission === own;
      expect(errors.length === 0, `${own} to ${writePermission}`).toBe(isFine);
    }
  }
});

test("documents are inside the parent's folders, and the artefact is the parent's", () => {
  const doc = plan({ role: "doc", writePermission: "docs-and-current-phase-artifact" });
  const asked = (more: ScopeRequest) => refusals(more, { scope: docs }, doc);
  expect(asked({})).toEqual([]);
  expect(asked({ documents: ["/w/docs/sub", "/w/docs"] })).toEqual([]);
  expect(asked({ documents: ["/w/docs-old", "/w", "docs", "/w/docs/../x"] })).toHaveLength(4);
  expect(asked({ artefact: "/w/spec.md" })).toEqual([]);
  expect(asked({ artefact: "/w/other.md" })).toHaveLength(1);
});

test("places that the permission does not use are not delegated", () => {
  const asked = { planFiles: ["/w/a.ts"], documents: ["/x"], artefact: "/y" };
  const { scope, errors } = narrow(asked, {}, plan({ role: "research", writePermission: "none" }));
  expect(scope).toMatchObject({ planFiles: [], documents: [], artefact: "" });
  expect(errors).toMatchObject([{ policy: "delegation.scope" }]);
});

test("at the root the files of the run's approved plan are the limit, and without a run there are none", () => {
  const run = {
    phase: "execute",
    planFiles: ["/w/a.ts"],
    documents: "/w/docs",
    artefacts: { execute: "/w/log.md" },
  } as const;
  const tools = ["*"];
  expect(narrow({ tools }, { run }).scope.planFiles).toEqual(["/w/a.ts"]);
  expect(refusals({ tools, planFiles: ["/w/b.ts"] }, { run })).toHaveLength(1);
  expect(refusals({ tools, planFiles: ["/w/a.ts"] }, {})).toHaveLength(1);
  expect(refusals({}, { run })).toHaveLength(1);
  const doc = plan({ role: "doc", writePermission: "docs-and-current-phase-artifact" });
  const found = narrow({ tools }, { run }, doc).scope;
  expect(found).toMatchObject({ documents: ["/w/docs"], artefact: "/w/log.md" });
  expect(refusals({ tools, documents: ["/etc"] }, { run }, doc)).toHaveLength(1);
});

test("a pattern covers its family and no other names with the same beginning", () => {
  expect(coversTool(["files.*"], "files.read")).toBe(true);
  expect(coversTool(["files.*"], "files.a.b")).toBe(true);
  for (const tool of ["files", "filesx.read", "*", "sql.query"]) {
    expect(coversTool(["files.*"], tool), tool).toBe(false);
  }
  expect(coversTool(["*"], "anything")).toBe(true);
  expect(coversTool([], "files.read")).toBe(false);
});

const NOW = Date.parse("2026-11-15T06:00:00.000Z");
const scope = (more: Partial<Scope> = {}): Scope => ({
  planId: "plan-1-0001",
  role: "code",
  writePermission: "plan-approved-files-only",
  planFiles: ["/w/a.ts", "sql:shop/orders"],
  documents: ["/w/docs"],
  artefact: "/w/spec.md",
  tools: ["*"],
  calls: 10,
  expiresAt: "2026-11-15T07:00:00.000Z",
  depth: 0,
  ...more,
});
const facts = (more: Partial<CallFacts> = {}): CallFacts => ({
  tool: "files.write",
  permissionClass: "file",
  input: {},
  resources: [],
  tenant: "acme",
  sessionId: "dlg-1",
  chain: ["agent:child"],
  now: NOW,
  ...more,
});
const write = (resolved: string): ResolvedResource => ({
  kind: "file",
  path: "as given",
  resolved,
  access: "write",
});
const read: ResolvedResource = { kind: "file", path: "x", resolved: "/etc/hosts", access: "read" };
const other = (id: string): ResolvedResource => ({ kind: "other", id, access: "write" });

function findings(of: Partial<Scope>, call: Partial<CallFacts>, artefact?: string) {
  const policy = scopePolicy(scope(of), { artefact });
  return runPolicies([policy], { point: "pre-tool", payload: facts(call) });
}
const isFine = (...given: Parameters<typeof findings>) => findings(...given).length === 0;

const CALLS = {
  "a planned file": { resources: [write("/w/a.ts")] },
  "a planned table": {
    tool: "sql.update_row",
    permissionClass: "generic",
    resources: [other("sql:shop/orders")],
  },
  "another file": { resources: [write("/w/b.ts")] },
  "a file beside the planned one": { resources: [write("/w/a.ts.bak")] },
  "a planned and another file": { resources: [write("/w/a.ts"), write("/w/b.ts")] },
  "another table": {
    tool: "sql.update_row",
    permissionClass: "generic",
    resources: [other("sql:shop/users")],
  },
  "a document": { resources: [write("/w/docs/new.md")] },
  "a folder beside the documents": { resources: [write("/w/docs-old/new.md")] },
  "the artefact": { resources: [write("/w/spec.md")] },
  evidence: { tool: VERIFY_RESULT, permissionClass: "generic", resources: [other("evidence")] },
  "evidence by another tool": {
    tool: "world.set",
    permissionClass: "generic",
    resources: [other("evidence")],
  },
  "a command": {
    tool: "shell.run",
    permissionClass: "bash",
    resources: [{ kind: "command", command: "ls" }],
  },
  "a request to another system": {
    tool: "http.send",
    permissionClass: "webfetch",
    resources: [{ kind: "url", url: "https://x" }],
  },
  "an unnamed resource": { tool: "world.blind", permissionClass: "generic", resources: [] },
  "a path that cannot be resolved": {
    resources: [{ kind: "unresolved", path: "l", access: "write", reason: "r" }],
  },
  "a file, by a readonly tool": {
    tool: "other",
    permissionClass: "readonly",
    resources: [write("/w/b.ts")],
  },
} as const satisfies Record<string, Partial<CallFacts>>;
type Name = keyof typeof CALLS;

const ALLOWED: Readonly<Record<WritePermission, readonly Name[]>> = {
  none: [],
  "docs-and-current-phase-artifact": ["a document", "the artefact"],
  "plan-approved-files-only": ["a planned file", "a planned table"],
  "evidence-through-kd_verify_result": ["evidence"],
};

describe.each(Object.entries(ALLOWED))("%s [S3-39 S3-05]", (writePermission, allowed) => {
  const of = { writePermission: writePermission as WritePermission };
  test.each(Object.entries(CALLS))("to write %s", (name, call) => {
    expect(isFine(of, call)).toBe(allowed.includes(name as Name));
  });

  test("reading is allowed", () => {
    expect(isFine(of, { resources: [read], tool: "files.read" })).toBe(true);
    expect(isFine(of, { permissionClass: "readonly", tool: "world.look" })).toBe(true);
    const url = { kind: "url", url: "https://x" } as const;
    const fetches = { permissionClass: "webfetch", tool: "my.fetch", resources: [url] } as const;
    expect(isFine(of, { ...fetches, effect: "read" })).toBe(true);
    expect(isFine(of, { ...fetches, effect: "external" }), "whatever it is called").toBe(false);
  });
});

test("every denial is hard, names the permission and says that nothing was executed [S3-39]", () => {
  for (const writePermission of Object.values(DEFAULT_PERMISSION)) {
    const [first] = findings({ writePermission }, CALLS["another file"]);
    expect(first).toMatchObject({ severity: "hard-deny", policy: "delegation.scope" });
    expect(first?.message).toMatch(/Nothing was executed/);
    expect(first?.message).toContain(writePermission);
  }
});

test("the artefact of an earlier phase may not be written [S3-39]", () => {
  const of = { writePermission: "docs-and-current-phase-artifact" } as const;
  expect(isFine(of, CALLS["the artefact"], "/w/spec.md")).toBe(true);
  expect(isFine(of, CALLS["the artefact"], "/w/plan.md")).toBe(false);
  expect(isFine(of, { resources: [write("/w/plan.md")] }, "/w/plan.md")).toBe(false);
  expect(isFine({ ...of, artefact: "" }, { resources: [write("")] }, "")).toBe(false);
});

test("a tool outside the scope and a call after the expiry are denied [T33]", () => {
  expect(isFine({ tools: ["files.read"] }, { tool: "files.read", resources: [read] })).toBe(true);
  expect(isFine({ tools: ["files.read"] }, CALLS["a planned file"])).toBe(false);
  const late = { tool: "files.read", resources: [read], now: NOW + 3_600_001 };
  expect(isFine({}, { ...late, now: NOW + 3_600_000 })).toBe(true);
  expect(isFine({}, late)).toBe(false);
});

test("a scope that cannot be read denies the call [T33]", () => {
  const broken = { expiresAt: "never" as string, writePermission: "none" } as const;
  expect(findings(broken, { tool: "files.read", resources: [read] })).toMatchObject([
    { severity: "hard-deny", policy: "delegation.scope" },
  ]);
});

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

function severities(of: Partial<Run>, ...resources: ResolvedResource[]) {
  return call(of, { resources });
}
function call(of: Partial<Run>, more: Partial<CallFacts>) {
  const payload = facts({ sessionId: "run-1", chain: [], now: 0, ...more });
  const found = runPolicies([phasePolicy({ ...run, ...of })], { point: "pre-tool", payload });
  return found.map(({ severity }) => severity);
}

test.each(PHASES)(
  "in the phase %s production is written only if it is execute, and only files of the plan [I-62]",
  (phase) => {
    const isExecute = phase === "execute";
    expect(severities({ phase }, write("/w/a.ts"))).toEqual(isExecute ? [] : ["hard-deny"]);
    expect(severities({ phase }, write("/w/b.ts"))).toEqual(["hard-deny"]);
    expect(severities({ phase }, write("/w/a.ts"), write("/w/b.ts"))).toContain("hard-deny");
    expect(severities({ phase }, write("/w/docs/notes.md"))).toEqual([]);
    expect(severities({ phase }, write("/w/docs-old/notes.md"))).toEqual(["hard-deny"]);
  },
);

test("the artefact of a phase may be written only in that phase [I-62]", () => {
  expect(severities({ phase: "spec" }, write("/w/spec.md"))).toEqual([]);
  expect(severities({ phase: "plan" }, write("/w/spec.md"))).toEqual(["hard-deny"]);
});

test("evidence is written only through its tools, not as a file [I-62 I-64]", () => {
  expect(severities({}, write("/w/docs/evidence/1.json"))).toEqual(["hard-deny"]);
  const command = { kind: "command", command: "npm test" } as const;
  const verify = { tool: VERIFY_COMMAND, permissionClass: "bash", resources: [command] } as const;
  expect(call({ phase: "verify" }, verify)).toEqual([]);
});

test("a command is a soft denial, because what it writes is unknown [I-62]", () => {
  const resources = [{ kind: "command", command: "make" }] as const;
  const shell = { tool: "shell.run", permissionClass: "bash", resources } as const;
  expect(call({ phase: "execute" }, shell)).toEqual(["soft-deny"]);
});

test("in a stopped run nothing is written, and reading is allowed [I-62]", () => {
  const stopped = { phase: "execute", status: "stopped" } as const;
  expect(severities(stopped, write("/w/a.ts"))).toEqual(["hard-deny"]);
  expect(severities(stopped, write("/w/docs/notes.md"))).toEqual(["hard-deny"]);
  expect(severities(stopped, { ...write("/w/a.ts"), access: "read" } as ResolvedResource)).toEqual(
    [],
  );
});
