import { expect, expectTypeOf, test } from "vitest";
import type { CallAnswer } from "../model/operation.ts";
import { type ImageResult, isImageResult, toModelContent } from "./image-result.ts";

const bytes = {
  "image/png": "89504e470d0a1a0a0000000d49484452",
  "image/jpeg": "ffd8ffe000104a464946000101",
  "image/gif": "47494638396101000100",
  "image/webp": "524946461a00000057454250565038",
};
const base64Of = (hex: string) => Buffer.from(hex, "hex").toString("base64");
const png: ImageResult = {
  kind: "image",
  mediaType: "image/png",
  base64: base64Of(bytes["image/png"]),
};
const done = (text: string, data?: unknown): CallAnswer => ({
  answer: "done",
  text,
  operationId: "op",
  truncated: false,
  storedPath: "",
  data,
});
/** A PNG, as far as its beginning tells, of so much base64. */
const pngOf = (characters: number) => ({
  ...png,
  base64: base64Of(bytes["image/png"]).slice(0, 20).padEnd(characters, "A"),
});
const MIB = 1024 * 1024;

test.each(Object.entries(bytes))(
  "an image result of %s is recognised [S2-94]",
  (mediaType, hex) => {
    expect(isImageResult({ kind: "image", mediaType, base64: base64Of(hex) })).toBe(true);
  },
);

test("the size limit is 5 MiB of base64 [S2-94]", () => {
  expect(isImageResult(pngOf(5 * MIB))).toBe(true);
  expect(isImageResult(pngOf(5 * MIB + 4))).toBe(false);
});

test.each<[string, unknown]>([
  ["nothing", undefined],
  ["null", null],
  ["a text", "image"],
  ["a list", [png]],
  ["another kind", { ...png, kind: "Image" }],
  ["a container image", { kind: "image", name: "nginx:1" }],
  ["a type that no model takes", { ...png, mediaType: "image/svg+xml" }],
  ["a type with capitals", { ...png, mediaType: "image/PNG" }],
  ["a name every object has", { ...png, mediaType: "toString" }],
  ["a type that is no text", { ...png, mediaType: ["image/png"] }],
  ["bytes instead of base64", { ...png, base64: Buffer.from(bytes["image/png"], "hex") }],
  ["an object that acts like a text", { ...png, base64: new String(png.base64) }],
  ["a kind that only prints as image", { ...png, kind: ["image"] }],
  ["no bytes", { ...png, base64: "" }],
  ["a data URL", { ...png, base64: `data:image/png;base64,${png.base64}` }],
  ["line breaks", { ...png, base64: `${png.base64.slice(0, 12)}\n${png.base64.slice(12)}` }],
  ["a line break at the end", { ...png, base64: `${png.base64.slice(0, 15)}\n` }],
  ["missing padding", { ...png, base64: png.base64.replace(/=+$/, "") }],
  ["padding inside", { ...png, base64: `iVB=${png.base64}` }],
  ["the URL alphabet", { ...png, base64: `${png.base64.slice(0, 16)}-_-_` }],
  ["a JPEG under the name of PNG", { ...png, base64: base64Of(bytes["image/jpeg"]) }],
  ["data that throws when looked at", new Proxy({}, { get: () => expect.fail("looked at") })],
])("%s is no image result and is sent as text [S2-94 S2-93]", (_, data) => {
  expect(isImageResult(data)).toBe(false);
  expect(toModelContent(done("the text", data))).toMatch(/^the text(\n\[The image .*\])?$/);
});

test("an image goes to the model in the array form, after the text, its base64 untouched [S2-94]", () => {
  const data = { ...png, alt: "not sent" };
  expect(toModelContent(done("A chart.", data))).toEqual([
    { type: "text", text: "A chart." },
    { type: "image", mediaType: "image/png", base64: png.base64 },
  ]);
  const failed: CallAnswer = { answer: "failed", text: "See the screenshot.", data: png };
  expect(toModelContent(failed)).toHaveLength(2);
  expect(toModelContent(done(" \n", png)), "no empty text part").toEqual([
    { type: "image", mediaType: "image/png", base64: png.base64 },
  ]);
});

test("the model is told of an image that cannot be shown, and why [S2-94]", () => {
  expect(toModelContent(done("A chart.", pngOf(6 * MIB)))).toBe(
    "A chart.\n[The image that came with this result cannot be shown: it is larger than 5 MiB.]",
  );
  for (const mediaType of ["image/tiff", "toString"]) {
    expect(toModelContent(done("", { ...png, mediaType }))).toMatch(/^\[The image .* neither PNG/);
  }
});

test("answers without data are their text [S2-94]", () => {
  const answers: readonly CallAnswer[] = [
    done("t"),
    { answer: "pending", text: "t", decisionId: "dec_1", interactionId: "dec_1" },
    { answer: "denied", text: "t", findings: [] },
    { answer: "failed", text: "t" },
    { answer: "unknown", text: "t", operationId: "op" },
  ];
  for (const answer of answers) expect(toModelContent(answer)).toBe("t");
});

test("further kinds of data need a reader and no new field [S2-94]", () => {
  const audio = (data: Readonly<Record<string, unknown>>) => ({
    type: "audio" as const,
    wav: String(data["wav"]),
  });
  const content = toModelContent(done("A sound.", { kind: "audio", wav: "UklG" }), { audio });
  expect(content).toEqual([
    { type: "text", text: "A sound." },
    { type: "audio", wav: "UklG" },
  ]);
  expect(toModelContent(done("Both.", png), { audio })).toHaveLength(2);
  expect(toModelContent(done("No reader.", { kind: "audio" }))).toBe("No reader.");
  expect(toModelContent(done("Not a kind.", { kind: "constructor" }))).toBe("Not a kind.");
});

test("a consumer learns the type of the data by asking [S2-93]", () => {
  const data: unknown = png;
  if (!isImageResult(data)) expect.unreachable();
  expectTypeOf(data).toEqualTypeOf<ImageResult>();
  expect(data).toBe(png);
});
