import { type ChainHead, emptyHead } from "../../model/audit-entry.ts";
import type { SallyportError } from "../../model/errors.ts";
import { CLOCK, SWITCHES } from "../../model/switch.ts";
import { type Clock, toIso } from "../../util/clock.ts";
import { invariant } from "../../util/error-text.ts";
import type { Random } from "../../util/random.ts";
import { type ClockWatch, JUMP_MS } from "../clock-watch.ts";
import type { ChangeResult, Row } from "../engine.ts";
import { isUrgent } from "../evaluate.ts";
import type { Waiting } from "../group-commit.ts";
import { Turn } from "../turn.ts";
import { type PgClient, type PgQuery, sentTogether, TYPES } from "./connection.ts";
import {
  answerOf,
  ClockRefused,
  firstRefused,
  GroupSpoiled,
  isTaker,
  Left,
  type Member,
  refuse,
  seal,
} from "./group-writer.ts";
import { checkHead, type LockedHead, type LostTail } from "./lost-tail.ts";
import {
  batch,
  dealt,
  type Keyed,
  kindOf,
  look,
  nameOf,
  shapeOf,
  type Take,
  TIMES,
  takeQuery,
  type Work,
} from "./statements.ts";

export interface WriterOptions {
  readonly schema: string;
  readonly random: Random;
  /** What this process last saw of each chain. */
  readonly tail: LostTail;
  /** Only for tests that move the clock; otherwise the database's own decides. */
  readonly clock?: Clock;
  /** Compares the clock with time that nobody can set. */
  readonly clockWatch?: ClockWatch | undefined;
}

/** Where the chain of each tenant that wrote something ends, so that a commit with a lost answer can be told from one that never happened. */
export type Ends = ReadonlyMap<string, ChainHead>;

export interface Written {
  readonly results: readonly ChangeResult[];
  readonly ends: Ends;
  /** The entries and the COMMIT, on their way to the server; never rejects, so that both failures can be looked at. */
  readonly committing: Promise<readonly PromiseSettledResult<unknown>[]>;
}

/** Writes a group of changes with their audit entries in one transaction. */
export class Writer {
  readonly #options: WriterOptions;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** To be told after the commit: only then is it certain that these chains end so. */
  committed(ends: Ends): void {
    for (const head of ends.values()) this.#options.tail.remember(head);
  }

  async write(client: PgClient, group: readonly Waiting[]): Promise<Written> {
    const left = new Left();
    // One round trip with the turn in hand: nobody can change in between what is only looked at, and what turns out not
    // to hold is rolled back.
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
    const entries = this.#entries(moved);
    // If the entries fail, the server turns the COMMIT into a rollback by itself.
    const committing = sentTogether(client, () =>
      Promise.allSettled([
        entries === undefined ? undefined : client.query(entries),
        client.query({ text: "COMMIT" }),
      ]),
    );
    return { results: members.map(answerOf), ends, committing };
  }

  /**
   * All writers of a tenant take turns on the row that holds the end of its chain, and the order of the turns is the order
   * of the trail. The time is read after the turn was got: a long wait must not make an expired thing look alive.
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
    // Only locked, never written: a row that is written with every turn has a thousand dead versions a second, and while
    // somebody's long snapshot keeps them each turn has to walk past all of them.
    const lock = `SELECT tenant FROM ${schema}.chains WHERE tenant = ANY($1) ORDER BY tenant FOR UPDATE`;
    const locked = client.query<{ tenant: string }>({
      name: nameOf(lock),
      text: lock,
      values: [tenants],
    });
    // A statement of its own: one that waits for a lock sees the trail as it was before the wait.
    // If others have written since, the entry that this process saw last is looked up: it must still be there.
    // The time of each tenant is the one that Turn works out: never a little before the last entry, the clock's own when the
    // trail is known to be ahead.
    const text = `WITH clock AS MATERIALIZED (SELECT coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now),
ends AS MATERIALIZED (SELECT k.tenant, k.seen, e.seq, e.hash, e.at, clock.now,
CASE WHEN e.at > clock.now + ${JUMP_MS} THEN (SELECT w.state FROM ${schema}.${SWITCHES.name} AS w WHERE w.tenant = k.tenant AND w.id = '${CLOCK}') END AS accepted
FROM clock, unnest($1::text[], $3::bigint[]) AS k(tenant, seen)
LEFT JOIN LATERAL (SELECT seq, hash, at FROM ${schema}.audit WHERE tenant = k.tenant ORDER BY seq DESC LIMIT 1) AS e ON true),
timed AS (SELECT tenant, CASE WHEN accepted IS NOT NULL AND extract(epoch FROM accepted::timestamptz) * 1000 >= at THEN now ELSE greatest(at, now) END AS time FROM ends)
SELECT ends.*, set_config('${TIMES}', (SELECT json_object_agg(tenant, time)::text FROM timed), true) AS times,
CASE WHEN seq > seen THEN (SELECT s.hash FROM ${schema}.audit AS s WHERE s.tenant = ends.tenant AND s.seq = ends.seen) END AS seen_hash
FROM ends`;
    const values = [tenants, clock?.now() ?? null, seen.map((head) => head?.seq ?? null)];
    const ended = client.query<EndRow>({ name: nameOf(text), text, values, types: TYPES });
    const [, , holds, { rows }] = await Promise.all([begun, founded, locked, ended]);
    const held = new Set(holds.rows.map(({ tenant }) => tenant));
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
  async #steps(client: PgClient, group: readonly Waiting[], left: Left): Promise<void> {
    const batches = new Map<string, { readonly shape: string; readonly works: Work[] }>();
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
  async #look(client: PgClient, works: readonly Work<Keyed>[], left: Left): Promise<void> {
    const { schema } = this.#options;
    const tables = Map.groupBy(works, ({ step }) => step.table);
    const asked = [...tables].map(async ([table, same]) => {
      // Many require the same record: that nothing is stopped.
      const each = new Map(same.map((one) => [`${one.tenant}\n${one.step.id}`, one]));
      const { rows } = await client.query<Row>(look(schema, table, [...each.values()]));
      left.put(table, rows);
    });
    await Promise.all(asked);
  }

  /** All takes, one statement per kind; gives the takers with their rows in the order in which they were served. */
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

  /** Tells those that did not hold what is there instead. */
  async #refuse(client: PgClient, members: readonly Member[], left: Left): Promise<void> {
    const refused: { readonly member: Member; readonly work: Work<Keyed> }[] = [];
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
    const current = new Left();
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

  /** Made before anything is sent: if it cannot be made, there must be no COMMIT on its way. */
  #entries(moved: readonly Turn[]): PgQuery | undefined {
    if (moved.length === 0) return undefined;
    const { schema } = this.#options;
    const text = `INSERT INTO ${schema}.audit (tenant, seq, at, type, subject, session, actor, data, salt, hash)
SELECT * FROM json_to_recordset($1::json) AS x(tenant text, seq bigint, at bigint, type text, subject text, session text, actor text, data text, salt text, hash text)`;
    const entries = moved.flatMap(({ entries: some, entryAt }) =>
      // The hashes of the data and of the entry before follow from what is stored: sending them would only cost time.
      some.map(({ dataHash: _, prev: _prev, ...one }) => ({ ...one, at: entryAt })),
    );
    return { name: nameOf(text), text, values: [JSON.stringify(entries)] };
  }
}

/** Whatever the database or the role has for a default: a snapshot from before the turn would be refused or stale. */
export const BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED";

function required({ tenant, change }: Waiting): readonly Work<Keyed>[] {
  return change.steps.flatMap((step) => (step.op === "require" ? [{ tenant, step }] : []));
}

/** As it was done: takes come after all the others. */
function inOrderOfTrail(
  members: readonly Member[],
  takers: ReadonlyMap<Waiting, unknown>,
): readonly Member[] {
  const others = members.filter(({ waiting }) => !isTaker(waiting));
  const all = new Map(members.map((member) => [member.waiting, member]));
  const served = [...takers.keys()].flatMap((waiting) => all.get(waiting) ?? []);
  return [...others, ...served];
}

/** The first write of a tenant makes its chain; two processes doing so at once is no conflict. */
function found(schema: string, tenants: readonly string[]): { text: string; values: unknown[] } {
  return {
    text: `INSERT INTO ${schema}.chains (tenant) SELECT t FROM unnest($1::text[]) AS t ORDER BY t ON CONFLICT DO NOTHING`,
    values: [tenants],
  };
}

/** Where a chain ends, and what the clock said when its turn began. An empty chain has no entry. */
type EndRow = {
  readonly tenant: string;
  readonly now: number;
  /** Asked for only when the chain is far ahead of the clock. */
  readonly accepted: string | null;
} & (
  | (LockedHead & { readonly at: number })
  | { readonly seq: null; readonly hash: null; readonly at: null; readonly seen_hash: null }
);

function headOf({ tenant, seq, hash, at }: EndRow): ChainHead {
  return seq === null ? emptyHead(tenant) : { tenant, seq, hash, at: toIso(at) };
}
