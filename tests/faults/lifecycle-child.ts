/**
 * One lifecycle over a SQLite file, to be run where its system calls can be made to fail: every kind of tool, with and
 * without a person. Arguments: the file, production's port, the things that are wanted (JSON). What it was told goes to its
 * standard output line by line, so that nothing of it is among the calls that fail.
 */
import { writeSync } from "node:fs";
import { createGate } from "../../src/gate/create-gate.ts";
import { isSallyportError, SallyportError } from "../../src/model/errors.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { partsFor, requestOf, type Wanted } from "./production/parts.ts";

export type Line =
  | { readonly opened: true }
  | { readonly id: string; readonly told: "done" | "failed" | "denied" | "unknown" | "pending" }
  /** The store said no, in these words. */
  | { readonly id: string; readonly refused: string; readonly hint: string };

export const TENANT = "acme";
export const SESSION = "life";
export const LEASE_MS = 300;

if (process.argv[1] === import.meta.filename) await main();

async function main(): Promise<void> {
  const [file = "", productionPort = "", wanted = "[]"] = process.argv.slice(2);
  const say = (line: Line) => void writeSync(1, `${JSON.stringify(line)}\n`);
  const refused = (id: string, error: unknown) => {
    if (!(error instanceof SallyportError) || !isSallyportError(error)) throw error;
    say({ id, refused: error.code, hint: String(error.details["hint"] ?? "") });
  };
  const store = openStore();
  function openStore() {
    try {
      return sqliteStore({ file, thread: "never" });
    } catch (error) {
      return refused("open", error);
    }
  }
  if (store === undefined) return;
  say({ opened: true });
  const parts = partsFor(Number(productionPort), LEASE_MS);
  const gate = createGate({ ...parts, store, tenant: TENANT });
  const session = gate.sessions.open({ id: SESSION, agent: "agent:life" });
  for (const one of JSON.parse(wanted) as readonly Wanted[]) {
    try {
      const answer = await session.call(requestOf(one));
      say({ id: one.id, told: answer.answer });
      if (answer.answer !== "pending") continue;
      const { id, hash } = await gate.interactions.get(answer.interactionId);
      const { answers } = await gate.interactions.approve(id, { hash, by: "person:ada" });
      for (const each of answers) say({ id: one.id, told: each.answer });
    } catch (error) {
      refused(one.id, error);
    }
  }
  await store.close();
}
