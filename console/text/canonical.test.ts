import fc from "fast-check";
import { expect, test } from "vitest";
import { previewHash } from "../../src/model/interaction.ts";
import { canonicalJson } from "../../src/util/canonical-json.ts";
import { sha256Hex as serverHash } from "../../src/util/hash.ts";
import type { JsonValue } from "../../src/util/json.ts";
import { JsonError } from "../../src/util/json-error.ts";
import { ascii, canonical, type Json, sha256Hex } from "./canonical.ts";

test("canonical JSON: browser and server agree on form and hash", async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), async (value) => {
      const text = canonical(value as Json);
      const servers = written(value);
      // What the server refuses to write (half a character, a number too large) it never sends.
      if (servers === undefined) return;
      expect(text).toBe(servers);
      expect(await sha256Hex(text)).toBe(serverHash(text));
    }),
    { numRuns: 500 },
  );
});

function written(value: unknown): string | undefined {
  try {
    return canonicalJson(value as JsonValue);
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}

test("canonical JSON: a preview received over HTTP has the hash of its interaction", async () => {
  const preview = {
    decisionId: "d-1",
    tenant: "acme",
    actionHash: "a".repeat(64),
    dryRun: [{ summary: "é \u202e", preview: "", impact: {} }],
    stateVersion: ["1"],
    safetyClass: "reversible",
    policyHash: "b".repeat(64),
    requires: [{ name: "review", count: 1 }],
    expiresAt: "2026-11-15T06:00:00.000Z",
    nonce: "n",
    epoch: "",
    sessionId: "s-1",
    askers: ["agent:one"],
  };
  const wire = JSON.parse(JSON.stringify(preview)) as Record<string, Json>;
  expect(await sha256Hex(canonical({ ...wire, v: 1 }))).toBe(previewHash(preview));
});

test("canonical JSON: the raw view is ASCII and parses to the same value", () => {
  const value = { "ключ\u202e": "🙂 \u0000" };
  const text = ascii(canonical(value));
  expect(text).toMatch(/^[\x20-\x7e]*$/);
  expect(JSON.parse(text)).toEqual(value);
});
