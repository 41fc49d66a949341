// What an approved call costs: transactions and round trips to PostgreSQL, counted at the driver.

import pg from "pg";
import { expect, inject, onTestFinished, test } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import { postgresStore } from "../../src/store/postgres/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { decisionIdOf, PERSON } from "../support/port-world.ts";
import { freshDatabase } from "../support/postgres-database.ts";

/** Three flushes are the least: the question before it is returned, the intent before the act, the outcome before its answer. */
const COMMITS = 3;
/** One for each commit, one for what a proposal reads, one for what a yes reads. */
const TRIPS = 5;
/** The function that writes a group in one statement. */
const isFunction = /^SELECT sallyport\.commit_/;

test("an approved call is three transactions on PostgreSQL, and no more round trips than before", async () => {
  const database = await freshDatabase(inject("pgUrl"));
  const pool = new pg.Pool({
    connectionString: database.url,
    max: 4,
    pipeline: true,
  } as pg.PoolConfig);
  const counts = { commits: 0, trips: 0 };
  pool.on("connect", (client) => {
    const { query } = client;
    let isOpen = false;
    // Queries that are sent in one turn of the event loop share a round trip.
    client.query = ((...given: unknown[]) => {
      const [asked] = given as [{ readonly text?: string } | string];
      const text = typeof asked === "string" ? asked : (asked.text ?? "");
      if (text === "COMMIT" || isFunction.test(text)) counts.commits += 1;
      if (!isOpen && !/notify|LISTEN/i.test(text)) counts.trips += 1;
      isOpen = true;
      const ends = () => {
        isOpen = false;
      };
      queueMicrotask(() => queueMicrotask(ends));
      return Reflect.apply(query, client, given);
    }) as typeof client.query;
  });
  const store = await postgresStore({ pool });
  onTestFinished(async () => {
    await store.close();
    await pool.end();
    await database.drop();
  });
  const effects: number[] = [];
  const pay = defineTool({
    name: "bank.pay",
    description: "Pays.",
    input: { type: "object", properties: { cents: { type: "integer" } } },
    safety: { effect: "external" },
    execute({ input }) {
      effects.push(Number(input["cents"]));
      return "paid";
    },
  });
  const gate = createGate({ store, tools: [pay] });
  const session = gate.sessions.open({ agent: "agent:one" });
  const cycle = async (cents: number) => {
    const call = { callId: `c-${cents}`, tool: "bank.pay", input: { cents } };
    const id = decisionIdOf(await session.call(call));
    const { trips } = counts;
    const { hash } = await gate.interactions.get(id);
    // What the person reads is not part of the call.
    counts.trips = trips;
    const { outcome } = await gate.interactions.approve(id, { hash, by: PERSON });
    expect(outcome).toBe("executed");
  };
  await cycle(0);
  const calls = 10;
  counts.commits = 0;
  counts.trips = 0;
  for (let cents = 1; cents <= calls; cents += 1) await cycle(cents);
  expect(effects).toHaveLength(calls + 1);
  console.log(
    `per approved call: ${counts.commits / calls} commits, ${counts.trips / calls} trips`,
  );
  expect(counts.commits / calls).toBe(COMMITS);
  expect(counts.trips / calls).toBeLessThanOrEqual(TRIPS);
});
