// I19: changes in the database of undo records and of people's answers are detected against the trail.

import { expect, test } from "vitest";
import { createRedactor } from "../../src/audit/redact.ts";
import { compareRecords } from "../../src/crashkit/compare-records.ts";
import { collectEvidence } from "../../src/crashkit/evidence.ts";
import { DECISIONS, packVerdict } from "../../src/model/decision.ts";
import type { Interaction } from "../../src/model/interaction.ts";
import { INTERACTIONS } from "../../src/model/interaction.ts";
import { OPERATIONS } from "../../src/model/operation.ts";
import type { Table, Values } from "../../src/store/engine.ts";
import { createStore } from "../../src/store/store.ts";
import { encodeValue } from "../../src/util/value-codec.ts";
import {
  AGENT,
  approve,
  decisionIdOf,
  openGate,
  PERSON,
  request,
  TENANT,
} from "../support/port-world.ts";

/** One call that a person allowed, and one question that a person answered. */
async function history() {
  const { gate, tap } = openGate();
  const session = gate.sessions.open({ id: "s-1", agent: AGENT });
  const asked = await session.call(request("world.set", { key: "a", value: 1 }));
  await approve(gate, decisionIdOf(asked));
  const [operation] = await gate.operations.listBySession("s-1");
  await session.ask({ callId: "q-1", text: "Which colour?" });
  const [question] = await gate.interactions.list({ status: "open" });
  if (question === undefined) throw new Error("nobody was asked");
  await gate.interactions.answer(question.id, { hash: question.hash, by: PERSON, answer: "red" });
  const confirm = asked.answer === "pending" ? asked.interactionId : "";
  const store = createStore(tap.engine, { redact: createRedactor({}) });
  const outside = { ledger: [], told: [], isAtRest: true };
  const problems = async () => compareRecords(await collectEvidence(store, TENANT, outside));
  const decision = await gate.decisions.get(operation?.decisionId ?? "");
  const { bizVerdict: verdict, machineVerdict: machine } = decision;
  return { tap, verdict, machine, operation, question, answered: question.id, confirm, problems };
}

function factsOf({ displayText, chain, choices, metadata, requires }: Interaction) {
  return { displayText, chain, choices, metadata, requires };
}

type History = Awaited<ReturnType<typeof history>>;

const ELSEWHERE = { tool: "world.set", input: { key: "safe", value: "open" } };
const CHANGES: readonly {
  readonly what: string;
  readonly table: Table;
  readonly id: (all: History) => string;
  readonly set: (all: History) => Values;
}[] = [
  {
    what: "undo",
    table: OPERATIONS,
    id: ({ operation }) => operation?.id ?? "",
    set: ({ operation }) => ({ undo: encodeValue({ ...operation?.undo, ...ELSEWHERE }) }),
  },
  {
    what: "version",
    table: OPERATIONS,
    id: ({ operation }) => operation?.id ?? "",
    set: () => ({ state_version: encodeValue("2") }),
  },
  {
    what: "answer",
    table: INTERACTIONS,
    id: ({ answered }) => answered,
    set: () => ({ answer: encodeValue({ answer: "green", reason: "" }) }),
  },
  {
    what: "text",
    table: INTERACTIONS,
    id: ({ answered }) => answered,
    set: ({ question }) => ({ facts: encodeValue({ ...factsOf(question), displayText: "Red?" }) }),
  },
  {
    what: "reason",
    table: DECISIONS,
    id: ({ operation }) => operation?.decisionId ?? "",
    set: ({ verdict }) => ({ biz_verdict: encodeValue({ ...verdict, reason: "looked fine" }) }),
  },
  {
    what: "severity",
    table: DECISIONS,
    id: ({ operation }) => operation?.decisionId ?? "",
    set: ({ verdict }) => ({ biz_verdict: encodeValue({ ...verdict, severity: "block" }) }),
  },
  {
    what: "machine reason",
    table: DECISIONS,
    id: ({ operation }) => operation?.decisionId ?? "",
    set: ({ machine }) => ({
      machine_verdict: encodeValue(packVerdict({ ...machine, reason: "is fine" })),
    }),
  },
  {
    what: "reason",
    table: INTERACTIONS,
    id: ({ confirm }) => confirm,
    set: () => ({ answer: encodeValue({ reason: "was told to" }) }),
  },
  {
    what: "votes",
    table: INTERACTIONS,
    id: ({ confirm }) => confirm,
    set: () => ({ votes: encodeValue([{ by: "person:eve", factor: "" }]) }),
  },
];

test.each(CHANGES)(
  "a changed $what in $table.name does not go unnoticed [I19]",
  async ({ what, table, id, set }) => {
    const all = await history();
    expect(await all.problems()).toEqual([]);
    await all.tap.tamper(table, id(all), set(all) as Record<string, string>);
    expect(await all.problems()).toEqual([
      `the ${what} of ${id(all)} is not the one in the audit log`,
    ]);
  },
);
