import { deflateRawSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import {
  type AuditEntry,
  dataHash,
  type EventDraft,
  emptyHead,
  entryHash,
  GENESIS,
  headAfter,
  packBlock,
  readEntry,
  sealEntry,
  unpackBlock,
} from "./audit-entry.ts";

const draft: EventDraft = {
  type: "decision.staged",
  subject: 'dec "1" \\ \u0007',
  session: "Sitzung ü 日本 👩‍👩‍👧 \u2028",
  actor: "agent:x",
  data: { b: 1, a: ["ü", null] },
};
const AT = "2026-11-15T06:00:00.000Z";
const first = sealEntry(emptyHead("acme"), draft, AT, "salt-1");
const second = sealEntry(headAfter(first), draft, "2026-11-15T06:00:01.000Z", "salt-2");

describe("a chain", () => {
  test("starts at genesis with number 1 and goes on without a gap [I17]", () => {
    expect([first.seq, second.seq]).toEqual([1, 2]);
    expect(first.prev).toBe(GENESIS);
    expect(second.prev).toBe(first.hash);
    expect(headAfter(second)).toEqual({ tenant: "acme", seq: 2, hash: second.hash, at: second.at });
  });

  test("its hashes can be recomputed from the entries [I17]", () => {
    for (const entry of [first, second]) {
      expect(entry.hash).toBe(entryHash(entry));
      expect(entry.dataHash).toBe(dataHash(entry.salt ?? "", entry.data ?? ""));
    }
  });

  test("does not run backwards when the clock does [I18]", () => {
    const third = sealEntry(headAfter(second), draft, AT, "salt-3");
    expect(third.at).toBe(second.at);
    expect(sealEntry(headAfter(third), draft, "2026-11-15T06:00:01.001Z", "s").at).toBe(
      "2026-11-15T06:00:01.001Z",
    );
  });
});

describe("an entry", () => {
  test("keeps its data as canonical JSON", () => {
    expect(first.data).toBe('{"a":["ü",null],"b":1}');
  });

  test("its hash is made of its fields in RFC 8785 form, which any language can write [I19]", () => {
    const { actor, at, dataHash: hashOfData, prev, seq, session, subject, tenant, type } = first;
    const said = { actor, dataHash: hashOfData, session, subject, tenant, type };
    const leaf = sha256Hex(canonicalJson({ ...said, v: 2 }));
    expect(first.hash).toBe(sha256Hex(canonicalJson({ at, leaf, prev, seq, v: 2 })));
    const old = { ...first, v: 1 } as const;
    expect(entryHash(old)).toBe(sha256Hex(canonicalJson({ ...said, at, prev, seq, v: 1 })));
  });

  test("is pinned: the same input gives this hash in every version", () => {
    const pinned = { ...draft, subject: "dec_1", session: "s", data: {} };
    const entry = sealEntry(emptyHead("acme"), pinned, AT, "salt");
    const said = `"session":"s","subject":"dec_1","tenant":"acme","type":"decision.staged"`;
    const data = `"dataHash":"${sha256Hex("salt\n{}")}"`;
    const leaf = sha256Hex(`{"actor":"agent:x",${data},${said},"v":2}`);
    const link = `{"at":"${AT}","leaf":"${leaf}","prev":"${GENESIS}","seq":1,"v":2}`;
    expect(entry.hash).toBe(sha256Hex(link));
    const old = `{"actor":"agent:x","at":"${AT}",${data},"prev":"${GENESIS}","seq":1,${said},"v":1}`;
    expect(entryHash({ ...entry, v: 1 })).toBe(sha256Hex(old));
  });

  test.each([
    "tenant",
    "seq",
    "at",
    "type",
    "subject",
    "session",
    "actor",
    "dataHash",
    "prev",
  ] as const)("a change of %s changes its hash [I19]", (field) => {
    const changed = { ...first, [field]: field === "seq" ? 2 : `${first[field]}x` };
    expect(entryHash(changed as AuditEntry)).not.toBe(first.hash);
  });

  test("a change of the data or the salt changes the data's hash [I19]", () => {
    expect(dataHash("salt-1", '{"a":["ü",null],"b":2}')).not.toBe(first.dataHash);
    expect(dataHash("salt-2", first.data ?? "")).not.toBe(first.dataHash);
  });

  test("still verifies after its data and salt were erased", () => {
    const erased = { ...first, data: null, salt: null };
    expect(entryHash(erased)).toBe(first.hash);
  });

  test("refuses data with two meanings instead of storing one of them", () => {
    const half = { ...draft, data: { text: "\ud800" } };
    expect(() => sealEntry(emptyHead("acme"), half, AT, "salt")).toThrow();
  });
});

describe("a block", () => {
  const at = Date.parse(AT);
  const same = { ...sealEntry(headAfter(first), draft, AT, "salt-2") };

  test("gives its entries back, with the links between them", () => {
    const body = packBlock([first, same]);
    const block = { last: 2, at, head: same.hash, body };
    expect(unpackBlock("acme", block, GENESIS)).toEqual([first, same]);
  });

  test("keeps the hash of erased data, so that the chain still verifies [T42]", () => {
    const erased = { ...first, data: null, salt: null };
    const block = { last: 2, at, head: same.hash, body: packBlock([erased, same]) };
    expect(unpackBlock("acme", block, GENESIS)).toEqual([erased, same]);
  });

  test("shows a change of any entry in its last hash", () => {
    const forged = { ...first, actor: "human:boss" };
    const block = { last: 2, at, head: same.hash, body: packBlock([forged, same]) };
    const last = unpackBlock("acme", block, GENESIS).at(-1) as AuditEntry;
    expect(entryHash(last)).not.toBe(last.hash);
  });

  test.each([
    ["nothing", []],
    ["another first byte", [2, 3, 4]],
    ["half a body", [...packBlock([first])].slice(0, 40)],
    ["no list of entries", [1, ...deflateRawSync("{}")]],
    ["no entry", [1, ...deflateRawSync("[]")]],
    ["a number as type", [1, ...deflateRawSync('[[1,"a","b","c",null,null]]')]],
  ])("that holds %s is damaged", (_, bytes) => {
    const block = { last: 2, at, head: same.hash, body: Uint8Array.from(bytes) };
    expect(() => unpackBlock("acme", block, GENESIS)).toThrow(
      expect.objectContaining({ code: "damaged_record" }),
    );
  });
});

describe("readEntry", () => {
  test("gives the data as an object, and null where it was erased", () => {
    expect(readEntry(first)).toEqual({ ...first, data: draft.data });
    expect(readEntry({ ...first, data: null }).data).toBeNull();
  });

  test.each(["[1]", "7", '"text"', "null", "{"])("refuses data that is no object: %s", (data) => {
    expect(() => readEntry({ ...first, data })).toThrow(
      expect.objectContaining({
        code: "damaged_record",
        details: expect.objectContaining({ seq: 1 }),
      }),
    );
  });
});
