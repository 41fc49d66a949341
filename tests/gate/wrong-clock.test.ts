// One wrong reading of the store's clock neither stops nor prolongs anything.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { collectEvidence } from "../../src/crashkit/evidence.ts";
import { checkInvariants, OF_THE_STORE } from "../../src/crashkit/invariants/table.ts";
import { createGate, type Gate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { SallyportError } from "../../src/model/errors.ts";
import { NO_RULES } from "../../src/policy/policy.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { createStore } from "../../src/store/store.ts";
import { ClockWatch } from "../../src/store/turn.ts";
import { manualClock, toIso } from "../../src/util/clock.ts";
import { codeOf, DAY, lossy, onStores, yes } from "../interactions/inbox-world.ts";
import { AGENT, createWorld, decisionIdOf, request } from "../support/port-world.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

const MINUTE = 60_000;
const LEASE_MS = 30_000;
const ACCEPTED = { actor: "operator" };

onStores(
  "a clock that was ten days ahead for one commit",
  (open) => {
    test("keeps no approval alive, and once an operator has said that the clock is right every deadline and lease goes by it [SH9]", async () => {
      const far = lossy();
      const { gate, tap, clock, again } = await open({ tools: [far.tool], leaseMs: LEASE_MS });
      const session = gate.sessions.open({ id: "s-1", agent: AGENT });
      const ask = async (what: string) =>
        decisionIdOf(await session.call(request("far.send", { what }, what)));
      const early = await ask("early");
      const right = clock.now();
      clock.set(right + 10 * DAY);
      await ask("while it was wrong");
      clock.set(right + MINUTE);
      expect(await codeOf(ask("after"))).toBe("clock_wrong");
      expect(await codeOf(yes(gate, early))).toBe("clock_wrong");
      await gate.killSwitch.stop("look at the clock", ACCEPTED);
      await gate.killSwitch.resume("looked", ACCEPTED);

      const store = createStore(tap.engine, { redact: (_, data) => data });
      const { clock: mark, operations } = store.tenant("acme");
      expect((await mark.accept("It was set wrongly.", ACCEPTED)).state).toBe("accepted");
      const late = await ask("late");
      const { deadline } = await gate.interactions.get(late);
      clock.set(Date.parse(deadline ?? "") + 1);
      expect(await codeOf(yes(gate, late))).not.toBe("clock_wrong");
      expect(far.sent).toEqual([]);

      // Left by a process that went away: found when its lease is over by the clock, not by the trail.
      const dying = again({
        at(point) {
          if (point === "S5.after") throw new SallyportError("store_unavailable");
        },
      });
      const gone = dying.sessions.open({ id: "s-2", agent: AGENT });
      const left = decisionIdOf(await gone.call(request("far.send", { what: "left" }, "left")));
      await expect(yes(dying, left)).rejects.toThrow();
      clock.advance(LEASE_MS + 1);
      await gate.recover();
      const [found] = await operations.listBySession("s-2");
      expect(found?.status).toBe("unknown");
      expect(clock.now()).toBeLessThan(right + 2 * DAY);
      // Records use the clock and entries do not: this is not tampering.
      const evidence = await collectEvidence(store, "acme", {
        ledger: [],
        told: [],
        isAtRest: false,
      });
      expect(checkInvariants(evidence, OF_THE_STORE)).toEqual([]);
    });
  },
  ["memory", "sqlite", "postgres"],
);

/** A gate over SQLite whose clock is compared with steady time. `off` is added to one reading, `wait` readings from now. */
async function watchedGate() {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-clock-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const clock = manualClock(Date.parse("2026-11-15T06:00:00.000Z"));
  const once = { off: 0, wait: 0 };
  const read = () => {
    const isOff = once.off !== 0 && once.wait === 0;
    once.wait -= 1;
    return clock.now() + (isOff ? once.off : 0);
  };
  const steady = { ms: 0 };
  const time = { elapsedMs: () => steady.ms, uptimeMs: () => steady.ms };
  const open = () => {
    const store = sqliteStore({
      file: path.join(folder, "store.db"),
      clock: { now: read },
      clockWatch: new ClockWatch(time),
      thread: "never",
    });
    onTestFinished(() => store.close());
    return createGate({
      store,
      tenant: "acme",
      tools: Object.values(createWorld().tools),
      validators: {
        tech: sampleVerdictValidator("schema"),
        business: sampleVerdictValidator("limits"),
      },
      guard: allowAlways,
      policy: NO_RULES,
    });
  };
  /** Does the same while each of the first readings is wrong in turn. */
  const whileWrong = async (off: number, work: () => Promise<void>) => {
    let met = 0;
    for (let wait = 0; wait < READINGS; wait += 1) {
      Object.assign(once, { off, wait });
      await work();
      if (once.wait < 0) met += 1;
      Object.assign(once, { off: 0, wait: 0 });
    }
    expect(met, "void: the clock was hardly read").toBeGreaterThan(1);
  };
  return { gate: open(), open, clock, whileWrong };
}

/** More than one call or one change of a task needs. */
const READINGS = 6;

test("a reading that cannot be right is refused while it lasts: nothing is written by it but the kill switch, and nothing is left of it [SH9]", async () => {
  const { gate, clock } = await watchedGate();
  const session = gate.sessions.open({ id: "s-1", agent: AGENT });
  const ask = (what: string) => session.call(request("world.blind", { what }, what));
  await ask("before");
  clock.advance(DAY);
  expect(await codeOf(ask("wrong"))).toBe("clock_wrong");
  await gate.killSwitch.stop("what is this?", ACCEPTED);
  clock.set(clock.now() - DAY);
  await gate.killSwitch.resume("a wrong reading", ACCEPTED);
  expect((await ask("after")).answer).toBe("pending");
  const times = (await gate.audit.read({ after: 0, limit: 100 })).map(({ at }) => at);
  expect(new Set(times)).toEqual(new Set(["2026-11-15T06:00:00.000Z"]));
});

test("no question lasts a day longer or shorter because one reading of the clock was a day off [SH9]", async () => {
  const { gate, whileWrong } = await watchedGate();
  const session = gate.sessions.open({ id: "s-1", agent: AGENT });
  let calls = 0;
  const ask = () => {
    calls += 1;
    return session.call(request("world.blind", { what: calls }, `c-${calls}`));
  };
  await ask();
  const [first] = await gate.interactions.list();
  for (const off of [DAY, -DAY]) {
    await whileWrong(off, async () => {
      await ask().catch((error: unknown) => expect(error).toMatchObject({ code: "clock_wrong" }));
    });
  }
  const deadlines = (await gate.interactions.list()).map(({ deadline }) => deadline);
  expect(deadlines.length).toBeGreaterThan(READINGS);
  expect(new Set(deadlines)).toEqual(new Set([first?.deadline]));
});

// Too little to be refused: clocks are corrected by this much. The time of an entry is the time of the transaction.
for (const off of [50_000, -50_000]) {
  test(`claims last from the moment at which they are written, although another reading of the clock was ${off / 1_000} seconds off [SH9] [I11] [I12]`, async () => {
    const { open, whileWrong, clock } = await watchedGate();
    const claim = { claimer: "alice", leaseMs: MINUTE };
    // Other processes than the one that claimed: they know of the claim only what is stored.
    const { id } = await open().tasks.add({ subject: "keep tidy" });
    await whileWrong(off, async () => {
      await open().tasks.sweep();
      await open()
        .tasks.claim({ id, ...claim })
        .catch(refusedAs("not_claimable"));
      expect((await open().tasks.get(id)).leaseUntil).toBe(await leaseOf(open(), id));
      clock.advance(20_000);
    });
    clock.advance(3 * MINUTE);
    const { fence = 0 } = await open().tasks.claim({ id, ...claim });
    await whileWrong(off, async () => {
      await open().tasks.renew({ id, fence, leaseMs: MINUTE }).catch(refusedAs("claim_lost"));
      const { status, leaseUntil } = await open().tasks.get(id);
      expect(status === "claimed" && leaseUntil).toBe(await leaseOf(open(), id));
      clock.advance(10_000);
    });
    const { leaseUntil } = await open().tasks.renew({ id, fence, leaseMs: 5 * MINUTE });
    await whileWrong(off, async () => {
      await open().tasks.renew({ id, fence, leaseMs: MINUTE });
      expect((await open().tasks.get(id)).leaseUntil).toBe(leaseUntil);
    });
    expect(await open().tasks.get(id)).toMatchObject({ claimer: "alice", fence });
  });
}

const refusedAs = (code: string) => (error: unknown) => expect(error).toMatchObject({ code });

/** Until when a task is held, by its entries alone. A lease must be over before it is ended or given to another. */
async function leaseOf(gate: Gate, task: string): Promise<string | undefined> {
  let lease: string | undefined;
  for (const { at, type, subject } of await gate.audit.read({ after: 0, limit: 1_000 })) {
    if (subject !== task) continue;
    const granted = toIso(Date.parse(at) + MINUTE);
    if (type === "task.renewed") lease = granted > (lease ?? "") ? granted : lease;
    if (type === "task.expired" || type === "task.claimed") {
      expect(at >= (lease ?? ""), `${type} at ${at} while it is held until ${lease}`).toBe(true);
      lease = type === "task.claimed" ? granted : undefined;
    }
  }
  return lease;
}
