import { describe, expect, test } from "vitest";
import { manualTimers } from "../../tests/support/manual-timers.ts";
import { DECISIONS } from "../model/decision.ts";
import { isSallyportError } from "../model/errors.ts";
import { OPERATIONS } from "../model/operation.ts";
import { SWITCHES } from "../model/switch.ts";
import { manualClock } from "../util/clock.ts";
import type { Change, Step } from "./engine.ts";
import { GroupCommit, type GroupCommitOptions, takeGroup, type Waiting } from "./group-commit.ts";

/** A change that touches these records. */
function touching(...ids: readonly string[]): Change {
  const steps = ids.map((id) => ({ op: "insert", table: DECISIONS, id, row: {} }) as const);
  return { steps, events: [] };
}

/** A change of about so many bytes, half of them in its record and half in its event. */
function sized(id: string, bytes: number): Change {
  const row = { raw: new Uint8Array(bytes / 2) };
  const data = { deep: [{ text: "x".repeat(bytes / 2) }] };
  return {
    steps: [{ op: "insert", table: DECISIONS, id, row }],
    events: [{ type: "t", subject: id, session: "", actor: "a", data }],
  };
}

function nameOf(step: Step): string {
  return step.op === "take" ? "take" : step.id;
}

/** A group commit whose writes are kept back until the test lets them go. */
function held(over: Partial<GroupCommitOptions> = {}) {
  const timers = manualTimers(manualClock(0));
  const written: string[][] = [];
  let release = Promise.withResolvers<void>();
  const commit = new GroupCommit({
    timers,
    async write(members) {
      written.push(members.map(({ change }) => change.steps.map(nameOf).join("+")));
      await release.promise;
      for (const [seq, one] of members.entries())
        one.resolve({ committed: true, at: 0, rows: [], seq });
    },
    ...over,
  });
  return {
    commit,
    written,
    /** Lets everything that can happen, happen. */
    turn: () => timers.advance(0),
    async finish() {
      release.resolve();
      release = Promise.withResolvers<void>();
      await timers.advance(0);
    },
  };
}

/** The same with writes that finish immediately. */
function prompt() {
  const written: string[][] = [];
  const { commit, turn } = held({
    async write(members) {
      written.push(members.map(({ change }) => change.steps.map(nameOf).join("+")));
      for (const [seq, one] of members.entries())
        one.resolve({ committed: true, at: 0, rows: [], seq });
    },
  });
  return { commit, turn, written };
}

describe("a group commit", () => {
  test("writes what is asked for in one turn together, in order, and answers each", async () => {
    const { commit, written, turn, finish } = held();
    const answers = Promise.all(["a", "b", "c"].map((id) => commit.submit("acme", touching(id))));
    expect(written, "it waits for those who come along").toEqual([]);
    await turn();
    expect(written).toEqual([["a", "b", "c"]]);
    await finish();
    expect((await answers).map((answer) => answer.committed && answer.seq)).toEqual([0, 1, 2]);
  });

  test("collects the next group while one is written, and writes one group at a time", async () => {
    const { commit, written, turn, finish } = held();
    const first = commit.submit("acme", touching("a"));
    await turn();
    const rest = ["b", "c"].map((id) => commit.submit("acme", touching(id)));
    await turn();
    expect(written).toEqual([["a"]]);
    await finish();
    await first;
    expect(written).toEqual([["a"], ["b", "c"]]);
    await finish();
    await Promise.all(rest);
  });

  test("starts again after it was idle", async () => {
    const { commit, written, turn, finish } = held();
    for (const id of ["a", "b"]) {
      const answer = commit.submit("acme", touching(id));
      await turn();
      await finish();
      await answer;
    }
    expect(written).toEqual([["a"], ["b"]]);
  });

  test("keeps groups to their largest size", async () => {
    const { commit, written, turn, finish } = held({ maxGroup: 2 });
    const all = ["a", "b", "c", "d", "e"].map((id) => commit.submit("acme", touching(id)));
    await turn();
    for (let group = 0; group < 3; group += 1) await finish();
    await Promise.all(all);
    expect(written).toEqual([["a", "b"], ["c", "d"], ["e"]]);
  });

  test("refuses with store_busy when too many wait, and takes more when there is room again", async () => {
    const { commit, turn, finish } = held({ maxWaiting: 2 });
    const waiting = ["a", "b"].map((id) => commit.submit("acme", touching(id)));
    const refused = await commit.submit("acme", touching("c")).catch((error: unknown) => error);
    expect(isSallyportError(refused, "store_busy")).toBe(true);
    await turn();
    const later = commit.submit("acme", touching("d"));
    await finish();
    await finish();
    expect((await Promise.all([...waiting, later])).every(({ committed }) => committed)).toBe(true);
  });

  test("the kill switch and outcomes are in the next group, past those that wait and past every limit [SH7]", async () => {
    const { commit, written, turn, finish } = held({ maxGroup: 2, maxWaiting: 4 });
    const all = ["a", "b", "c", "d"].map((id) => commit.submit("acme", touching(id)));
    await turn();
    const waiting = ["e", "f"].map((id) => commit.submit("acme", touching(id)));
    const full = await commit.submit("globex", touching("g")).catch((error: unknown) => error);
    expect(isSallyportError(full, "store_busy")).toBe(true);
    const set = { state: "stopped" };
    const stop = { op: "update", table: SWITCHES, id: "kill", where: {}, set } as const;
    const settle = { ...stop, table: OPERATIONS, id: "op", set: { status: "success" } } as const;
    const start = { ...settle, id: "again", set: { status: "started" } } as const;
    const asked = [stop, settle].map((step) =>
      commit.submit("globex", { steps: [step], events: [] }),
    );
    const begun = commit.submit("globex", { steps: [start], events: [] }).catch(() => "refused");
    expect(await begun, "another attempt at an effect waits like everything else").toBe("refused");
    for (let group = 0; group < 4; group += 1) await finish();
    await Promise.all([...all, ...waiting, ...asked]);
    expect(written).toEqual([
      ["a", "b"],
      ["kill", "op"],
      ["c", "d"],
      ["e", "f"],
    ]);
  });

  test("one tenant can fill its own share of the queue and no more, in number and in bytes [SH7] [SM4]", async () => {
    const most = { maxWaitingOfTenant: 2, maxWaitingBytesOfTenant: 10_000 };
    const { commit, turn, finish } = held({ maxGroup: 1, ...most });
    const code = (tenant: string, change: Change) =>
      commit.submit(tenant, change).then(
        () => "written",
        (error: unknown) => (isSallyportError(error, "store_busy") ? "store_busy" : "other"),
      );
    const answers = [
      code("acme", touching("a")),
      code("acme", touching("b")),
      code("acme", touching("c")),
      code("globex", sized("d", 9_000)),
      code("globex", sized("e", 9_000)),
      code("initech", sized("f", 90_000)),
    ];
    await turn();
    for (let group = 0; group < 4; group += 1) await finish();
    expect(await Promise.all(answers)).toEqual([
      ...["written", "written", "store_busy"],
      ...["written", "store_busy"],
      // Larger than the limit, and nothing else of its tenant waits.
      "written",
    ]);
  });

  test("closes a group at its largest number of bytes, and writes what is larger alone [SM4]", async () => {
    const { commit, written, turn, finish } = held({ maxGroupBytes: 10_000 });
    const all = [
      commit.submit("acme", sized("a", 6_000)),
      commit.submit("acme", sized("b", 6_000)),
      commit.submit("acme", sized("c", 1)),
      commit.submit("acme", sized("d", 60_000)),
    ];
    await turn();
    for (let group = 0; group < 3; group += 1) await finish();
    await Promise.all(all);
    expect(written).toEqual([["a", "c"], ["b"], ["d"]]);
  });

  test("a write that throws is told to its members, and the next group is written", async () => {
    let isBroken = true;
    const { commit: failing, turn: next } = held({
      write(members) {
        if (isBroken) throw new Error("no thread");
        for (const one of members) one.resolve({ committed: true, at: 0, rows: [], seq: 1 });
        return Promise.resolve();
      },
    });
    const first = failing.submit("acme", touching("a")).catch(({ message }) => message);
    await next();
    expect(await first).toBe("no thread");
    isBroken = false;
    const second = failing.submit("acme", touching("b"));
    await next();
    expect((await second).committed).toBe(true);
  });

  test("with two lanes writes two groups at once, and no third", async () => {
    const { commit, written, turn, finish } = held({ lanes: () => 2, maxGroup: 1 });
    const all = ["a", "b", "c"].map((id) => commit.submit("acme", touching(id)));
    await turn();
    await turn();
    expect(written).toEqual([["a"], ["b"]]);
    let closed = false;
    const closing = commit.close().then(() => {
      closed = true;
    });
    await finish();
    await turn();
    expect(written).toEqual([["a"], ["b"], ["c"]]);
    expect(closed, "closing waits for the last lane too").toBe(false);
    await finish();
    await Promise.all([...all, closing]);
  });

  test("splits what waits in two when that is said to be better and nothing is under way", async () => {
    const asked: number[] = [];
    const split = (waiting: number) => asked.push(waiting) > 0;
    const { commit, written, turn, finish } = held({ lanes: () => 2, split });
    const all = ["a", "b", "c"].map((id) => commit.submit("acme", touching(id)));
    await turn();
    await turn();
    expect(written).toEqual([["a", "b"], ["c"]]);
    expect(asked, "the second half is not split again").toEqual([3]);
    await finish();
    await Promise.all(all);
  });

  test("gives others one turn of the event loop to join, also after a caller was alone for long", async () => {
    const { commit, written, turn } = prompt();
    for (let n = 0; n < 20; n += 1) {
      const answer = commit.submit("acme", touching(`alone-${n}`));
      expect(written).toHaveLength(n);
      await turn();
      await answer;
    }
    const all = ["a", "b", "c"].map((id) => commit.submit("acme", touching(id)));
    await turn();
    await Promise.all(all);
    expect(written.at(-1)).toEqual(["a", "b", "c"]);
  });

  test("closing waits for what was asked for and refuses what comes later", async () => {
    const { commit, written, turn, finish } = held({ maxGroup: 1 });
    const asked = ["a", "b"].map((id) => commit.submit("acme", touching(id)));
    let closed = false;
    const closing = commit.close().then(() => {
      closed = true;
    });
    const late = await commit.submit("acme", touching("c")).catch((error: unknown) => error);
    expect(isSallyportError(late, "store_closed")).toBe(true);
    await turn();
    await finish();
    expect(closed).toBe(false);
    await finish();
    await Promise.all([...asked, closing]);
    expect(written).toEqual([["a"], ["b"]]);
    await commit.close();
  });
});

describe("a group", () => {
  const waiting = (tenant: string, ...ids: readonly string[]): Waiting => ({
    tenant,
    change: touching(...ids),
    since: 0,
    size: 1,
    resolve: () => {},
    reject: () => {},
  });
  const names = (members: readonly Waiting[]) =>
    members.map(({ tenant, change }) => [tenant, ...change.steps.map(nameOf)].join(" "));
  const taken = (all: readonly Waiting[], maxGroup = 256) => {
    const { group, rest } = takeGroup(all, maxGroup, 1_000);
    return [names(group), names(rest)];
  };

  test("touches every record once: the second change of a record waits", () => {
    const all = [waiting("acme", "a"), waiting("acme", "a"), waiting("acme", "b")];
    expect(taken(all)).toEqual([["acme a", "acme b"], ["acme a"]]);
  });

  test("lets nobody overtake a change that waits, not even over another record of it", () => {
    const all = [waiting("t", "a"), waiting("t", "a", "b"), waiting("t", "b"), waiting("t", "c")];
    expect(taken(all)).toEqual([
      ["t a", "t c"],
      ["t a b", "t b"],
    ]);
  });

  test("takes equal ids of different tenants for different records", () => {
    expect(taken([waiting("acme", "a"), waiting("globex", "a")])).toEqual([
      ["acme a", "globex a"],
      [],
    ]);
  });

  test("leaves those beyond its size for later, with their records", () => {
    const all = [waiting("t", "a"), waiting("t", "b"), waiting("t", "c")];
    expect(taken(all, 1)).toEqual([["t a"], ["t b", "t c"]]);
  });

  test("takes may stand beside each other and beside anything else", () => {
    const take = { op: "take", table: DECISIONS, where: {}, order: [], limit: 1, set: {} } as const;
    const taking = { ...waiting("t"), change: { steps: [take], events: [] } };
    expect(taken([taking, waiting("t", "a"), taking, waiting("t", "a")])).toEqual([
      ["t take", "t a", "t take"],
      ["t a"],
    ]);
  });

  test("of none is empty", () => {
    expect(taken([])).toEqual([[], []]);
  });
});
