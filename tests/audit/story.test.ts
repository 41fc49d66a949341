import { expect, test } from "vitest";
import { type StoryLine, sessionStory } from "../../src/audit/trail.ts";
import { sampleDraft, YES } from "../../src/store/conformance/samples.ts";
import { createTaskList } from "../../src/tasks/create-task-list.ts";
import { forEachStore } from "../support/for-each-store.ts";

const SESSION = "session-1";
const BY = { actor: "agent" };

forEachStore("the story of a session", (open) => {
  test("one session id joins task, plan, gate trace, tool calls, operations, decision and interaction, and nothing else [I-82]", async () => {
    const { store, engine } = await open();
    const own = store.tenant("acme");
    const tasks = createTaskList({ store: own.tasks });
    const told = (type: string, subject: string, session: string) =>
      engine.commit("acme", {
        steps: [],
        events: [{ type, subject, session, actor: "lead", data: {} }],
      });

    // Added before its session was known.
    const { id } = await tasks.add({ subject: "Refund INV-7", by: "lead" });
    const other = await tasks.add({ subject: "Another", sessionId: "session-2" });
    const { fence = 0 } = await tasks.claim({ id, claimer: "agent", leaseMs: 60_000 });
    await told("run.plan_approved", SESSION, SESSION);
    await tasks.link({ id, fence, sessionId: SESSION });
    const trace = { traceId: "trace-1", point: "tool_call", sessionId: SESSION, actor: "agent" };
    await own.gateLedger.record({ ...trace, allowed: true, findings: [], overridden: [] });
    await own.refusals.record({
      callId: "call-1",
      sessionId: SESSION,
      actor: "agent",
      data: { tool: "shell" },
    });
    const decision = await own.decisions.stage(sampleDraft({ sessionId: SESSION }), BY);
    await own.decisions.updateTechVerdict(decision.id, YES);
    await own.interactions.open(
      "question-1",
      {
        type: "ask_user",
        sessionId: SESSION,
        callId: "call-2",
        displayText: "Which account?",
        hash: "h".repeat(64),
        chain: ["agent"],
        deadlineMs: 60_000,
      },
      BY,
    );
    await told("delegation.started", "dlg-1", SESSION);
    const intent = {
      messageId: "m-1",
      callId: "call-3",
      turn: 1,
      tool: "billing.refund",
      effect: "external",
      definitionHash: "d".repeat(64),
      input: "{}",
      workingDirectory: "/srv",
      step: 0,
      undoOf: "",
      approval: undefined,
      leaseMs: 60_000,
      actor: "agent",
    } as const;
    await own.operations.start({ ...intent, id: "op-1", sessionId: SESSION });
    await told("operation.started", "op-2", "dlg-1");
    await own.operations.start({ ...intent, id: "op-3", sessionId: "session-2" });
    await tasks.complete({ id: other.id, result: "" });
    await tasks.complete({ id, fence, result: "done" });

    const story = await lines(sessionStory(own.audit, SESSION));
    expect(story.map(({ chapter, type, subject }) => [chapter, type, subject])).toEqual([
      ["task", "task.added", id],
      ["task", "task.claimed", id],
      ["plan", "run.plan_approved", SESSION],
      ["task", "task.linked", id],
      ["gate", "gate.evaluated", "trace-1"],
      ["gate", "call.denied", "call-1"],
      ["decision", "decision.staged", decision.id],
      ["decision", "decision.reviewed", decision.id],
      ["interaction", "interaction.opened", "question-1"],
      ["plan", "delegation.started", "dlg-1"],
      ["operation", "operation.started", "op-1"],
      ["operation", "operation.started", "op-2"],
      ["task", "task.completed", id],
    ]);
    const call = story.find(({ subject }) => subject === "op-1");
    expect([call?.session, call?.data?.["tool"]]).toEqual([SESSION, "billing.refund"]);
    const seqs = story.map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
    expect(await lines(sessionStory(own.audit, "nobody"))).toEqual([]);
    expect(await lines(sessionStory(store.tenant("other").audit, SESSION))).toEqual([]);
  });

  test("a story longer than a page is complete, and an erased line has no data", async () => {
    const { store, engine } = await open();
    for (let from = 0; from < 2_100; from += 300) {
      const events = Array.from({ length: 300 }, (_, n) => ({
        type: "odd",
        subject: `${from + n}`,
        session: n % 2 === 0 ? SESSION : "session-2",
        actor: "agent",
        data: {},
      }));
      await engine.commit("acme", { steps: [], events });
    }
    const { audit } = store.tenant("acme");
    const erased: typeof audit = {
      ...audit,
      read: async (range) =>
        (await audit.read(range)).map((entry) => ({ ...entry, data: null, salt: null })),
    };
    const story = await lines(sessionStory(erased, SESSION));
    expect(story.length).toBe(1_050);
    expect(story.at(-1)).toMatchObject({ chapter: "other", subject: "2098", data: null });
  });
});

async function lines(story: AsyncIterable<StoryLine>): Promise<StoryLine[]> {
  const all: StoryLine[] = [];
  for await (const line of story) all.push(line);
  return all;
}
