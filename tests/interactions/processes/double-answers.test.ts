import { expect, test } from "vitest";
import { verifyStore } from "../../../src/audit/verify.ts";
import type { InteractionType } from "../../../src/model/interaction.ts";
import { timesOf } from "./ledger-tools.ts";
import { openStore, type Said, type Seen, TENANT } from "./person-child.ts";
import { ENGINES, type PersonProcess, startPerson, withPlace } from "./person-process.ts";

const FULL = process.env["SCALE"] === "full";
const COUNT = FULL ? 10_000 : 300;
/** Both start a batch at one and the same moment. */
const BATCH = 50;
/** All of it at once, where whole groups of answers meet, or a few at a time, where they meet one by one. */
const LANES = [BATCH, 4] as const;
const TIMEOUT = FULL ? 900_000 : 120_000;

/** Number, then what the two said about it. */
type Duel = readonly [seen: Seen, first: Said, second: Said];

for (const engine of ENGINES) {
  test(
    `${engine}: each confirmation answered by two processes at the same moment is executed once, the second is told who was first [P1]`,
    () =>
      withPlace(engine, async (place) => {
        const [ada, bob] = [startPerson(place), startPerson(place)];
        const opened = await openAll("confirm", COUNT, [ada, bob]);
        // Of every four, one where the two disagree: the no must not lose against a later yes, nor the other way round.
        const veto = opened.map(({ n }) => n).filter((n) => n % 4 === 3);
        const duels = await duelAll(opened, ada, bob, veto);
        await Promise.all([ada.end(), bob.end()]);

        tellWho(engine, "confirmations", duels);
        const times = timesOf(place.ledger);
        const { store, close } = await openStore(place);
        const { interactions, decisions, operations } = store.tenant(TENANT);
        for (const [{ n, id }, first, second] of duels) {
          expectFirstTold(first, second);
          const isYes = first.outcome === "approved";
          expect(isYes || veto.includes(n)).toBe(true);
          expect(times.get(n) ?? 0).toBe(isYes ? 1 : 0);
          const asked = await interactions.get(id);
          expect([asked.outcome, asked.answeredBy]).toEqual([first.outcome, first.by]);
          const { state, sessionId } = await decisions.get(id);
          expect(state).toBe(isYes ? "executed" : "rejected_ml");
          const done = await operations.listBySession(sessionId, { decisionId: id });
          expect(done.map(({ status, attempt }) => [status, attempt])).toEqual(
            isYes ? [["success", 1]] : [],
          );
        }
        expect([...times.values()].reduce((sum, one) => sum + one, 0)).toBe(
          duels.filter(([, { outcome }]) => outcome === "approved").length,
        );
        expect((await verifyStore(store, {})).problems).toEqual([]);
        await close();
      }),
    TIMEOUT,
  );

  test(
    `${engine}: each question answered by two processes at the same moment has one answer, the second is told whose [P1]`,
    () =>
      withPlace(engine, async (place) => {
        const [ada, bob] = [startPerson(place), startPerson(place)];
        const opened = await openAll("ask_user", COUNT, [ada, bob]);
        const duels = await duelAll(opened, ada, bob, []);
        await Promise.all([ada.end(), bob.end()]);

        tellWho(engine, "questions", duels);
        const { store, close } = await openStore(place);
        const { interactions, audit } = store.tenant(TENANT);
        for (const [{ id }, first, second] of duels) {
          expectFirstTold(first, second);
          const asked = await interactions.get(id);
          expect([asked.answer, asked.version]).toEqual([`from ${first.by}`, 2]);
        }
        // Two entries for each: asked, answered.
        expect((await audit.head()).seq).toBe(2 * COUNT);
        expect((await verifyStore(store, {})).problems).toEqual([]);
        await close();
      }),
    TIMEOUT,
  );
}

/** Half by one process, half by the other. */
async function openAll(
  type: InteractionType,
  count: number,
  people: readonly PersonProcess[],
): Promise<readonly Seen[]> {
  const all = Array.from({ length: count }, (_, n) => n);
  const opened = await Promise.all(
    people.map((person, who) => {
      const numbers = all.filter((n) => n % people.length === who);
      return person.ask("open", { type, numbers });
    }),
  );
  const seen = opened.flat();
  expect(new Set(seen.map(({ id }) => id)).size).toBe(count);
  return seen;
}

async function duelAll(
  opened: readonly Seen[],
  ada: PersonProcess,
  bob: PersonProcess,
  veto: readonly number[],
): Promise<readonly Duel[]> {
  const duels: Duel[] = [];
  for (let from = 0; from < opened.length; from += BATCH) {
    const items = opened.slice(from, from + BATCH);
    const at = performance.timeOrigin + performance.now() + 10;
    const how = { items, at, lanes: LANES[(from / BATCH) % 2] ?? BATCH };
    const [one, other] = await Promise.all([
      ada.ask("answer", { ...how, by: "person:ada" }),
      bob.ask("answer", { ...how, by: "person:bob", veto }),
    ]);
    for (const seen of items) {
      const both = [...one, ...other].filter(({ id }) => id === seen.id);
      const [first] = both.filter(({ isFirst }) => isFirst);
      const [second] = both.filter(({ isFirst }) => !isFirst);
      // Two first ones, or none, are what this is about.
      if (both.length !== 2 || first === undefined || second === undefined) {
        throw new Error(`${seen.n} was answered wrongly: ${JSON.stringify(both)}`);
      }
      duels.push([seen, first, second]);
    }
  }
  return duels;
}

function expectFirstTold(first: Said, second: Said): void {
  expect(second).toMatchObject({
    code: "already_answered",
    by: first.by,
    outcome: first.outcome,
    at: first.at,
  });
  expect(second.hint).toContain(`${first.by} was first`);
}

/** A run without a single race proves nothing. */
function tellWho(engine: string, what: string, duels: readonly Duel[]): void {
  const byAda = duels.filter(([, first]) => first.by === "person:ada").length;
  const met = duels.filter(([, a, b]) => a.from <= b.to && b.from <= a.to).length;
  console.log(
    `${engine}: ${duels.length} ${what}, ${met} under way in both at once, ${byAda} first by ada`,
  );
  expect(met).toBeGreaterThan(duels.length / 4);
}
