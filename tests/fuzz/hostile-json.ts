// JSON that tries to mean two things, reach a prototype, or be too much.

import { gzipSync } from "node:zlib";
import type { Dice } from "../support/dice.ts";

/** Keys that have led to pollution, escalation or confusion elsewhere. */
export const HOSTILE_KEYS = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "__defineGetter__",
  "toJSON",
  "then",
  "tenant",
  "roles",
  "approved",
  "by",
  "actor",
  "isAdmin",
  "",
  " id",
  "id ",
  "ID",
  "ıd",
  "$ref",
  "\u0000",
];

const POISON = '{"polluted":true,"prototype":{"polluted":true},"isAdmin":true}';

/** Values as JSON text, since half of them cannot be said by an object of ours. */
export const HOSTILE_VALUES: readonly string[] = [
  POISON,
  `{"__proto__":${POISON}}`,
  `{"constructor":{"prototype":${POISON}}}`,
  "null",
  "true",
  "-0",
  "1e400",
  "-1e400",
  "1e-400",
  "9007199254740993",
  "0.1e1",
  "NaN",
  "Infinity",
  "[]",
  "{}",
  "[[]]",
  '""',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\u0000"',
  '"\\u202e\\u200b\\ufeff"',
  '"a\\r\\nb"',
  '"\'; DROP TABLE decisions; --"',
  '"\\" OR 1=1 --"',
  '"$(touch /tmp/x) `id`"',
  '"../../../../etc/passwd"',
  '"%00"',
  '"{{7*7}}<%= 7*7 %>"',
  '"<script>alert(1)</script>"',
  '"(a+)+$"',
  '"2026-13-45T99:99:99Z"',
];

const LARGE: readonly ((dice: Dice) => string)[] = [
  ({ below }) => `"${"x".repeat(1 + below(200_000))}"`,
  ({ below }) => `"${"\\u0041".repeat(below(30_000))}"`,
  ({ below }) => "[".repeat(1 + below(5_000)) + "]".repeat(below(5_000)),
  ({ below }) => `${'{"a":'.repeat(100)}1${"}".repeat(below(101))}`,
  ({ below }) => `[${"1,".repeat(below(20_000))}1]`,
  ({ below }) => `{${Array.from({ length: below(5_000) }, (_, n) => `"k${n}":1`).join(",")}}`,
];

/** An input with one place changed: another value, another key, one too many, one too few. */
export function twistedJson(input: Readonly<Record<string, unknown>>, dice: Dice): string {
  const { below, pick } = dice;
  const members = Object.entries(input).map(
    ([key, value]) => [JSON.stringify(key), JSON.stringify(value)] as [string, string],
  );
  const hostile = () => (below(8) === 0 ? pick(LARGE)(dice) : pick(HOSTILE_VALUES));
  const at = below(members.length + 1);
  const member = members[at];
  const key = JSON.stringify(pick(HOSTILE_KEYS));
  const ways = [
    () => member !== undefined && members.splice(at, 1, [member[0], hostile()]),
    () => member !== undefined && members.splice(at, 1),
    () => member !== undefined && members.push([member[0], hostile()]),
    () => member !== undefined && members.push([member[0].replace('"', '"\\u0020'), member[1]]),
    () => members.push([key, pick([POISON, hostile()])]),
    () => members.unshift([key, pick([POISON, hostile()])]),
    // Deep inside what was right.
    () => member !== undefined && members.splice(at, 1, [member[0], `{${key}:${member[1]}}`]),
    () => member !== undefined && members.splice(at, 1, [member[0], `[${member[1]},${hostile()}]`]),
    () =>
      member !== undefined &&
      members.splice(at, 1, [member[0], member[1].replace("{", `{${key}:${POISON},`)]),
  ];
  pick(ways)();
  return `{${members.map(([name, value]) => `${name}:${value}`).join(",")}}`;
}

/** Text that is nearly JSON, or JSON in another coat. */
export function brokenJson(text: string, { below, pick }: Dice): Buffer {
  const at = below(text.length + 1);
  const utf8 = (changed: string) => Buffer.from(changed, "utf8");
  const ways: readonly (() => Buffer)[] = [
    () => utf8(text.slice(0, at)),
    () => utf8(text.slice(at)),
    () => utf8(`\ufeff${text}`),
    () => utf8(`${text}${text}`),
    () => utf8(`${text} //`),
    () => utf8(`/* */${text}`),
    () => utf8(text.replaceAll('"', "'")),
    () => utf8(`${text.slice(0, at)},${text.slice(at)}`),
    () => utf8(`${text.slice(0, at)}\u0000${text.slice(at)}`),
    () => utf8(`[${text}]`),
    () => utf8(JSON.stringify(text)),
    () => utf8(`${" ".repeat(50_000)}${text}`),
    () => Buffer.from(text, "utf16le"),
    () => gzipSync(text),
    () =>
      Buffer.concat([
        utf8(text.slice(0, at)),
        Buffer.from([0xff, 0xc0, 0xaf]),
        utf8(text.slice(at)),
      ]),
    () => Buffer.from(Array.from({ length: 1 + below(500) }, () => below(256))),
    () => utf8(""),
  ];
  return pick(ways)();
}
