import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { record } from "../support/record.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const page = readFileSync(path.join(ROOT, "docs/proof/aisvs.md"), "utf8");
const rows = [...page.matchAll(/^\| (\d+\.\d+\.\d+) \| (.+?) \| (.+?) \| (.+) \|$/gm)].map(
  ([, number = "", , state = "", shown = ""]) => ({ number, state, shown }),
);
/** `file` "title", once or more in a row. */
const NAMED = /`([\w./-]+\.test\.ts)` "([^"]+)"/g;

/** How many requirements each section has, in version 1.0. */
const SECTIONS = {
  "9.1": 3,
  "9.2": 10,
  "9.3": 8,
  "9.4": 4,
  "9.5": 6,
  "9.6": 3,
  "10.1": 3,
  "10.2": 7,
  "10.3": 5,
  "10.4": 8,
  "12.4": 3,
} as const;

test("every requirement has a row, in order, with a state [G19]", () => {
  const wanted = Object.entries(SECTIONS).flatMap(([section, count]) =>
    Array.from({ length: count }, (_, at) => `${section}.${at + 1}`),
  );
  expect(rows.map(({ number }) => number)).toEqual(wanted);
  expect(wanted).toHaveLength(60);
  for (const { number, state } of rows)
    expect(["holds", "partly", "not ours"], number).toContain(state);
});

test("a requirement that holds, fully or partly, names a test, and every named test exists [G19]", () => {
  const counts = { holds: 0, partly: 0, "not ours": 0, "tests named": 0 };
  for (const { number, state, shown } of rows) {
    counts[state as "holds"] += 1;
    const named = [...shown.matchAll(NAMED)];
    if (state !== "not ours") expect(named.length, `${number} names no test`).toBeGreaterThan(0);
    for (const [, file = "", title = ""] of named) {
      counts["tests named"] += 1;
      expect(existsSync(path.join(ROOT, file)), `${number}: ${file}`).toBe(true);
      expect(
        readFileSync(path.join(ROOT, file), "utf8").includes(title),
        `${number}: ${title}`,
      ).toBe(true);
    }
  }
  record({ goal: "G19", what: "AISVS 1.0, chapters 9, 10 and 12.4", figures: counts });
  console.info(`AISVS 1.0: ${JSON.stringify(counts)} of ${rows.length}`);
});
