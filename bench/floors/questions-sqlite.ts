import Sqlite from "better-sqlite3";
import { MIGRATIONS } from "../../src/store/sqlite/database.ts";
import type { Work } from "../rounds.ts";
import {
  ANSWER,
  ASK,
  type Cell,
  type Commit,
  type Insert,
  idIn,
  insertedRow,
  type Sample,
  type TableName,
  type Update,
  updatedCells,
} from "./question-rows.ts";
import { bodiesOf, HEAD, SQLITE_BLOCK } from "./rows.ts";

/** What a question, its answer and its execution leave behind, written by hand: so many cycles share each commit. */
export function sqliteQuestionFloors(
  file: string,
  sample: Sample,
): { ask(size: number, total: number): Work; answer(size: number): Work; close(): void } {
  const db = new Sqlite(file);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.pragma("wal_autocheckpoint = 4000");
  db.pragma("cache_size = -8192");
  for (const { sql } of MIGRATIONS) db.exec(sql);
  const block = db.prepare(SQLITE_BLOCK);
  let ids = 0;
  let seq = 0;
  let waiting: { id: string; session: string }[] = [];
  const plans = { ask: ASK.map(prepared), answer: ANSWER.map(prepared) };

  function prepared({ writes, entries }: Commit) {
    const run = writes.map((write) => ("insert" in write ? inserting(write) : updating(write)));
    const bodyOf = bodiesOf(sample.entries.filter((_, index) => entries.includes(index)));
    return (group: typeof waiting) => {
      for (const { id, session } of group) for (const one of run) one(id, session);
      seq += group.length * entries.length;
      block.run(seq, Date.now(), HEAD, bodyOf(group.length));
    };
  }

  function inserting(write: Insert) {
    const row = insertedRow(sample, write);
    const columns = Object.keys(row);
    const statement = db.prepare(
      `INSERT INTO ${write.insert} (${columns}) VALUES (${columns.map(() => "?")})`,
    );
    return (id: string, session: string) =>
      statement.run(
        columns.map((column) => ownCell(column, row[column] ?? null, write.insert, id, session)),
      );
  }

  function updating(write: Update) {
    const { update, where } = write;
    const cells = updatedCells(sample, write);
    const names = Object.keys(cells).map((name) => `${name} = ?`);
    const tests = Object.keys(where)
      .map((name) => ` AND ${name} = ?`)
      .join("");
    const statement = db.prepare(
      `UPDATE ${update} SET ${names} WHERE tenant = 'bench' AND id = ?${tests}`,
    );
    return (id: string) => {
      const { changes } = statement.run(
        ...Object.values(cells),
        idIn(update, id),
        ...Object.values(where),
      );
      if (changes !== 1) throw new Error(`${update} ${id} was not there`);
    };
  }

  function together(commits: typeof plans.ask, group: typeof waiting): void {
    for (const commit of commits) {
      db.transaction(() => commit(group))();
    }
  }

  return {
    ask: (size, total) => async () => {
      waiting = Array.from({ length: total }, (_, n) => {
        ids += 1;
        const id = `019a8b00-0000-7000-8000-${String(ids).padStart(12, "0")}`;
        return { id, session: `session-1-${n % size}` };
      });
      for (let from = 0; from < total; from += size) {
        together(plans.ask, waiting.slice(from, from + size));
      }
      return total;
    },
    answer: (size) => async () => {
      for (let from = 0; from < waiting.length; from += size) {
        together(plans.answer, waiting.slice(from, from + size));
      }
      return waiting.length;
    },
    close: () => db.close(),
  };
}

/** Everything as in the sample but whose it is. */
function ownCell(column: string, cell: Cell, table: TableName, id: string, session: string): Cell {
  if (column === "id") return idIn(table, id);
  if (column === "session_id") return session;
  return column === "decision_id" ? id : cell;
}
