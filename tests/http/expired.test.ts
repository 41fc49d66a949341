// An answer that comes too late, over HTTP, before anything has closed the question.

import { expect, test } from "vitest";
import { manualClock } from "../../src/util/clock.ts";
import { openHttp } from "./http-world.ts";

const START = Date.parse("2026-11-15T06:00:00.000Z");

test("an answer after the deadline is refused as expired, one with another hash as changed [W3]", async () => {
  const clock = manualClock(START);
  const http = await openHttp({ clock });
  const reviewer = await http.client("acme", "reviewer");
  const session = http.gates.acme.sessions.open({ id: "s", agent: "agent:x" });
  const { interactionId: id } = await session.ask({
    callId: "q",
    text: "Which one?",
    deadlineMs: 60_000,
  });
  const { hash, deadline } = await reviewer.interactions.get({ id });
  const other = reviewer.interactions.answer({ id, hash: "0".repeat(64), answer: "left" });
  await expect(other).rejects.toMatchObject({
    code: "approval_void",
    details: { hint: expect.stringContaining("It changed since you saw it") },
  });
  clock.set(START + 60_001);
  const late = reviewer.interactions.answer({ id, hash, answer: "left" });
  await expect(late).rejects.toMatchObject({
    code: "approval_void",
    details: { expired: true, hint: `This question expired at ${deadline}; it counted as no.` },
  });
});
