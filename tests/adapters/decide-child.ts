// A person's process that has none of the tools: it can look and decide, and cannot execute.

import { setTimeout } from "node:timers/promises";
import { decide, openGate, RUN } from "./world.ts";

const [verdict = "", reason = "", session = "", invoice = ""] = process.argv.slice(2);
await using gate = openGate();
if (verdict === "show") {
  const open = await gate.interactions.list();
  const asked = open.map(({ sessionId, chain }) => ({ sessionId, chain }));
  process.stdout.write(JSON.stringify(asked));
} else if (verdict === "executed") {
  const operations = await gate.operations.listBySession(RUN, {});
  const done = operations.map(({ tool, status, executor }) => ({ tool, status, executor }));
  process.stdout.write(JSON.stringify(done));
} else if (verdict === "recover") {
  // Its lease is short in the story.
  while ((await gate.interactions.list()).length === 0) {
    await gate.recover();
    await setTimeout(100);
  }
} else if (verdict === "happened" || verdict === "try again") {
  const [lost] = await gate.interactions.list();
  const again = { happened: false, otherwise: "repeat" } as const;
  const found = verdict === "happened" ? ({ happened: true } as const) : again;
  await gate.interactions.settle(lost?.id ?? "", { hash: lost?.hash ?? "", by: "grace", ...found });
} else {
  await decide(gate, verdict, { reason, session, invoice });
}
