import { expect, test } from "vitest";
import type { GateHook } from "../../src/gate/hooks.ts";
import { openHttp } from "./http-world.ts";

test("a veto of a hook reaches an agent over HTTP: at the start of a session, and at the points it reports [I-46]", async () => {
  const heard: string[] = [];
  const watch: GateHook = {
    name: "watch",
    points: ["session_start", "session_end", "user_prompt"],
    handle({ point, sessionId, input }) {
      heard.push(point);
      const no = sessionId.endsWith("bad") || input === "Delete everything";
      return no ? { answer: "deny", message: "not here." } : { answer: "allow" };
    },
  };
  const world = await openHttp({ port: { hooks: [watch] } });
  const agent = await world.client("acme", "agent");
  await expect(agent.sessions.open({ id: "bad" })).rejects.toMatchObject({ code: "not_allowed" });
  const { id } = await agent.sessions.open({ id: "good" });
  expect(await agent.sessions.reach({ id, point: "user_prompt", input: "Hello" })).toEqual({
    answer: "allow",
  });
  expect(
    await agent.sessions.reach({ id, point: "user_prompt", input: "Delete everything" }),
  ).toMatchObject({ answer: "deny", text: expect.stringContaining("not here") });
  const look = { tool: "world.look", input: { key: "a" } };
  expect(await agent.sessions.call({ id, callId: "1", ...look })).toMatchObject({ answer: "done" });
  await agent.sessions.end({ id, reason: "finished" });
  expect(await agent.sessions.call({ id, callId: "2", ...look })).toMatchObject({ answer: "done" });
  const starts = heard.filter((point) => point === "session_start");
  expect(starts, "refused, begun, begun again after its end").toHaveLength(3);
  expect(heard).toContain("session_end");
});
