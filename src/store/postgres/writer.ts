import { type ChainHead, emptyHead, packBlock } from "../../model/audit-entry.ts";
import type { SallyportError } from "../../model/errors.ts";
import { CLOCK, SWITCHES } from "../../model/switch.ts";
import { type Clock, toIso } from "../../util/clock.ts";
import { invariant } from "../../util/error-text.ts";
import type { Random } from "../../util/random.ts";
import { type ChangeResult, holds, isUrgent, type Row, type Step, type Table } from "../engine.ts";
import type { Waiting } from "../group-commit.ts";
import { type ClockWatch, JUMP_MS, Turn } from "../turn.ts";
import { type PgClient, type PgQuery, sentTogether, TYPES } from "./connection.ts";
import {
  batch,
  dealt,
  type Keyed,
  kindOf,
  look,
  shapeOf,
  statementName,
  type Take,
  type TenantStep,
  TIMES,
  takeQuery,
} from "./statements.ts";
import type { LostTail } from "./write-path.ts";

// One group of changes as one transaction in two round trips: lock, reads and writes; then audit entries and COMMIT.

interface WriterOptions {
  readonly schema: string;
  readonly random: Random;
  /** What this process last saw of each chain. */
  readonly tail: LostTail;
  /** Only for tests that move the clock; otherwise the database's own decides. */
  readonly clock?: Clock | undefined;
  /** Compares the clock with monotonic time. */
  readonly clockWatch?: ClockWatch | undefined;
}

/** The new end of each chain that was written: it tells a commit whose answer was lost from one that never happened. */
export type Ends = ReadonlyMap<string, ChainHead>;

export interface Written {
  readonly results: readonly ChangeResult[];
  readonly ends: Ends;
  /** The entries and the COMMIT, as sent to the server. Never rejects, so that both results can be examined. */
  readonly committing: Promise<readonly PromiseSettledResult<unknown>[]>;
}

/** Writes a group of changes with their audit entries in one transaction. */
export class Writer {
  readonly #options: WriterOptions;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Called after the commit: only then is it certain that the chains end here. */
  committed(ends: Ends): void {
    for (const head of ends.values()) this.#options.tail.remember(head);
  }

  async write(client: PgClient, group: readonly Waiting[]): Promise<Written> {
    const left = new KnownRows();
    // One round trip that begins with the lock: no other writer can change in between what is only read, and a change that
    // does not hold is rolled back.
    const [turns, , , takers] = await sentTogether(client, () =>
      Promise.all([
        this.#lock(client, group),
        this.#look(client, group.flatMap(required), left),
        this.#steps(client, group, left),
        this.#takes(client, group),
      ]),
    );
    const members = group.map((waiting): Member => {
      const turn = turns.get(waiting.tenant);
      invariant(turn !== undefined, "a tenant's chain vanished while it was locked");
      return { waiting, turn, rows: takers.get(waiting) ?? [], answer: undefined };
    });
    await this.#refuse(client, members, left);
    for (const member of inOrderOfTrail(members, takers)) seal(member);
    const moved = [...turns.values()].filter(({ entries }) => entries.length > 0);
    const ends = new Map(moved.map(({ head }) => [head.tenant, head]));
    const blocks = this.#blocks(moved);
    // If the entries fail, the server turns the COMMIT into a rollback by itself.
    const committing = sentTogether(client, () =>
      Promise.allSettled([
        blocks === undefined ? undefined : client.query(blocks),
        client.query({ text: "COMMIT" }),
      ]),
    );
    return { results: members.map(answerOf), ends, committing };
  }

  /**
   * All writers of a tenant take turns on the row that holds the end of its chain, and the order of the turns is the order
   * of the trail. The time is read once the lock is held: a long wait must not make an expired lease look valid.
   */
  async #lock(client: PgClient, group: readonly Waiting[]): Promise<Map<string, Turn>> {
    const { schema, clock, clockWatch, random, tail } = this.#options;
    const tenants = [...new Set(group.map(({ tenant }) => tenant))].sort();
    const seen = tenants.map((tenant) => tail.seenOf(tenant));
    const fresh = tenants.filter((_, index) => seen[index] === undefined);
    const asked = clockWatch?.elapsedMs();
    const watch = clockWatch && { jumpOf: (now: number) => clockWatch.jumpOf(now, asked) };
    const begun = client.query({ text: BEGIN });
    const founded = fresh.length === 0 ? undefined : client.query(found(schema, fresh));
    // Only locked, never written: writing it with every turn leaves a thousand dead versions a second, and while a long
    // snapshot keeps them, each turn has to skip all of them.
    const lock = `SELECT tenant, fence FROM ${schema}.chains WHERE tenant = ANY($1) ORDER BY tenant FOR UPDATE`;
    const locked = client.query<{ tenant: string; fence: number }>({
      name: statementName(lock),
      text: lock,
      values: [tenants],
      types: TYPES,
    });
    // A separate statement: one that waits for a lock sees the trail as it was before the wait. If others have written
    // since, it also looks up the entry that this process saw last, which must still be there. The time of each tenant is
    // the one that Turn computes: not before the last entry, or the clock's own when the trail is known to be ahead.
    const text = `WITH clock AS MATERIALIZED (SELECT coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now),
ends AS MATERIALIZED (SELECT k.tenant, k.seen, e.seq, e.hash, e.at, clock.now,
CASE WHEN e.at > clock.now + ${JUMP_MS} THEN (SELECT w.state FROM ${schema}.${SWITCHES.name} AS w WHERE w.tenant = k.tenant AND w.id = '${CLOCK}') END AS accepted
FROM clock, unnest($1::text[], $3::bigint[]) AS k(tenant, seen)
LEFT JOIN LATERAL (${endOf(schema, "k.tenant")}) AS e ON true),
timed AS (SELECT tenant, CASE WHEN accepted IS NOT NULL AND extract(epoch FROM accepted::timestamptz) * 1000 >= at THEN now ELSE greatest(at, now) END AS time FROM ends)
SELECT ends.*, set_config('${TIMES}', (SELECT json_object_agg(tenant, time)::text FROM timed), true) AS times,
CASE WHEN seq > seen THEN (SELECT encode(s.head, 'hex') FROM ${schema}.audit_blocks AS s WHERE s.tenant = ends.tenant AND s.last = ends.seen) END AS seen_hash
FROM ends`;
    const values = [tenants, clock?.now() ?? null, seen.map((head) => head?.seq ?? null)];
    const ended = client.query<EndRow>({ name: statementName(text), text, values, types: TYPES });
    const [, , holds, { rows }] = await Promise.all([begun, founded, locked, ended]);
    const held = new Set(holds.rows.map(({ tenant }) => tenant));
    for (const { tenant, fence } of holds.rows) tail.rememberFence(tenant, fence);
    const ends = new Map(rows.map((row) => [row.tenant, row]));
    const turns = new Map<string, Turn>();
    for (const [index, tenant] of tenants.entries()) {
      const end = held.has(tenant) ? ends.get(tenant) : undefined;
      checkHead(tenant, seen[index], end);
      if (end === undefined) continue;
      const accepted = () => end.accepted ?? "";
      turns.set(tenant, new Turn(headOf(end), end.now, random, { watch, accepted }));
    }
    const untimely = new Map<Waiting, SallyportError>();
    for (const waiting of group) {
      const trouble = turns.get(waiting.tenant)?.clockTrouble;
      if (trouble !== undefined && !isUrgent(waiting.change)) untimely.set(waiting, trouble);
    }
    if (untimely.size > 0) throw new ClockRefused(untimely);
    return turns;
  }

  /** All writes in the order of their steps, one statement per shape. */
  async #steps(client: PgClient, group: readonly Waiting[], left: KnownRows): Promise<void> {
    const batches = new Map<string, { readonly shape: string; readonly works: TenantStep[] }>();
    const longest = Math.max(...group.map(({ change }) => change.steps.length));
    for (let index = 0; index < longest; index += 1) {
      for (const { tenant, change } of group) {
        const step = change.steps[index];
        if (step === undefined || step.op === "take" || step.op === "require") continue;
        const shape = shapeOf(step);
        const same = batches.get(`${index} ${shape}`) ?? { shape, works: [] };
        batches.set(`${index} ${shape}`, same);
        same.works.push({ tenant, step });
      }
    }
    const { schema } = this.#options;
    const asked = [...batches.values()].map(async ({ shape, works }) => {
      const { rows } = await client.query<Row>(batch(schema, shape, works));
      const [first] = works;
      if (first !== undefined) left.put(first.step.table, rows);
    });
    await Promise.all(asked);
  }

  /** The records as they are now, one query per table. */
  async #look(
    client: PgClient,
    works: readonly TenantStep<Keyed>[],
    left: KnownRows,
  ): Promise<void> {
    const { schema } = this.#options;
    const tables = Map.groupBy(works, ({ step }) => step.table);
    const asked = [...tables].map(async ([table, same]) => {
      // Many changes require the same record, the kill switch.
      const each = new Map(same.map((one) => [`${one.tenant}\n${one.step.id}`, one]));
      const { rows } = await client.query<Row>(look(schema, table, [...each.values()]));
      left.put(table, rows);
    });
    await Promise.all(asked);
  }

  /** All takes, one statement per kind. Returns the takers with their rows, in the order in which they were served. */
  async #takes(client: PgClient, group: readonly Waiting[]): Promise<Map<Waiting, Row[]>> {
    const kinds = new Map<string, { waiting: Waiting; take: Take }[]>();
    for (const waiting of group) {
      const [step] = waiting.change.steps;
      if (step?.op !== "take") continue;
      const take = { tenant: waiting.tenant, step };
      const same = kinds.get(kindOf(take)) ?? [];
      kinds.set(kindOf(take), same);
      same.push({ waiting, take });
    }
    const asked = [...kinds.values()].map(async (same) => {
      const takes = same.map(({ take }) => take);
      const { rows } = await client.query<Row>(takeQuery(this.#options.schema, takes));
      const shares = dealt(rows, takes);
      return same.map(({ waiting }, index) => [waiting, shares[index] ?? []] as const);
    });
    return new Map((await Promise.all(asked)).flat());
  }

  /** Answers the changes that did not hold with what is stored instead. */
  async #refuse(client: PgClient, members: readonly Member[], left: KnownRows): Promise<void> {
    const refused: { readonly member: Member; readonly work: TenantStep<Keyed> }[] = [];
    for (const member of members) {
      const { waiting, rows } = member;
      if (isTaker(waiting)) {
        if (rows.length === 0) member.answer = { committed: false, step: 0, current: undefined };
        continue;
      }
      const step = firstRefused(member, left);
      if (step !== undefined) refused.push({ member, work: { tenant: waiting.tenant, step } });
    }
    if (refused.length === 0) return;
    const current = new KnownRows();
    await this.#look(
      client,
      refused.map(({ work }) => work),
      current,
    );
    const answers = new Map<Waiting, ChangeResult>();
    let isSpoiled = false;
    for (const { member, work } of refused) {
      if (refuse(member, left, current.get(work))) isSpoiled = true;
      answers.set(member.waiting, answerOf(member));
    }
    if (isSpoiled) throw new GroupSpoiled(answers);
  }

  /** Built before anything is sent: if it cannot be built, no COMMIT may have been sent. */
  #blocks(moved: readonly Turn[]): PgQuery | undefined {
    if (moved.length === 0) return undefined;
    const { schema } = this.#options;
    const text = `INSERT INTO ${schema}.audit_blocks (tenant, last, at, head, body)
SELECT x.tenant, x.last, x.at, decode(x.head, 'hex'), decode(x.body, 'base64') FROM json_to_recordset($1::json) AS x(tenant text, last bigint, at bigint, head text, body text)`;
    const blocks = moved.map(
      ({ head: { tenant, seq: last, hash: head }, entries, entryAt: at }) => {
        const body = Buffer.from(packBlock(entries)).toString("base64");
        return { tenant, last, at, head, body };
      },
    );
    return { name: statementName(text), text, values: [JSON.stringify(blocks)] };
  }
}

/** SQL for the end of a chain: its last block, or its last entry of the first format while it has no block. */
export function endOf(schema: string, tenant: string): string {
  return `(SELECT last AS seq, encode(head, 'hex') AS hash, at FROM ${schema}.audit_blocks WHERE tenant = ${tenant} ORDER BY last DESC LIMIT 1)
UNION ALL (SELECT seq, hash, at FROM ${schema}.audit_entries WHERE tenant = ${tenant} ORDER BY seq DESC LIMIT 1) ORDER BY seq DESC LIMIT 1`;
}

/** Whatever the default of the database or the role is: a snapshot from before the lock would be refused or stale. */
export const BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED";

function required({ tenant, change }: Waiting): readonly TenantStep<Keyed>[] {
  return change.steps.flatMap((step) => (step.op === "require" ? [{ tenant, step }] : []));
}

/** In the order of execution: takes come after all other changes. */
function inOrderOfTrail(
  members: readonly Member[],
  takers: ReadonlyMap<Waiting, unknown>,
): readonly Member[] {
  const others = members.filter(({ waiting }) => !isTaker(waiting));
  const all = new Map(members.map((member) => [member.waiting, member]));
  const served = [...takers.keys()].flatMap((waiting) => all.get(waiting) ?? []);
  return [...others, ...served];
}

/** The first write of a tenant creates its chain. Two processes may do so concurrently. */
function found(schema: string, tenants: readonly string[]): { text: string; values: unknown[] } {
  return {
    text: `INSERT INTO ${schema}.chains (tenant) SELECT t FROM unnest($1::text[]) AS t ORDER BY t ON CONFLICT DO NOTHING`,
    values: [tenants],
  };
}

/** The end of a chain, and the clock's time once it was locked. An empty chain has no entry. */
type EndRow = {
  readonly tenant: string;
  readonly now: number;
  /** Read only when the chain is far ahead of the clock. */
  readonly accepted: string | null;
} & (
  | (LockedHead & { readonly at: number })
  | { readonly seq: null; readonly hash: null; readonly at: null; readonly seen_hash: null }
);

function headOf({ tenant, seq, hash, at }: EndRow): ChainHead {
  return seq === null ? emptyHead(tenant) : { tenant, seq, hash, at: toIso(at) };
}

/** One change of a group that is being written. */
interface Member {
  readonly waiting: Waiting;
  readonly turn: Turn;
  /** What its steps left behind, as far as they held. */
  readonly rows: Row[];
  /** Set when it was refused, and at the end. */
  answer: ChangeResult | undefined;
}

/** Some changes were refused after a part of them was written: the transaction is rolled back and the rest written again. */
export class GroupSpoiled extends Error {
  override readonly name = "GroupSpoiled";
  /** Their answers. They were read under the lock, so they hold although nothing was written. */
  readonly refused: ReadonlyMap<Waiting, ChangeResult>;

  constructor(refused: ReadonlyMap<Waiting, ChangeResult>) {
    super("a change of the group was refused half way");
    this.refused = refused;
  }
}

/** These changes are refused while the clock cannot be trusted. Nothing was written. */
export class ClockRefused extends Error {
  override readonly name = "ClockRefused";
  readonly refused: ReadonlyMap<Waiting, SallyportError>;

  constructor(refused: ReadonlyMap<Waiting, SallyportError>) {
    super("the clock of the database cannot be trusted");
    this.refused = refused;
  }
}

/** Records as a step left or found them. No two changes of a group write the same one, or read one that another writes. */
export class KnownRows {
  readonly #tables = new Map<Table, Map<string, Row>>();

  put(table: Table, rows: readonly Row[]): void {
    const kept = this.#tables.get(table) ?? new Map<string, Row>();
    this.#tables.set(table, kept);
    for (const row of rows) kept.set(`${row["tenant"]}\n${row["id"]}`, row);
  }

  get({ tenant, step }: TenantStep<Keyed>): Row | undefined {
    return this.#tables.get(step.table)?.get(`${tenant}\n${step.id}`);
  }
}

/** Collects what the steps left behind, up to the first that does not hold, which is returned. */
export function firstRefused(member: Member, left: KnownRows): Keyed | undefined {
  const { waiting, turn, rows } = member;
  for (const step of waiting.change.steps) {
    if (step.op === "take") continue;
    const row = left.get({ tenant: waiting.tenant, step });
    if (!isMet(step, row, turn.now)) return step;
    rows.push(row ?? {});
  }
  return undefined;
}

function isMet(step: Keyed, row: Row | undefined, at: number): boolean {
  if (step.op !== "require") return row !== undefined;
  return row === undefined ? step.absent === "holds" : holds(row, step.where, at);
}

/** True when one of its steps has written something, which must be rolled back: all its steps were sent together. */
export function refuse(member: Member, left: KnownRows, current: Row | undefined): boolean {
  const { waiting, rows } = member;
  member.answer = { committed: false, step: rows.length, current };
  const { tenant, change } = waiting;
  return change.steps.some((step) => isWrite(step) && left.get({ tenant, step }) !== undefined);
}

function isWrite(step: Step): step is Exclude<Keyed, { op: "require" }> {
  return step.op !== "take" && step.op !== "require";
}

export function isTaker({ change }: Waiting): boolean {
  return change.steps[0]?.op === "take";
}

function answerOf({ answer }: Member): ChangeResult {
  invariant(answer !== undefined, "every member of a group gets an answer");
  return answer;
}

function seal(member: Member): void {
  if (member.answer !== undefined) return;
  const { waiting, turn, rows } = member;
  turn.append(waiting.change, rows);
  const { seq, hash } = turn.head;
  member.answer = { committed: true, at: turn.now, rows, seq, hash };
}

/** A tenant's chain no longer contains what this process saw in it. */
export class HeadLost extends Error {
  override readonly name = "HeadLost";
  readonly tenant: string;
  readonly seen: number;
  readonly found: number;

  constructor(tenant: string, seen: number, found: number) {
    super("the trail ends before the last entry that was acknowledged");
    this.tenant = tenant;
    this.seen = seen;
    this.found = found;
  }
}

/** The end of a tenant's chain as found under the lock. */
export interface LockedHead {
  readonly tenant: string;
  readonly seq: number;
  readonly hash: string;
  /** The hash of the entry with the number that this process saw last; null when it is not there. */
  readonly seen_hash: string | null;
}

/** The same for a chain that may have no entries. */
export type FoundHead = {
  readonly [Key in Exclude<keyof LockedHead, "tenant">]: LockedHead[Key] | null;
};

export type Seen = Pick<ChainHead, "seq" | "hash">;

/** Compares a locked chain with what was seen of it before. Throws HeadLost. */
export function checkHead(tenant: string, seen: Seen | undefined, head?: FoundHead): void {
  if (seen === undefined) return;
  const hash = head?.seq === seen.seq ? head.hash : head?.seen_hash;
  if (hash !== seen.hash) throw new HeadLost(tenant, seen.seq, head?.seq ?? 0);
}
