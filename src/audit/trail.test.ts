import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  appendEntry,
  chooser,
  collect,
  fakeStore,
  makeTrail,
  readerOf,
  START,
} from "../../tests/audit/fixtures.ts";
import { manualTimers } from "../../tests/support/manual-timers.ts";
import {
  type AuditEntry,
  emptyHead,
  entryHash,
  headAfter,
  sealEntry,
} from "../model/audit-entry.ts";
import { isSallyportError } from "../model/errors.ts";
import type { AuditReader } from "../store/store.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { manualClock } from "../util/clock.ts";
import { sha256Hex } from "../util/hash.ts";
import {
  exportLine,
  exportStore,
  exportTrail,
  followTrail,
  parseExportLine,
  readExport,
} from "./trail.ts";
import { verifyTrail } from "./verify.ts";

function setUp() {
  const timers = manualTimers(manualClock(START));
  const abort = new AbortController();
  return { timers, abort, signal: abort.signal };
}

/** Reads on its own until the feed ends. */
function listen(feed: AsyncIterable<AuditEntry>) {
  const seen: number[] = [];
  const done = (async () => {
    for await (const entry of feed) seen.push(entry.seq);
  })();
  return { seen, done };
}

function countReads(reader: AuditReader): AuditReader & { reads: number } {
  const counting = {
    ...reader,
    reads: 0,
    read(range: { after: number; limit: number }) {
      counting.reads += 1;
      return reader.read(range);
    },
  };
  return counting;
}

test("returns all entries after a number, page by page, and ends on abort", async () => {
  const { timers, abort, signal } = setUp();
  const { seen, done } = listen(
    followTrail(readerOf("a", makeTrail("a", 23)), { after: 5, signal, timers, pageSize: 4 }),
  );
  await timers.advance(0);
  await timers.advance(0);
  expect(seen).toEqual(Array.from({ length: 18 }, (_, n) => n + 6));
  abort.abort();
  await done;
  expect(timers.open).toBe(0);
});

test("wakes immediately on a hint, and finds unannounced entries by polling", async () => {
  const { timers, abort, signal } = setUp();
  const store = fakeStore([makeTrail("a", 1)]);
  const { audit } = store.tenant("a");
  const { seen, done } = listen(
    followTrail(audit, { after: 0, signal, timers, onCommit: store.onCommit }),
  );
  await timers.advance(0);
  expect(seen).toEqual([1]);
  store.add("a", 2);
  await timers.advance(0);
  expect(seen).toEqual([1, 2, 3]);
  appendEntry(store.trails.get("a")!, "a"); // without a hint
  await timers.advance(249);
  expect(seen).toEqual([1, 2, 3]);
  await timers.advance(1);
  expect(seen).toEqual([1, 2, 3, 4]);
  abort.abort();
  await done;
});

test("commits of another tenant do not cause constant reads", async () => {
  const { timers, abort, signal } = setUp();
  const store = fakeStore([makeTrail("a", 1)]);
  const { audit } = store.tenant("a");
  const counting = countReads(audit);
  const { done } = listen(
    followTrail(counting, { after: 1, signal, timers, onCommit: store.onCommit }),
  );
  for (let n = 0; n < 1_000; n += 1) {
    store.add("b");
    await timers.advance(1);
  }
  expect(counting.reads).toBeLessThan(120);
  abort.abort();
  await done;
});

test("the next page is read only when the last one is consumed", async () => {
  const { timers, abort, signal } = setUp();
  const reader = countReads(readerOf("a", makeTrail("a", 100)));
  const feed = followTrail(reader, { after: 0, signal, timers, pageSize: 10 });
  for (let n = 1; n <= 35; n += 1) expect((await feed.next()).value?.seq).toBe(n);
  expect(reader.reads).toBe(4);
  await feed.return(undefined);
  abort.abort();
  expect(timers.open).toBe(0);
});

test("interrupted and resumed at random, the feed is ordered, without duplicates and gaps [G18]", async () => {
  const choose = chooser("feed");
  const store = fakeStore();
  store.add("a");
  const { audit } = store.tenant("a");
  const seen: number[] = [];
  let reconnects = 0;
  while (seen.length < 2_000) {
    const { timers, abort, signal } = setUp();
    const feed = followTrail(audit, {
      after: seen.at(-1) ?? 0,
      signal,
      timers,
      onCommit: store.onCommit,
      pageSize: 1 + choose.int(7),
    });
    const many = choose.int(20);
    for (let n = 0; n < many; n += 1) {
      store.add("a", choose.int(3));
      if ((await audit.head()).seq === (seen.at(-1) ?? 0)) break;
      const { value } = await feed.next();
      if (value !== undefined) seen.push(value.seq);
    }
    abort.abort();
    await feed.return(undefined);
    reconnects += 1;
  }
  expect(reconnects).toBeGreaterThan(100);
  expect(seen).toEqual(Array.from({ length: seen.length }, (_, n) => n + 1));
});

test("a gap, a foreign entry or a broken link is damaged_record", async () => {
  const trail = makeTrail("a", 10);
  const foreign = makeTrail("b", 10);
  const cases = [
    trail.filter((entry) => entry.seq !== 4),
    trail.map((entry) => (entry.seq === 4 ? foreign[3]! : entry)),
    trail.map((entry) => (entry.seq === 4 ? { ...entry, prev: "0".repeat(64) } : entry)),
  ];
  for (const entries of cases) {
    const { timers, signal } = setUp();
    const { seen, done } = listen(
      followTrail(readerOf("a", entries), { after: 0, signal, timers }),
    );
    await expect(done).rejects.toSatisfy((error) => isSallyportError(error, "damaged_record"));
    expect(seen).toEqual([1, 2, 3]);
  }
});

test("a number beyond the end is rejected: an earlier state was restored", async () => {
  for (const after of [11, -1, 1.5, Number.NaN]) {
    const { timers, signal } = setUp();
    const { done } = listen(
      followTrail(readerOf("a", makeTrail("a", 10)), { after, signal, timers }),
    );
    await expect(done).rejects.toSatisfy((error) => isSallyportError(error, "invalid_input"));
  }
});

test("an aborted signal ends the feed before the first entry and removes the listener", async () => {
  const { timers, abort, signal } = setUp();
  abort.abort();
  let listeners = 0;
  const onCommit = () => {
    listeners += 1;
    return () => {
      listeners -= 1;
    };
  };
  const { seen, done } = listen(
    followTrail(readerOf("a", makeTrail("a", 3)), { after: 0, signal, timers, onCommit }),
  );
  await done;
  expect(seen).toEqual([]);
  expect(listeners).toBe(0);
});

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
  test("every export is read back unchanged, whatever the fields and the chunks", async () => {
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

  test("a line is canonical JSON, and its hash can be recomputed from its fields alone", () => {
    for (const entry of trail) {
      const line = exportLine(entry);
      expect(line).toBe(canonicalJson({ ...entry }));
      const { v, at, prev, seq, data, salt, hash, ...said } = JSON.parse(line);
      expect(sha256Hex(`${salt}\n${data}`)).toBe(said.dataHash);
      const leaf = sha256Hex(canonicalJson({ ...said, v }));
      expect(sha256Hex(canonicalJson({ at, leaf, prev, seq, v }))).toBe(hash);
    }
  });

  test("no field adds a record, not even for a reader that splits at every kind of line ending [T31]", async () => {
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

  test("it ends at the entry that was last when it began", async () => {
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

  test("entries missing at the end throw after the rest is exported", async () => {
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
    ["an extra key", line.replace('"v":2', '"v":2,"x":1')],
    ["a __proto__ key", line.replace("{", '{"__proto__":{"x":1},')],
    ["another version", line.replace('"v":2', '"v":3')],
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

  test("rejects bytes that are not UTF-8 and lines beyond the limit, without buffering them", async () => {
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
