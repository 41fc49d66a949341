// A server in a process that may open few files; it ends with its standard input.

import { createGate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { createServer } from "../../src/http/index.ts";
import { NO_RULES } from "../../src/policy/policy.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

const store = memoryStore();
const gate = createGate({
  store,
  tenant: "acme",
  tools: [],
  validators: {
    tech: sampleVerdictValidator("schema"),
    business: sampleVerdictValidator("limits"),
  },
  guard: allowAlways,
  policy: NO_RULES,
});
const server = await createServer({ store, gates: { acme: gate } });
const agents: string[] = [];
for (let n = 0; n < 40; n += 1) {
  agents.push(await server.makeToken({ subject: `agent:${n}`, roles: ["agent"] }));
}
const operator = await server.makeToken({ subject: "person:olga", roles: ["operator"] });
process.stdout.write(JSON.stringify({ url: server.url, agents, operator }));
process.stdin.on("end", () => process.exit(0)).resume();
