import {
  type ChainHead,
  emptyHead,
  headAfter,
  sealEntry,
} from "../../model/audit-entry.ts";
import { type Clock, toIso } from "../../util/clock.ts";
import type { Random } from "../../util/random.ts";
import type { ChangeResult, Row } from "../engine.ts";
import type { Waiting } from "../group-commit.ts";
import { newSalt } from "../salt.ts";
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
    const { database } = this.#options;
    database.exec("BEGIN IMMEDIATE");
    try {
      const heads = new Map<string, ChainHead>();
      const results = group.map((one) => this.#change(one, heads));
      this.#saveHeads(heads);
      database.exec("COMMIT");
      return results;
    } catch (error) {
      if (database.inTransaction) database.exec("ROLLBACK");
      throw error;
    }
  }

  #change({ tenant, change }: Waiting, heads: Map<string, ChainHead>): ChangeResult {
    const { database, statements } = this.#options;
    const head = heads.get(tenant) ?? this.#head(tenant);
    heads.set(tenant, head);
    const at = this.#now(head);
    // One step alone writes everything or nothing by itself; several need a point to go back to.
    const savepoint = change.steps.length > 1;
    if (savepoint) database.exec("SAVEPOINT change");
    const rows: Row[] = [];
    for (const [index, step] of change.steps.entries()) {
      const { statement, values } = statements.step(step, tenant, at);
      const row = statement.get(...values) as Row | undefined;
      if (row === undefined) {
        if (savepoint) database.exec("ROLLBACK TO change; RELEASE change");
        const current = statements.get(step.table).get(tenant, step.id) as Row | undefined;
        return { committed: false, step: index, current };
      }
      rows.push(row);
    }
    const end = this.#append(head, change.events(rows), at);
    heads.set(tenant, end);
    if (savepoint) database.exec("RELEASE change");
    return { committed: true, at, rows, seq: end.seq };
  }

  #append(
    from: ChainHead,
    drafts: ReturnType<Waiting["change"]["events"]>,
    at: number,
  ): ChainHead {
    const insert = this.#options.statements.prepare(
      "INSERT INTO audit (tenant, seq, at, type, subject, session, actor, data, salt, data_hash, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    );
    let head = from;
    for (const draft of drafts) {
      const e = sealEntry(head, draft, toIso(at), newSalt(this.#options.random));
      insert.run(
        e.tenant, e.seq, at, e.type, e.subject, e.session, e.actor, e.data, e.salt, e.dataHash, e.hash,
      );
      head = headAfter(e);
    }
    return head;
  }

  #head(tenant: string): ChainHead {
    const row = this.#options.statements
      .prepare("SELECT seq, hash, at FROM chains WHERE tenant = ?")
      .get(tenant) as { seq: number; hash: string; at: number } | undefined;
    if (row === undefined) return emptyHead(tenant);
    return { tenant, seq: row.seq, hash: row.hash, at: toIso(row.at) };
  }

  /** Once per group and tenant instead of once per entry. */
  #saveHeads(heads: ReadonlyMap<string, ChainHead>): void {
    const save = this.#options.statements.prepare(
      "INSERT INTO chains (tenant, seq, hash, at) VALUES (?, ?, ?, ?) ON CONFLICT (tenant) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, at = excluded.at WHERE excluded.seq > chains.seq",
    );
    for (const head of heads.values()) {
      if (head.seq > 0) save.run(head.tenant, head.seq, head.hash, Date.parse(head.at));
    }
  }

  /** A trail never runs backwards, and rows carry the same time as their entries. */
  #now(head: ChainHead): number {
    return Math.max(this.#options.clock.now(), Date.parse(head.at));
  }
}
