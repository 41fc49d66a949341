import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { systemTimers } from "../../src/util/timers.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { isWanted } from "../support/stores.ts";
import { codes, startRun } from "./port-delegation.ts";
import { childProcess, type Mark, openAt, type ProcessPlace } from "./process-world.ts";
import { ADA } from "./world.ts";

const LEVELS = 3;

async function placeOf(kind: "sqlite" | "postgres"): Promise<ProcessPlace> {
  const base = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
  const folder = await mkdtemp(path.join(base, "sallyport-levels-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  if (kind === "sqlite") {
    return { store: { kind, file: path.join(folder, "store.db") }, folder, levels: LEVELS };
  }
  const database = await freshDatabase(inject("pgUrl"));
  onTestFinished(() => database.drop());
  return { store: { kind, url: database.url }, folder, levels: LEVELS };
}

const FULL = process.env["SCALE"] === "full";
const KINDS = (FULL ? ["sqlite", "postgres"] : ["postgres"]) as readonly ("sqlite" | "postgres")[];

test.each(KINDS.filter(isWanted))(
  "three levels of real processes over %s: revoking the first stops all within a second [T33 R3]",
  async (kind) => {
    const place = await placeOf(kind);
    const { gate, close } = await openAt(place);
    const { session, run } = await startRun(gate, ["a"]);
    const marks = async (): Promise<Mark[]> =>
      (await readFile(path.join(place.folder, "marks"), "utf8").catch(() => ""))
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line));
    const work = session.delegateWork({
      mode: "single",
      requests: [codes({ agent: "agent:level-3", tools: ["mark.put"], depth: 2, calls: 100_000 })],
      worker: childProcess(place),
    });
    // Whatever goes wrong: no process is left behind.
    onTestFinished(async () => {
      const open = (await gate.delegations.list({})).filter(({ state }) => state === "active");
      for (const { id } of open) await gate.delegations.fail(id, "the test is over", ADA);
      await work;
      await close();
    });
    const patience = Date.now() + 90_000;
    for (;;) {
      expect(Date.now(), "all levels have begun").toBeLessThan(patience);
      const sessions = new Set((await marks()).map(({ sessionId }) => sessionId));
      if (sessions.size === LEVELS) break;
      await systemTimers.sleep(50);
    }
    const all = await gate.delegations.list({ rootSession: run.id });
    expect(all.map(({ chain }) => chain.length)).toEqual([1, 2, 3]);
    await gate.delegations.revoke(all[0]!.id, "enough", ADA);
    const revokedAt = Date.now();
    const [result] = await work;
    const endedAfter = Date.now() - revokedAt;
    await systemTimers.sleep(Math.max(0, 1_500 - endedAfter));
    const written = await marks();
    const late = written.filter(({ at }) => at > revokedAt + 1_000);
    expect(late).toEqual([]);
    expect(written.filter(({ slot }) => slot !== "a")).toEqual([]);
    expect(written.length).toBeGreaterThanOrEqual(LEVELS);
    expect(result).toMatchObject({ answer: "worked", outcome: { state: "revoked" } });
    const inFlight = written.filter(({ at }) => at > revokedAt).length;
    if (FULL) {
      const after = `${inFlight} in flight, ended after ${endedAfter} ms`;
      console.log(`T33 ${kind}: ${written.length} marks, ${after}`);
    }
    // Not one intent was written after the revocation, by the order of the trail itself.
    const trail = await gate.audit.read({ after: 0, limit: 100_000 });
    const at = trail.findIndex(({ type }) => type === "delegation.revoked");
    expect(trail.slice(at).filter(({ type }) => type === "operation.started")).toEqual([]);
  },
  // Six processes of their own have to start first.
  150_000,
);
