import { expect, test } from "vitest";
import { formatPath, JsonError, showCharacter } from "./json-error.ts";

test("has a name, a reason, a place and a message of two sentences", () => {
  const error = new JsonError("syntax", {
    what: "x is wrong",
    advice: "Do y.",
    at: 3,
    path: ["a"],
  });
  expect(error).toMatchObject({ name: "JsonError", reason: "syntax", at: 3, path: "$.a" });
  expect(error.message).toBe("JSON refused at character 3 ($.a): x is wrong. Do y.");
  const placeless = new JsonError("too_large", { what: "x", advice: "Y." });
  expect(placeless).toMatchObject({ at: -1, path: "$", message: "JSON refused at $: x. Y." });
});

test.each([
  [[], "$"],
  [["items", 3, "price"], "$.items[3].price"],
  [["odd key", "", "1"], '$["odd key"][""]["1"]'],
  [["é"], '$["\\u00e9"]'],
  [['"\n\u202e\u0007'], '$["\\"\\n\\u202e\\u0007"]'],
  [["\ud800"], '$["\\ud800"]'],
  [["k".repeat(50)], `$.${"k".repeat(24)}…`],
  [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "$[1][2][3][4]…[7][8][9][10]"],
])("path %j is shown as %s", (path, text) => {
  expect(formatPath(path)).toBe(text);
});

test("a character is shown as itself only when it is harmless", () => {
  expect(showCharacter("a;", 1)).toBe("';'");
  expect(showCharacter("\u001b", 0)).toBe("\\u001b");
  expect(showCharacter("é", 0)).toBe("\\u00e9");
  expect(showCharacter("a", 1)).toBe("the end of the text");
});
