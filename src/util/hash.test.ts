import { expect, test } from "vitest";
import { hmacSha256Hex, sha256Hex } from "./hash.ts";

test("sha256Hex gives the published digests", () => {
  const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  expect(sha256Hex("")).toBe(empty);
  expect(sha256Hex("abc")).toBe(abc);
  expect(sha256Hex(new Uint8Array([0x61, 0x62, 0x63]))).toBe(abc);
});

test("a text is hashed as UTF-8, a view only over its own bytes", () => {
  expect(sha256Hex("é😀")).toBe(sha256Hex(Buffer.from("é😀", "utf8")));
  expect(sha256Hex(Buffer.from("xabcx").subarray(1, 4))).toBe(sha256Hex("abc"));
});

test("hmacSha256Hex gives the digests of RFC 4231", () => {
  expect(hmacSha256Hex(new Uint8Array(20).fill(0x0b), "Hi There")).toBe(
    "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
  );
  expect(hmacSha256Hex("Jefe", "what do ya want for nothing?")).toBe(
    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
  );
});

test("refuses lone surrogates, which would all hash alike [T24]", () => {
  for (const text of ["\ud800", "a\udfff"]) {
    expect(() => sha256Hex(text)).toThrow(TypeError);
    expect(() => hmacSha256Hex(text, "data")).toThrow(TypeError);
    expect(() => hmacSha256Hex("key", text)).toThrow(TypeError);
  }
});
