import { expect, test } from "vitest";
import {
  type Finding,
  type FindingSeverity,
  type Grant,
  grantId,
  USER_GRANT_MS,
} from "../model/finding.ts";
import { applyGrants } from "./decide.ts";

const finding = (severity: FindingSeverity, message = "m", policy = "p"): Finding => ({
  severity,
  policy,
  message,
});
const grant = (more: Partial<Grant> = {}): Grant => ({
  id: "AUTH001",
  finding: { policy: "p", message: "m" },
  grantor: "user",
  scope: { kind: "finding" },
  expiresAt: undefined,
  ...more,
});
const at = { point: "pre-tool", now: 1000, phase: "execute" } as const;
const lifts = (one: Finding, by: Grant, when: Parameters<typeof applyGrants>[2] = at) =>
  applyGrants([one], [by], when).standing.length === 0;

test("no grant overrides hard-deny, any overrides soft-deny, only evidence overrides evidence-required, warnings need no grant [I-59]", () => {
  const table = (["user", "plan-revision", "evidence-update"] as const).map((grantor) =>
    (["hard-deny", "soft-deny", "evidence-required", "warning"] as const).map((severity) =>
      lifts(finding(severity), grant({ grantor })),
    ),
  );
  expect(table).toEqual([
    [false, true, false, false],
    [false, true, false, false],
    [false, true, true, false],
  ]);
});

test("an unknown severity is not overridden [I-59]", () => {
  expect(lifts(finding("mild" as FindingSeverity), grant({ grantor: "evidence-update" }))).toBe(
    false,
  );
});

test("scopes: a single finding, a point, a phase [I-59]", () => {
  const soft = finding("soft-deny");
  expect(lifts(finding("soft-deny", "another"), grant())).toBe(false);
  expect(lifts(finding("soft-deny", "m", "q"), grant())).toBe(false);
  const atPoint = grant({ scope: { kind: "point", point: "pre-tool" } });
  expect(lifts(finding("soft-deny", "another"), atPoint)).toBe(true);
  expect(lifts(finding("soft-deny", "m", "q"), atPoint)).toBe(false);
  expect(lifts(soft, atPoint, { ...at, point: "pre-write" })).toBe(false);
  const inPhase = grant({ scope: { kind: "phase", phase: "execute" } });
  expect(lifts(finding("soft-deny", "another"), inPhase)).toBe(true);
  expect(lifts(soft, inPhase, { ...at, phase: "ship" })).toBe(false);
  expect(lifts(soft, inPhase, { point: "pre-tool", now: 1000 })).toBe(false);
});

test("grants expire and can be revoked [I-59]", () => {
  const soft = finding("soft-deny");
  expect(lifts(soft, grant({ expiresAt: 1001 }))).toBe(true);
  expect(lifts(soft, grant({ expiresAt: 1000 }))).toBe(false);
  expect(lifts(soft, grant({ expiresAt: Number.NaN }))).toBe(false);
  expect(lifts(soft, grant({ revoked: true }))).toBe(false);
});

test("a user's grant lapses after 30 minutes by default [I-59]", () => {
  expect(USER_GRANT_MS).toBe(30 * 60 * 1000);
});

test("ids are AUTH and a three-digit number [I-59]", () => {
  expect([grantId(1), grantId(42), grantId(999), grantId(1000)]).toEqual([
    "AUTH001",
    "AUTH042",
    "AUTH999",
    "AUTH1000",
  ]);
});

test("an overridden finding is kept with its grant [I-59]", () => {
  const soft = finding("soft-deny");
  const hard = finding("hard-deny", "no");
  expect(applyGrants([soft, hard], [grant({ id: "AUTH007" })], at)).toEqual({
    standing: [hard],
    overridden: [{ finding: soft, grant: "AUTH007" }],
  });
});
