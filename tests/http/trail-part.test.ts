// Parts of the trail over HTTP: since a moment, of one session.

import { expect, test } from "vitest";
import { manualClock } from "../../src/util/clock.ts";
import { openHttp } from "./http-world.ts";

const START = Date.parse("2026-11-15T06:00:00.000Z");

async function world() {
  const clock = manualClock(START);
  const http = await openHttp({ clock });
  const auditor = await http.client("acme", "auditor");
  for (let minute = 0; minute < 10; minute += 1) {
    clock.set(START + minute * 60_000);
    for (const agent of ["one", "two"]) {
      const session = http.gates.acme.sessions.open({ id: `s-${agent}`, agent: `agent:${agent}` });
      await session.call({ callId: `c-${minute}`, tool: "world.look", input: { key: "k" } });
    }
  }
  return { ...http, auditor };
}

test("audit entries since a time: everything from then on and nothing before", async () => {
  const { auditor, store } = await world();
  const trail = await store.tenant("acme").audit.read({ after: 0, limit: 500 });
  for (const moment of [
    START - 1,
    START,
    START + 1,
    START + 240_000,
    START + 240_001,
    START + 3_600_000,
  ]) {
    const since = new Date(moment).toISOString();
    const { items } = await auditor.audit.entries({ since, limit: 500 });
    expect(items.map(({ seq }) => seq)).toEqual(
      trail.filter(({ at }) => at >= since).map(({ seq }) => seq),
    );
  }
  await expect(auditor.audit.entries({ since: "yesterday" })).rejects.toMatchObject({
    code: "invalid_input",
  });
});

test("audit entries of one session: its entries and no others, page by page", async () => {
  const { auditor, store } = await world();
  const trail = await store.tenant("acme").audit.read({ after: 0, limit: 500 });
  const expected = trail.filter(({ session }) => session === "s-one").map(({ seq }) => seq);
  expect(expected.length).toBeGreaterThan(9);
  const found: number[] = [];
  const ask = (cursor: string | undefined) =>
    auditor.audit.entries({
      session: "s-one",
      limit: 3,
      ...(cursor === undefined ? {} : { cursor }),
    });
  for await (const { seq } of auditor.all(ask)) found.push(seq);
  expect(found).toEqual(expected);
  const since = new Date(START + 300_000).toISOString();
  const { items } = await auditor.audit.entries({ session: "s-one", since, limit: 500 });
  expect(items.length).toBeLessThan(expected.length);
  expect(items.every(({ session, at }) => session === "s-one" && at >= since)).toBe(true);
  expect(await auditor.audit.entries({ session: "nobody" })).toEqual({ items: [], next: null });
});

test("audit entries, newest first: the same entries reversed, page by page, also of one session and since a time [W7]", async () => {
  const { auditor, store } = await world();
  const trail = await store.tenant("acme").audit.read({ after: 0, limit: 500 });
  const since = new Date(START + 300_000).toISOString();
  const queries = [
    {},
    { session: "s-one" },
    { since },
    { session: "s-two", since },
    { after: 7 },
    { session: "nobody" },
  ];
  for (const query of queries) {
    for (const limit of [1, 3, 7, 500]) {
      const found: number[] = [];
      const ask = (cursor: string | undefined) =>
        auditor.audit.entries({
          ...query,
          order: "newest",
          limit,
          ...(cursor === undefined ? {} : { cursor }),
        });
      for await (const { seq } of auditor.all(ask)) found.push(seq);
      const wanted = trail
        .filter(({ session }) => query.session === undefined || session === query.session)
        .filter(({ at }) => query.since === undefined || at >= query.since)
        .filter(({ seq }) => seq > (query.after ?? 0))
        .map(({ seq }) => seq)
        .toReversed();
      expect(found, JSON.stringify({ ...query, limit })).toEqual(wanted);
    }
  }
  const first = await auditor.audit.entries({ order: "newest", limit: 1 });
  expect(first.items[0]?.seq).toBe(trail.at(-1)?.seq);
});
