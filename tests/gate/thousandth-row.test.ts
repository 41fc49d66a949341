// Lists that decide about something do not end at a page.

import { expect, test } from "vitest";
import type { GatePolicy } from "../../src/policy/decide.ts";
import { openHttp } from "../http/http-world.ts";
import { makeRecords } from "../http/matrix-samples.ts";
import { set } from "../interactions/inbox-world.ts";
import { AGENT, decisionIdOf, openGate, PERSON, request } from "../support/port-world.ts";

const MANY = 1_001;

test("the 1,001st standing rule for a tool lets its call through [SL1]", async () => {
  const { gate } = openGate();
  const session = gate.sessions.open({ agent: AGENT });
  const rule = { tool: "world.set", forMs: 3_600_000, reason: "a test", by: PERSON } as const;
  const value = { atLeast: 0, atMost: 10 };
  for (let n = 1; n <= MANY; n += 1) {
    await gate.standingRules.make({ ...rule, pattern: { key: { oneOf: [`k-${n}`] }, value } });
  }
  expect((await session.call(set(`k-${MANY}`, 1))).answer).toBe("done");
  expect((await session.call(set("k-0", 1))).answer).toBe("pending");
});

test("the 1,001st grant of a session lifts the finding it is for [SL1]", async () => {
  const message = "not on a Sunday";
  const house: GatePolicy = {
    name: "house",
    points: ["pre-tool"],
    check: () => [{ severity: "soft-deny", policy: "house", message }],
  };
  const { gate } = openGate({ gatePolicies: [house] });
  const session = gate.sessions.open({ id: "s-1", agent: AGENT });
  const look = request("world.look", { key: "a" });
  const grant = {
    sessionId: "s-1",
    grantor: "user",
    scope: { kind: "finding" },
    by: PERSON,
    reason: "a test",
  } as const;
  for (let n = 1; n < MANY; n += 1) {
    await gate.grants.give({ ...grant, finding: { policy: "house", message: `m-${n}` } });
  }
  expect((await session.call(look)).answer).toBe("denied");
  await gate.grants.give({ ...grant, finding: { policy: "house", message } });
  expect((await session.call(look)).answer).toBe("done");
});

test("without a limit the inbox lists every open question [D7]", async () => {
  const { gate } = openGate();
  const ids: string[] = [];
  for (let n = 0; n < MANY; n += 1) {
    const session = gate.sessions.open({ id: `s-${n}`, agent: AGENT });
    ids.push(decisionIdOf(await session.call(set(`k-${n}`, 1))));
  }
  expect((await gate.interactions.list()).map(({ id }) => id)).toEqual(ids);
  expect(await gate.interactions.list({ limit: 7 })).toHaveLength(7);
  const [first] = await gate.interactions.list({ limit: 1 });
  expect(await gate.interactions.list({ after: first?.ord ?? 0 })).toHaveLength(MANY - 1);
});

test("the list of a session's decisions does not end at a page [S0-91]", async () => {
  const { gate } = openGate();
  const session = gate.sessions.open({ id: "s-1", agent: AGENT });
  const ids: string[] = [];
  for (let n = 0; n < MANY; n += 1) {
    const call = { ...set(`k-${n}`, 1), callId: `c-${n}` };
    ids.push(decisionIdOf(await session.call(call)));
  }
  const listed = await gate.decisions.listBySession("s-1");
  expect(listed.map(({ id }) => id)).toEqual(ids);
});

test("stuck decisions come page by page over HTTP, each once [B1]", async () => {
  const world = await openHttp();
  const admin = await world.client("acme", "admin");
  for (let n = 0; n < 12; n += 1) await makeRecords(world, "acme", "agent:one");
  const found: string[] = [];
  const pages = admin.all((cursor) =>
    admin.decisions.stuck({
      state: "pending_ml",
      forAtLeastMs: 0,
      limit: 5,
      ...(cursor === undefined ? {} : { cursor }),
    }),
  );
  for await (const { id } of pages) found.push(id);
  const stored = await world.gates.acme.decisions.list({ states: ["pending_ml"] });
  expect(found).toEqual(stored.map(({ id }) => id));
  expect(found).toHaveLength(12);
});
