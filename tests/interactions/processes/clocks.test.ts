import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { CrashPoint } from "../../../src/gate/options.ts";
import { record } from "../../support/record.ts";
import { BRIEF_MS, ledgerOf } from "./ledger-tools.ts";
import type { WrongClock } from "./person-child.ts";
import {
  ENGINES,
  newPlace,
  type PersonProcess,
  type SharedPlace,
  startPerson,
} from "./person-process.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const WRONG: readonly (readonly [name: string, clock: WrongClock])[] = [
  ["an hour behind", { shiftMs: -HOUR }],
  ["a day behind", { shiftMs: -DAY }],
  ["an hour ahead", { shiftMs: HOUR }],
  ["a day ahead", { shiftMs: DAY }],
  ["standing still", "frozen"],
];
const TYPES = ["ask_user", "confirm"] as const;
/** On each engine; two engines make more than the fifty that are asked for. */
const JUMPS = 40;
const by = "person:ada";

let numbers = 0;
const newNumber = () => {
  numbers += 1;
  return numbers;
};

describe.each(ENGINES)("%s: the database's clock decides [G12 T34]", (engine) => {
  let place: SharedPlace;
  let right: PersonProcess;
  /** The one whose clock is wrong, or who is stopped. */
  let odd: PersonProcess;

  beforeAll(async () => {
    place = await newPlace(engine);
    [right, odd] = [startPerson(place), startPerson(place)];
    await Promise.all([right.ready, odd.ready]);
  });

  afterAll(async () => {
    record({ goal: "G12", what: `clocks that jump, ${engine}`, figures });
    expect(figures.jumps, "void: too few jumps").toBeGreaterThanOrEqual(JUMPS);
    await Promise.all([right.end(), odd.end()]);
    await place.remove();
  });

  afterEach(async ({ task }) => {
    if (task.result?.state === "fail") figures.violations += 1;
    await odd.ask("clock", "right");
  });

  const figures = { jumps: 0, stops: 0, violations: 0 };
  async function jump(clock: WrongClock): Promise<void> {
    figures.jumps += 1;
    await odd.ask("clock", clock);
  }

  test("an answer by a process with a wrong clock revives nothing that is over [T34]", async () => {
    const over = await openFor(right, { brief: true });
    await setTimeout(BRIEF_MS + 100);
    for (const { name, clock, seen } of over) {
      await jump(clock);
      const late = await odd.ask("answer", { items: [seen], by });
      expect([name, late[0]?.code]).toEqual([name, "approval_void"]);
    }
    // Closed as unanswered by the next process that looks, and it stays closed.
    const ids = over.map(({ seen }) => seen.id).toSorted();
    expect((await right.ask("sweep")).toSorted()).toEqual(ids);
    for (const { name, clock, seen } of over) {
      await jump(clock);
      const later = await odd.ask("answer", { items: [seen], by });
      const { code, outcome } = later[0] ?? {};
      expect([name, code, outcome]).toEqual([name, "already_answered", "expired"]);
    }
    expect(ledgerOf(place.ledger)).toEqual([]);
  });

  test("a process with a wrong clock lets nothing expire early [T34]", async () => {
    const open = await openFor(right, { brief: false });
    for (const { clock } of open) {
      await jump(clock);
      expect(await odd.ask("sweep")).toEqual([]);
    }
    for (const { name, clock, seen } of open) {
      await jump(clock);
      const said = await odd.ask("answer", { items: [seen], by });
      expect([name, said[0]?.isFirst]).toEqual([name, true]);
    }
    const confirmed = open.filter(({ seen }) => seen.type === "confirm").map(({ seen }) => seen.n);
    expect(ledgerOf(place.ledger).map(({ n }) => n)).toEqual(confirmed);
  });

  test("the deadline of a question asked by a process with a wrong clock is right [T34]", async () => {
    for (const [name, clock] of WRONG) {
      await jump(clock);
      for (const type of TYPES) {
        const before = Date.now();
        const [seen] = await odd.ask("open", { type, numbers: [newNumber()], brief: true });
        const after = Date.now();
        const { deadline } = await right.ask("get", seen?.id ?? "");
        const asked = Date.parse(deadline) - BRIEF_MS;
        // The server and we are on one machine; rounding may take a millisecond.
        expect([name, asked >= before - 1 && asked <= after + 1]).toEqual([name, true]);
      }
    }
  });

  test("an answer that was stopped (SIGSTOP) until the deadline was over is refused [T34]", async () => {
    const [said, before] = await answerStoppedAt("S4.before");
    expect(said).toMatchObject({ isFirst: false, code: "approval_void" });
    expect(ledgerOf(place.ledger)).toEqual(before);
    expect(await right.ask("sweep")).toContain(said?.id);
  });

  test("an approval in time by a process that is stopped beyond its expiry before it is written runs nothing [T34]", async () => {
    const [said, before] = await answerStoppedAt("S5.before");
    expect(said).toMatchObject({ isFirst: false, code: "approval_void" });
    // No later process executes it either.
    await setTimeout(600);
    await right.ask("recover");
    await odd.ask("recover");
    expect(ledgerOf(place.ledger)).toEqual(before);
  });

  async function answerStoppedAt(point: CrashPoint) {
    const before = ledgerOf(place.ledger);
    await odd.ask("stopAt", point);
    const what = { type: "confirm", numbers: [newNumber()], brief: true } as const;
    const answer = odd.ask("answer", { items: await right.ask("open", what), by });
    await untilStopped(odd);
    figures.stops += 1;
    await setTimeout(BRIEF_MS + 100);
    odd.signal("SIGCONT");
    return [(await answer)[0], before] as const;
  }
});

/** For each wrong clock one question of each kind, asked by a process whose clock is right. */
async function openFor(person: PersonProcess, { brief }: { brief: boolean }) {
  const opened = WRONG.flatMap(([name, clock]) =>
    TYPES.map(async (type) => {
      const [seen] = await person.ask("open", { type, numbers: [newNumber()], brief });
      if (seen === undefined) throw new Error("nothing was opened");
      return { name, clock, seen };
    }),
  );
  return Promise.all(opened);
}

/** Stopped processes are in state T; anything else would test nothing. */
async function untilStopped({ pid }: PersonProcess): Promise<void> {
  for (let tries = 0; tries < 500; tries += 1) {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    if (stat.slice(stat.lastIndexOf(")") + 2).startsWith("T")) return;
    await setTimeout(10);
  }
  throw new Error("the process did not stop itself");
}
