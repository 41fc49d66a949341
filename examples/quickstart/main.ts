import { allowAlways, createStaging, verifyStore } from "sallyport";
import { sqliteStore } from "sallyport/store/sqlite";
import { business, tech } from "./rules.ts";
import { ending, scratchFile, tell } from "./story.ts";

const store = sqliteStore({ file: scratchFile("quickstart.db") });
const { decisions, audit } = store.tenant("acme");
const staging = createStaging({ store: decisions, tech, business, guard: allowAlways });

// The agent proposes: nothing happens yet.
const refund = { invoice: "INV-2041", cents: 12_900 };
const raw = new TextEncoder().encode(JSON.stringify(refund));
const { id } = await staging.stage("session-1", {
  sourceTool: "billing.refund",
  raw,
  metadata: {},
});

// Two reviews, one after the other. Each verdict is stored with the resulting state.
await staging.validateTech(id);
const decision = await staging.validateBiz(id);

// The executor reports the outcome; a second report would change nothing.
if (decision.state === "approved") await staging.markExecuted(id, { refund: "R-1" });

// Every step has an entry in the hash-chained audit log.
tell(await staging.get(id), await audit.read({ after: 0, limit: 100 }));
ending(await verifyStore(store));
await store.close();
