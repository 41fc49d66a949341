import { execFileSync } from "node:child_process";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { busyMs } from "../../tests/support/busy-time.ts";
import type { JsonValue } from "./json.ts";
import { JsonError } from "./json-error.ts";
import { parseStrictJson } from "./strict-json.ts";

describe("bytes", () => {
  test.each([
    ["a stray continuation byte", [0x22, 0x80, 0x22]],
    ["a byte that UTF-8 never uses", [0x22, 0xff, 0x22]],
    ["an overlong slash", [0x22, 0xc0, 0xaf, 0x22]],
    ["a cut sequence", [0x22, 0xe2, 0x82, 0x22]],
    ["a surrogate written as bytes", [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ["a code point above U+10FFFF", [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]],
    ["UTF-16", [0xff, 0xfe, 0x31, 0x00]],
  ])("refuses %s [T24]", (_, bytes) => {
    expect(refusal(Uint8Array.from(bytes)).reason).toBe("bad_utf8");
  });

  test("rejects a byte order mark in UTF-8 with its own message [T24]", () => {
    const error = refusal(Uint8Array.from([0xef, 0xbb, 0xbf, 0x31]));
    expect(error.reason).toBe("syntax");
    expect(error.message).toContain("byte order mark");
  });
});

describe("limits", () => {
  test("size counts UTF-8 bytes, before parsing [T25]", () => {
    expect(parseStrictJson('"aaa"', { maxBytes: 5 })).toBe("aaa");
    expect(refusal('"aaaa"', { maxBytes: 5 }).reason).toBe("too_large");
    expect(refusal("[[[[not json", { maxBytes: 5 }).reason).toBe("too_large");
    expect(parseStrictJson('"€"', { maxBytes: 5 })).toBe("€");
    expect(refusal('"€€"', { maxBytes: 7 }).reason).toBe("too_large");
    expect(refusal('"€€€"', { maxBytes: 10 }).reason).toBe("too_large");
    expect(refusal(Buffer.from('"€€"'), { maxBytes: 7 }).reason).toBe("too_large");
    expect(refusal("1", { maxBytes: Number.NaN }).reason).toBe("too_large");
  });

  test("1 MiB is the default and is itself accepted [T25]", () => {
    const text = `"${"a".repeat(1024 * 1024 - 2)}"`;
    expect(parseStrictJson(text)).toHaveLength(1024 * 1024 - 2);
    expect(refusal(`${text} `).reason).toBe("too_large");
  });

  test("depth and number of values [T25]", () => {
    expect(parseStrictJson("[[1]]", { maxDepth: 2 })).toEqual([[1]]);
    expect(refusal("[[[]]]", { maxDepth: 2 }).reason).toBe("too_deep");
    expect(refusal("[]", { maxDepth: 0 }).reason).toBe("too_deep");
    expect(parseStrictJson('{"a":[1,2]}', { maxNodes: 4 })).toEqual({ a: [1, 2] });
    expect(refusal('{"a":[1,2]}', { maxNodes: 3 }).reason).toBe("too_many_nodes");
    expect(refusal("1", { maxNodes: Number.NaN }).reason).toBe("too_many_nodes");
    expect(parseStrictJson(`[${"0,".repeat(99_998)}0]`)).toHaveLength(99_999);
    expect(refusal(`[${"0,".repeat(99_999)}0]`).reason).toBe("too_many_nodes");
  });

  test("no option raises the depth limit of the recursion [T25]", () => {
    expect(parseStrictJson("[".repeat(500) + "]".repeat(500), { maxDepth: 500 })).toBeDefined();
    for (const maxDepth of [501, 1e9, Number.NaN, -1]) {
      expect(() => parseStrictJson("[]", { maxDepth })).toThrow(RangeError);
    }
  });

  const tenMiB = 10 * 1024 * 1024;
  const manyKeys = () => `{${Array.from({ length: 1e6 }, (_, n) => `"k${n}":0`).join(",")}}`;
  test.each([
    ["arrays 200,000 deep", () => "[".repeat(200_000), {}],
    ["closed arrays 200,000 deep", () => "[".repeat(200_000) + "]".repeat(200_000), {}],
    ["objects 200,000 deep", () => '{"a":'.repeat(200_000), {}],
    ["10 MiB of text", () => `"${"a".repeat(tenMiB)}"`, {}],
    ["10 MiB of wide text", () => `"${"€".repeat(tenMiB / 3)}"`, {}],
    ["10 MiB of bytes", () => Buffer.alloc(tenMiB, "["), {}],
    ["10 MiB of bytes that are not UTF-8", () => Buffer.alloc(tenMiB, 0xff), {}],
    ["10 MiB of depth when size is allowed", () => "[".repeat(tenMiB), { maxBytes: tenMiB }],
    ["1e6 keys", manyKeys, {}],
    ["1e6 values when size is allowed", () => "[0".padEnd(2e6, ",0"), { maxBytes: tenMiB }],
  ])("%s are refused in under 50 ms [T25]", (_, make, limits) => {
    const text = make();
    expect(fastest(5, () => refusal(text, limits))).toBeLessThan(50);
  });

  test("where the size is allowed, 1e6 keys are refused as soon as there are too many [T25]", () => {
    const text = manyKeys();
    const error = refusal(text, { maxBytes: 2 * tenMiB });
    expect(error.reason).toBe("too_many_nodes");
    expect(error.at).toBeLessThan(text.length / 9);
  });

  const mebibyte = 1024 * 1024;
  const fill = (unit: string, start: string, end: string) =>
    start + unit.repeat(Math.floor((mebibyte - start.length - end.length) / unit.length)) + end;
  test.each([
    ["escapes", fill("\\u0041", '"', '"')],
    ["broken escapes", fill("\\q", '"', '"')],
    ["quotes escaped", fill('\\"', '"', "")],
    ["digits", fill("9", "", "")],
    ["zeros after the point", fill("0", "0.", "1")],
    ["exponent digits", fill("9", "1e", "")],
    ["space", fill(" ", "", "1")],
    ["empty arrays", fill("[],", "[", "[]]")],
    ["numbers with many digits", fill(`0.${"7".repeat(30)},`, "[", "0]")],
    ["short strings", fill('"\\n",', "[", '""]')],
    ["distinct keys", `{${Array.from({ length: 90_000 }, (_, n) => `"${n}":0`).join(",")}}`],
    ["small objects", fill('{"a":0},', "[", "0]")],
  ])("1 MiB of %s stalls for less than 100 ms, whatever the answer [T25]", (_, text) => {
    const attempt = () => {
      try {
        parseStrictJson(text);
      } catch (error) {
        expect(error).toBeInstanceOf(JsonError);
      }
    };
    expect(fastest(5, attempt)).toBeLessThan(100);
  });
});

test("a short string does not keep the large text alive that it came from [T25]", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const ids: JsonValue[] = [];
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let n = 0; n < 40; n += 1) {
    const padding = " ".repeat(1_000_000);
    const id = `018f3a52-9a6b-7c3d-8e4f-0123456789${10 + n}`;
    ids.push((parseStrictJson(`["${id}"${padding}]`) as JsonValue[])[0]!);
  }
  collect();
  expect(ids).toHaveLength(40);
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(10_000_000);
});

describe("messages", () => {
  test("name the problem, the place and what to do", () => {
    const text = '{"items":[0,1,2,{"price":9007199254740993}]}';
    const error = refusal(text);
    expect(error).toMatchObject({ at: text.indexOf("9007"), path: "$.items[3].price" });
    expect(error.message).toBe(
      "JSON refused at character 25 ($.items[3].price): " +
        "the number is beyond 2^53 - 1 and would change. Send it as a string.",
    );
    expect(refusal('{"a":1,"b c":{"x":1,"x":2}}').path).toBe('$["b c"].x');
    expect(refusal("[1,2").path).toBe("$[1]");
    expect(refusal('{"a":{').path).toBe("$.a");
    expect(refusal('{"a":{"b":[]},').path).toBe("$.a");
    expect(refusal('["ab\ud800"]')).toMatchObject({ at: 4, path: "$" });
  });

  test("show at most one character of the input, and no control characters", () => {
    expect(refusal("[1;").message).toContain("found ';' where ',' or ']' should be");
    expect(refusal("[\u001b[31m").message).toContain("found \\u001b where a value");
    expect(refusal('"a').message).toContain("found the end of the text");
    const secret = "hunter2hunter2hunter2";
    const key = "k".repeat(100_000);
    for (const text of [`{"p":"${secret}\\q"}`, `{"p":"${secret}" x}`, `["${secret}\\ud800"]`]) {
      expect(refusal(text).message).not.toContain(secret);
    }
    expect(refusal(`{"p":12345678901234567890}`).message).not.toContain("1234567890");
    const nested = `{"${key}":`.repeat(9);
    expect(refusal(nested, { maxBytes: 1e7 }).message.length).toBeLessThan(500);
    expect(refusal('{"\u202ea\\u0007\\n":}').path).toBe('$["\\u202ea\\u0007\\n"]');
  });
});

describe("objects", () => {
  test("the result is ordinary data and hides nothing [T26]", () => {
    const value = parseStrictJson('{"constructor":1,"a":{}}') as Record<string, JsonValue>;
    expect(Object.getOwnPropertyDescriptor(value, "constructor")).toEqual({
      value: 1,
      writable: true,
      enumerable: true,
      configurable: true,
    });
    expect(Object.getPrototypeOf(value["a"])).toBe(Object.prototype);
  });

  test("works where prototypes are frozen and __proto__ is deleted [T26]", () => {
    const module = JSON.stringify(new URL("./strict-json.ts", import.meta.url).href);
    const code = `
      Object.freeze(Object.prototype);
      const { parseStrictJson } = await import(${module});
      const value = parseStrictJson('{"constructor":{"toString":[1]},"valueOf":2}');
      let reason;
      try { parseStrictJson('{"__proto__":1}'); } catch (error) { reason = error.reason; }
      process.stdout.write(JSON.stringify({ value, reason }));`;
    const flags = ["--disable-proto=delete", "--no-warnings", "--input-type=module", "-e", code];
    const output = execFileSync(process.execPath, flags, { encoding: "utf8" });
    expect(output).toBe(
      '{"value":{"constructor":{"toString":[1]},"valueOf":2},"reason":"forbidden_key"}',
    );
  });
});

function refusal(text: string | Uint8Array, limits = {}): JsonError {
  let value: JsonValue;
  try {
    value = parseStrictJson(text, limits);
  } catch (error) {
    expect(error).toBeInstanceOf(JsonError);
    return error as JsonError;
  }
  throw new Error(`accepted ${String(text).slice(0, 100)} as ${JSON.stringify(value)}`);
}

/** The best of a few runs in milliseconds: what the code needs, not what else the machine was doing. */
function fastest(runs: number, work: () => void): number {
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs; run += 1) {
    best = Math.min(best, busyMs(work));
  }
  return best;
}
