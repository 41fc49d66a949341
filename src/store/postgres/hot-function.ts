import { DECISIONS } from "../../model/decision.ts";
import { DECOYS } from "../../model/identity.ts";
import { CALL_KEYS, DEFINITIONS, INTERACTIONS } from "../../model/interaction.ts";
import { OPERATIONS } from "../../model/operation.ts";
import { CONTENT_KEYS, SWITCHES } from "../../model/switch.ts";
import { sha256Hex } from "../../util/hash.ts";
import {
  type Cell,
  type Comparison,
  type Conditions,
  insertStep,
  NOW,
  requireStep,
  type Table,
  updateStep,
  type Value,
  type Values,
} from "../engine.ts";
import { JUMP_MS } from "../turn.ts";
import { type Keyed, keyedSql, requireSql, shapeOfKeyed } from "./statements.ts";

// The function that writes a whole group in one statement, and the shapes of the steps that it knows. Its text is part of a
// migration and its name contains the hash of that text, so processes of several versions each call their own.

/** Columns as `shapeOf` writes them: `@` for a time that is counted from the time of the transaction, `+` for a count. */
function set(columns: string): Values {
  const sample = (name: string): Value =>
    name.endsWith("@") ? NOW : name.endsWith("+") ? { plus: 1 } : "";
  return Object.fromEntries(
    columns.split(" ").map((name) => [name.replace(/[@+]$/, ""), sample(name)]),
  );
}

/** Conditions: `=` an equal value, `>=@` a time that is not over, `?` one of a list. */
function where(columns: string): Conditions {
  const testOf = (name: string): Cell | Comparison => {
    if (name.endsWith(">=@")) return { atLeast: NOW };
    return name.endsWith("?") ? { oneOf: [] } : "";
  };
  const names = columns === "" ? [] : columns.split(" ");
  return Object.fromEntries(names.map((name) => [name.replace(/(=|>=@|\?)$/, ""), testOf(name)]));
}

const insert = (table: Table, columns: string) => insertStep(table, "", set(columns));
const update = (table: Table, tests: string, columns: string) =>
  updateStep(table, "", where(tests), set(columns));
const need = (table: Table, tests: string, absent: "holds" | "refuses") =>
  requireStep(table, "", where(tests), absent);

const QUESTION = (escalation: string) =>
  `type status session_id call_id hash preview definitions decision_id operation_id facts votes remarks waits_for assigned_to deadline due_at ${escalation} escalate_to escalated outcome answer answered_by superseded_by version created_at@ updated_at@`;
const YES = (answer: string) =>
  `version+ updated_at@ status due_at outcome ${answer}answered_by superseded_by escalate_at votes`;
const ASKED = "status= version= hash= due_at>=@ deadline>=@";
const DONE = "status output truncated stored_path undo state_version updated_at@";
const FAILED = "status output truncated stored_path error updated_at@";

/**
 * The steps of a question, of a yes with its intent, and of an outcome. Released with migration 4 and never changed: a step
 * of another shape is written by the general path, and a later migration may bring another function. So a field of one of
 * these records needs a migration with another function, or every call is written by the general path.
 */
const STEPS: readonly Keyed[] = [
  need(SWITCHES, "state=", "holds"),
  need(SWITCHES, "state=", "refuses"),
  need(DECOYS, "created_at=", "holds"),
  need(CONTENT_KEYS, "secret=", "refuses"),
  need(DEFINITIONS, "", "refuses"),
  insert(
    DECISIONS,
    "session_id state source_tool raw diff_metadata metadata origin tech_verdict biz_verdict machine_verdict execution_proof execution_error asked unasked awaits_tool created_at@ updated_at@",
  ),
  insert(INTERACTIONS, QUESTION("escalate_at")),
  insert(INTERACTIONS, QUESTION("escalate_at@")),
  insert(CALL_KEYS, "decision_id step action_hash created_at@"),
  update(CALL_KEYS, "decision_id=", "decision_id step action_hash created_at@"),
  insert(DEFINITIONS, "definition"),
  update(INTERACTIONS, ASKED, YES("")),
  update(INTERACTIONS, ASKED, YES("answer ")),
  update(DECISIONS, "state= session_id=", "biz_verdict unasked state updated_at@"),
  insert(
    OPERATIONS,
    "session_id message_id call_id turn tool effect definition_hash input working_directory chain decision_id step undo_of executor status attempt fence lease_until@ output truncated stored_path undo error state_version created_at@ updated_at@",
  ),
  update(OPERATIONS, "fence= session_id= status?", DONE),
  update(OPERATIONS, "fence= session_id= status=", DONE),
  update(OPERATIONS, "fence= session_id= status?", FAILED),
  update(OPERATIONS, "fence= session_id= status=", FAILED),
  update(DECISIONS, "state= session_id=", "execution_proof awaits_tool state updated_at@"),
];

/** The place of each shape among the arguments and the answers of the function. */
export const HOT_SHAPES: ReadonlyMap<string, number> = new Map(
  STEPS.map((step, index) => [shapeOfKeyed(step), index]),
);

/** Its own refusals. Whatever it raises, everything is rolled back and the general path says what is the matter. */
const REFUSED = "SP001";

const raise = (message: string) =>
  `RAISE EXCEPTION USING ERRCODE = '${REFUSED}', MESSAGE = '${message}';`;

/** SQL for the time of a tenant's changes. */
const TIME = "(v_times ->> x.t)::bigint";

function statementOf(step: Keyed, index: number): string {
  const works = `w${index}`;
  const refused = raise(`a step of ${step.table.name} does not hold`);
  const kept = `v_rows[${index + 1}] := v_left;`;
  if (step.op === "require") {
    // Rows that match, or with `holds` those that do not.
    const { text, expected } = requireSql("$schema", step, works);
    return `IF ${works} IS NOT NULL THEN
  ${text}
  IF v_count <> ${expected} THEN ${refused} END IF;
  ${kept}
END IF;`;
  }
  return `IF ${works} IS NOT NULL THEN
  WITH done AS (${keyedSql("$schema", step, TIME, works)})
  SELECT count(*), json_agg(done) INTO v_count, v_left FROM done;
  IF v_count <> json_array_length(${works}) THEN ${refused} END IF;
  ${kept}
END IF;`;
}

/**
 * The order of the general path: locks, the ends of the chains as they are once the locks are held, the time, conditions,
 * writes, links, blocks. Every statement in it sees what was committed before it began, as READ COMMITTED promises.
 *
 * A statement may reach the server long after its connection was given up. `fences` makes that harmless: who looks up a lost
 * answer and finds nothing raises the fence, and a statement with an older one is refused.
 */
const BODY = `#variable_conflict use_column
DECLARE
  v_chain record;
  v_now bigint;
  v_last bigint;
  v_at bigint;
  v_head bytea;
  v_found bytea;
  v_times jsonb;
  v_leaves bytea;
  v_link text;
  v_iso text;
  v_count bigint := 0;
  v_left json;
  v_rows json[] := array_fill(NULL::json, ARRAY[${STEPS.length}]);
  v_lasts bigint[] := '{}';
  v_ats bigint[] := '{}';
  v_prevs text[] := '{}';
  v_heads text[] := '{}';
BEGIN
IF current_setting('transaction_isolation') <> 'read committed' THEN ${raise("not READ COMMITTED")} END IF;
FOR v_chain IN SELECT c.tenant, c.fence FROM $schema.chains AS c WHERE c.tenant = ANY(tenants) ORDER BY c.tenant FOR UPDATE LOOP
  IF v_chain.fence <> fences[array_position(tenants, v_chain.tenant)] THEN ${raise("an older fence")} END IF;
  v_count := v_count + 1;
END LOOP;
IF v_count <> cardinality(tenants) THEN ${raise("a chain is missing")} END IF;
v_now := coalesce(clock, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
IF v_now < earliest OR v_now > latest THEN ${raise("the clock jumped")} END IF;
FOR i IN 1 .. cardinality(tenants) LOOP
  SELECT b.last, b.head, b.at INTO v_last, v_head, v_at FROM $schema.audit_blocks AS b WHERE b.tenant = tenants[i] ORDER BY b.last DESC LIMIT 1;
  v_found := v_head;
  IF v_last IS DISTINCT FROM seen[i] THEN
    SELECT b.head INTO v_found FROM $schema.audit_blocks AS b WHERE b.tenant = tenants[i] AND b.last = seen[i];
  END IF;
  IF v_found IS DISTINCT FROM decode(seen_heads[i], 'hex') THEN ${raise("the trail lost what was seen of it")} END IF;
  IF v_at > v_now + ${JUMP_MS} THEN ${raise("the trail is ahead of the clock")} END IF;
  v_lasts[i] := v_last;
  v_prevs[i] := encode(v_head, 'hex');
  v_ats[i] := greatest(v_at, v_now);
END LOOP;
v_times := jsonb_object(tenants, v_ats::text[]);
${STEPS.map(statementOf).join("\n")}
FOR i IN 1 .. cardinality(tenants) LOOP
  v_iso := to_char(timestamp 'epoch' + v_ats[i] * interval '1 millisecond', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
  v_leaves := decode(leaves[i], 'hex');
  v_link := v_prevs[i];
  v_last := v_lasts[i];
  FOR j IN 1 .. length(v_leaves) / 32 LOOP
    v_last := v_last + 1;
    v_link := encode(sha256(convert_to('{"at":"' || v_iso || '","leaf":"' || encode(substring(v_leaves FROM 32 * j - 31 FOR 32), 'hex') || '","prev":"' || v_link || '","seq":' || v_last || ',"v":2}', 'UTF8')), 'hex');
  END LOOP;
  v_heads[i] := v_link;
  INSERT INTO $schema.audit_blocks (tenant, last, at, head, body) VALUES (tenants[i], v_last, v_ats[i], decode(v_link, 'hex'), decode(bodies[i], 'base64'));
END LOOP;
RETURN json_build_object('now', v_now, 'lasts', v_lasts, 'ats', v_ats, 'prevs', v_prevs, 'heads', v_heads, 'rows', v_rows);
END`;

const ARGUMENTS = [
  ...["tenants text[]", "fences bigint[]", "seen bigint[]", "seen_heads text[]"],
  ...["leaves text[]", "bodies text[]", "clock bigint", "earliest bigint", "latest bigint"],
  ...STEPS.map((_, index) => `w${index} json`),
];

const NAME = `commit_${sha256Hex(BODY).slice(0, 12)}`;

/** The fence that its statements carry. */
export const FENCE = "ALTER TABLE $schema.chains ADD COLUMN fence bigint NOT NULL DEFAULT 0;";

/** With the rights of who calls it. */
export const HOT_FUNCTION = `CREATE FUNCTION $schema.${NAME}(${ARGUMENTS.join(", ")}) RETURNS json LANGUAGE plpgsql VOLATILE SECURITY INVOKER AS $hot$
${BODY}
$hot$;`;

/** One row with one column, `answer`. */
export function hotCall(schema: string): string {
  return `SELECT ${schema}.${NAME}(${ARGUMENTS.map((_, index) => `$${index + 1}`).join(", ")}) AS answer`;
}
