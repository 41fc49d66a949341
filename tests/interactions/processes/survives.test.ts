import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { expect, test } from "vitest";
import type { InteractionType } from "../../../src/model/interaction.ts";
import { timesOf } from "./ledger-tools.ts";
import type { Seen } from "./person-child.ts";
import { ENGINES, type PersonProcess, startPerson, withPlace } from "./person-process.ts";

const TYPES = ["ask_user", "confirm", "connection_lost"] as const;
const by = "person:ada";

for (const engine of ENGINES) {
  test(`${engine}: kill -9, a new process, the same inbox, answered from there [R9 P11]`, () =>
    withPlace(engine, async (place) => {
      const first = startPerson(place);
      const opened = await openThree(first, 0);
      await first.kill();
      const second = startPerson(place);
      expect(byId((await second.ready).seen)).toEqual(byId(opened));
      const said = await second.ask("answer", { items: opened, by });
      expect(said.map(({ isFirst }) => isFirst)).toEqual([true, true, true]);
      await second.kill();
      // Nothing comes back with the next start, and no answer counts twice.
      const third = startPerson(place);
      expect((await third.ready).seen).toEqual([]);
      const again = await third.ask("answer", { items: opened, by: "person:bob" });
      for (const one of again) expect(one).toMatchObject({ code: "already_answered", by });
      expect([...timesOf(place.ledger).values()]).toEqual([1, 1]);
      await third.end();
    }));

  test(`${engine}: an unknown id is told so, finally and at once, also after a restart [R10]`, () =>
    withPlace(engine, async (place) => {
      const first = startPerson(place);
      await openThree(first, 0);
      await first.kill();
      const second = startPerson(place);
      const before = (await second.ready).seen;
      // An id of another store, or of one that was lost: replayed again and again, in every way there is.
      const unknown = TYPES.map((type) => ({ type, n: 99, id: `gone-${type}`, hash: "h" }));
      for (let times = 0; times < 3; times += 1) {
        const said = await second.ask("answer", { items: unknown, by });
        expect(said.map(({ code }) => code)).toEqual(["not_found", "not_found", "not_found"]);
        for (const { hint, from, to } of said) {
          expect(hint).toContain("cannot be answered");
          expect(to - from).toBeLessThan(2_000);
        }
      }
      await expect(second.ask("get", "gone")).rejects.toThrow("not_found");
      expect(await second.ask("inbox")).toEqual(before);
      await second.end();
    }));
}

test("postgres: all connections cut: what is pending stays pending, and whoever waits goes on waiting [R11]", () =>
  withPlace("postgres", async (place) => {
    const agent = startPerson(place);
    const opened = await openThree(agent, 0);
    const [question] = opened.filter(({ type }) => type === "ask_user");
    const waited = agent.ask("wait", { n: question?.n ?? 0, timeoutMs: 20_000 });
    const reviewer = startPerson(place);
    await reviewer.ready;
    for (let times = 0; times < 3; times += 1) {
      expect(await cutAll(place.place)).toBeGreaterThan(0);
      await setTimeout(50);
      expect(byId(await reviewer.ask("inbox"))).toEqual(byId(opened));
      expect(byId(await agent.ask("inbox"))).toEqual(byId(opened));
    }
    expect(timesOf(place.ledger).size).toBe(1);
    await cutAll(place.place);
    const said = await reviewer.ask("answer", { items: opened, by });
    expect(said.map(({ isFirst }) => isFirst)).toEqual([true, true, true]);
    expect(await waited).toBe(`done: from ${by}`);
    await Promise.all([agent.end(), reviewer.end()]);
  }));

test.each(ENGINES)(
  "%s: the process that waits is gone: what it waited for is neither denied nor lost [R11]",
  (engine) =>
    withPlace(engine, async (place) => {
      const agent = startPerson(place);
      const opened = await openThree(agent, 0);
      for (const { n } of opened) {
        // Not waiting any longer is no answer.
        expect(await agent.ask("wait", { n, timeoutMs: 50 })).toMatch(/^(pending|unknown): /);
        void agent.ask("wait", { n, timeoutMs: 60_000 });
      }
      await setTimeout(50);
      await agent.kill();
      const other = startPerson(place);
      expect(byId((await other.ready).seen)).toEqual(byId(opened));
      await other.end();
    }),
);

test("postgres: four replicas show one inbox, whichever of them is killed [P11]", () =>
  withPlace("postgres", async (place) => {
    const replicas = Array.from({ length: 4 }, () => startPerson(place));
    const asked = await Promise.all(replicas.map((replica, nr) => openThree(replica, 10 * nr)));
    const opened = asked.flat();
    const [first, ...others] = replicas;
    await first?.kill();
    const all = [...others, startPerson(place)];
    await Promise.all(all.map(({ ready }) => ready));
    for (const replica of all) expect(byId(await replica.ask("inbox"))).toEqual(byId(opened));
    // Each answers what another one was asked, all at the same time.
    await Promise.all(
      all.map(async (replica, nr) => {
        const items = asked[(nr + 1) % 4] ?? [];
        const said = await replica.ask("answer", { items, by: `person:${nr}` });
        expect(said.map(({ isFirst }) => isFirst)).toEqual([true, true, true]);
      }),
    );
    for (const replica of all) expect(await replica.ask("inbox")).toEqual([]);
    expect([...timesOf(place.ledger).values()]).toEqual(Array(8).fill(1));
    await Promise.all(all.map((replica) => replica.end()));
  }));

/** One question of each kind. */
async function openThree(person: PersonProcess, from: number): Promise<readonly Seen[]> {
  const opened = await Promise.all(
    TYPES.map((type: InteractionType, index) =>
      person.ask("open", { type, numbers: [from + index] }),
    ),
  );
  return opened.flat();
}

function byId(seen: readonly Seen[]): readonly Seen[] {
  return seen.toSorted((a, b) => a.id.localeCompare(b.id));
}

/** Everybody but ourselves; answers how many there were. */
async function cutAll(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rowCount } = await client.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
  );
  await client.end();
  return rowCount ?? 0;
}
