// Secrets planted wherever agents and tools leave them; what ends up in the trail is searched for every one of them.

import { describe, expect, test } from "vitest";
import { createRedactor } from "../../src/audit/redact.ts";
import { exportStore } from "../../src/audit/trail.ts";
import { newDraft } from "../../src/model/decision.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { canonicalJson } from "../../src/util/canonical-json.ts";
import { toIso } from "../../src/util/clock.ts";
import { hmacSha256Hex, sha256Hex } from "../../src/util/hash.ts";
import type { JsonObject } from "../../src/util/json.ts";
import { seededRandom } from "../../src/util/random.ts";
import { collect, START } from "./fixtures.ts";

const CANARIES = 1_000;
const KEY = seededRandom("redaction key").bytes(32);
const random = seededRandom("canaries");

/** Each has letters and digits, as made secrets have, and occurs nowhere else. */
function newCanary(n: number): string {
  return `Cnry${n}x${Buffer.from(random.bytes(15)).toString("hex")}`;
}

const base64 = (text: string) => Buffer.from(text).toString("base64url");

/** Where one canary is planted: in arguments, results, errors, headers, stack traces. */
const PLACES: readonly ((canary: string) => JsonObject)[] = [
  (c) => ({ input: { user: "bob", password: c } }),
  (c) => ({ input: { auth: { apiKey: c, scopes: ["read"] } } }),
  (c) => ({ input: { "X-Api-Key": c } }),
  (c) => ({ headers: { authorization: `Bearer ${c}` }, status: 401 }),
  (c) => ({ headers: { Cookie: `sid=${c}; theme=dark` } }),
  (c) => ({ headers: [["set-cookie", "x"], { "set-cookie": [`sid=${c}`] }] }),
  (c) => ({ request: `GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${c}\r\n\r\n` }),
  (c) => ({ request: `POST /login\nCookie: sid=${c}\nAccept: */*` }),
  (c) => ({ output: { credentials: { id: "a", parts: [c, "x"] } } }),
  (c) => ({ output: [{ rows: [{ name: "a", client_secret: c }] }] }),
  (c) => ({ output: JSON.stringify({ user: "a", access_token: c }) }),
  (c) => ({ output: JSON.stringify(JSON.stringify({ user: "a", secret: c })) }),
  (c) => ({ output: `user: a\npassword: ${c}\nhost: db\n` }),
  (c) => ({ output: `eyJhbGciOiJIUzI1NiJ9.${base64(c)}.${c}` }),
  (c) => ({ output: `got eyJhbGciOiJIUzI1NiJ9.${base64(c)}.${c}, kept` }),
  (c) => ({ output: `-----BEGIN PRIVATE KEY-----\n${c}\n-----END PRIVATE KEY-----\n` }),
  (c) => ({ output: `-----BEGIN RSA PRIVATE KEY-----\n${c}` }),
  (c) => ({ output: { note: `token ghp_${c.padEnd(36, "0")} was revoked` } }),
  (c) => ({ output: `key is sk-proj-${c}` }),
  (c) => ({ output: `xoxb-1234-${c}` }),
  (c) => ({ error: `connect ECONNREFUSED postgres://app:${c}@db.internal:5432/prod` }),
  (c) => ({
    error: `Error: login failed\n    at connect (redis://:${c}@cache:6379/0)\n    at main (x.ts:1:1)`,
  }),
  (c) => ({ error: `spawn: psql --host db --password ${c} --quiet exited with 2` }),
  (c) => ({ error: `env: PATH=/bin AWS_SECRET_ACCESS_KEY=${c} HOME=/root` }),
  (c) => ({ error: `GET https://blob/x?sv=1&sig=${c}&se=2 403` }),
  (c) => ({ error: `Server=db;User Id=sa;Password=${c};Encrypt=true` }),
  (c) => ({ input: { password: c }, error: `the server said that ${c} is wrong` }),
  (c) => ({ input: { token: c }, retries: [{ tried: `with ${c}` }, { [c]: 1 }] }),
  (c) => ({ stack: `Error: bad token=${c}\n    at f (a.ts:1:2)\n    at g (b.ts:3:4)` }),
  (c) => ({ marked: { by: { schema: [{ value: c }, { value: "x" }] } } }),
];

const redact = createRedactor({ key: KEY, secretPaths: ["marked.by.schema.*.value"] });

describe("canary secrets [I23 T22]", () => {
  test(`of ${CANARIES} planted in every kind of place none passes the redactor`, () => {
    const leaks: string[] = [];
    for (let n = 0; n < CANARIES; n += 1) {
      const canary = newCanary(n);
      const place = PLACES[n % PLACES.length]!;
      const data = place(canary);
      expect(JSON.stringify(data)).toContain(canary);
      const text = canonicalJson(redact("acme", data));
      if (text.includes(canary) || text.includes(base64(canary))) leaks.push(text.slice(0, 200));
      expect(text).toContain("hmac-sha256:");
    }
    expect(leaks).toEqual([]);
  });

  test("none reaches the audit log of a real store", async () => {
    await using store = memoryStore({ redact });
    const canaries: string[] = [];
    for (const place of PLACES) {
      const canary = newCanary(canaries.length);
      canaries.push(canary);
      const { decisions } = store.tenant("acme");
      const metadata = { ...place(canary), marked: { by: { schema: [] } } };
      const diff = { sourceTool: "t", raw: new Uint8Array(1), metadata };
      await decisions.stage(newDraft("s", diff, toIso(START)));
    }
    const file = (await collect(exportStore(store))).join("");
    expect(file.split("\n")).toHaveLength(PLACES.length + 1);
    expect(canaries.filter((canary) => file.includes(canary))).toEqual([]);
  });
});

describe("a dictionary of all four-digit numbers [T23]", () => {
  const withPins = createRedactor({ key: KEY, secretKeys: ["pin"] });
  const pins = ["0000", "1234", "4711", "9999"];
  const exported = pins.map((pin) => canonicalJson(withPins("acme", { user: "a", pin })));

  /** Everything an attacker can compute who has the export and the source code, but not the key. */
  const guesses = (guess: string): string[] => {
    const forms = [
      guess,
      JSON.stringify(guess),
      `acme\n${guess}`,
      `acme${guess}`,
      canonicalJson({ pin: guess }),
    ];
    const keys = ["", "acme", "secret", `sallyport redaction v1\nacme`, sha256Hex("acme")];
    return forms.flatMap((form) => [
      sha256Hex(form),
      ...keys.map((key) => hmacSha256Hex(key, form)),
    ]);
  };

  test("finds none of them", () => {
    let tried = 0;
    const recovered: string[] = [];
    for (let n = 0; n < 10_000; n += 1) {
      for (const guess of guesses(String(n).padStart(4, "0"))) {
        tried += 1;
        if (exported.some((text) => text.includes(guess))) recovered.push(guess);
      }
    }
    expect(recovered).toEqual([]);
    expect(tried).toBe(300_000);
  });

  test("equal numbers are recognised within a tenant, and only there", () => {
    const tag = (tenant: string, pin: string) => canonicalJson(withPins(tenant, { pin }));
    expect(tag("acme", "1234")).toBe(tag("acme", "1234"));
    expect(tag("acme", "1234")).not.toBe(tag("globex", "1234"));
  });
});
