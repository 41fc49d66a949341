import { describe, expect, test } from "vitest";
import { busyMs } from "../../tests/support/busy-time.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { createRedactor } from "./redact.ts";

const redact = createRedactor({});
const KEY = "0123456789abcdef0123456789abcdef";
const HIDDEN = { $redacted: "secret" };

test("data without secrets comes back as the same object", () => {
  const data: JsonObject = {
    to: "approved",
    nested: { list: [1, "two", { three: null }] },
    ok: true,
  };
  expect(redact("t", data)).toBe(data);
  expect(createRedactor({ key: KEY, secretPaths: ["a.b"] })("t", data)).toBe(data);
});

test("only changed parts are copied, and the input is unchanged", () => {
  const data: JsonObject = { plain: { a: 1 }, login: { user: "bob", password: "hunter2" } };
  const before = structuredClone(data);
  const result = redact("t", data);
  expect(result).toEqual({ plain: { a: 1 }, login: { user: "bob", password: HIDDEN } });
  expect(result["plain"]).toBe(data["plain"]);
  expect(data).toEqual(before);
});

test("values of every kind are hidden under a secret name, but not yes, no and nothing", () => {
  const values: JsonValue[] = ["x", 1, ["a"], { a: 1 }, []];
  for (const password of values) expect(redact("t", { password })).toEqual({ password: HIDDEN });
  for (const password of [true, false, null, ""]) {
    const data = { password };
    expect(redact("t", data)).toBe(data);
  }
  expect(redact("t", { tokens: 812, token: 812 })).toEqual({ tokens: 812, token: HIDDEN });
  expect(redact("t", { tokens: ["a"] })).toEqual({ tokens: HIDDEN });
});

test("places are hidden whatever they are called", () => {
  const at = createRedactor({
    secretPaths: ["input.card.number", "items.*.code", ["a.b", "c"], "any.*"],
  });
  const data: JsonObject = {
    input: { card: { number: 42, name: "Bob" } },
    items: [{ code: "x", n: 1 }, { code: null }, "code"],
    "a.b": { c: [1], d: 2 },
    any: { one: true, two: { three: 3 } },
    card: { number: 1 },
  };
  expect(at("t", data)).toEqual({
    input: { card: { number: HIDDEN, name: "Bob" } },
    items: [{ code: HIDDEN, n: 1 }, { code: null }, "code"],
    "a.b": { c: HIDDEN, d: 2 },
    any: { one: HIDDEN, two: HIDDEN },
    card: { number: 1 },
  });
});

test("in a longer text only the secret is replaced, and a whole one becomes an object", () => {
  expect(redact("t", { log: "psql postgres://a:hunter2@db/x failed" })).toEqual({
    log: "psql postgres://a:[redacted:secret]@db/x failed",
  });
  expect(redact("t", { log: ["ghp_A1b2C3d4E5f6G7h8I9j0K"] })).toEqual({ log: [HIDDEN] });
  expect(createRedactor({ scan: false })("t", { log: "password=x" })).toEqual({
    log: "password=x",
  });
});

test("a secret found once is taken out of all the data, names included", () => {
  const result = redact("t", {
    login: { password: "hunter2-9" },
    error: "hunter2-9 was refused for hunter2-9",
    tried: { "hunter2-9": 1 },
    exact: "hunter2-9",
  });
  expect(JSON.stringify(result)).not.toContain("hunter2-9");
  expect(result["error"]).toBe("[redacted:secret] was refused for [redacted:secret]");
});

test("a plain word under a secret name does not blacken the rest", () => {
  const result = redact("t", { password: "required", reason: "a password is required" });
  expect(result["reason"]).toBe("a password is required");
});

test("redacted values stay unchanged, and imitations are redacted", () => {
  for (const redactor of [redact, createRedactor({ key: KEY })]) {
    const once = redactor("t", {
      password: "hunter2-9",
      log: "password=hunter2-9; Bearer abcdefgh12345678",
    });
    expect(redactor("t", once)).toBe(once);
  }
  const fake: JsonObject = {
    password: { $redacted: "hunter2" },
    token: { $redacted: "secret", extra: "hunter2" },
  };
  expect(JSON.stringify(redact("t", fake))).not.toContain("hunter2");
});

test("a secret in a name is hidden there", () => {
  const result = redact("t", { ghp_A1b2C3d4E5f6G7h8I9j0K: { a: 1 }, b: 2 });
  expect(result).toEqual({ "[redacted:secret]": { a: 1 }, b: 2 });
});

test("hostile names change no prototype [T26]", () => {
  const data = JSON.parse(
    '{"__proto__":{"password":"hunter2-9"},"constructor":{"prototype":{"token":"x"}}}',
  );
  const result = redact("t", data);
  expect(JSON.stringify(result)).not.toContain("hunter2");
  expect(Object.getPrototypeOf(result)).toBe(Object.prototype);
  expect(Object.hasOwn(result, "__proto__")).toBe(true);
  expect(({} as { password?: unknown }).password).toBeUndefined();
});

test("data deeper than can be stored is refused, and the deepest place can be redacted", () => {
  const nest = (depth: number, leaf: JsonObject): JsonObject => {
    let data = leaf;
    for (let level = 1; level < depth; level += 1) data = { a: data };
    return data;
  };
  const deepest = redact("t", nest(64, { password: "hunter2-9" }));
  expect(JSON.stringify(deepest)).toContain('"password":"[redacted:secret]"');
  for (const depth of [65, 100_000]) {
    const deep = nest(depth, { a: 1 });
    expect(() => redact("t", deep)).toThrow(expect.objectContaining({ code: "payload_too_large" }));
  }
});

describe("tags [T23]", () => {
  const keyed = createRedactor({ key: KEY, secretKeys: ["pin"] });
  const tagOf = (tenant: string, pin: JsonValue) => JSON.stringify(keyed(tenant, { pin })["pin"]);

  test("equal secrets of a tenant look equal, everything else looks different", () => {
    expect(tagOf("a", "1234")).toBe(tagOf("a", "1234"));
    expect(tagOf("a", "1234")).toMatch(/^\{"\$redacted":"hmac-sha256:[0-9a-f]{64}"\}$/);
    const tags = [
      tagOf("a", "1234"),
      tagOf("b", "1234"),
      tagOf("a", "1235"),
      tagOf("a", 1234),
      tagOf("a", ["1234"]),
    ];
    const other = createRedactor({ key: `${KEY}x`, secretKeys: ["pin"] })("a", { pin: "1234" });
    expect(new Set([...tags, JSON.stringify(other["pin"])]).size).toBe(6);
    const inText = keyed("a", { log: "--password 1234" })["log"];
    expect(inText).toContain(tagOf("a", "1234").slice(14, -2));
  });

  test("a key that can be guessed is refused", () => {
    for (const key of ["", "short", new Uint8Array(15)]) {
      expect(() => createRedactor({ key })).toThrow(/16 random bytes/);
    }
  });
});

test("redacting ten fields costs less than three microseconds when there is nothing to hide", () => {
  const data: JsonObject = {
    id: "0193e7a2-7c1e-7000-8000-000000000001",
    to: "pending_tech",
    source_tool: "billing.refund",
    raw_sha256: "a3f5c1d2e4b6978805132435465768798a9bacbdcedfe0f10213243546576879",
    raw_bytes: 512,
    at: "2026-11-15T06:00:00.000Z",
    reason: "The refund is below the limit and the invoice belongs to this customer.",
    by: "alice@example.com",
    policy_version: "policy-v12",
    url: "https://example.com/invoices/12345",
  };
  const redactor = createRedactor({ key: KEY });
  const rounds = 20_000;
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 10; run += 1) {
    const ms = busyMs(() => {
      for (let n = 0; n < rounds; n += 1) redactor("t", data);
    });
    best = Math.min(best, (ms * 1_000) / rounds);
  }
  console.log(`redacting ten plain fields: ${best.toFixed(2)} µs`);
  expect(best).toBeLessThan(3);
});
