// A person's process that has none of the tools: it can look and decide, and cannot execute.

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
} else {
  await decide(gate, verdict, { reason, session, invoice });
}
