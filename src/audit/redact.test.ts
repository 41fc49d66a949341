import { describe, expect, test } from "vitest";
import { busyMs } from "../../tests/support/busy-time.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { createKeyTest, createRedactor, findSecrets } from "./redact.ts";

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

test("values of every kind are hidden under a secret name, except booleans and null", () => {
  const values: JsonValue[] = ["x", 1, ["a"], { a: 1 }, []];
  for (const password of values) expect(redact("t", { password })).toEqual({ password: HIDDEN });
  for (const password of [true, false, null, ""]) {
    const data = { password };
    expect(redact("t", data)).toBe(data);
  }
  expect(redact("t", { tokens: 812, token: 812 })).toEqual({ tokens: 812, token: HIDDEN });
  expect(redact("t", { tokens: ["a"] })).toEqual({ tokens: HIDDEN });
});

test("secret paths are hidden whatever their names", () => {
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

test("a secret found once is removed from all texts and names of the data", () => {
  const result = redact("t", {
    login: { password: "hunter2-9" },
    error: "hunter2-9 was refused for hunter2-9",
    tried: { "hunter2-9": 1 },
    exact: "hunter2-9",
  });
  expect(JSON.stringify(result)).not.toContain("hunter2-9");
  expect(result["error"]).toBe("[redacted:secret] was refused for [redacted:secret]");
});

test("a plain word under a secret name is not redacted elsewhere", () => {
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

test("data that is too deep is rejected, and the deepest level can be redacted", () => {
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

  test("a short key is rejected", () => {
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

/** The text with each secret found replaced by #. */
function shown(text: string): string {
  let result = text;
  for (const { start, end } of [...(findSecrets(text) ?? [])].reverse()) {
    result = `${result.slice(0, start)}#${result.slice(end)}`;
  }
  return result;
}

const JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
// Put together here, or other people's scanners would find this file.
const A20 = "A1b2C3d4E5f6G7h8I9j0";

describe("finds", () => {
  test.each([
    ["AWS", `id AKIA${"ABCDEFGH12345678"} end`, "id # end"],
    ["GitHub", `ghp_${A20}${A20}`, "#"],
    ["GitHub, fine-grained", `token github_pat_${A20}_${A20}.`, "token #."],
    ["GitLab", `(glpat-${A20})`, "(#)"],
    ["Slack", `xoxb-12345678901-${A20}`, "#"],
    ["Slack web hook", `https://hooks.slack.com/services/T0/B0/${A20}`, "https://#"],
    ["Stripe", `sk_live_${A20}`, "#"],
    ["OpenAI", `key sk-proj-${A20}-${A20}`, "key #"],
    ["Anthropic", `sk-ant-api03-${A20}`, "#"],
    ["Google", `AIza${A20}${A20.slice(0, 15)}`, "#"],
    ["npm", `//registry/:_authToken=npm_${A20}${A20}`, "//registry/:_authToken=#"],
    ["SendGrid", `SG.${A20}.${A20}`, "#"],
    ["Hugging Face", `hf_${A20}${A20}`, "#"],
    ["Vault", `hvs.${A20}${A20}`, "#"],
    ["a JSON Web Token", `got ${JWT}, sorry`, "got #, sorry"],
    ["a bearer header", "Authorization: Bearer abcdef123456", "Authorization: #"],
    [
      "a bearer in a sentence",
      "curl said bearer 0123456789abcdef failed",
      "curl said bearer # failed",
    ],
    ["basic credentials", "basic dXNlcjpwYXNz", "basic #"],
    ["cookies", "Cookie: sid=abc; theme=dark\nHost: x", "Cookie: #\nHost: x"],
    ["a connection string", "postgres://app:hunter2@db:5432/x", "postgres://app:#@db:5432/x"],
    ["a password with an at sign", "mysql://app:p@ss@db/x", "mysql://app:#@db/x"],
    ["a password without a user", "redis://:hunter2@cache", "redis://:#@cache"],
    ["an assignment", "PGPASSWORD=hunter2 psql", "PGPASSWORD=# psql"],
    ["a query", "/login?user=a&password=hunter2&x=1", "/login?user=a&password=#&x=1"],
    ["a signed address", "https://blob/x?sv=1&sig=aBc%2Bd&se=2", "https://blob/x?sv=1&sig=#&se=2"],
    [
      "an ADO string",
      "Server=db;User Id=a;Password=hun ter;",
      "Server=db;User Id=a;Password=# ter;",
    ],
    ["JSON in text", '{"password":"hun\\"ter 2","user":"a"}', '{"password":"#","user":"a"}'],
    [
      "JSON in JSON",
      '{\\"api_key\\":\\"hunter 2\\",\\"a\\":1}',
      '{\\"api_key\\":\\"#\\",\\"a\\":1}',
    ],
    ["an option", "tool --db-password hunter2 --verbose", "tool --db-password # --verbose"],
    ["YAML", "db:\n  password: hunter2\n  host: x", "db:\n  password: #\n  host: x"],
    ["a key in YAML", "api_key: a1b2c3d4e5", "api_key: #"],
    [
      "a private key",
      `x\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\ny`,
      "x\n#\ny",
    ],
    [
      "a private key on one line",
      "-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----",
      "#",
    ],
    ["a private key that was cut off", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl", "#"],
    [
      "a PGP key",
      "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQ\n-----END PGP PRIVATE KEY BLOCK-----.",
      "#.",
    ],
    ["two in one text", `sk_live_${A20} and ${JWT}`, "# and #"],
  ])("%s", (_what, text, expected) => {
    expect(shown(text)).toBe(expected);
  });
});

describe("leaves alone", () => {
  test.each([
    ["an id", "0193e7a2-7c1e-7000-8000-000000000001"],
    ["a hash", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],
    ["a task id that ends like a key prefix", "task-0193e7a2-7c1e-7000-8000-000000000001"],
    ["an address", "https://example.com:8080/a/b?c=d#e@f"],
    ["a mail address", "mailto:alice@example.com"],
    ["a time", "2026-11-15T06:00:00.000Z"],
    ["a public key", "-----BEGIN PUBLIC KEY-----\nMCow\n-----END PUBLIC KEY-----"],
    ["a sentence about tokens", "The token: expired. Authorization: denied by policy."],
    ["a comparison", "if (token == null) return"],
    ["an arrow function", "const f = (token) => token.length"],
    ["a count", "max_tokens=4096, tokens: 12"],
    ["Base64 of JSON", "eyJhIjoxfQ and eyJhIjoxLCJiIjoyfQ"],
    ["what was redacted", "password=[redacted:secret] Bearer [redacted:secret]"],
    ["stars", "password=********"],
    ["a word", "basic understanding of bearer instruments"],
  ])("%s", (_what, text) => {
    expect(shown(text)).toBe(text);
  });
});

test("hostile texts of a megabyte are searched in linear time [T27]", () => {
  const size = 1 << 20;
  const fill = (piece: string) => piece.repeat(Math.ceil(size / piece.length));
  const hostile = [
    ..."eyJ;eyJaaaaaaaa.;eyJ.;-;-----BEGIN PRIVATE KEY-----;-----BEGIN ;-----END ;bearer ;basic\t;://;://a:;://a:b@".split(
      ";",
    ),
    ...'password=;password=";password:;password ;--password ;"password":";sk-;sk_live_;SG.aaaaaaaaaaaaaaaaaa;xoxb-'.split(
      ";",
    ),
    ...'cookie:;authorization: a1;hooks.slack.com/services/;secret_access_;api ;?sig=;\\";token=\\;github_pat_'.split(
      ";",
    ),
  ].flatMap((piece) => [
    fill(piece),
    `-----BEGIN PRIVATE KEY-----${fill(piece)}`,
    `password="${fill(piece)}`,
    `bearer ${fill(piece)}`,
  ]);
  let worst = 0;
  for (const text of hostile) {
    worst = Math.max(
      worst,
      busyMs(() => findSecrets(text)),
    );
  }
  console.log(`worst of ${hostile.length} hostile megabytes: ${worst.toFixed(0)} ms`);
  expect(worst).toBeLessThan(250);
});

test("a text that is too long or has too many matches is hidden as a whole", () => {
  const long = "x".repeat(5 * 1024 * 1024);
  expect(findSecrets(long)).toEqual([{ start: 0, end: long.length }]);
  const full = "password=hunter2 ".repeat(2_000);
  expect(findSecrets(full)).toEqual([{ start: 0, end: full.length }]);
});

const judge = createKeyTest({});

test.each(
  `password PASSWORD Password passWord pass_word pass-word userPassword user_password DB_PASSWORD password2
  passwordHash newPassword passwd pwd passphrase secret clientSecret client-secret secrets secret_id token accessToken
  access_token refreshToken X-Auth-Token idToken apiKey api_key apikey API-KEY APIKey x-api-key X_API_KEY openaiApiKey
  authorization Authorization proxy-authorization cookie Set-Cookie cookies privateKey private_key PRIVATEKEY
  sshPrivateKey accessKey secretAccessKey credential credentials awsCredentials creds bearer jwt otp totp cvv cvc2
  cardNumber card_number ssn ｐａｓｓｗｏｒｄ`.split(/\s+/),
)("%s is a secret", (key) => {
  expect(judge(key)).toBe("secret");
});

test.each(
  `name id to from state reason secretary tokenizer tokenize compassion passenger bypass passport author
  authorized authorizationPolicy cookieConsentVersion keyboard key idempotencyKey tokenCount token_type tokenType
  secretRef secret_name secretArn credentialId tokenUrl token_endpoint expires_at client_secret_expires_at password_policy
  passwordRequired monkey cart description raw_sha256 session policy_version`.split(/\s+/),
)("%s is plain", (key) => {
  expect(judge(key)).toBe("plain");
});

test("numbers under tokens and pass are counts", () => {
  for (const key of ["tokens", "max_tokens", "totalTokens", "pass"])
    expect(judge(key)).toBe("counted");
});

test("names can be added and excluded, by name or by a test", () => {
  const own = createKeyTest({
    secretKeys: ["pin", "voice print", (key) => key.startsWith("x-internal-")],
    plainKeys: ["token"],
  });
  expect(own("PIN")).toBe("secret");
  expect(own("card_pin")).toBe("secret");
  expect(own("voicePrint")).toBe("secret");
  expect(own("x-internal-id")).toBe("secret");
  expect(own("spinner")).toBe("plain");
  expect(own("token")).toBe("plain");
  expect(own("access_token")).toBe("secret");
});

test("a name of a megabyte is judged in linear time [T27]", () => {
  for (const key of ["A".repeat(1 << 20), "aB".repeat(1 << 19), "_".repeat(1 << 20)]) {
    expect(busyMs(() => judge(key))).toBeLessThan(100);
  }
});
