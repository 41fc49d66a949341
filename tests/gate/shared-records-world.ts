// A store of three boxes, moved between by calls that touch two boxes each, behind a port.

import { createGate } from "../../src/gate/create-gate.ts";
import type { CrashPoint } from "../../src/gate/options.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

export const BY = "person:ada";

/** How a tool tells versions: by what is in the boxes, or by how often they were written. */
export type Versions = "content" | "counter";

interface Box {
  amount: number;
  writes: number;
}

export function createBoxes(versions: Versions) {
  const boxes = new Map<string, Box>(
    ["a", "b", "c"].map((name) => [name, { amount: 10, writes: 0 }]),
  );
  /** What another writer does when a point is passed for the given time. */
  const others: { at: CrashPoint; left: number; act(): void }[] = [];
  const versionOf = (...names: string[]) =>
    names
      .map((name) => boxes.get(name))
      .map((box) => String(versions === "content" ? box?.amount : box?.writes))
      .join(":");
  const add = (name: string, amount: number) => {
    const box = boxes.get(name) ?? { amount: 0, writes: 0 };
    boxes.set(name, { amount: box.amount + amount, writes: box.writes + 1 });
  };
  const move = defineTool({
    name: "box.move",
    description: "Moves from one box to another.",
    input: {
      type: "object",
      properties: {
        from: { type: "string" },
        to: { type: "string" },
        amount: { type: "integer" },
      },
      required: ["from", "to", "amount"],
      additionalProperties: false,
    },
    safety: { effect: "write", reversible: true },
    stateVersion: ({ input }) => versionOf(String(input["from"]), String(input["to"])),
    execute({ input }) {
      const [from, to, amount] = [
        String(input["from"]),
        String(input["to"]),
        Number(input["amount"]),
      ];
      if ((boxes.get(from)?.amount ?? 0) < amount) return { text: "not enough", isError: true };
      add(from, -amount);
      add(to, amount);
      return { text: "moved", data: { from: to, to: from, amount } };
    },
    undo: ({ output }) => ({
      tool: "box.move",
      input: output as { from: string; to: string; amount: number },
    }),
  });
  const store = memoryStore();
  const gate = createGate({
    store,
    tenant: "acme",
    tools: [move],
    validators: { tech: sampleVerdictValidator("t"), business: sampleVerdictValidator("b") },
    guard: allowAlways,
    policy: {
      version: "1",
      rules: [{ id: "all", effect: "allow", tool: "box.*", reason: "test" }],
    },
    at(point) {
      for (const other of others.filter(({ at }) => at === point)) {
        other.left -= 1;
        if (other.left === 0) other.act();
      }
    },
  });
  const session = gate.sessions.open({ id: "s", agent: "agent:x" });
  const moving = (path: string, amount = 3) => {
    const [from = "", to = ""] = path.split(">");
    return { callId: `${path}-${amount}`, tool: "box.move", input: { from, to, amount } };
  };
  return {
    gate,
    store,
    session,
    moving,
    add,
    /** Another writer acts when this point is passed for the n-th time. */
    meanwhile(at: CrashPoint, nth: number, act: () => void) {
      others.push({ at, left: nth, act });
    },
    amounts: () => [...boxes].map(([name, { amount }]) => `${name}${amount}`).join(" "),
    async call(path: string, amount?: number): Promise<string> {
      const answer = await session.call(moving(path, amount));
      if (answer.answer !== "done") throw new Error(answer.text);
      return answer.operationId;
    },
    async approve(staged: Awaited<ReturnType<typeof session.stage>>) {
      if (staged.answer !== "pending") throw new Error(`a bundle is asked about: ${staged.text}`);
      const { decisionId: id } = staged;
      const { hash } = await gate.interactions.get(id);
      return gate.interactions.approve(id, { hash, by: BY });
    },
  };
}
