import { type AuditEntry, type ChainHead, emptyHead } from "../../model/audit-entry.ts";
import { type Clock, toIso } from "../../util/clock.ts";
import type { Random } from "../../util/random.ts";
import type { ChangeResult, Row, Step } from "../engine.ts";
import type { Waiting } from "../group-commit.ts";
import { Turn } from "../turn.ts";
import type { Database } from "./database.ts";
import type { Statements } from "./statements.ts";

export interface WriterOptions {
  readonly database: Database;
  readonly statements: Statements;
  readonly clock: Clock;
  readonly random: Random;
}

/** Writes a group of changes with their audit entries in one transaction. Synchronous: nothing comes between. */
export class Writer {
  readonly #options: WriterOptions;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /**
   * All changes of the group in one transaction; the answers come back in order. Throws when the group as a whole could
   * not be written (then nothing was), which includes one member failing in a way the database did not foresee.
   */
  write(group: readonly Waiting[]): readonly ChangeResult[] {
    const { database, clock, random } = this.#options;
    const { statements } = this.#options;
    statements.prepare("BEGIN IMMEDIATE").run();
    try {
      const now = clock.now();
      const turns = new Map<string, Turn>();
      const results = group.map((one) => {
        let turn = turns.get(one.tenant);
        if (turn === undefined) {
          turn = new Turn(this.head(one.tenant), now, random);
          turns.set(one.tenant, turn);
        }
        return this.#change(one, turn);
      });
      statements.prepare("COMMIT").run();
      return results;
    } catch (error) {
      if (database.inTransaction) database.exec("ROLLBACK");
      throw error;
    }
  }

  #change({ tenant, change }: Waiting, turn: Turn): ChangeResult {
    const { database, statements } = this.#options;
    // A refusal after something was written needs a point to go back to; a last step alone does not.
    const savepoint = change.steps.slice(0, -1).some(({ op }) => op !== "require");
    if (savepoint) database.exec("SAVEPOINT change");
    const rows: Row[] = [];
    for (const [index, step] of change.steps.entries()) {
      if (step.op === "take") {
        rows.push(...this.#take(step, tenant, turn.at));
        if (rows.length === 0) return { committed: false, step: index, current: undefined };
        continue;
      }
      const { statement, values } = statements.step(step, tenant, turn.at);
      const row = statement.get(...values) as Row | undefined;
      if (row !== undefined) {
        rows.push(row);
        continue;
      }
      const current = statements.get(step.table).get(tenant, step.id) as Row | undefined;
      if (current === undefined && step.op === "require" && step.absent === "holds") {
        rows.push({});
        continue;
      }
      if (savepoint) database.exec("ROLLBACK TO change; RELEASE change");
      return { committed: false, step: index, current };
    }
    for (const entry of turn.append(change, rows)) this.#insert(entry, turn.at);
    if (savepoint) database.exec("RELEASE change");
    return { committed: true, at: turn.at, rows, seq: turn.head.seq };
  }

  /** Looks first and changes then: the rows that an UPDATE hands out come in no order. */
  #take(step: Step & { op: "take" }, tenant: string, at: number): readonly Row[] {
    const { statements } = this.#options;
    const best = statements.best(step, tenant, at);
    const ords = (best.statement.all(...best.values) as { ord: number }[]).map(({ ord }) => ord);
    if (ords.length === 0) return [];
    const take = statements.take(step, ords, at);
    const taken = take.statement.all(...take.values) as Row[];
    const rank = new Map<unknown, number>(ords.map((ord, index) => [ord, index]));
    return taken.sort((a, b) => (rank.get(a["ord"]) ?? 0) - (rank.get(b["ord"]) ?? 0));
  }

  #insert(entry: AuditEntry, at: number): void {
    const { tenant, seq, type, subject, session, actor, data, salt, hash } = entry;
    this.#options.statements
      .prepare(
        "INSERT INTO audit (tenant, seq, at, type, subject, session, actor, data, salt, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      )
      .run(tenant, seq, at, type, subject, session, actor, data, salt, hash);
  }

  /** The end of a tenant's chain, as this connection sees it now. */
  head(tenant: string): ChainHead {
    const row = this.#options.statements
      .prepare("SELECT seq, hash, at FROM audit WHERE tenant = ? ORDER BY seq DESC LIMIT 1")
      .get(tenant) as { seq: number; hash: string; at: number } | undefined;
    if (row === undefined) return emptyHead(tenant);
    return { tenant, seq: row.seq, hash: row.hash, at: toIso(row.at) };
  }
}
