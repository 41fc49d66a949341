import { expect, test } from "vitest";
import type { Guard } from "../model/decision.ts";
import { type Metadata, newDraft } from "../model/decision.ts";
import { tenantDenyGuard } from "./review.ts";

function ask(guard: Guard, metadata: unknown): unknown {
  const diff = { sourceTool: "t", raw: new Uint8Array(), metadata: metadata as Metadata };
  const decision = newDraft("s", diff, "2026-11-15T06:00:00.000Z");
  const options = { signal: new AbortController().signal };
  return guard.allows(decision, "pending_ml", options);
}

test("a tenant that is marked true is denied, others are not [S0-108]", () => {
  const guard = tenantDenyGuard({ acme: true });
  expect(ask(guard, { tenant: "acme" })).toBe(false);
  expect(ask(guard, { tenant: "acme", more: 1 })).toBe(false);
  expect(ask(guard, { tenant: "other" })).toBe(true);
  expect(ask(guard, { tenant: "ACME" })).toBe(true);
});

test("a missing or empty block list denies nobody [S0-109]", () => {
  for (const list of [undefined, null as never, {}]) {
    expect(ask(tenantDenyGuard(list), { tenant: "acme" })).toBe(true);
    expect(ask(tenantDenyGuard(list), {})).toBe(true);
  }
});

test("a tenant that is listed as false is not denied [S0-110]", () => {
  const guard = tenantDenyGuard({ acme: false, evil: true });
  expect(ask(guard, { tenant: "acme" })).toBe(true);
  expect(ask(guard, { tenant: "evil" })).toBe(false);
});

test("no tenant key, no text under it or no metadata at all is allowed [S0-111]", () => {
  const guard = tenantDenyGuard({ acme: true, "1": true, null: true, undefined: true });
  const odd = [{}, { Tenant: "acme" }, { tenant: 1 }, { tenant: null }, { tenant: undefined }];
  const boxed = [{ tenant: ["acme"] }, { tenant: { id: "acme" } }, { tenant: new String("acme") }];
  for (const metadata of [...odd, ...boxed, undefined, null]) {
    expect(ask(guard, metadata)).toBe(true);
  }
});

test("names from Object.prototype identify nobody, unless they are really listed [S0-111]", () => {
  const guard = tenantDenyGuard({ acme: true });
  for (const tenant of ["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf"]) {
    expect(ask(guard, { tenant })).toBe(true);
  }
  const listed = tenantDenyGuard(JSON.parse('{"constructor":true,"__proto__":true}'));
  expect(ask(listed, { tenant: "constructor" })).toBe(false);
  expect(ask(listed, { tenant: "__proto__" })).toBe(false);
  Object.defineProperty(Object.prototype, "polluted", { value: true, configurable: true });
  try {
    expect(ask(guard, { tenant: "polluted" })).toBe(true);
  } finally {
    Reflect.deleteProperty(Object.prototype, "polluted");
  }
  // An inherited tenant is not the record's own.
  expect(ask(guard, Object.create({ tenant: "acme" }))).toBe(true);
});

test("a block is a plain no and not an error [S0-112]", () => {
  const guard = tenantDenyGuard({ acme: true });
  expect(() => ask(guard, { tenant: "acme" })).not.toThrow();
  expect(ask(guard, { tenant: "acme" })).toBe(false);
});

test("marking a tenant later takes effect at once [S0-108]", () => {
  const list: Record<string, boolean> = {};
  const guard = tenantDenyGuard(list);
  expect(ask(guard, { tenant: "acme" })).toBe(true);
  list["acme"] = true;
  expect(ask(guard, { tenant: "acme" })).toBe(false);
});

test("a list of another kind would deny nobody in silence, so it is refused at once [I-08]", () => {
  const wrong = [
    new Map([["acme", true]]),
    new Set(["acme"]),
    ["acme"],
    "acme",
    1,
    { acme: "true" },
  ];
  for (const list of wrong) expect(() => tenantDenyGuard(list as never)).toThrow(TypeError);
});
