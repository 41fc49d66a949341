import { readFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Decision } from "../../src/model/decision.ts";
import { stagedIn } from "../../src/store/conformance/samples.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import type { Clock } from "../../src/util/clock.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { diffOf, refusal, stagingOver } from "../support/staging.ts";
import { stagingProcess } from "../support/staging-process.ts";
import type { Place, StoreName, TestStore } from "../support/stores.ts";

async function start(place: Place, { now }: Pick<Clock, "now">) {
  const other = await stagingProcess(place, now());
  onTestFinished(() => other.kill());
  return other;
}

/** The memory store can do none of this, which is what the tests at the end are about. */
const SHARED: readonly StoreName[] = ["sqlite", "postgres"];

function inOtherProcesses(open: () => Promise<TestStore>): void {
  test("another process goes on where this one stopped, unless the store is in memory [S0-55 S0-105]", async () => {
    const store = await open();
    const { id } = await stagingOver(store).stage("session-1", diffOf());
    const other = await start(store.place, store.clock);
    const reviewed = (await other.call("validateTech", id)) as Decision;
    expect(reviewed.state).toBe("pending_ml");
    expect(reviewed.techVerdict.validator).toMatch(/^tech-of-\d+$/);
    await other.end();
    expect((await stagingOver(store).validateBiz(id)).state).toBe("approved");
  });

  test("what a process was told is stored is there after it was killed [S0-55]", async () => {
    const store = await open();
    const other = await start(store.place, store.clock);
    const staged = (await other.call("stage", "session-1")) as Decision;
    await other.call("validateTech", staged.id);
    await other.kill();
    const found = await store.decisions.get(staged.id);
    expect(found.state).toBe("pending_ml");
    expect(new TextDecoder().decode(found.diff.raw)).toBe("from a child");
    expect((await stagingOver(store).validateBiz(staged.id)).state).toBe("approved");
  });

  test("two processes racing on one record: one wins each time, the other is told [S0-57 S0-103]", async () => {
    const store = await open();
    const others = await Promise.all([
      start(store.place, store.clock),
      start(store.place, store.clock),
    ]);
    for (let round = 0; round < 15; round += 1) {
      const { id } = await stagedIn("pending_tech", store);
      const reviews = await Promise.all(others.map((other) => other.call("validateTech", id)));
      expect(reviews.filter((answer) => answer === "illegal_transition")).toHaveLength(1);
      await store.decisions.updateBizVerdict(id, (await store.decisions.get(id)).techVerdict);
      const [executed, failed] = await Promise.all([
        others[0]?.call("markExecuted", id, "proof"),
        others[1]?.call("markFailed", id, "reason"),
      ]);
      expect([executed, failed].filter((answer) => answer === "already_final")).toHaveLength(1);
    }
    // Four entries per round: one fork or one lost race written twice would show here.
    expect((await store.engine.head("acme")).seq).toBe(60);
  });
}
forEachStore("processes", inOtherProcesses, SHARED);

describe("the memory store", () => {
  test("outlives no restart and shares nothing: a second one is empty [S0-105]", async () => {
    await using first = memoryStore();
    await using second = memoryStore();
    const staging = stagingOver({ decisions: first.tenant("acme").decisions, clock: CLOCK });
    const { id } = await staging.stage("session-1", diffOf());
    expect(id, "S0-19 ids count upward").toBe("1");
    expect((await staging.stage("session-1", diffOf())).id).toBe("2");
    await refusal("not_found", second.tenant("acme").decisions.get(id));
    const other = stagingOver({ decisions: second.tenant("acme").decisions, clock: CLOCK });
    const again = await other.stage("session-2", diffOf());
    expect(again.id, "S0-19 ids are not stable across restarts").toBe("1");
  });

  test("shares nothing between processes [S0-105]", async () => {
    await using store = memoryStore();
    const { decisions } = store.tenant("acme");
    const { id } = await stagingOver({ decisions, clock: CLOCK }).stage("session-1", diffOf());
    const other = await start({ kind: "memory" }, CLOCK);
    expect(await other.call("get", id)).toBe("not_found");
    await other.end();
  });

  test("says that it is for tests and demos only [S0-105]", async () => {
    await using store = memoryStore();
    expect(store.capabilities).toEqual({ durable: false, manyProcesses: false });
    const source = readFileSync(
      new URL("../../src/store/memory/index.ts", import.meta.url),
      "utf8",
    );
    expect(source).toMatch(
      /\/\*\*[^/]*tests and demos only[^/]*\*\/\s*export function memoryStore/i,
    );
  });
});

const CLOCK = { now: () => 0, advance: () => {}, set: () => {} };
