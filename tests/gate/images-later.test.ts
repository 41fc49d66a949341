// A picture of a call that waited for a person reaches the model as a picture when the agent fetches the result.

import { expect, test } from "vitest";
import { createGate, toModelContent } from "../../src/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { decisionIdOf, PERSON } from "../support/port-world.ts";

const base64 = Buffer.from("89504e470d0a1a0a00ff00", "hex").toString("base64");

const photo = defineTool({
  name: "photo.take",
  description: "Takes a photo.",
  input: { type: "object" },
  safety: { effect: "external" },
  execute: ({ input: { plain } }) =>
    plain === true
      ? { text: "no photo", data: { kind: "plain", base64 } }
      : { text: "a photo", data: { kind: "image", mediaType: "image/png", base64, lens: "35" } },
});

forEachStore("pictures of calls that waited", (open) => {
  test("another process of the gate hands out the picture of an executed call, and nothing else of its data [S2-94]", async () => {
    const { store } = await open();
    const gate = createGate({ store, tools: [photo] });
    const session = gate.sessions.open({ id: "s-1", agent: "agent:one" });
    const yes = async (id: string) => {
      const { hash } = await gate.interactions.get(id);
      await gate.interactions.approve(id, { hash, by: PERSON });
    };
    const call = { callId: "c-1", tool: photo.name, input: {}, key: "photo" };
    await yes(decisionIdOf(await session.call(call)));
    const plain = { ...call, callId: "c-2", input: { plain: true }, key: "plain" };
    await yes(decisionIdOf(await session.call(plain)));

    const again = createGate({ store, tools: [photo] }).sessions.open({
      id: "s-1",
      agent: "agent:one",
    });
    const part = { type: "image", mediaType: "image/png", base64 };
    const shown = [{ type: "text", text: "a photo" }, part];
    for (const answer of [await again.resultOf("photo"), await again.call(call)]) {
      expect(toModelContent(answer ?? expect.fail("no answer"))).toEqual(shown);
      expect(JSON.stringify(answer)).not.toContain("lens");
    }
    expect(await again.resultOf("plain")).not.toHaveProperty("data");
  });
});
