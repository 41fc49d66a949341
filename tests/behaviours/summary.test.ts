// The ids in here stand in the code, not in the titles: a title that names a row claims to prove it.

import { describe, expect, test } from "vitest";
import { PARTS, type Part, rowsOf, TEXTS } from "./rows.ts";
import { asRanges, idsIn, summarise } from "./summary.ts";
import { surfacesOfHelped, testAt, testsIn } from "./surfaces.ts";

const small: Part = { id: "S1", page: "small", rows: 3 };
const LIBRARY = ["sallyport"];
const large: Part = { id: "S0", page: "large", rows: 101 };

describe("rows", () => {
  test("are numbered from one, with two digits at least", () => {
    const rows = rowsOf(large);
    expect(rows.slice(0, 2)).toEqual(["S0-01", "S0-02"]);
    expect(rows.slice(98)).toEqual(["S0-99", "S0-100", "S0-101"]);
  });

  test("of all parts are those of the specification, each with its text", () => {
    expect(PARTS.flatMap(rowsOf)).toEqual([...TEXTS.keys()]);
    expect(TEXTS.size, "void: rows are missing").toBeGreaterThanOrEqual(465);
    expect([...TEXTS].filter(([, text]) => text.length < 20)).toEqual([]);
  });
});

describe("ids in a test name", () => {
  test.each([
    ["S0-62 keeps the first proof", ["S0-62"]],
    ["S2-01, S2-107: both", ["S2-01", "S2-107"]],
    ["describe S4-10 test S4-10 again", ["S4-10"]],
    ["(I-84)", ["I-84"]],
    ["S5-01 S0-1 S0-1234 AI-12 XS0-12", []],
  ])("case %#", (name, ids) => {
    expect(idsIn(name)).toEqual(ids);
  });
});

describe("a summary", () => {
  test("counts a row only when every test that names it passed", () => {
    const [part] = summarise(
      [small],
      [
        { name: "S1-01 once", outcome: "passed", surfaces: LIBRARY },
        { name: "S1-01 S1-02 twice", outcome: "passed", surfaces: LIBRARY },
        { name: "S1-02 not here", outcome: "skipped", surfaces: LIBRARY },
        { name: "S1-03 broken", outcome: "failed", surfaces: LIBRARY },
      ],
    ).parts;
    expect(part).toEqual({
      part: small,
      passing: ["S1-01"],
      missing: ["S1-02", "S1-03"],
      failing: ["S1-03"],
      surfaces: [["sallyport", 1]],
    });
  });

  test("counts no row that only tests of inner parts name, and says through which surfaces the others are proved", () => {
    const [part] = summarise(
      [small],
      [
        { name: "S1-01 inside", outcome: "passed", surfaces: [] },
        { name: "S1-02 inside", outcome: "passed", surfaces: [] },
        { name: "S1-02 outside", outcome: "passed", surfaces: ["http", "sallyport"] },
        { name: "S1-03 outside", outcome: "passed", surfaces: ["http"] },
      ],
    ).parts;
    expect(part).toMatchObject({ passing: ["S1-02", "S1-03"], missing: ["S1-01"] });
    expect(part?.surfaces).toEqual([
      ["http", 2],
      ["sallyport", 1],
    ]);
  });

  test("counts nothing without tests", () => {
    expect(summarise([small], []).parts[0]?.missing).toEqual(["S1-01", "S1-02", "S1-03"]);
  });

  test("names ids that no part has, and failed tests that name no row", () => {
    const summary = summarise(
      [small],
      [
        { name: "S1-04 beyond the end", outcome: "passed", surfaces: LIBRARY },
        { name: "S1-001 padded wrongly", outcome: "passed", surfaces: LIBRARY },
        { name: "no id at all", outcome: "failed", surfaces: LIBRARY },
      ],
    );
    expect(summary.unknown).toEqual([
      { id: "S1-04", test: "S1-04 beyond the end" },
      { id: "S1-001", test: "S1-001 padded wrongly" },
    ]);
    expect(summary.failedTests).toEqual(["no id at all"]);
  });
});

describe("ranges", () => {
  test.each([
    [["S0-01", "S0-02", "S0-03"], "S0-01…S0-03"],
    [["S0-02", "S0-99", "S0-100"], "S0-02, S0-99…S0-100"],
    [["S0-101"], "S0-101"],
    [[], ""],
  ])("case %#", (ids, text) => {
    expect(asRanges(large, ids)).toBe(text);
  });
});

describe("the doors of a test", () => {
  const doorsOf = (file: string, title: string) =>
    testsIn(file).find(({ code }) => code.includes(title))?.surfaces;

  test("are those of its own lines and of the helpers it calls, not of its file", () => {
    const inner = "src/gate/rollback.test.ts";
    expect(doorsOf(inner, "takes a message back from its last entry"), "inner parts").toEqual([]);
    const http = doorsOf("tests/wiring/rows.test.ts", "a zero time of an imported task");
    expect(http).toContain("http");
    const library = doorsOf("tests/wiring/rows.test.ts", "every part of a compound command");
    expect(library).toContain("sallyport");
    expect(library).not.toContain("http");
  });

  test("are found for tests in describes, in loops over stores and in tables", () => {
    expect(doorsOf("tests/whole/stories.test.ts", "happy path")).toContain("sallyport");
    expect(doorsOf("tests/staging/review.test.ts", "the business verdict leaves")).toEqual([
      "sallyport",
    ]);
    expect(doorsOf("src/policy/bash.test.ts", "a bash tool that does not declare")).toEqual([]);
  });

  test("are found by the line that a report names", () => {
    const [first] = testsIn("tests/wiring/rows.test.ts");
    expect(first?.from).toBeGreaterThan(10);
    expect(testAt("tests/wiring/rows.test.ts", first?.from ?? 0)).toEqual(first);
    expect(testAt("tests/wiring/rows.test.ts", 1)).toBeUndefined();
  });
});

test("tests that a helper defines for a file have the doors of that helper, and not those of the file's own tests", () => {
  const conformance = "sallyport/store/conformance";
  expect(surfacesOfHelped("tests/tasks/engine-stores.test.ts")).toEqual([conformance]);
  expect(surfacesOfHelped("tests/tasks/memory.test.ts")).toContain(conformance);
  expect(surfacesOfHelped("tests/gate/same-call.test.ts")).toEqual([]);
});
