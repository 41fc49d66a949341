// How soon a process with the tool executes what a person approved in a process without it.

import { describe, expect, onTestFinished, test } from "vitest";
import { yes } from "../interactions/inbox-world.ts";
import { openStore } from "../interactions/processes/person-child.ts";
import { ENGINES, newPlace } from "../interactions/processes/person-process.ts";
import { AGENT, decisionIdOf } from "../support/port-world.ts";
import { isWanted } from "../support/stores.ts";
import { gateOver, noteTool } from "./elsewhere-child.ts";
import { noted, startWorker } from "./elsewhere-worker.ts";

const MOST_MS = 100;
const ROUNDS = 11;
/** Other work on the machine delays a series, so up to this many count, and the best one is judged. */
const TRIES = 5;

// skip: STORES names the stores to test, and these are not among them
describe.skipIf(!isWanted("sqlite") || !isWanted("postgres"))("in another process", () => {
  test.each(ENGINES)(
    "%s: it is woken and executes what was approved here within a tenth of a second",
    async (engine) => {
      const place = await newPlace(engine);
      onTestFinished(() => place.remove());
      const { store: kind, place: where, ledger } = place;
      const { store, close } = await openStore({ store: kind, place: where });
      onTestFinished(() => close());
      await startWorker({ store: kind, place: where, ledger });
      const proposing = gateOver(store, [noteTool(`${ledger}.wrong`)]);
      const approving = gateOver(store, []);
      const session = proposing.sessions.open({ id: "s-1", agent: AGENT });
      let n = 0;
      const wait = async () => {
        n += 1;
        const call = { callId: `c-${n}`, tool: "ops.note", input: { n } };
        const id = decisionIdOf(await session.call(call));
        await yes(approving, id);
        const state = async () => (await store.tenant("acme").decisions.get(id)).state;
        await expect.poll(state, { interval: 5, timeout: 5_000 }).toBe("executed");
        const [at = Number.NaN] = (await noted(ledger)).get(n) ?? [];
        return at - (await approvalOf(approving, id));
      };
      let best = Number.POSITIVE_INFINITY;
      for (let tries = 0; tries < TRIES && best >= MOST_MS; tries += 1) {
        const waits: number[] = [];
        for (let round = 0; round < ROUNDS; round += 1) waits.push(await wait());
        best = Math.min(best, waits.toSorted((a, b) => a - b)[ROUNDS >> 1] ?? Number.NaN);
      }
      const times = await noted(ledger);
      expect([...times.values()].every((list) => list.length === 1)).toBe(true);
      expect(times.size).toBe(n);
      expect((await noted(`${ledger}.wrong`)).size, "nothing ran here").toBe(0);
      console.log(`${engine}: executed ${best} ms after the approval (median of ${ROUNDS})`);
      expect(best).toBeLessThan(MOST_MS);
    },
    120_000,
  );
});

/** When the yes was committed, by the log. */
async function approvalOf(gate: ReturnType<typeof gateOver>, id: string): Promise<number> {
  const entries = await gate.audit.read({ after: 0, limit: 1_000 });
  const entry = entries.find(
    ({ type, subject }) => type === "decision.awaits_tool" && subject === id,
  );
  return Date.parse(entry?.at ?? "");
}
