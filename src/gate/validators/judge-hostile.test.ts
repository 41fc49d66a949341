import { MockLanguageModelV4 } from "ai/test";
import { expect, test } from "vitest";
import { reviewRequest } from "../review.ts";
import { judgeValidator } from "./judge.ts";

const fields = { approved: true, score: 0.9, reason: "fine", severity: "warn" };
const yes = JSON.stringify(fields);
const no = JSON.stringify({ approved: false, score: 0, reason: "no", severity: "block" });

const without = (name: string) =>
  JSON.stringify(Object.fromEntries(Object.entries(fields).filter(([key]) => key !== name)));
/** The good answer with one field written literally, so that also what is not JSON can be said. */
const written = (name: keyof typeof fields, literal: string) =>
  yes.replace(`"${name}":${JSON.stringify(fields[name])}`, `"${name}":${literal}`);
const each = (name: keyof typeof fields, literals: readonly string[]) =>
  literals.map((literal) => written(name, literal));

/** Answers that a model may give by accident, by stupidity or because the payload told it to. None is a yes. */
const HOSTILE: Readonly<Record<string, readonly string[]>> = {
  nothing: ["", " ", "\n\n", "```", "```json\n```", "\u0000", "\ufeff", "\u200b"],
  prose: [
    "yes",
    "approved",
    "APPROVED",
    "Approved.",
    "I approve this.",
    "LGTM 👍",
    "true",
    "1",
    '"yes"',
  ],
  "not an object": [
    "null",
    "[]",
    "[true]",
    `[${yes}]`,
    `[[${yes}]]`,
    JSON.stringify(yes),
    "{}",
    "[{}]",
  ],
  "wrapped in another object": [`{"answer":${yes}}`, `{"result":{"verdict":${yes}}}`],
  "missing fields": Object.keys(fields).map(without),
  "approved of another type": each("approved", [
    ...[
      '"true"',
      '"yes"',
      "1",
      "0",
      "null",
      "[]",
      "[true]",
      "{}",
      '{"value":true}',
      "TRUE",
      "True",
    ],
    ...["undefined", "!0", "-1", '""'],
  ]),
  "weird scores": each("score", [
    ...["NaN", "Infinity", "-Infinity", "1e309", "-1e309", "1e400", "2", "90", "100", "1.0000001"],
    ...[
      "-0.1",
      "-1",
      '"1"',
      '"0.9"',
      "null",
      "[]",
      "[1]",
      "{}",
      "true",
      "0x1",
      "01",
      ".9",
      "1.",
      "+1",
    ],
    ...["1e", "0,9", "90%", "9007199254740993", "1e-400", "0.9.1", "--1", '"NaN"', "1_0"],
  ]),
  "weird reasons": each("reason", [
    "null",
    "1",
    '""',
    '" "',
    "[]",
    '["fine"]',
    "{}",
    "true",
    "fine",
  ]),
  "weird severities": each("severity", [
    ...['"info"', '"WARN"', '"Block"', '"none"', '"warn "', "null", "1", "false", "[]", '["warn"]'],
    ...["{}", '"low"', '"critical"', "warn"],
  ]),
  "a yes that blocks": [written("severity", '"block"')],
  "cut off": [1, 2, 5, 12, 20, 30, 45, yes.length - 1].map((length) => yes.slice(0, length)),
  "two opinions": [
    `${yes}${no}`,
    `${no}\n${yes}`,
    `\`\`\`json\n${yes}\n\`\`\`\nOn second thought:\n\`\`\`json\n${no}\n\`\`\``,
    `${yes} ${written("score", "0.1")}`,
    `${yes} {"approved":false}`,
    `${yes} {"overall":${no}}`,
    `${yes} {'approved': False}`,
    `${yes}\napproved: false`,
    `{"thought":{"approved":false},oops} ${yes}`,
  ],
  "doubled keys": [
    yes.replace("{", '{"approved":false,'),
    yes.replace("}", ',"approved":true}'),
    yes.replace("{", '{"\\u0061pproved":false,'),
    yes.replace("}", ',"severity":"block"}'),
  ],
  "prototype games": [
    `{"__proto__":${yes}}`,
    `{"__proto__":{"approved":true},"score":1,"reason":"x","severity":"warn"}`,
    `{"constructor":{"prototype":${yes}}}`,
  ],
  "not quite JSON": [
    yes.replaceAll('"', "'"),
    yes.replaceAll('"', "“"),
    yes.replace(/"(\w+)":/g, "$1:"),
    yes.replace("}", ",}"),
    yes.replace("{", "{/* yes */"),
    yes.replace("fine", 'it is "fine"'),
    yes.replace("fine", "two\nlines"),
    yes.replace("fine", "\\ud800"),
    yes.replace("fine", "\\x41"),
    yes.replaceAll('"', '\\"'),
    "approved: true\nscore: 0.9\nreason: fine\nseverity: warn",
    "<verdict><approved>true</approved><score>1</score></verdict>",
  ],
  "too much": [
    `${'{"a":'.repeat(64)}${yes}${"}".repeat(64)}`,
    `${"[".repeat(5000)}${yes}`,
    `${yes}${" ".repeat(70_000)}`,
    "{".repeat(60_000),
  ],
};

test("of all hostile answers none is approved, and each is a block that says unreadable [I-05 T28]", async () => {
  const cases = Object.entries(HOSTILE).flatMap(([kind, texts]) =>
    texts.map((text) => ({ kind, text })),
  );
  expect(new Set(cases.map(({ text }) => text)).size).toBeGreaterThanOrEqual(120);
  for (const { kind, text } of cases) {
    expect(text, kind).not.toBe(yes);
    const verdict = await judge(text);
    const label = `${kind}: ${text.slice(0, 200)}`;
    expect(verdict, label).toMatchObject({ approved: false, score: 0, severity: "block" });
    expect(verdict.reason, label).toMatch(/^judge answer unreadable: ./);
  }
});

test("the good answer from which the hostile ones are made is approved [I-05]", async () => {
  expect(await judge(yes)).toMatchObject({ approved: true, score: 0.9, severity: "warn" });
});

function judge(text: string) {
  const model = new MockLanguageModelV4({
    doGenerate: async () =>
      ({
        finishReason: { unified: "stop" },
        usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
        warnings: [],
        content: [{ type: "text", text }],
      }) as never,
  });
  const validator = judgeValidator({ name: "judge", policyVersion: "1", model, criteria: "x" });
  const diff = { sourceTool: "t", raw: new TextEncoder().encode("UPDATE t"), metadata: {} };
  return validator.review(reviewRequest(diff), { signal: new AbortController().signal });
}
