import { type ChainHead, emptyHead } from "../../model/audit-entry.ts";
import { type Clock, toIso } from "../../util/clock.ts";
import { invariant } from "../../util/invariant.ts";
import type { Random } from "../../util/random.ts";
import type { Cell, ChangeResult, Row, Step, Table } from "../engine.ts";
import { holds } from "../evaluate.ts";
import type { Waiting } from "../group-commit.ts";
import { Turn } from "../turn.ts";
import { type PgClient, type PgQuery, TYPES } from "./connection.ts";
import { batch, type Keyed, look, nameOf, shapeOf, type Work } from "./statements.ts";
import { dealt, kindOf, type Take, takeQuery } from "./takes.ts";

export interface WriterOptions {
  readonly schema: string;
  readonly random: Random;
  /** Only for tests that move the clock; otherwise the database's own decides. */
  readonly clock?: Clock;
}

/** Where the chain of each tenant that wrote something ends, so that a commit with a lost answer can be told from one that never happened. */
export type Ends = ReadonlyMap<string, ChainHead>;

/** A later step of a change did not hold after an earlier one was written: the group cannot go on together. */
export class GroupSpoiled extends Error {
  override readonly name = "GroupSpoiled";
  /** The answer that change gets when it is alone. */
  readonly refusal: ChangeResult;

  constructor(refusal: ChangeResult) {
    super("one change of the group was refused half way");
    this.refusal = refusal;
  }
}

interface Member {
  readonly waiting: Waiting;
  readonly turn: Turn;
  readonly rows: Row[];
  /** Set when it was refused, and at the end. */
  answer: ChangeResult | undefined;
}

export interface Written {
  readonly results: readonly ChangeResult[];
  readonly ends: Ends;
  /** The entries and the COMMIT, on their way to the server; never rejects, so that both failures can be looked at. */
  readonly committing: Promise<readonly PromiseSettledResult<unknown>[]>;
}

/** Writes a group of changes with their audit entries in one transaction. */
export class Writer {
  readonly #options: WriterOptions;
  readonly #known = new Set<string>();

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** To be told after the commit: only then is it certain that these tenants have a chain. */
  committed(ends: Ends): void {
    for (const tenant of ends.keys()) this.#known.add(tenant);
  }

  async write(client: PgClient, group: readonly Waiting[]): Promise<Written> {
    // What is only looked at is asked for behind the lock, in the same round trip: nobody can change it in between.
    const [turns, seen] = await Promise.all([
      this.#lock(client, group),
      this.#look(
        client,
        group.flatMap((one) => requiredFrom(one, 0)),
      ),
    ]);
    const members = group.map((waiting): Member => {
      const turn = turns.get(waiting.tenant);
      invariant(turn !== undefined, "a tenant's chain vanished while it was locked");
      return { waiting, turn, rows: [], answer: undefined };
    });
    for (const member of members) meet(member, seen);
    for (let due = members.filter(isDue); due.length > 0; due = due.filter(isDue)) {
      await this.#steps(client, due);
    }
    const takers = await this.#takes(client, members);
    // The trail tells it in the order it was done: takes come after all the others.
    for (const member of [...members.filter((one) => !isTaker(one)), ...takers]) seal(member);
    const moved = [...turns.values()].filter(({ entries }) => entries.length > 0);
    const ends = new Map(moved.map(({ head }) => [head.tenant, head]));
    // Sent together: on a pipelined connection they share one round trip. If the entries fail, the server turns the
    // COMMIT into a rollback by itself.
    const entries = this.#entries(moved);
    const appended = entries === undefined ? undefined : client.query(entries);
    const committed = client.query({ text: "COMMIT" });
    const results = members.map(answerOf);
    return { results, ends, committing: Promise.allSettled([appended, committed]) };
  }

  /**
   * All writers of a tenant take turns on the row that holds the end of its chain, and the order of the turns is the order
   * of the trail. The time is read after the turn was got: a long wait must not make an expired thing look alive.
   */
  async #lock(client: PgClient, group: readonly Waiting[]): Promise<Map<string, Turn>> {
    const { schema, clock, random } = this.#options;
    const tenants = [...new Set(group.map(({ tenant }) => tenant))].sort();
    const fresh = tenants.filter((tenant) => !this.#known.has(tenant));
    const begun = client.query({ text: "BEGIN" });
    const founded = fresh.length === 0 ? undefined : client.query(found(schema, fresh));
    const text = `WITH locked AS MATERIALIZED (SELECT tenant, seq, hash, at FROM ${schema}.chains WHERE tenant = ANY($1) ORDER BY tenant FOR UPDATE)
SELECT locked.*, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now FROM locked`;
    const locked = client.query<{
      tenant: string;
      seq: number;
      hash: string;
      at: number;
      now: number;
    }>({ name: nameOf(text), text, values: [tenants], types: TYPES });
    // Asked for together: on a pipelined connection they share one round trip.
    const [, , { rows }] = await Promise.all([begun, founded, locked]);
    return new Map(
      rows.map(({ tenant, seq, hash, at, now }) => {
        const head = { tenant, seq, hash, at: toIso(at) };
        return [tenant, new Turn(head, clock?.now() ?? now, random)];
      }),
    );
  }

  /** The next write of all these, one statement per shape, and what they require after it. */
  async #steps(client: PgClient, due: readonly Member[]): Promise<void> {
    const shapes = new Map<string, { member: Member; work: Work }[]>();
    for (const member of due) {
      const step = nextOf(member);
      if (step === undefined || step.op === "take" || step.op === "require") continue;
      const shape = shapeOf(step);
      const same = shapes.get(shape) ?? [];
      shapes.set(shape, same);
      same.push({ member, work: { tenant: member.waiting.tenant, at: member.turn.at, step } });
    }
    const { schema } = this.#options;
    const asked = [...shapes.values()].map(async (same) => {
      const works = same.map(({ work }) => work);
      const { rows } = await client.query<Row>(batch(schema, works));
      const written = byId(rows);
      return same.filter(({ member, work }) => {
        const row = written.get(idOf(work.tenant, work.step.id));
        if (row !== undefined) member.rows.push(row);
        return row === undefined;
      });
    });
    const required = due.flatMap(({ waiting, rows }) => requiredFrom(waiting, rows.length + 1));
    const [seen, ...refused] = await Promise.all([this.#look(client, required), ...asked]);
    await this.#refuse(client, refused.flat());
    for (const member of due) meet(member, seen);
  }

  /** The records as they are now, one query per table. */
  async #look(client: PgClient, works: readonly Looked[]): Promise<Seen> {
    const { schema } = this.#options;
    const tables = Map.groupBy(works, ({ step }) => step.table);
    const asked = [...tables].map(async ([table, same]) => {
      // Many require the same record: that nothing is stopped.
      const each = new Map(same.map((one) => [idOf(one.tenant, one.step.id), one]));
      const { rows } = await client.query<Row>(look(schema, table, [...each.values()]));
      return [table, byId(rows)] as const;
    });
    return new Map(await Promise.all(asked));
  }

  /** All takes, one statement per kind; gives the takers back in the order in which they were served. */
  async #takes(client: PgClient, members: readonly Member[]): Promise<readonly Member[]> {
    const kinds = new Map<string, { member: Member; take: Take }[]>();
    for (const member of members) {
      const [step] = member.waiting.change.steps;
      if (step?.op !== "take") continue;
      const take = { tenant: member.waiting.tenant, at: member.turn.at, step };
      const same = kinds.get(kindOf(take)) ?? [];
      kinds.set(kindOf(take), same);
      same.push({ member, take });
    }
    const asked = [...kinds.values()].map(async (same) => {
      const takes = same.map(({ take }) => take);
      const { rows } = await client.query<Row>(takeQuery(this.#options.schema, takes));
      const shares = dealt(rows, takes);
      for (const [index, { member }] of same.entries()) {
        member.rows.push(...(shares[index] ?? []));
        if (member.rows.length > 0) continue;
        member.answer = { committed: false, step: 0, current: undefined };
      }
      return same.map(({ member }) => member);
    });
    return (await Promise.all(asked)).flat();
  }

  /** Tells those whose write did not hold what is there instead. */
  async #refuse(
    client: PgClient,
    refused: readonly { readonly member: Member; readonly work: Work }[],
  ): Promise<void> {
    const seen = await this.#look(
      client,
      refused.map(({ work }) => work),
    );
    for (const { member, work } of refused) refuse(member, rowIn(seen, work));
  }

  /** Made before anything is sent: if it cannot be made, there must be no COMMIT on its way. */
  #entries(moved: readonly Turn[]): PgQuery | undefined {
    if (moved.length === 0) return undefined;
    const { schema } = this.#options;
    const text = `WITH written AS (
INSERT INTO ${schema}.audit (tenant, seq, at, type, subject, session, actor, data, salt, hash)
SELECT * FROM json_to_recordset($1::json) AS x(tenant text, seq bigint, at bigint, type text, subject text, session text, actor text, data text, salt text, hash text))
UPDATE ${schema}.chains AS c SET seq = h.seq, hash = h.hash, at = h.at
FROM json_to_recordset($2::json) AS h(tenant text, seq bigint, hash text, at bigint) WHERE c.tenant = h.tenant`;
    const entries = moved.flatMap(({ entries: some, at }) =>
      // The hashes of the data and of the entry before follow from what is stored: sending them would only cost time.
      some.map(({ dataHash: _, prev: _prev, ...one }) => ({ ...one, at })),
    );
    const heads = moved.map(({ head, at }) => ({ ...head, at }));
    const values = [JSON.stringify(entries), JSON.stringify(heads)];
    return { name: nameOf(text), text, values };
  }
}

type Looked = Pick<Work<Keyed>, "tenant" | "step">;
type Seen = ReadonlyMap<Table, ReadonlyMap<string, Row>>;

function idOf(tenant: Cell | undefined, id: Cell | undefined): string {
  return `${tenant}\n${id}`;
}

function byId(rows: readonly Row[]): ReadonlyMap<string, Row> {
  return new Map(rows.map((row) => [idOf(row["tenant"], row["id"]), row]));
}

function rowIn(seen: Seen, { tenant, step }: Looked): Row | undefined {
  return seen.get(step.table)?.get(idOf(tenant, step.id));
}

/** Every step leaves a row behind, so their number says how far a change has come. */
function nextOf({ waiting, rows }: Member): Step | undefined {
  return waiting.change.steps[rows.length];
}

function isDue(member: Member): boolean {
  return member.answer === undefined && nextOf(member) !== undefined && !isTaker(member);
}

/** The records that a change requires from this step on, up to its next write. */
function requiredFrom({ tenant, change }: Waiting, index: number): readonly Looked[] {
  const looked: Looked[] = [];
  for (const step of change.steps.slice(index)) {
    if (step.op !== "require") break;
    looked.push({ tenant, step });
  }
  return looked;
}

/** Goes on over what is required, up to the next write; refused where it does not hold. */
function meet(member: Member, seen: Seen): void {
  const { waiting, turn, rows } = member;
  for (let step = nextOf(member); member.answer === undefined; step = nextOf(member)) {
    if (step?.op !== "require") return;
    const row = rowIn(seen, { tenant: waiting.tenant, step });
    if (row === undefined ? step.absent === "holds" : holds(row, step.where, turn.at)) {
      rows.push(row ?? {});
    } else refuse(member, row);
  }
}

function refuse(member: Member, current: Row | undefined): void {
  const { waiting, rows } = member;
  const refusal = { committed: false, step: rows.length, current } as const;
  member.answer = refusal;
  const before = waiting.change.steps.slice(0, rows.length);
  if (before.some(({ op }) => op !== "require")) throw new GroupSpoiled(refusal);
}

function isTaker({ waiting }: Member): boolean {
  return waiting.change.steps[0]?.op === "take";
}

function answerOf({ answer }: Member): ChangeResult {
  invariant(answer !== undefined, "every member of a group gets an answer");
  return answer;
}

function seal(member: Member): void {
  if (member.answer !== undefined) return;
  const { waiting, turn, rows } = member;
  turn.append(waiting.change, rows);
  member.answer = { committed: true, at: turn.at, rows, seq: turn.head.seq };
}

/** The first write of a tenant makes its chain; two processes doing so at once is no conflict. */
function found(schema: string, tenants: readonly string[]): { text: string; values: unknown[] } {
  const { hash, at } = emptyHead("");
  return {
    text: `INSERT INTO ${schema}.chains (tenant, seq, hash, at) SELECT t, 0, $2, $3 FROM unnest($1::text[]) AS t ORDER BY t ON CONFLICT DO NOTHING`,
    values: [tenants, hash, Date.parse(at)],
  };
}
