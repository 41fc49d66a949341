// A port over the store at a place, the same in the parent and in every child process: they meet in the store alone.

import { appendFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { processWorker } from "../../src/delegation/worker.ts";
import { createGate, type Gate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { postgresStore } from "../../src/store/postgres/index.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { rules } from "../support/port-world.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

export interface ProcessPlace {
  readonly store:
    | { readonly kind: "sqlite"; readonly file: string }
    | { readonly kind: "postgres"; readonly url: string };
  /** Where effects are written down, by the clock of the machine. */
  readonly folder: string;
  readonly levels: number;
}

export interface Mark {
  readonly at: number;
  readonly slot: string;
  readonly sessionId: string;
}

export async function openAt(place: ProcessPlace): Promise<{ gate: Gate; close(): Promise<void> }> {
  const { store, close } = await storeAt(place.store);
  const mark = defineTool({
    name: "mark.put",
    description: "Leaves a mark.",
    input: {
      type: "object",
      properties: { slot: { type: "string" } },
      required: ["slot"],
      additionalProperties: false,
    },
    safety: { effect: "external" },
    resources: ({ input }) => [
      { kind: "other", id: `slot:${String(input["slot"])}`, access: "write" },
    ],
    execute({ input, sessionId }) {
      const line = { at: Date.now(), slot: String(input["slot"]), sessionId } satisfies Mark;
      appendFileSync(path.join(place.folder, "marks"), `${JSON.stringify(line)}\n`);
      return "marked";
    },
  });
  const gate = createGate({
    store,
    tenant: "acme",
    tools: [mark],
    validators: {
      tech: sampleVerdictValidator("tech"),
      business: sampleVerdictValidator("business"),
    },
    guard: allowAlways,
    policy: rules({ id: "mark", effect: "allow", tool: "mark.*", reason: "it is a mark" }),
  });
  return { gate, close };
}

async function storeAt(place: ProcessPlace["store"]) {
  if (place.kind === "sqlite") {
    const store = sqliteStore({ file: place.file });
    return { store, close: () => store.close() };
  }
  const pool = new pg.Pool({ connectionString: place.url, max: 4, pipeline: true });
  pool.on("error", () => {});
  const store = await postgresStore({ pool });
  return {
    store,
    async close() {
      await store.close();
      await pool.end();
    },
  };
}

/** A worker in a child process, which delegates further while there are levels left. */
export function childProcess(place: ProcessPlace) {
  const script = fileURLToPath(new URL("./process-child.ts", import.meta.url));
  return processWorker({
    file: process.execPath,
    args: ["--disable-warning=ExperimentalWarning", script, JSON.stringify(place)],
    directory: place.folder,
  });
}
