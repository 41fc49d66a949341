// The demo's own agents over a real port: their task board says only what is so.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { demoParts } from "../../src/cli/demo/warehouse.ts";
import { createGate } from "../../src/gate/create-gate.ts";
import { memoryStore } from "../../src/store/memory/index.ts";

async function startDemo() {
  const data = mkdtempSync(path.join(tmpdir(), "sallyport-demo-"));
  const problems: string[] = [];
  const {
    started,
    http: _,
    ...parts
  } = demoParts({ data }, { everyMs: 100, onProblem: (error) => problems.push(String(error)) });
  const store = memoryStore();
  const gate = createGate({ ...parts, store, tenant: "default" });
  const stop = started?.(gate);
  onTestFinished(async () => {
    await stop?.();
    await store.close();
    rmSync(data, { recursive: true, force: true });
    expect(problems).toEqual([]);
  });
  return gate;
}

type Port = Awaited<ReturnType<typeof startDemo>>;

function whyOf({ pendingTool }: Awaited<ReturnType<Port["interactions"]["get"]>>): string {
  const { why = "" } = JSON.parse(pendingTool?.args_json ?? "{}");
  return why;
}

/** The open question about a counted amount, while a task is being worked on. */
async function countingQuestion(gate: Port) {
  return vi.waitFor(
    async () => {
      const open = await gate.interactions.list({ status: "open" });
      const [held] = await gate.tasks.findByStatus("claimed");
      const done = await gate.tasks.findByStatus("completed");
      // One that is completed while its question is open is what must not be: the caller sees its state.
      const early = done.find(({ subject }) => open.some((one) => whyOf(one).includes(subject)));
      const claimed = early ?? held;
      const question = open.find(
        (one) => claimed !== undefined && whyOf(one).includes(claimed.subject),
      );
      if (question === undefined || claimed === undefined) throw new Error("not yet");
      return { question, claimed };
    },
    { timeout: 100_000, interval: 20 },
  );
}

test("the demo's task is not done while its call waits for approval, and is done after it ran [W5]", async () => {
  const gate = await startDemo();
  const { question, claimed } = await countingQuestion(gate);
  // Some turns later it is still being worked on.
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(await gate.tasks.get(claimed.id)).toMatchObject({ status: "claimed" });
  expect(await gate.tasks.findByStatus("completed")).toEqual([]);
  await gate.interactions.approve(question.id, { hash: question.hash, by: "person:ada" });
  await vi.waitFor(async () => {
    const task = await gate.tasks.get(claimed.id);
    expect(task.status).toBe("completed");
    expect(task.result).toMatch(/: \d+ -> \d+$/);
  }, 60_000);
});

test("the demo's task fails, with the reason, when a person rejects its call [W5]", async () => {
  const gate = await startDemo();
  const { question, claimed } = await countingQuestion(gate);
  const no = { hash: question.hash, by: "person:ada", reason: "Count again." };
  await gate.interactions.reject(question.id, no);
  await vi.waitFor(async () => {
    const task = await gate.tasks.get(claimed.id);
    expect(task).toMatchObject({ status: "failed" });
    expect(task.failureReason).toContain("Count again.");
  }, 60_000);
});
