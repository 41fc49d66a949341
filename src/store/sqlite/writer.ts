import Sqlite from "better-sqlite3";
import {
  type AuditEntry,
  type Block,
  type ChainHead,
  emptyHead,
  packBlock,
} from "../../model/audit-entry.ts";
import { SallyportError } from "../../model/errors.ts";
import { CLOCK, SWITCHES } from "../../model/switch.ts";
import { canonicalJson } from "../../util/canonical-json.ts";
import { type Clock, toIso } from "../../util/clock.ts";
import type { Random } from "../../util/random.ts";
import type { Cell } from "../engine.ts";
import { type AuditRow, entriesOf, entriesOfBlocks, type TrailPart } from "../tenant-engine.ts";
import { type ClockWatch, Turn } from "../turn.ts";
import type { Database, Statement } from "./database.ts";
import {
  type Answer,
  type Cells,
  type EventOrder,
  type Place,
  type StepOrder,
  type StepStatement,
  seal,
  timed,
  type WriteOrder,
} from "./orders.ts";

// One group of orders as one transaction: the tenants' chains, the rows, the audit entries, the commit. The main thread and
// the write thread each have a writer with a connection of its own.

interface WriterOptions {
  readonly database: Database;
  readonly random: Random;
  /** Compares the clock with monotonic time. */
  readonly clockWatch?: ClockWatch | undefined;
}

interface Prepared {
  readonly statement: Statement;
  readonly look: Statement;
  readonly change: Statement | undefined;
}

type Found = Cells | undefined;

/** A tenant's turn, and the number of its chain once it has one: a change that is refused starts none. */
interface ChainTurn {
  chain: number | undefined;
  readonly turn: Turn;
  readonly entries: AuditEntry[];
  /** What the clock said. */
  readonly time: number;
}

/** What is stored instead of what a step required. */
interface Refused {
  readonly current: Found;
}

/** Writes a group of changes with their audit entries in one transaction. Synchronous: nothing comes between. */
export class Writer {
  readonly #options: WriterOptions;
  readonly #prepared = new Map<string, Prepared>();
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #mark: Statement;
  readonly #back: Statement;
  readonly #unmark: Statement;
  readonly #end: Statement;
  readonly #oldEnd: Statement;
  readonly #block: Statement;
  readonly #oldEntries: Statement;
  readonly #blocks: Statement;
  readonly #accepted: Statement;
  readonly #clock: Clock;
  readonly chains: Chains;

  constructor(options: WriterOptions) {
    this.#options = options;
    const { database } = options;
    this.#clock = databaseClock(database);
    this.chains = new Chains(database);
    this.#begin = database.prepare("BEGIN IMMEDIATE");
    this.#commit = database.prepare("COMMIT");
    this.#mark = database.prepare("SAVEPOINT change");
    this.#back = database.prepare("ROLLBACK TO change");
    this.#unmark = database.prepare("RELEASE change");
    const last = `${NOW_SQL} FROM audit_blocks WHERE ${inChain("?")} ORDER BY ord DESC LIMIT 1`;
    this.#end = database.prepare(`SELECT last, ${hexOf("head")}, at, ${last}`).raw();
    const old = `${NOW_SQL} FROM audit_entries WHERE ${inChain("?")} ORDER BY ord DESC LIMIT 1`;
    this.#oldEnd = database.prepare(`SELECT seq, hash, at, ${old}`).raw();
    this.#oldEntries = database.prepare(
      `SELECT @tenant AS tenant, seq, at, type, subject, session, actor, data, salt, data_hash, hash
FROM audit_entries WHERE ord >= (@chain << 32) | @after AND ord < (@chain + 1) << 32 ORDER BY ord LIMIT @limit`,
    );
    // From the block before the first, whose head is the link, to the one with the last entry that is asked for.
    const part = (which: string) => `(SELECT ${which} AND ${inChain("@chain")})`;
    this.#blocks = database.prepare(
      `SELECT last, at, ${hexOf("head")} AS head, body FROM audit_blocks WHERE ${inChain("@chain")}
AND ord >= coalesce(${part("max(ord) FROM audit_blocks WHERE ord <= (@chain << 32) | @after")}, 0)
AND ord <= coalesce(${part("min(ord) FROM audit_blocks WHERE ord >= ((@chain << 32) | @after) + @limit")}, 1 << 62) ORDER BY ord`,
    );
    const accepted = `SELECT state FROM ${SWITCHES.name} WHERE tenant = ? AND id = ?`;
    this.#accepted = (database.prepare(accepted) as Statement).pluck();
    const block = "INSERT INTO audit_blocks (ord, at, head, body) VALUES ((? << 32) | ?, ?, ?, ?)";
    this.#block = database.prepare(block);
  }

  /**
   * Writes all changes of the group in one transaction and returns the answers in order. Throws commit_unknown when the
   * group may have been written; any other error means that nothing was written, which includes one member failing in a way
   * the database did not foresee, and clock_wrong, unless all of them are urgent. The time is the database's own, read when
   * the lock was got, unless a test supplies one.
   */
  write(
    group: readonly WriteOrder[],
    now: number | undefined,
    pace: "ordinary" | "urgent" = "ordinary",
  ): readonly Answer[] {
    const { database } = this.#options;
    this.#begin.run();
    try {
      let time = now;
      const turns = new Map<string, ChainTurn>();
      const answers = group.map((order) => {
        let turn = turns.get(order.tenant);
        if (turn === undefined) {
          turn = this.#turn(order.tenant, time);
          time ??= turn.time;
          turns.set(order.tenant, turn);
          const { clockTrouble } = turn.turn;
          if (clockTrouble !== undefined && pace === "ordinary") throw clockTrouble;
        }
        return this.#change(order, turn);
      });
      for (const turn of turns.values()) this.#seal(turn);
      this.#commitGroup();
      return answers;
    } catch (error) {
      if (database.inTransaction) database.exec("ROLLBACK");
      throw error;
    }
  }

  #commitGroup(): void {
    try {
      this.#commit.run();
    } catch (error) {
      if (isCommitInDoubt(error)) overwriteFailedCommit(this.#options.database, error);
      throw error;
    }
  }

  #turn(tenant: string, known: number | undefined): ChainTurn {
    const chain = this.chains.find(tenant);
    const end = this.#endOf(chain);
    const time = known ?? (end === undefined ? this.#clock.now() : Math.round(end[NOW] * 1000));
    const { random, clockWatch: watch } = this.#options;
    const accepted = () => String(this.#accepted.get(tenant, CLOCK) ?? "");
    const turn = new Turn(headOf(tenant, end), time, random, { watch, accepted });
    return { chain, time, turn, entries: [] };
  }

  #change(order: WriteOrder, its: ChainTurn): Answer {
    const { steps, tenant } = order;
    const { turn } = its;
    // A refusal after something was written needs a savepoint to return to; a last step alone does not.
    const savepoint =
      steps.length > 1 && steps.slice(0, -1).some(({ statement }) => statement.op !== "require");
    if (savepoint) this.#mark.run();
    const rows: Cells[] = [];
    for (let index = 0; index < steps.length; index += 1) {
      const refused = this.#step(tenant, steps[index] as StepOrder, turn.now, rows);
      if (refused === undefined) continue;
      if (savepoint) {
        this.#back.run();
        this.#unmark.run();
      }
      return { step: index, current: refused.current };
    }
    for (const event of order.events) {
      if (!event.each) this.#append(event, rows, its);
      else for (const row of rows) this.#append(event, [row], its);
    }
    if (savepoint) this.#unmark.run();
    return { at: turn.now, seq: turn.head.seq, rows };
  }

  /** Adds the rows that the step leaves behind. When it does not hold, answers what is stored instead. */
  #step(tenant: string, step: StepOrder, at: number, rows: Cells[]): Refused | undefined {
    const { op, mayBeAbsent, change: half } = step.statement;
    const { statement, look, change } = this.#prepare(step.statement);
    const values = timed(step, at);
    const current = () => look.get(tenant, step.id) as Found;
    if (op === "insert") {
      const { changes, lastInsertRowid } = statement.run(values);
      if (changes === 0) return { current: current() };
      rows.push([Number(lastInsertRowid), ...values]);
      return undefined;
    }
    if (half !== undefined && change !== undefined) {
      const best = (statement.all(values.slice(0, half.after)) as [number][]).map(([ord]) => ord);
      if (best.length === 0) return { current: undefined };
      const taken = change.all([...values.slice(half.after), JSON.stringify(best)]) as Cells[];
      const rank = new Map<Cell | undefined, number>(best.map((ord, index) => [ord, index]));
      rows.push(...taken.sort((a, b) => (rank.get(a[0]) ?? 0) - (rank.get(b[0]) ?? 0)));
      return undefined;
    }
    // A record that may be absent usually is, so it is looked for before it is tested.
    if (mayBeAbsent && current() === undefined) {
      rows.push([]);
      return undefined;
    }
    const row = statement.get(values) as Found;
    if (row === undefined) return { current: current() };
    rows.push(row);
    return undefined;
  }

  #prepare({ sql, look, change }: StepStatement): Prepared {
    let prepared = this.#prepared.get(sql);
    if (prepared === undefined) {
      const prepare = (text: string): Statement => {
        const statement = this.#options.database.prepare(text) as Statement;
        return statement.reader ? statement.raw() : statement;
      };
      prepared = {
        statement: prepare(sql),
        look: prepare(look),
        change: change && prepare(change.sql),
      };
      this.#prepared.set(sql, prepared);
    }
    return prepared;
  }

  #append(event: EventOrder, rows: readonly Cells[], { turn, entries }: ChainTurn): void {
    const { draft, sealed } = this.#filled(event, rows);
    entries.push(turn.chain(draft, sealed));
  }

  /** Writes what the tenant's changes have appended as one block. A change that is refused starts no chain. */
  #seal(its: ChainTurn): void {
    const { turn, entries } = its;
    if (entries.length === 0) return;
    const { tenant, seq, hash } = turn.head;
    if (seq > MOST_ENTRIES) {
      const hint =
        "The chain of this tenant is full, because its entries are numbered up to 4,294,967,295.";
      throw new SallyportError("invalid_input", { what: "change", tenant, hint });
    }
    its.chain ??= this.chains.begin(tenant);
    this.#block.run(its.chain, seq, turn.entryAt, Buffer.from(hash, "hex"), packBlock(entries));
  }

  /** An event with its facts filled in. Throws invalid_input. */
  #filled(event: EventOrder, rows: readonly Cells[]) {
    try {
      const { type, actor } = event;
      const subject = textOf(event.subject, rows);
      const session = textOf(event.session, rows);
      const sealed = event.sealed ?? seal(withFacts(event, rows), this.#options.random);
      return { draft: { type, subject, session, actor }, sealed };
    } catch (cause) {
      const hint = "The event could not be recorded in the trail, so nothing was written.";
      throw new SallyportError("invalid_input", { what: "event", hint }, cause);
    }
  }

  /** The end of a tenant's chain, as this connection sees it now. */
  head(tenant: string): ChainHead {
    return headOf(tenant, this.#endOf(this.chains.find(tenant)));
  }

  #endOf(chain: number | undefined): End | undefined {
    if (chain === undefined) return undefined;
    return (this.#end.get(chain, chain) ?? this.#oldEnd.get(chain, chain)) as End | undefined;
  }

  /** The part of a trail that a reader asks for: entries of the first format, then those in blocks. */
  entries(tenant: string, { after, limit }: TrailPart): AuditEntry[] {
    const chain = this.chains.find(tenant);
    if (chain === undefined) return [];
    const end = this.#oldEnd.get(chain, chain) as End | undefined;
    const before = end && { seq: end[0], hash: end[1] };
    const old =
      before !== undefined && after < before.seq ? this.#old(tenant, chain, after, limit) : [];
    const rest = { after: Math.max(after, before?.seq ?? 0), limit: limit - old.length };
    if (rest.limit <= 0) return old;
    const blocks = this.#blocks.all({ chain, ...rest }) as Block[];
    return [...old, ...entriesOfBlocks(tenant, blocks, rest, before)];
  }

  #old(tenant: string, chain: number, after: number, limit: number): AuditEntry[] {
    // Also the row before the first: its hash is the `prev` of the next.
    const rows = this.#oldEntries.all({ tenant, chain, after, limit: limit + 1 }) as AuditRow[];
    return entriesOf(rows, { after, limit });
  }
}

/** The last entry's number, hash and time, and the time now. */
type End = readonly [seq: number, hash: string, at: number, now: number];
const NOW = 3;

function headOf(tenant: string, end: End | undefined): ChainHead {
  if (end === undefined) return emptyHead(tenant);
  const [seq, hash, at] = end;
  return { tenant, seq, hash, at: toIso(at) };
}

function withFacts({ parts, facts }: EventOrder, rows: readonly Cells[]): string {
  let text = parts[0] ?? "";
  for (let index = 0; index < facts.length; index += 1) {
    const cell = cellOf(facts[index] as Place, rows);
    if (cell instanceof Uint8Array) throw new TypeError("a fact cannot be bytes");
    text += canonicalJson(cell) + (parts[index + 1] ?? "");
  }
  return text;
}

function textOf(text: string | Place, rows: readonly Cells[]): string {
  if (typeof text === "string") return text;
  const cell = cellOf(text, rows);
  if (typeof cell !== "string") throw new TypeError(`cell ${text.cell} is not text`);
  return cell;
}

function cellOf({ step, cell }: Place, rows: readonly Cells[]): Cell {
  const found = rows[step]?.[cell];
  if (found === undefined) throw new TypeError(`step ${step} left nothing behind`);
  return found;
}

/** Whether a row of the log belongs to a chain. */
function inChain(nr: string): string {
  return `ord > ${nr} << 32 AND ord < (${nr} + 1) << 32`;
}

function hexOf(column: string): string {
  return `lower(hex(${column}))`;
}

/** What fits into the 32 bits for the number of an entry: one more would belong to another chain. */
const MOST_ENTRIES = 2 ** 32 - 1;

/** In seconds, to the millisecond. */
const NOW_SQL = "unixepoch('now', 'subsec')";

/**
 * The machine's time as SQLite reads it. All writers of one file run on one machine, so this is one clock for all of them,
 * whatever a process has done to its own `Date`.
 */
export function databaseClock(database: Database): Clock {
  const now = database.prepare(`SELECT ${NOW_SQL}`).pluck();
  return { now: () => Math.round(Number(now.get()) * 1000) };
}

/** Tenant names come from outside, so the number of remembered ones is bounded. */
const MOST_KNOWN = 4_096;

/** The numbers of the tenants' chains. Entries are stored by chain and number, so that a chain grows at its end. */
export class Chains {
  readonly #known = new Map<string, number>();
  readonly #find: Statement;
  readonly #add: Statement;
  readonly #heads: Statement;

  constructor(database: Database) {
    this.#find = database.prepare("SELECT nr FROM chains WHERE tenant = ?").pluck();
    this.#add = database.prepare("INSERT INTO chains (tenant) VALUES (?) RETURNING nr").pluck();
    // One statement for all of them: an anchor round reads every tenant.
    const endIn = (table: string) => `(SELECT max(ord) FROM ${table} WHERE ${inChain("c.nr")})`;
    this.#heads = database.prepare(
      `SELECT c.tenant, b.last AS seq, ${hexOf("b.head")} AS hash, b.at FROM chains AS c JOIN audit_blocks AS b ON b.ord = ${endIn("audit_blocks")}
UNION ALL SELECT c.tenant, e.seq, e.hash, e.at FROM chains AS c JOIN audit_entries AS e ON e.ord = ${endIn("audit_entries")}
WHERE ${endIn("audit_blocks")} IS NULL ORDER BY 1`,
    );
  }

  /** Undefined for a tenant that never wrote. Call it before `begin` in a transaction: what is found is remembered. */
  find(tenant: string): number | undefined {
    const known = this.#known.get(tenant);
    if (known !== undefined) return known;
    const found = this.#find.get(tenant) as number | undefined;
    if (found === undefined) return undefined;
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(tenant, found);
    return found;
  }

  /** A new chain. It is not remembered, because the transaction may be rolled back. */
  begin(tenant: string): number {
    return this.#add.get(tenant) as number;
  }

  heads(): readonly ChainHead[] {
    const rows = this.#heads.all() as (Omit<ChainHead, "at"> & { readonly at: number })[];
    return rows.map((row) => ({ ...row, at: toIso(row.at) }));
  }
}

/** For a caller whose write may or may not have happened. */
export const UNCONFIRMED =
  "The disk did not confirm the write: check the disk, then read the record again before you repeat anything.";

/** How long the overwriting commit waits for another process that is writing. */
const PATIENCE_MS = 1_000;

/**
 * Whether a COMMIT that failed with this error may come back after a restart. SQLite appends the frames with their commit
 * mark to the log before it syncs them. When the sync fails, SQLite forgets the frames but leaves them in the file, and the
 * next process to recover the log finds a complete transaction. A failed write is different: the frame that carries the mark
 * is written last, so it is not there.
 */
export function isCommitInDoubt(error: unknown): boolean {
  if (!(error instanceof Sqlite.SqliteError)) return false;
  const { code } = error;
  if (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_CONSTRAINT")) return false;
  return code !== "SQLITE_IOERR_WRITE" && code !== "SQLITE_FULL";
}

/**
 * Makes sure that a failed commit stays failed: the next commit is written over its frames, so once that one is on disk,
 * the failed one cannot come back. Throws commit_unknown when this fails too.
 */
export function overwriteFailedCommit(database: Database, cause: unknown): void {
  try {
    if (database.inTransaction) database.exec("ROLLBACK");
    database.pragma(`busy_timeout = ${PATIENCE_MS}`);
    // Writes the first page as it is, which is the smallest commit there is.
    database.pragma(`user_version = ${database.pragma("user_version", { simple: true })}`);
  } catch {
    throw new SallyportError("commit_unknown", { hint: UNCONFIRMED }, cause);
  } finally {
    database.pragma("busy_timeout = 0");
  }
}
