// M12: a script with a reviewer's token must not be able to tell a decoy from a real question.

import { expect, test } from "vitest";
import { openHttp } from "./http-world.ts";

const COUNT = 40;

/** Every field of an answer, by its path, with what its value looks like. */
function shapesOf(value: unknown, path: string, into: Map<string, string>): void {
  if (Array.isArray(value)) {
    into.set(`${path}#`, String(value.length));
    for (const item of value) shapesOf(item, `${path}[]`, into);
  } else if (typeof value === "object" && value !== null) {
    into.set(`${path}{}`, Object.keys(value).toSorted().join(","));
    for (const [name, one] of Object.entries(value)) shapesOf(one, `${path}.${name}`, into);
  } else into.set(path, typeof value === "string" ? formOf(value) : typeof value);
}

function formOf(text: string): string {
  return text
    .replace(/[0-9a-f]{64}/g, "<hash>")
    .replace(/[0-9a-f]{32}/g, "<nonce>")
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<uuid>")
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .replace(/[A-Za-z0-9+/=]{40,}/g, "<base64>")
    .replace(/\d+/g, "0");
}

test("decoys: no field that a reviewer's token can read distinguishes them from real questions [M12]", async () => {
  const decoys = [{ agent: "agent:one", tool: "world.set", input: { key: "a", value: 7 } }];
  const problems: unknown[] = [];
  const attention = { decoys, rate: 0.4, onProblem: (error: unknown) => problems.push(error) };
  const { client, store, worlds } = await openHttp({ port: { attention } });
  const agent = await client("acme", "agent");
  const reviewer = await client("acme", "reviewer");
  for (let n = 0; n < COUNT; n += 1) {
    const { id } = await agent.sessions.open({ metadata: { ticket: `T-${n}` } });
    const input = { key: "a", value: n };
    const request = { callId: `call_${n}x`, messageId: `msg_${n}`, tool: "world.set", input };
    const { answer } = await agent.sessions.call({ id, ...request, key: `k${n}` });
    expect(answer).toBe("pending");
  }
  expect(problems).toEqual([]);
  const { items } = await reviewer.interactions.list({ limit: 500 });
  const told = new Map<string, unknown[]>();
  const entries = await reviewer.audit.entries({ limit: 500 });
  for (const { type, actor, subject, data } of entries.items) {
    told.set(subject, [
      ...(told.get(subject) ?? []),
      { type, actor, data: JSON.parse(data ?? "{}") },
    ]);
  }
  const views = await Promise.all(
    items.map(async (item) => {
      const { id, sessionId } = item;
      const shapes = new Map<string, string>();
      const decision = await reviewer.decisions.get({ id });
      shapesOf(item, "list", shapes);
      shapesOf(await reviewer.interactions.get({ id }), "question", shapes);
      shapesOf(await reviewer.interactions.shown({ id }), "shown", shapes);
      shapesOf(decision, "decision", shapes);
      shapesOf(await reviewer.sessions.get({ id: sessionId }), "session", shapes);
      shapesOf(told.get(id), "log", shapes);
      const isDecoy = await store.tenant("acme").reviewers.isDecoy(id);
      return { isDecoy, shapes, hasFacts: "facts" in decision.metadata };
    }),
  );
  const planted = views.filter(({ isDecoy }) => isDecoy);
  const real = views.filter(({ isDecoy }) => !isDecoy);
  expect(real).toHaveLength(COUNT);
  expect(planted.length).toBeGreaterThan(4);
  // The mark that they wore.
  expect(new Set(views.map(({ hasFacts }) => hasFacts)).size).toBe(1);
  const paths = new Set(views.flatMap(({ shapes }) => [...shapes.keys()]));
  const separating = [...paths].filter((path) => {
    const among = (some: typeof views) => new Set(some.map(({ shapes }) => shapes.get(path)));
    return among(planted).isDisjointFrom(among(real));
  });
  expect(separating).toEqual([]);
  // Nor does anything run, if one is approved.
  for (const { id, hash } of items.filter((_, index) => views[index]?.isDecoy).slice(0, 2)) {
    const { answers } = await reviewer.interactions.approve({ id, hash });
    expect(answers).toMatchObject([{ answer: "failed" }]);
  }
  expect(worlds.acme.effects).toEqual([]);
});
