// Found by cutting lines: between a yes and its execution a process may be held up for so long that another one recovers.

import { expect, test } from "vitest";
import { AGENT, decisionIdOf, isApproval, PERSON } from "../support/port-world.ts";
import { onStores, set } from "./inbox-world.ts";

onStores("a yes that comes back late", (open) => {
  test("what a recovery has executed meanwhile is the answer, and it ran once [G10 I6 I7]", async () => {
    const { gate, again, tap, clock, effects } = await open();
    const other = again();
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(set("a", 1)));
    const { hash } = await gate.interactions.get(id);
    let recovered = 0;
    tap.isApart = true;
    tap.after = async (change) => {
      if (!isApproval(change)) return;
      tap.after = () => {};
      clock.advance(3_600_000);
      recovered = (await other.recover()).decisions.length;
    };
    const { answers } = await gate.interactions.approve(id, { hash, by: PERSON });
    expect(recovered, "void: nobody recovered it").toBe(1);
    expect(answers).toMatchObject([{ answer: "done", operationId: `${id}.0` }]);
    expect(effects).toEqual(['world.set {"key":"a","value":1}']);
  });
});
