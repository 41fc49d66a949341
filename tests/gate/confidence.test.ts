// The confidence gate as an agent meets it: in front of a call.

import { expect, test } from "vitest";
import type { GateOptions } from "../../src/gate/options.ts";
import type { CallRequest } from "../../src/model/operation.ts";
import { AGENT, openGate, request, rules } from "../support/port-world.ts";

const ALLOWED = rules(
  { id: "keen", effect: "allow", tool: "world.keen", reason: "r" },
  { id: "blind", effect: "allow", tool: "world.blind", reason: "r" },
);

function open(over: Partial<GateOptions> = {}) {
  const world = openGate({ policy: ALLOWED, ...over });
  const session = world.gate.sessions.open({ agent: AGENT });
  let calls = 0;
  const call = (input: CallRequest["input"], tool = "world.keen") => {
    calls += 1;
    return session.call(request(tool, input, `c-${calls}`));
  };
  return { ...world, session, call };
}
const PAIR = { key: "a", value: 1 };

test("the agent estimates in _confidence, or under the name that the option sets, and is told so [S2-22]", async () => {
  const usual = open();
  expect((await usual.call({ ...PAIR, _confidence: 90 })).answer).toBe("done");
  expect((await usual.call({ ...PAIR, _flyto_confidence: 90 })).answer).toBe("denied");
  const named = open({ confidenceKey: "_flyto_confidence" });
  expect((await named.call({ ...PAIR, _flyto_confidence: 90 })).answer).toBe("done");
  expect((await named.call({ ...PAIR, _confidence: 90 })).answer).toBe("denied");
  for (const [{ session }, key] of [
    [usual, "_confidence"],
    [named, "_flyto_confidence"],
  ] as const) {
    const keen = (await session.tools()).find(({ name }) => name === "world.keen");
    expect(keen?.inputSchema["required"]).toContain(key);
  }
});

test("a tool without a minimum gets its input as it was given, the reserved key too [S2-23 S2-24]", async () => {
  const { call, effects } = open();
  expect((await call({ _confidence: 1, b: 2 }, "world.blind")).answer).toBe("done");
  expect((await call('{"_confidence":"none","b":2}', "world.blind")).answer).toBe("done");
  expect(effects).toEqual([
    'world.blind {"_confidence":1,"b":2}',
    'world.blind {"_confidence":"none","b":2}',
  ]);
});

test("a call without an estimate is denied with key, range and minimum; it is never read as 100 [S2-25 S2-30]", async () => {
  const { call, effects } = open();
  for (const input of [PAIR, { ...PAIR, confidence: 100 }, { ...PAIR, _Confidence: 100 }]) {
    const answer = await call(input);
    expect(answer.answer).toBe("denied");
    expect(answer.text).toContain('"_confidence"');
    expect(answer.text).toContain("from 0 to 100");
    expect(answer.text).toContain("at least 80");
  }
  expect(effects).toEqual([]);
});

test("a call below the minimum is denied with its estimate and the minimum; one at it passes [S2-26 S2-27]", async () => {
  const { call, effects } = open();
  const low = await call({ ...PAIR, _confidence: 79.5 });
  expect(low).toMatchObject({ answer: "denied" });
  expect(low.text).toContain("79.5");
  expect(low.text).toContain("minimum of 80");
  for (const _confidence of [80, 80.5, 100]) {
    expect((await call({ ...PAIR, _confidence })).answer).toBe("done");
  }
  expect(effects).toHaveLength(3);
});

test("the tool gets every field but the estimate [S2-28]", async () => {
  const { call, effects } = open();
  expect((await call({ ...PAIR, _confidence: 90 })).answer).toBe("done");
  expect((await call('{ "value": null, "_confidence": 90, "key": "_confidence" }')).answer).toBe(
    "done",
  );
  expect(effects).toEqual([
    'world.keen {"key":"a","value":1}',
    'world.keen {"key":"_confidence","value":null}',
  ]);
});

test("an input that is no JSON object has no estimate, so it is denied [S2-29]", async () => {
  const { call, effects } = open();
  const inputs = ["[]", '"x"', "null", "99", "", "{", '{"_confidence":99,"_confidence":10}', null];
  for (const input of [...inputs, 99, [99], ["_confidence"]]) {
    expect((await call(input)).answer, JSON.stringify(input)).toBe("denied");
  }
  expect(effects).toEqual([]);
});

test("an estimate of another type or outside of 0 to 100 is denied [S2-31]", async () => {
  const { call, effects } = open();
  for (const _confidence of [-1, 100.01, 1e9, "90", "high", true, null, [90], { value: 90 }]) {
    expect((await call({ ...PAIR, _confidence })).answer, JSON.stringify(_confidence)).toBe(
      "denied",
    );
  }
  expect(effects).toEqual([]);
});
