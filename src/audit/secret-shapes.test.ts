import { describe, expect, test } from "vitest";
import { busyMs } from "../../tests/support/busy-time.ts";
import { findSecrets } from "./secret-shapes.ts";

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

test("hostile texts of a megabyte take no time [T27]", () => {
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

test("a text too long or too full to be searched is hidden as a whole", () => {
  const long = "x".repeat(5 * 1024 * 1024);
  expect(findSecrets(long)).toEqual([{ start: 0, end: long.length }]);
  const full = "password=hunter2 ".repeat(2_000);
  expect(findSecrets(full)).toEqual([{ start: 0, end: full.length }]);
});
