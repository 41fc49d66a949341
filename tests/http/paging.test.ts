// Every list comes whole, page by page, each record once, also while others write.

import { expect, test } from "vitest";
import { credentials, openHttp, raw } from "./http-world.ts";
import { makeRecords } from "./matrix-samples.ts";

test("decisions, sessions, operations, tasks, entries and tokens: all pages together are the whole list", async () => {
  const world = await openHttp();
  const admin = await world.client("acme", "admin");
  const count = 12;
  let last = "";
  for (let i = 0; i < count; i += 1)
    last = (await makeRecords(world, "acme", "agent:one")).sessionId;
  const more = { limit: 5 };
  const at = (cursor: string | undefined) => (cursor === undefined ? more : { ...more, cursor });
  const whole = async <Item>(items: AsyncGenerator<Item>) => {
    const all: Item[] = [];
    for await (const item of items) all.push(item);
    return all;
  };
  const decisions = await whole(admin.all((c) => admin.decisions.list(at(c))));
  const stored = await world.store.tenant("acme").decisions.list();
  expect(decisions.map(({ id }) => id)).toEqual(stored.map(({ id }) => id));
  expect(decisions).toHaveLength(count);
  const waiting = await whole(
    admin.all((c) => admin.decisions.list({ ...at(c), state: ["pending_ml"] })),
  );
  expect(waiting).toHaveLength(count);
  expect(
    await whole(
      admin.all((c) => admin.decisions.list({ ...at(c), state: ["failed", "executed"] })),
    ),
  ).toEqual([]);
  // Each set of records has the session of its agent and the session of its run.
  expect(await whole(admin.all((c) => admin.sessions.list(at(c))))).toHaveLength(2 * count);
  expect(await whole(admin.all((c) => admin.tasks.list(at(c))))).toHaveLength(count);
  expect(
    await whole(admin.all((c) => admin.operations.list({ ...at(c), sessionId: last }))),
  ).toHaveLength(1);
  const entries = await whole(admin.all((c) => admin.audit.entries(at(c))));
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index + 1));
  expect(
    (await whole(admin.all((c) => admin.tokens.list({ ...at(c), kind: "session" })))).map(
      ({ subject }) => subject,
    ),
  ).toEqual(["person:admin"]);
});

test("a cursor that no page returned is refused", async () => {
  const { server, pass } = await openHttp();
  const headers = credentials(await pass("acme", "admin"));
  const cursors = [
    "x",
    "MTox",
    "MTotMQ",
    "MjpubyBzdWNo",
    "MTo5OTk5OTk5OTk5OTk5OTk5OTk5",
    "%00",
    "..",
    "2:x",
  ];
  for (const list of ["decisions", "sessions", "tasks", "tokens", "interactions"]) {
    for (const cursor of cursors) {
      const { status, text } = await raw(`${server.url}/v1/${list}?cursor=${cursor}`, { headers });
      const isEnd = status === 200 && text === '{"items":[],"next":null}';
      // One of them is a well-formed place at the very beginning, which a list may begin after.
      if (cursor === "MTox") expect([200, 422], `${list} ${cursor}`).toContain(status);
      else expect(status === 422 || isEnd, `${list} ${cursor}: ${status}`).toBe(true);
    }
  }
});
