import { describe, expect, test } from "vitest";
import { DEFAULT_PERMISSION, type Scope, type WritePermission } from "../model/delegation.ts";
import type { CallFacts, ResolvedResource } from "../policy/answers.ts";
import { runPolicies } from "../policy/gate-policy.ts";
import { scopePolicy } from "./bounds.ts";
import { VERIFY_RESULT } from "./verify.ts";

const NOW = Date.parse("2026-11-15T06:00:00.000Z");
const scope = (more: Partial<Scope> = {}): Scope => ({
  planId: "plan-1-0001",
  role: "code",
  writePermission: "plan-approved-files",
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
  "something that is not named": { tool: "world.blind", permissionClass: "generic", resources: [] },
  "a path nobody can resolve": {
    resources: [{ kind: "unresolved", path: "l", access: "write", reason: "r" }],
  },
  "something, while it calls itself readonly": {
    tool: "odd",
    permissionClass: "readonly",
    resources: [write("/w/b.ts")],
  },
} as const satisfies Record<string, Partial<CallFacts>>;
type Name = keyof typeof CALLS;

const ALLOWED: Readonly<Record<WritePermission, readonly Name[]>> = {
  none: [],
  "documents-and-artefact": ["a document", "the artefact"],
  "plan-approved-files": ["a planned file", "a planned table"],
  "evidence-through-tool": ["evidence"],
};

describe.each(Object.entries(ALLOWED))("S3-39 S3-05 %s", (writePermission, allowed) => {
  const of = { writePermission: writePermission as WritePermission };
  test.each(Object.entries(CALLS))("to write %s", (name, call) => {
    expect(isFine(of, call)).toBe(allowed.includes(name as Name));
  });

  test("reading is not writing", () => {
    expect(isFine(of, { resources: [read], tool: "files.read" })).toBe(true);
    expect(isFine(of, { permissionClass: "readonly", tool: "world.look" })).toBe(true);
    const url = { kind: "url", url: "https://x" } as const;
    expect(isFine(of, { permissionClass: "webfetch", tool: "http.fetch", resources: [url] })).toBe(
      true,
    );
  });
});

test("S3-39 every refusal is a hard denial that says what to do instead", () => {
  for (const writePermission of Object.values(DEFAULT_PERMISSION)) {
    const [first] = findings({ writePermission }, CALLS["another file"]);
    expect(first).toMatchObject({ severity: "hard-deny", policy: "delegation.scope" });
    expect(first?.message).toMatch(/Nothing was executed/);
    expect(first?.message).toContain(writePermission);
  }
});

test("S3-39 the artefact of a phase that is over is not the current one any more", () => {
  const of = { writePermission: "documents-and-artefact" } as const;
  expect(isFine(of, CALLS["the artefact"], "/w/spec.md")).toBe(true);
  expect(isFine(of, CALLS["the artefact"], "/w/plan.md")).toBe(false);
  expect(isFine(of, { resources: [write("/w/plan.md")] }, "/w/plan.md")).toBe(false);
  expect(isFine({ ...of, artefact: "" }, { resources: [write("")] }, "")).toBe(false);
});

test("T33 a tool outside the rights, and any call after the time, is refused", () => {
  expect(isFine({ tools: ["files.read"] }, { tool: "files.read", resources: [read] })).toBe(true);
  expect(isFine({ tools: ["files.read"] }, CALLS["a planned file"])).toBe(false);
  const late = { tool: "files.read", resources: [read], now: NOW + 3_600_001 };
  expect(isFine({}, { ...late, now: NOW + 3_600_000 })).toBe(true);
  expect(isFine({}, late)).toBe(false);
});

test("T33 a broken scope denies instead of letting through", () => {
  const odd = { expiresAt: "never" as string, writePermission: "none" } as const;
  expect(findings(odd, { tool: "files.read", resources: [read] })).toMatchObject([
    { severity: "hard-deny", policy: "delegation.scope" },
  ]);
});
