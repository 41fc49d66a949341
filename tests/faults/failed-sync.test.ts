// A sync that fails during COMMIT, followed by death or by a clean close: what the caller was told must be true afterwards.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { scaled } from "../support/scale.ts";
import { type AskedLine, portOver, QUESTIONS } from "./failed-sync-child.ts";
import { NODE } from "./production/start-production.ts";
import { NO_STRACE } from "./traced.ts";

const folder = mkdtempSync(path.join(tmpdir(), "sallyport-sync-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let runs = 0;

/** One child whose fsync calls fail by strace; returns its output and what a new process finds. */
async function run(when: string, thread: "always" | "never", then: "die" | "close") {
  runs += 1;
  const own = path.join(folder, String(runs));
  mkdirSync(own);
  const file = path.join(own, "sallyport.db");
  await sqliteStore({ file }).close();
  const child = path.join(import.meta.dirname, "failed-sync-child.ts");
  const inject = ["fsync", "fdatasync"].flatMap((call) => [
    "-e",
    `inject=${call}:error=EIO:when=${when}`,
  ]);
  const { stdout } = spawnSync(
    "strace",
    [
      ...["-f", "-o", path.join(own, "log"), "-P", file, "-P", `${file}-wal`],
      ...["-e", "trace=fsync,fdatasync", ...inject],
      ...[process.execPath, ...NODE, child, file, thread, then],
    ],
    { encoding: "utf8" },
  );
  const said = stdout
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as AskedLine);
  await using store = sqliteStore({ file });
  const { interactions } = portOver(store);
  const open = await interactions.list({ limit: 100 });
  return { said, found: new Set(open.map(({ displayText }) => displayText)) };
}

test
  // skip: strace is missing or not permitted here, and the output says which
  .skipIf(NO_STRACE !== "")
  .for(
    (["never", "always"] as const).flatMap((thread) =>
      (["die", "close"] as const).map((then) => ({ thread, then })),
    ),
  )(
  "sqlite: a commit whose sync failed is never reported as not written and found later (thread $thread, then $then) [F2] [SM1]",
  { timeout: 120_000 },
  async ({ thread, then }) => {
    const points = scaled({ test: [4], proof: [2, 3, 4, 5, 6], full: [1, 2, 3, 4, 5, 6, 7, 8] });
    const codes: string[] = [];
    for (const when of points.flatMap((n) => [`${n}`, `${n}+`])) {
      const { said, found } = await run(when, thread, then);
      for (const { text, refused } of said) {
        if (refused === undefined) {
          expect(found, `${when}: ${text} was acknowledged`).toContain(text);
          continue;
        }
        codes.push(refused.code);
        expect(["store_unavailable", "commit_unknown"]).toContain(refused.code);
        if (refused.retry === "safe") {
          expect(found, `${when}: ${text} was reported as not written`).not.toContain(text);
        }
      }
      if (!when.endsWith("+") && then === "close")
        expect(said.length).toBeLessThanOrEqual(QUESTIONS);
    }
    expect(codes, "void: a sync that fails for good is unknown").toContain("commit_unknown");
    if (thread === "never") {
      expect(codes, "void: a sync that fails once is overwritten").toContain("store_unavailable");
    }
  },
);
