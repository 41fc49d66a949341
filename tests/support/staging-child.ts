// A process of its own that works on the store at a place, on a clock that stands at the given time. Each line on standard
// input is a call of the staging engine as JSON, `["validateTech", "id"]`; each line on standard output is its answer:
// `{ "ok": … }` or `{ "code": … }`.

import { createInterface } from "node:readline";
import pg from "pg";
import { createStaging, type Staging } from "../../src/gate/review.ts";
import { SallyportError } from "../../src/model/errors.ts";

import { memoryStore } from "../../src/store/memory/index.ts";
import { postgresStore } from "../../src/store/postgres/index.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import type { Store } from "../../src/store/store.ts";
import { manualClock } from "../../src/util/clock.ts";
import type { Place } from "./stores.ts";

const clock = manualClock(Number(process.argv[3]));
const { store, close } = await open(JSON.parse(process.argv[2] ?? "{}"));
const { decisions } = store.tenant("acme");
const reviewer = (name: string) => ({ name, review: async () => ({ ...YES, validator: name }) });
const YES = { approved: true, score: 1, reason: "", severity: "", policyVersion: "" } as const;
const staging = createStaging({
  store: decisions,
  tech: reviewer(`tech-of-${process.pid}`),
  business: reviewer(`biz-of-${process.pid}`),
  guard: { allows: () => true },
});

process.stdout.write('{"ok":"ready"}\n');
for await (const line of createInterface(process.stdin)) {
  process.stdout.write(`${JSON.stringify(await answered(JSON.parse(line)))}\n`);
}
await close();

async function answered([name, ...args]: [keyof Staging, ...unknown[]]): Promise<object> {
  try {
    if (name === "stage") {
      const raw = new TextEncoder().encode("from a child");
      const diff = { sourceTool: "child", raw, metadata: {} };
      return { ok: await staging.stage(String(args[0]), diff) };
    }
    const call = staging[name] as (...args: unknown[]) => Promise<unknown>;
    return { ok: await call(...args) };
  } catch (error) {
    return { code: error instanceof SallyportError ? error.code : String(error) };
  }
}

async function open(place: Place): Promise<{ store: Store; close(): Promise<void> }> {
  if (place.kind === "memory") return closable(memoryStore({ clock }));
  if (place.kind === "sqlite") return closable(sqliteStore({ file: place.file, clock }));
  const pool = new pg.Pool({ connectionString: place.url, max: 4, pipeline: true });
  const opened = await postgresStore({ pool, schema: place.schema, clock });
  return closable(opened, () => pool.end());
}

function closable(opened: Store, after: () => Promise<void> = async () => {}) {
  return { store: opened, close: () => opened.close().then(after) };
}
