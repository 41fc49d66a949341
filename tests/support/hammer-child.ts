/**
 * One of several processes that work on the same store as hard as they can: it stages decisions of its own and reviews and
 * closes whatever it finds, its own or the others'. What the store acknowledged goes to standard output as one JSON line.
 *
 * Arguments: sqlite FILE | postgres URL, then the seconds to work and a name.
 */
import pg from "pg";
import { type Decision, type DecisionState, newDraft } from "../../src/model/decision.ts";
import { isSallyportError } from "../../src/model/errors.ts";
import type { DecisionStore } from "../../src/store/decisions.ts";
import { postgresStore } from "../../src/store/postgres/index.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import type { Store } from "../../src/store/store.ts";

/** Acknowledged moves as [decision, state it went to]. */
export interface HammerReport {
  readonly name: string;
  readonly moves: readonly (readonly [string, DecisionState])[];
  readonly lostRaces: number;
  /** How long its writes took, sorted. */
  readonly tookMs: readonly number[];
}

const WORKERS = 12;
const [kind = "", place = "", seconds = "1", name = "child"] = process.argv.slice(2);
const { store, close } = await open();
const { decisions } = store.tenant("acme");
const moves: [string, DecisionState][] = [];
let lostRaces = 0;
const tookMs: number[] = [];

const deadline = performance.now() + Number(seconds) * 1_000;
await Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(decisions, worker)));
await close();
process.stdout.write(`${JSON.stringify(reportOf())}\n`);

function reportOf(): HammerReport {
  return { name, moves, lostRaces, tookMs: tookMs.map(Math.round).sort((a, b) => a - b) };
}

async function work(all: DecisionStore, worker: number): Promise<void> {
  for (let round = 0; performance.now() < deadline; round += 1) {
    const raw = new TextEncoder().encode(`${name}-${worker}-${round}`);
    const since = performance.now();
    const draft = await all.stage(draftOf(raw));
    tookMs.push(performance.now() - since);
    moves.push([draft.id, draft.state]);
    const open_ = await all.list({ states: ["pending_tech", "pending_ml", "approved"], limit: 4 });
    for (const decision of open_) await advance(all, decision);
  }
}

async function advance(all: DecisionStore, decision: Decision): Promise<void> {
  const { id, state } = decision;
  const coin = Math.random() < 0.9;
  const mark = `${name}-${Math.random()}`;
  try {
    if (state === "pending_tech") record(await all.updateTechVerdict(id, verdict(coin)));
    else if (state === "pending_ml") record(await all.updateBizVerdict(id, verdict(coin)));
    else if (coin) recordMine(await all.markExecuted(id, mark), mark);
    else recordMine(await all.markFailed(id, mark), mark);
  } catch (error) {
    if (!isSallyportError(error, "illegal_transition") && !isSallyportError(error, "already_final"))
      throw error;
    lostRaces += 1;
  }
}

function record(moved: Decision): void {
  moves.push([moved.id, moved.state]);
}

/** A repeated report succeeds with the first proof; only the one that carries our mark is our move. */
function recordMine(moved: Decision, mark: string): void {
  if (moved.executionProof === mark || moved.executionError === mark) record(moved);
  else lostRaces += 1;
}

function verdict(approved: boolean) {
  return {
    approved,
    score: 1,
    severity: "warn",
    reason: "because",
    validator: name,
    policyVersion: "1",
  } as const;
}

function draftOf(raw: Uint8Array): Decision {
  return newDraft(`session-${name}`, { sourceTool: "hammer", raw, metadata: {} }, "");
}

async function open(): Promise<{ store: Store; close(): Promise<void> }> {
  if (kind === "sqlite") {
    const store = sqliteStore({ file: place });
    return { store, close: () => store.close() };
  }
  const pool = new pg.Pool({ connectionString: place, max: 6, pipeline: true });
  const store = await postgresStore({ pool });
  return {
    store,
    async close() {
      await store.close();
      await pool.end();
    },
  };
}
