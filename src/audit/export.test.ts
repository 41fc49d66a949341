import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { collect, fakeStore, makeTrail, readerOf } from "../../tests/audit/fixtures.ts";
import {
  type AuditEntry,
  emptyHead,
  entryHash,
  headAfter,
  sealEntry,
} from "../model/audit-entry.ts";
import { isSallyportError } from "../model/errors.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import { exportLine, exportStore, exportTrail, parseExportLine, readExport } from "./export.ts";
import { verifyTrail } from "./verify.ts";

const trail = makeTrail("acme", 25);

/** What log forgers write into fields. */
const HOSTILE = [
  "line\nbreak",
  "carriage\r\nreturn",
  "\u2028separator\u2029",
  "next\u0085line",
  "\u001b[2K\u001b[1A\u001b[31mred",
  "\u0000nul\u0007bell\u0008",
  '"}\n{"actor":"human:boss","type":"decision.approved"}',
  '\\"}\u2028{"v":1}',
  "\ufeffmark",
  "\u202eevil\u2066",
  "ends with a backslash \\",
  "'; DROP TABLE audit; --",
  "🙂 ünïcödé 漢字",
];
const text = fc.oneof(
  fc.constantFrom(...HOSTILE),
  fc.string({ unit: "binary" }),
  fc.tuple(fc.constantFrom(...HOSTILE), fc.string()).map((parts) => parts.join("")),
);

const trails = fc
  .array(
    fc.record({
      type: text,
      subject: text,
      session: text,
      actor: text,
      data: fc.dictionary(
        fc.string({ unit: "grapheme" }).filter((key) => key !== "__proto__"),
        fc.oneof(text, fc.integer(), fc.boolean()),
      ),
    }),
    { maxLength: 8 },
  )
  .map((drafts) => {
    let head = emptyHead('acme\n{"tenant"');
    return drafts.map((draft, n) => {
      const data = JSON.parse(JSON.stringify(draft.data).toWellFormed());
      const entry = sealEntry(head, { ...draft, data }, "2026-11-15T06:00:00.000Z", `salt${n}`);
      head = headAfter(entry);
      return entry;
    });
  });

/** The same bytes in pieces of any size, also cut inside a character. */
function inPieces(whole: string, size: number): Buffer[] {
  const bytes = Buffer.from(whole);
  const count = Math.ceil(bytes.length / size);
  return Array.from({ length: count }, (_, n) => bytes.subarray(n * size, (n + 1) * size));
}

describe("export", () => {
  test("every export comes back as it was, whatever is in the fields and however it is cut", async () => {
    await fc.assert(
      fc.asyncProperty(trails, fc.integer({ min: 1, max: 300 }), async (entries, size) => {
        const file = (await collect(exportTrail(readerOf("acme", entries), { pageSize: 3 }))).join(
          "",
        );
        expect(await collect(readExport(inPieces(file, size)))).toEqual(entries);
        const units = Array.from({ length: file.length }, (_, n) => file.charAt(n));
        expect(await collect(readExport(units))).toEqual(entries);
        expect((await verifyTrail(readExport([file]))).ok).toBe(true);
      }),
    );
  });

  test("a line is canonical JSON, and without data, salt and hash it is the hashed text", () => {
    for (const entry of trail) {
      const line = exportLine(entry);
      expect(line).toBe(canonicalJson({ ...entry, v: 1 }));
      const { data, salt, hash, ...covered } = JSON.parse(line);
      expect(sha256Hex(canonicalJson(covered))).toBe(entry.hash);
    }
  });

  test("no field makes an extra record, not even for a reader that splits at every kind of line end [T31]", async () => {
    let records = 0;
    await fc.assert(
      fc.asyncProperty(trails, async (entries) => {
        const file = (await collect(exportTrail(readerOf("acme", entries)))).join("");
        expect(file.split("\n")).toHaveLength(entries.length + 1);
        expect(await collect(readExport([file]))).toHaveLength(entries.length);
        const pieces = file
          .split(/[\n\r\u0085\u2028\u2029\v\f]/)
          .filter((piece) => isRecord(piece));
        expect(pieces.length).toBeLessThanOrEqual(entries.length);
        for (const piece of pieces) expect(entries.map(exportLine)).toContain(piece);
        records += pieces.length;
      }),
    );
    expect(records).toBeGreaterThan(20);
  });

  test("it ends where the trail ended when it began", async () => {
    const growing = makeTrail("acme", 5);
    const reader = readerOf("acme", growing);
    const lines: string[] = [];
    for await (const line of exportTrail(reader, { pageSize: 2 })) {
      lines.push(line);
      if (growing.length < 50)
        growing.push(...makeTrail("acme", 50).slice(growing.length, growing.length + 1));
    }
    expect(lines).toHaveLength(5);
  });

  test("entries missing at the end are exported as far as they go, then it throws", async () => {
    const reader = {
      ...readerOf("acme", trail.slice(0, 20)),
      head: async () => headAfter(trail[24]!),
    };
    const lines: string[] = [];
    const reading = (async () => {
      for await (const line of exportTrail(reader)) lines.push(line);
    })();
    await expect(reading).rejects.toSatisfy((error) => isSallyportError(error, "damaged_record"));
    expect(lines).toHaveLength(20);
  });

  test("a whole store is exported tenant by tenant", async () => {
    const store = fakeStore([trail, makeTrail("globex", 3)]);
    const entries = await collect(readExport(exportStore(store, { pageSize: 4 })));
    expect(entries.map((entry) => entry.tenant)).toEqual([
      ...Array<string>(25).fill("acme"),
      ...Array<string>(3).fill("globex"),
    ]);
  });
});

describe("reading an export", () => {
  const line = exportLine(trail[0]!);
  const other = (changes: Partial<AuditEntry>) => exportLine({ ...trail[0]!, ...changes });

  test.each([
    ["nothing", ""],
    ["no JSON", "nonsense"],
    ["no object", "[]"],
    ["null", "null"],
    ["a space", ` ${line}`],
    ["a carriage return", `${line}\r`],
    ["a byte order mark", `\ufeff${line}`],
    [
      "another order of keys",
      JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(line)).reverse())),
    ],
    ["a double key", line.replace('{"actor"', '{"actor":"x","actor"')],
    ["an extra key", line.replace('"v":1', '"v":1,"x":1')],
    ["a __proto__ key", line.replace("{", '{"__proto__":{"x":1},')],
    ["another version", line.replace('"v":1', '"v":2')],
    ["a missing key", line.replace(/"actor":"[^"]*",/, "")],
    ["another spelling of a character", line.replace("agent", "\\u0061gent")],
    ["half a character", other({ actor: "\ud800" })],
    ["a number as text", line.replace('"seq":1', '"seq":"1"')],
    ["a fraction", other({ seq: 1.5 })],
    ["a zero", other({ seq: 0 })],
    ["a number beyond 2^53", line.replace('"seq":1', '"seq":9007199254740993')],
    ["a short hash", other({ hash: "abc" })],
    ["a hash in capitals", other({ hash: trail[0]!.hash.toUpperCase() })],
    ["a strange time", other({ at: "yesterday" })],
    ["deep nesting", "[".repeat(100_000)],
  ])("refuses %s and names the line", async (_what, wrong) => {
    const reading = collect(readExport([`${line}\n${wrong}\n${line}\n`]));
    await expect(reading).rejects.toSatisfy((error) => isSallyportError(error, "damaged_record"));
    await expect(reading).rejects.toMatchObject({ details: { line: 2 } });
    expect(() => parseExportLine(wrong, 7)).toThrow(/Line 7 /);
  });

  test("refuses bytes that are not UTF-8 and lines beyond the limit, without keeping them", async () => {
    const bad = Buffer.concat([Buffer.from(`${line}\n`), Buffer.from([0x22, 0xff, 0x22, 0x0a])]);
    await expect(collect(readExport([bad]))).rejects.toMatchObject({ details: { line: 2 } });
    function* endless() {
      for (let n = 0; n < 64; n += 1) yield Buffer.alloc(1024 * 1024, 0x61);
    }
    await expect(collect(readExport(endless()))).rejects.toMatchObject({ details: { line: 1 } });
  });

  test("an unreadable line is a problem of the report, with its number", async () => {
    const report = await verifyTrail(readExport([`${line}\n`, "nonsense\n"]));
    expect(report.problems).toMatchObject([{ code: "unreadable" }]);
    expect(report.problems[0]?.message).toContain("Line 2");
  });

  test("the last line feed may be missing, and entries keep their hash", async () => {
    const [entry] = await collect(readExport([line]));
    expect(entry).toEqual(trail[0]);
    expect(entryHash(entry!)).toBe(trail[0]!.hash);
  });
});

function isRecord(piece: string): boolean {
  try {
    const value: unknown = JSON.parse(piece);
    return typeof value === "object" && value !== null;
  } catch {
    return false;
  }
}
