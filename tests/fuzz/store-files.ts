// A store with a history, its anchors, an export and older copies of all of it, to be spoiled.

import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import path from "node:path";
import { createSigner, fileAnchorSink, generateSigningKey } from "../../src/audit/anchor.ts";
import { createAnchorer } from "../../src/audit/anchorer.ts";
import { createRedactor } from "../../src/audit/redact.ts";
import { exportStore } from "../../src/audit/trail.ts";
import { sqliteEngine } from "../../src/store/sqlite/index.ts";
import { createStore } from "../../src/store/store.ts";
import { manualClock } from "../../src/util/clock.ts";
import { systemRandom } from "../../src/util/random.ts";
import { systemTimers } from "../../src/util/timers.ts";
import { approve, decisionIdOf, openGate, request } from "../support/port-world.ts";

export interface StoreFiles {
  readonly database: Buffer;
  /** The same state as a main file with an old state and a log with the rest. */
  readonly main: Buffer;
  readonly wal: Buffer;
  /** A whole copy from some time before the last anchor. */
  readonly old: Buffer;
  readonly anchors: Buffer;
  readonly exported: Buffer;
  readonly publicKeys: readonly string[];
}

const START = Date.parse("2026-11-15T06:00:00.000Z");

export async function makeStoreFiles(folder: string): Promise<StoreFiles> {
  const file = path.join(folder, "source.db");
  const anchorFile = path.join(folder, "source-anchors.jsonl");
  const clock = manualClock(START);
  const engine = sqliteEngine({
    file,
    clock,
    random: systemRandom,
    timers: systemTimers,
    patienceMs: 2_000,
  });
  const { gate } = openGate({}, { engine, clock });
  const store = createStore(engine, { redact: createRedactor({}) });
  const key = generateSigningKey();
  const anchorer = createAnchorer({
    store,
    signer: createSigner(key),
    sink: fileAnchorSink({ file: anchorFile }),
    clock,
  });
  const session = gate.sessions.open({ id: "s-1", agent: "agent:one", owner: "person:owner" });
  const live = async (count: number, from: number) => {
    for (let nth = from; nth < from + count; nth += 1) {
      clock.advance(1_000);
      const input = { key: `k-${nth}`, value: `${"v".repeat(40)}${nth}` };
      const id = decisionIdOf(await session.call(request("world.set", input, `c-${nth}`)));
      const hash = (await gate.interactions.shown(id))?.hash ?? "";
      if (nth % 4 === 0) await approve(gate, id);
      if (nth % 4 === 1)
        await gate.interactions.reject(id, { hash, by: "person:ada", reason: "no" });
      await session.ask({ callId: `q-${nth}`, text: `May I do ${nth}?` });
      await gate.tasks.add({ subject: `task ${nth}` });
    }
  };
  await live(8, 0);
  await anchorer.flush();
  const old = await copyOf(file, folder);
  await live(8, 8);
  await anchorer.flush();
  await anchorer.close();
  const wal = readFileSync(`${file}-wal`);
  const main = readFileSync(file);
  const exportFile = path.join(folder, "source-export.jsonl");
  for await (const line of exportStore(store)) await appendFile(exportFile, line);
  await store.close();
  return {
    database: readFileSync(file),
    main,
    wal,
    old,
    anchors: readFileSync(anchorFile),
    exported: readFileSync(exportFile),
    publicKeys: [key.publicKey],
  };
}

/** A clean copy of the store as it is now: main file and log, opened once and closed, which makes one file of them. */
async function copyOf(file: string, folder: string): Promise<Buffer> {
  const copy = path.join(folder, "copy", "old.db");
  mkdirSync(path.dirname(copy), { recursive: true });
  for (const end of ["", "-wal"]) copyFileSync(`${file}${end}`, `${copy}${end}`);
  const parts = { clock: manualClock(START), random: systemRandom, timers: systemTimers };
  await sqliteEngine({ file: copy, ...parts, patienceMs: 2_000 }).close();
  return readFileSync(copy);
}
