import { fromIso, toIso } from "../../util/clock.ts";
import {
  bucketMs,
  byCountKey,
  type CallFilter,
  type CallIndex,
  type CallOutcome,
  type CountBy,
  type IndexedCall,
  searchedWords,
} from "../call-index.ts";

// The index of calls in tables of its own: derived from the log, and filled in by whoever reads it.

export const CALL_INDEX_TABLES = `CREATE TABLE $schema.calls (
  tenant text NOT NULL,
  id text NOT NULL,
  kind text NOT NULL,
  seq bigint NOT NULL,
  at bigint NOT NULL,
  session_id text NOT NULL,
  agent text NOT NULL,
  tool text NOT NULL,
  title text NOT NULL,
  outcome text NOT NULL,
  decided_by text NOT NULL,
  reason text NOT NULL,
  wait_ms bigint,
  words tsvector NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX calls_by_time ON $schema.calls (tenant, at, id);
CREATE INDEX calls_by_outcome ON $schema.calls (tenant, outcome, at, id);
CREATE INDEX calls_by_agent ON $schema.calls (tenant, agent, at, id);
CREATE INDEX calls_by_tool ON $schema.calls (tenant, tool, at, id);
CREATE INDEX calls_by_words ON $schema.calls USING gin (words);
CREATE TABLE $schema.call_places (
  tenant text PRIMARY KEY,
  seq bigint NOT NULL,
  hash text NOT NULL
);`;

type Ask = <R>(text: string, values: readonly unknown[]) => Promise<R[]>;

export function postgresCallIndex(tenant: string, schema: string, ask: Ask): CallIndex {
  const calls = `${schema}.calls`;
  const places = `${schema}.call_places`;
  return {
    async place() {
      const text = `SELECT seq, hash FROM ${places} WHERE tenant = $1`;
      const [row] = await ask<{ seq: number; hash: string }>(text, [tenant]);
      return row;
    },
    async put(documents, { seq, hash }) {
      if (documents.length > 0) {
        const columns = documents.map((one) => ({ ...one, at: fromIso(one.at) }));
        await ask(
          `INSERT INTO ${calls} SELECT $1, id, kind, seq, at, "sessionId", agent, tool, title, outcome, "by", reason, "waitMs", array_to_tsvector(string_to_array(words, ' ')) FROM json_to_recordset($2::json) AS given (id text, kind text, seq bigint, at bigint, "sessionId" text, agent text, tool text, title text, outcome text, "by" text, reason text, "waitMs" bigint, words text) ON CONFLICT (tenant, id) DO UPDATE SET kind = excluded.kind, seq = excluded.seq, at = excluded.at, session_id = excluded.session_id, agent = excluded.agent, tool = excluded.tool, title = excluded.title, outcome = excluded.outcome, decided_by = excluded.decided_by, reason = excluded.reason, wait_ms = excluded.wait_ms, words = excluded.words WHERE excluded.seq >= calls.seq`,
          [tenant, JSON.stringify(columns)],
        );
      }
      await ask(
        `INSERT INTO ${places} AS known VALUES ($1, $2, $3) ON CONFLICT (tenant) DO UPDATE SET seq = excluded.seq, hash = excluded.hash WHERE excluded.seq >= known.seq`,
        [tenant, seq, hash],
      );
    },
    async clear() {
      await ask(`DELETE FROM ${places} WHERE tenant = $1`, [tenant]);
      await ask(`DELETE FROM ${calls} WHERE tenant = $1`, [tenant]);
    },
    async find(filter, { limit, after }) {
      const { tests, values, add } = testsOf(tenant, filter);
      if (after !== undefined) {
        tests.push(`(at, id) < (${add(fromIso(after.at))}::bigint, ${add(after.id)})`);
      }
      const text = `SELECT id, kind, at, session_id AS "sessionId", agent, tool, title, outcome, decided_by AS "by", reason, wait_ms AS "waitMs" FROM ${calls} WHERE ${tests.join(" AND ")} ORDER BY at DESC, id DESC LIMIT ${add(limit)}`;
      const rows = await ask<IndexedCall & { at: unknown }>(text, values);
      return rows.map((row) => ({ ...row, at: toIso(Number(row.at)) }));
    },
    async count(filter, by) {
      const { tests, values } = testsOf(tenant, filter);
      const text = `SELECT ${keyOf(by)} AS key, outcome, count(*)::bigint AS count FROM ${calls} WHERE ${tests.join(" AND ")} GROUP BY 1, 2`;
      const rows = await ask<{ key: string | number; outcome: CallOutcome; count: number }>(
        text,
        values,
      );
      return rows
        .map(({ key, outcome, count }) => ({
          key: by === "hour" || by === "day" ? toIso(Number(key)) : String(key),
          outcome,
          count: Number(count),
        }))
        .sort(byCountKey);
    },
    async waits(filter) {
      const { tests, values } = testsOf(tenant, filter);
      const text = `SELECT wait_ms AS "waitMs" FROM ${calls} WHERE ${tests.join(" AND ")} AND wait_ms IS NOT NULL ORDER BY wait_ms`;
      return (await ask<{ waitMs: number }>(text, values)).map(({ waitMs }) => Number(waitMs));
    },
  };
}

function keyOf(by: CountBy): string {
  if (by === "by") return "decided_by";
  if (by === "agent" || by === "tool") return by;
  const size = bucketMs(by);
  return `(at / ${size} * ${size})::bigint`;
}

function testsOf(tenant: string, filter: CallFilter) {
  const values: unknown[] = [];
  const add = (value: unknown) => `$${values.push(value)}`;
  const tests = [`tenant = ${add(tenant)}`];
  const { text = "", agent, tool, by, sessionId, outcomes, from, to } = filter;
  const words = searchedWords(text);
  if (words.length > 0) {
    // Letters and digits only, so nothing in them is an operator.
    tests.push(`words @@ ${add(words.map((word) => `'${word}':*`).join(" & "))}::tsquery`);
  }
  if (agent !== undefined) tests.push(`agent = ${add(agent)}`);
  if (tool !== undefined) tests.push(`tool = ${add(tool)}`);
  if (by !== undefined) tests.push(`decided_by = ${add(by)}`);
  if (sessionId !== undefined) tests.push(`session_id = ${add(sessionId)}`);
  if (outcomes !== undefined) tests.push(`outcome = ANY (${add([...outcomes])}::text[])`);
  if (from !== undefined) tests.push(`at >= ${add(fromIso(from))}::bigint`);
  if (to !== undefined) tests.push(`at < ${add(fromIso(to))}::bigint`);
  return { tests, values, add };
}
