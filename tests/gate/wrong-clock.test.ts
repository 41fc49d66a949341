// One wrong reading of the store's clock neither stops nor prolongs anything.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { collectEvidence } from "../../src/crashkit/evidence.ts";
import { checkInvariants, OF_THE_STORE } from "../../src/crashkit/invariants/table.ts";
import { createGate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { SallyportError } from "../../src/model/errors.ts";
import { NO_RULES } from "../../src/policy/policy.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { createStore } from "../../src/store/store.ts";
import { ClockWatch } from "../../src/store/turn.ts";
import { manualClock } from "../../src/util/clock.ts";
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

test("a reading that cannot be right is refused while it lasts: nothing is written by it but the kill switch, and nothing is left of it [SH9]", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-clock-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const clock = manualClock(Date.parse("2026-11-15T06:00:00.000Z"));
  const steady = { ms: 0 };
  const time = { elapsedMs: () => steady.ms, uptimeMs: () => steady.ms };
  await using store = sqliteStore({
    file: path.join(folder, "store.db"),
    clock,
    clockWatch: new ClockWatch(time),
    thread: "never",
  });
  const gate = createGate({
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
