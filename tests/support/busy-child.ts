// Writes enough concurrently to start the write thread, and ends without closing anything.

import { sqliteStore } from "../../src/store/sqlite/index.ts";

const [file = ""] = process.argv.slice(2);
const { refusals } = sqliteStore({ file, thread: "always" }).tenant("acme");
const records = Array.from({ length: 200 }, (_, n) =>
  refusals.record({ callId: `c-${n}`, sessionId: "s", actor: "agent:x", data: { n } }),
);
await Promise.all(records);
process.stdout.write(`${records.length} written`);
