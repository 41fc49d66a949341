// The process that is backed up and killed: agents that propose, a person who says yes, anchors, and no end.

import { appendFileSync, readFileSync } from "node:fs";
import { createAnchorer, createSigner, fileAnchorSink } from "sallyport/audit";
import { openStore } from "../../src/cli/open-store.ts";
import { ADA, drillPort, type GivenYes, placesIn } from "./restore-world.ts";

const [folder = "", name = ""] = process.argv.slice(2);
const { data, ledger, yeses, anchors, key } = placesIn(folder);
const store = await openStore({ data });
const gate = drillPort(store, ledger);
createAnchorer({
  store,
  signer: createSigner({ privateKey: readFileSync(key, "utf8") }),
  sink: fileAnchorSink({ file: anchors }),
  everyEntries: 1,
});

async function agent(number: number): Promise<never> {
  const session = gate.sessions.open({ agent: `agent:${number}` });
  for (let turn = 0; ; turn += 1) {
    const n = `${name}-${number}-${turn}`;
    const tool = turn % 2 === 0 ? "world.plain" : "world.keyed";
    const answer = await session.call({ callId: n, tool, input: { n }, key: n });
    if (answer.answer !== "pending") throw new Error(answer.text);
    const id = answer.decisionId;
    const { hash } = await gate.interactions.get(id);
    appendFileSync(yeses, `${JSON.stringify({ id, hash } satisfies GivenYes)}\n`);
    // Some wait a while, so that a backup finds questions and approvals of every age.
    if (turn % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 15));
    await gate.interactions.approve(id, { hash, by: ADA });
  }
}

await Promise.all([0, 1, 2, 3].map(agent));
