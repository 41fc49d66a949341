import { expect, test } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

test("a tool gets its input in the same key order whether the call was allowed at once or approved [D8]", async () => {
  const seen: string[] = [];
  const send = (name: string) =>
    defineTool({
      name,
      description: "Sends.",
      input: { type: "object" },
      safety: { effect: "external" },
      execute({ input }) {
        seen.push(JSON.stringify(input));
        return "sent";
      },
    });
  const gate = createGate({
    store: memoryStore(),
    tenant: "acme",
    tools: [send("mail.send"), send("mail.ask")],
    validators: { tech: sampleVerdictValidator("t"), business: sampleVerdictValidator("b") },
    guard: allowAlways,
    policy: {
      version: "1",
      rules: [{ id: "a", effect: "allow", tool: "mail.send", reason: "test" }],
    },
  });
  const session = gate.sessions.open({ id: "s", agent: "agent:x" });
  const input = { to: "b", list: [{ z: 1, a: [{ y: 2, b: 3 }] }], about: "x" };
  await session.call({ callId: "1", tool: "mail.send", input });
  const asked = await session.call({ callId: "2", tool: "mail.ask", input });
  if (asked.answer !== "pending") throw new Error(asked.text);
  const { id, hash } = await gate.interactions.get(asked.interactionId);
  await gate.interactions.approve(id, { hash, by: "person:ada" });
  expect(seen).toHaveLength(2);
  expect(seen[0]).toBe(seen[1]);
  expect(seen[0]).toBe('{"about":"x","list":[{"a":[{"b":3,"y":2}],"z":1}],"to":"b"}');
});
