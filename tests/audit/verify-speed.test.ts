// G20: how fast an export is verified, from the file, with anchors, and that memory does not grow with it.

import { createReadStream, createWriteStream, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, expect, test } from "vitest";
import { exportLine, readExport } from "../../src/audit/trail.ts";
import { verifyTrail } from "../../src/audit/verify.ts";
import { type ChainHead, emptyHead, headAfter, sealEntry } from "../../src/model/audit-entry.ts";
import { toIso } from "../../src/util/clock.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { anchorsFor, PUBLIC_KEYS, START } from "./fixtures.ts";

const ENTRIES = scaled({ test: 20_000, proof: 100_000, full: 1_000_000 });
const TENANTS = 4;

setFlagsFromString("--expose_gc");
const collectGarbage = runInNewContext("gc") as () => void;

const folder = mkdtempSync(path.join(tmpdir(), "sallyport-verify-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a decision's life looks like in the trail, about 700 bytes a line. */
function draft(n: number) {
  return {
    type: "decision.reviewed",
    subject: `0193e7a2-7c1e-7000-8000-${String(n).padStart(12, "0")}`,
    session: `ses_${n >> 4}`,
    actor: "validator:refund-policy",
    data: {
      from: "pending_tech",
      to: "pending_ml",
      tier: "tech",
      verdict: {
        approved: true,
        score: 97,
        reason: "The amount is below the limit.",
        severity: "",
      },
    },
  };
}

test(`${ENTRIES} entries are verified within a minute and in constant memory [G20]`, {
  timeout: 900_000,
}, async () => {
  const file = path.join(folder, "export.jsonl");
  const anchored: ChainHead[] = [];
  const heads = Array.from({ length: TENANTS }, (_, i) => emptyHead(`tenant-${i}`));
  function* lines() {
    for (let n = 0; n < ENTRIES; n += 1) {
      const which = n % TENANTS;
      const entry = sealEntry(heads[which]!, draft(n), toIso(START + n), `c2FsdHNhbHRzYWx0${n}`);
      heads[which] = headAfter(entry);
      if (entry.seq % 64 === 0) anchored.push(headAfter(entry));
      yield `${exportLine(entry)}\n`;
    }
  }
  await pipeline(Readable.from(lines()), createWriteStream(file));
  const anchors = await anchorsFor(anchored);
  anchored.length = 0;

  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  let most = before;
  const started = performance.now();
  const report = await verifyTrail(readExport(createReadStream(file)), {
    anchors,
    publicKeys: PUBLIC_KEYS,
    onProgress({ entries }) {
      if (entries % (ENTRIES / 10) !== 0) return;
      collectGarbage();
      most = Math.max(most, process.memoryUsage().heapUsed);
    },
  });
  const seconds = (performance.now() - started) / 1000;
  const grownMb = (most - before) / 1024 / 1024;
  console.log(
    `verified ${ENTRIES} entries and ${anchors.length} anchors in ${seconds.toFixed(1)} s: ` +
      `${Math.round(ENTRIES / seconds)} entries/s, heap grew by ${grownMb.toFixed(1)} MB`,
  );
  record({
    goal: "G20",
    what: "an export verified with its anchors",
    figures: {
      entries: report.entries,
      anchors: report.anchors,
      seconds: Number(seconds.toFixed(2)),
      "entries a second": Math.round(ENTRIES / seconds),
      "heap grown MB": Number(grownMb.toFixed(1)),
      violations: report.ok ? 0 : 1,
    },
  });
  expect(report).toMatchObject({ ok: true, entries: ENTRIES, anchors: anchors.length });
  expect(seconds).toBeLessThan(60);
  expect(grownMb).toBeLessThan(50);
});
