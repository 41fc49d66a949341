/** An agent plans, asks, and refunds a double charge; a person answers, and its process "dies" between any two answers. */
import assert from "node:assert/strict";
import { allowAlways, createGate, NO_RULES, verifyStore } from "sallyport";
import { createFlow, type Flow } from "sallyport/flow";
import { sqliteStore } from "sallyport/store/sqlite";
import { chooseModel } from "./model.ts";
import { answerInbox } from "./person.ts";
import { agree, makeShop } from "./shop.ts";

const shop = makeShop();
const { model, isScripted } = await chooseModel();
const conversationId = "refunds";

/** The state of one process; everything else is in the store. */
async function inNewProcess<Result>(work: (flow: Flow) => Promise<Result>): Promise<Result> {
  const store = sqliteStore({ file: shop.file });
  const gate = createGate({
    store,
    tenant: "acme",
    tools: shop.tools,
    validators: { tech: agree, business: agree },
    guard: allowAlways,
    policy: NO_RULES,
  });
  const flow = createFlow({
    model,
    openSession: ({ conversationId: id }) => gate.sessions.open({ id, agent: "agent:shop" }),
    tools: gate.tools,
    states: store.tenant("acme").flowStates,
    onEvent: (event) => {
      if (event.type === "piece") process.stdout.write(event.text);
    },
    onProblem: ({ what, error }) => console.error(what, error),
  });
  try {
    await answerInbox(gate);
    return await work(flow);
  } finally {
    await store.close();
  }
}

const message = "Customers say that some invoices were charged twice. Refund them.";
console.log(`user: ${message}`);
let outcome = await inNewProcess((flow) => flow.handle({ conversationId, message }));
for (let answers = 0; outcome.outcome === "waiting" && answers < 30; answers += 1) {
  const { type, display_text } = outcome.interaction;
  console.log(`\n[${type}] ${display_text}`);
  outcome = await inNewProcess((flow) => flow.resume(conversationId));
}
console.log(`\n\n${outcome.outcome}; refunded: ${[...shop.refunded].join(", ") || "nothing"}`);

const store = sqliteStore({ file: shop.file });
const executed = await store.tenant("acme").decisions.list({ states: ["executed"] });
assert.equal(executed.length, shop.refunded.size, "no refund without a person's yes");
assert.equal(shop.calls(), shop.refunded.size, "none was paid twice");
assert.ok((await verifyStore(store)).ok);
if (isScripted) {
  assert.equal(outcome.outcome, "delivered");
  assert.deepEqual([...shop.refunded], ["INV-7", "INV-9"]);
}
await store.close();
