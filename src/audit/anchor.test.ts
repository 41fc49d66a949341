import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { expect, test } from "vitest";
import {
  anchorsFor,
  collect,
  makeTrail,
  PUBLIC_KEYS,
  SIGNER,
  START,
} from "../../tests/audit/fixtures.ts";
import { GENESIS, headAfter } from "../model/audit-entry.ts";
import { isSallyportError } from "../model/errors.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { toIso } from "../util/clock.ts";
import {
  anchorHash,
  anchorLine,
  createSigner,
  generateSigningKey,
  parseAnchorLine,
  publicKeys,
  readAnchors,
  signAnchor,
  signatureProblem,
} from "./anchor.ts";
import { AnchorBook } from "./anchorer.ts";

const keys = publicKeys(PUBLIC_KEYS);
const trail = makeTrail("acme", 3);
const anchors = await anchorsFor(trail.map(headAfter));

test("an anchor is one canonical line, signed over everything but the signature", () => {
  const [anchor] = anchors;
  const { sig, ...unsigned } = anchor!;
  expect(Object.keys(anchor!).sort()).toEqual(
    ["at", "hash", "keyId", "n", "prev", "seq", "sig", "tenant", "v", "writer"].sort(),
  );
  expect(anchorLine(anchor!)).toBe(canonicalJson(anchor));
  const key = createPublicKey(PUBLIC_KEYS[0]!);
  const bytes = Buffer.from(canonicalJson(unsigned));
  expect(verify(null, bytes, key, Buffer.from(sig, "base64url"))).toBe(true);
  expect(anchor).toMatchObject({ v: 1, n: 1, seq: 1, hash: trail[0]!.hash, prev: GENESIS });
  expect(anchors[1]!.prev).toBe(anchorHash(anchor!));
});

test("a signed field cannot be changed, and other spellings of the signature are invalid", () => {
  const anchor = anchors[0]!;
  expect(signatureProblem(anchor, keys)).toBeUndefined();
  const others = [
    { n: 2 },
    { seq: 2 },
    { tenant: "x" },
    { writer: "x" },
    { prev: trail[0]!.hash },
    { hash: GENESIS },
    { at: toIso(START + 1) },
    { sig: `${anchor.sig}=` },
    { sig: anchor.sig.slice(1) },
    { sig: "" },
  ];
  for (const change of others) {
    expect(signatureProblem({ ...anchor, ...change }, keys), JSON.stringify(change)).toBe(
      "bad_signature",
    );
  }
  expect(signatureProblem({ ...anchor, keyId: "ed25519:0" }, keys)).toBe("unknown_key");
});

test("lines are read back unchanged; anything else is rejected or skipped", async () => {
  const lines = anchors.map(anchorLine);
  expect(lines.map((line) => parseAnchorLine(line))).toEqual(anchors);
  const wrong = [
    "",
    "nonsense",
    "{}",
    "[]",
    "null",
    ` ${lines[0]}`,
    `${lines[0]}\r`,
    lines[0]!.slice(0, -1),
    lines[0]!.replace('"v":1', '"v":2'),
    lines[0]!.replace('"n":1', '"n":0'),
    lines[0]!.replace('"n":1', '"n":"1"'),
    lines[0]!.replace("{", '{"a":1,'),
    lines[0]!.replace('"n":1', '"n":1,"n":1'),
    `{"at":${"[".repeat(9_000)}`,
  ];
  for (const line of wrong) {
    expect(() => parseAnchorLine(line, 5), line.slice(0, 40)).toThrow(/Line 5 /);
  }
  const file = [lines[0], "torn {", lines[1], "", "x".repeat(70_000), lines[2]].join("\n");
  expect(await collect(readAnchors([file]))).toEqual(anchors);
});

test("only Ed25519 keys are accepted, and no private key as a public one", async () => {
  const made = generateSigningKey();
  expect(made.privateKey).toContain("BEGIN PRIVATE KEY");
  expect(made.publicKey).toContain("BEGIN PUBLIC KEY");
  const signer = createSigner(made);
  expect(signer).toMatchObject({ keyId: made.keyId, publicKey: made.publicKey });
  expect(signer.keyId).toMatch(/^ed25519:[0-9a-f]{32}$/);
  expect(made.keyId).not.toBe(SIGNER.keyId);
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const isRefused = (thrown: unknown) => isSallyportError(thrown, "invalid_input");
  for (const privateKey of ["", "nonsense", rsa.privateKey, createPublicKey(made.publicKey)]) {
    expect(() => createSigner({ privateKey })).toThrow(expect.toSatisfy(isRefused));
  }
  for (const key of ["", "nonsense", made.privateKey, rsa.publicKey]) {
    expect(() => publicKeys([key])).toThrow(expect.toSatisfy(isRefused));
  }
});

test("a signer may be remote and asynchronous", async () => {
  const remote = { ...SIGNER, sign: async (text: string) => SIGNER.sign(text) };
  const { tenant, seq, hash, at } = headAfter(trail[0]!);
  const anchor = await signAnchor(remote, {
    writer: "w",
    n: 1,
    tenant,
    seq,
    hash,
    at,
    prev: GENESIS,
  });
  expect(signatureProblem(anchor, keys)).toBeUndefined();
});

const limits = { everyEntries: 64, everyMs: 10_000 };
const heads = (count: number) => makeTrail("a", count).slice(-1).map(headAfter);
const DAY = 86_400_000;

function newBook(): AnchorBook {
  const book = new AnchorBook("w", publicKeys(PUBLIC_KEYS));
  book.look([], START, limits);
  return book;
}

test("the first check anchors everything, later ones what is due by number or by time", () => {
  const fresh = new AnchorBook("w", publicKeys(PUBLIC_KEYS));
  expect(fresh.look(heads(1), START, limits)).toHaveLength(1);
  const book = newBook();
  expect(book.look(heads(63), START + 5_000, limits)).toHaveLength(0);
  expect(book.waiting).toEqual({ entries: 63, since: START });
  expect(book.look(heads(64), START + 5_001, limits)).toHaveLength(1);
  expect(book.look(heads(63), START + 9_999, limits)).toHaveLength(0);
  expect(book.look(heads(63), START + 10_000, limits)).toHaveLength(1);
});

test("a clock that jumps back a day delays the anchor by one interval [G12]", () => {
  const book = newBook();
  expect(book.look(heads(1), START + 1, limits)).toHaveLength(0);
  expect(book.look(heads(1), START - DAY, limits)).toHaveLength(0);
  expect(book.look(heads(1), START - DAY + 10_000, limits)).toHaveLength(1);
});
