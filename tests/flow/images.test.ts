// A picture that a tool reads reaches the model of a flow as a picture.

import type { LanguageModel } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { expect, test } from "vitest";
import { createFlow } from "../../src/flow/create-flow.ts";
import { newWork, savedWork, workOf } from "../../src/flow/runtime-state.ts";
import { createGate } from "../../src/gate/create-gate.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { callOf, DONE, PLAN, planOf } from "./flow-world.ts";
import { modelSaying } from "./scripted-model.ts";

test("a picture is saved with the run, so that another process shows it too; what is too large is left out [S2-94]", () => {
  const image = (base64: string) => ({ type: "image", mediaType: "image/png", base64 }) as const;
  const small = image(Buffer.from("89504e470d0a1a0a00", "hex").toString("base64"));
  const large = image(`${small.base64.slice(0, 8)}${"A".repeat(1024 * 1024)}`);
  const work = newWork();
  work.images.set("old", large).set("new", small);
  const saved = savedWork(work);
  expect(Buffer.byteLength(JSON.stringify(saved))).toBeLessThan(2_000);
  expect([...workOf(JSON.parse(JSON.stringify(saved))).images]).toEqual([["new", small]]);
});

test.each(["at once", "after a yes"] as const)(
  "a picture of a tool that ran %s is shown to the model as a picture, beside its text [S2-94]",
  async (when) => {
    const base64 = Buffer.from("89504e470d0a1a0a00", "hex").toString("base64");
    const photo = defineTool({
      name: "photo.read",
      description: "Reads a photo.",
      input: { type: "object" },
      ...(when === "at once"
        ? { safety: { effect: "read" }, permissionClass: "readonly" }
        : { safety: { effect: "external" } }),
      execute: () => ({ text: "a photo", data: { kind: "image", mediaType: "image/png", base64 } }),
    });
    const gate = createGate({ store: memoryStore(), tools: [photo] });
    const seen: string[] = [];
    const said = modelSaying(PLAN, planOf("look"), callOf("photo.read"), DONE);
    const model: LanguageModel = new MockLanguageModelV4({
      doGenerate: (options) => {
        seen.push(
          JSON.stringify(options.prompt, (_, value) =>
            ArrayBuffer.isView(value) ? Buffer.from(value as Uint8Array).toString("base64") : value,
          ),
        );
        return said.doGenerate(options);
      },
      doStream: (options) => said.doStream(options),
    });
    const session = gate.sessions.open({ id: "s", agent: "agent:flow" });
    const flow = createFlow({
      model,
      openSession: () => session,
      tools: gate.tools,
      states: memoryStore().tenant("default").flowStates,
      onProblem: ({ error }) => {
        throw error;
      },
      modelRetries: 0,
    });
    const waiting = await flow.handle({ conversationId: "talk", message: "Look at the photo." });
    if (waiting.outcome !== "waiting") throw new Error(waiting.outcome);
    const [question] = await gate.interactions.list();
    if (question === undefined) throw new Error("no question");
    await gate.interactions.answer(question.id, {
      hash: question.hash,
      by: "person:ada",
      answer: question.choices[0] ?? "yes",
    });
    let { outcome } = await flow.resume("talk");
    if (when === "after a yes") {
      expect(outcome).toBe("waiting");
      const [{ id, hash } = expect.fail("no question")] = await gate.interactions.list();
      await gate.interactions.approve(id, { hash, by: "person:ada" });
      ({ outcome } = await flow.resume("talk"));
    }
    expect(outcome).toBe("delivered");
    const last = seen.at(-1) ?? "";
    expect(last).toContain("a photo");
    expect(last).toContain('"mediaType":"image/png"');
    expect(last).toContain(base64);
  },
);
