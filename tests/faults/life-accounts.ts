// What an agent and a person were told in one lifecycle, against what a new process finds.

import pg from "pg";
import { createGate } from "../../src/gate/create-gate.ts";
import { questionId } from "../../src/gate/inbox.ts";
import { startUpkeep } from "../../src/gate/upkeep.ts";
import type { CallAnswer } from "../../src/model/operation.ts";
import { postgresStore } from "../../src/store/postgres/index.ts";
import type { Store } from "../../src/store/store.ts";
import { type Asked, closeAccounts, decisionsOf } from "./accounts.ts";
import {
  LEASE_MS,
  type Line,
  liveThrough,
  QUESTION,
  type Refused,
  refusal,
  SESSION,
  type Step,
  storyOf,
} from "./lifecycle.ts";
import { partsFor, undoOf } from "./production/parts.ts";
import type { Production } from "./production/start-production.ts";
import { untilSettled } from "./settled.ts";

export interface LifeFigures {
  readonly effects: number;
  readonly unknown: number;
  readonly lost: number;
  readonly twice: number;
  /** Errors that said that nothing was written, though it is there. */
  readonly "false nothing was written": number;
}

export const NO_FIGURES: LifeFigures = {
  effects: 0,
  unknown: 0,
  lost: 0,
  twice: 0,
  "false nothing was written": 0,
};

export function addTo(sum: { -readonly [Name in keyof LifeFigures]: number }, more: LifeFigures) {
  for (const name of Object.keys(NO_FIGURES) as (keyof LifeFigures)[]) sum[name] += more[name];
}

export interface Life {
  readonly tenant: string;
  readonly story: readonly Step[];
  readonly lines: readonly Line[];
}

/** Recovers what the lifecycle left, as a process does that starts after it, and closes the books. */
export async function recovered(store: Store, life: Life, production: Production) {
  const { tenant, story, lines } = life;
  const parts = partsFor(production.port, LEASE_MS, { reversible: true });
  const gate = createGate({ ...parts, store, tenant });
  const violations: string[] = [];
  const onError = (error: unknown) => void violations.push(String(error));
  const upkeep = startUpkeep({ gate, everyMs: 30, onError });
  await untilSettled(store, tenant, 60_000).catch(async (error: unknown) => {
    // One that is never at rest is a finding like any other, and must not end a sweep over every point.
    violations.push(`${error}, recovery leaves ${JSON.stringify((await gate.recover()).left)}`);
  });
  await upkeep.stop();
  const ids = new Set(story.map(({ id }) => id));
  const ledger = production.ledger();
  const accounts = await closeAccounts(
    store,
    tenant,
    story.map((step) => askedIn(step, lines)),
    ledger.filter(({ id }) => ids.has(id)),
  );
  violations.push(...accounts.violations);
  let { lost, twice } = accounts.figures;
  let falseSafe = 0;
  const say = (kind: "lost" | "twice" | "falseSafe", text: string) => {
    if (kind === "lost") lost += 1;
    if (kind === "twice") twice += 1;
    if (kind === "falseSafe") falseSafe += 1;
    violations.push(`${kind}: ${text}`);
  };
  const { operations, decisions, interactions } = store.tenant(tenant);
  const all = await operations.listBySession(SESSION);
  for (const step of story) {
    const { id } = step;
    const own = all.filter(({ callId, undoOf: of }) => callId === id && of === "");
    const staged = await decisionsOf(decisions, SESSION, id);
    const begun = step.lane === "ask" ? staged.length : own.length;
    const call = cameOf(lines, id, "call");
    if (call.isSafe && begun > 0) say("falseSafe", `${id}: the call was refused, but is there`);
    if (begun > 1) say("twice", `${id}: it was asked for once, and is there ${begun} times`);
    if (call.refused === "partly_written" && begun === 0)
      say("lost", `${id}: said to be stored, but it is not`);
    const [decisionId] = staged;
    const question = decisionId === undefined ? undefined : await interactions.peek(decisionId);
    const yes = cameOf(lines, id, "approve");
    if (yes.isSafe && question && (question.votes.length > 0 || question.status !== "open"))
      say("falseSafe", `${id}: the yes was refused, but is there`);
    if (yes.refused === "already_answered") say("falseSafe", `${id}: an earlier yes was there`);
    if ((yes.told.length > 0 || yes.refused === "partly_written") && !question?.votes.length)
      say("lost", `${id}: the yes was stored, but it is not there`);
    const no = cameOf(lines, id, "reject");
    if (no.isSafe && question?.status !== "open")
      say("falseSafe", `${id}: the no was refused, but is there`);
    if (no.refused === "already_answered") say("falseSafe", `${id}: an earlier no was there`);
    if (no.told.length > 0 && question?.outcome !== "rejected")
      say("lost", `${id}: the no was stored, but it is not there`);
    const found = cameOf(lines, id, "settle");
    if (found.isSafe && own.some(({ status }) => status !== "unknown"))
      say("falseSafe", `${id}: what was found out was refused, but is there`);
    if (found.refused === "already_answered")
      say("falseSafe", `${id}: an earlier settlement was there`);
    const undo = cameOf(lines, id, "rollback");
    const undone = ledger.filter((line) => line.id === undoOf(id)).length;
    const compensations = all.filter(({ undoOf: of }) => own.some((one) => one.id === of));
    if (undone > 1) say("twice", `${id}: it was undone ${undone} times`);
    if (undo.isSafe && compensations.length > 0)
      say("falseSafe", `${id}: the rollback was refused, but it is there`);
    // A compensation whose own call never began is reported as failed: nothing of it may come later.
    if (undo.told.includes("failed") && (undone > 0 || compensations.length > 0))
      say("falseSafe", `${id}: the rollback failed, but it was begun`);
    if (undo.told.includes("undone") && (undone !== 1 || own[0]?.status !== "rolled_back"))
      say("lost", `${id}: it was undone, but it is ${own[0]?.status}`);
  }
  const question = await interactions.peek(questionId(SESSION, QUESTION));
  const asked = cameOf(lines, QUESTION, "ask");
  if (asked.isSafe && question !== undefined) say("falseSafe", "the question is there");
  if (asked.told.length > 0 && question === undefined) say("lost", "the question is not there");
  const answered = cameOf(lines, QUESTION, "answer");
  if (answered.isSafe && question?.status !== "open") say("falseSafe", "the answer is there");
  if (answered.refused === "already_answered") say("falseSafe", "an earlier answer was there");
  if (answered.told.length > 0 && question?.outcome !== "answered")
    say("lost", "the answer is not there");
  const figures: LifeFigures = {
    effects: accounts.figures.effects,
    unknown: accounts.figures.unknown,
    lost,
    twice,
    "false nothing was written": falseSafe,
  };
  return { figures, violations };
}

export interface OverPostgres {
  readonly schema: string;
  readonly patienceMs: number;
  readonly tenant: string;
  /** The story's name: its things carry it in the ledger. */
  readonly name: string;
  /** All connections are there before it begins, and none is given up. */
  readonly warm?: boolean;
  opened?(): Promise<void>;
  heard?(): void;
}

const CONNECTIONS = 4;
const OPENINGS = 3;

/** The lifecycle over PostgreSQL; answers what was said in it. */
export async function lifeOverPostgres(
  connectionString: string,
  how: OverPostgres,
  productionPort: number,
): Promise<readonly Line[]> {
  const { schema, patienceMs, tenant, name, warm = false } = how;
  const lines: Line[] = [];
  const say = (line: Line) => {
    lines.push(line);
    how.heard?.();
  };
  const pool = new pg.Pool({
    ...{ connectionString, max: CONNECTIONS, pipeline: true },
    ...{ connectionTimeoutMillis: 5_000, idleTimeoutMillis: warm ? 0 : 10_000 },
  });
  pool.on("error", () => {});
  try {
    if (warm) await Promise.all(Array.from({ length: CONNECTIONS }, () => pool.query("SELECT 1")));
    const store = await opened();
    if (store === undefined) return lines;
    await how.opened?.();
    await liveThrough({ store, tenant, productionPort, story: storyOf(name), say });
    await store.close();
    return lines;
  } finally {
    await pool.end();
  }

  async function opened(): Promise<Store | undefined> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await postgresStore({ pool, schema, patienceMs });
      } catch (error) {
        const line = refusal("open", "open", error);
        say(line);
        if (line.retry !== "safe" || attempt === OPENINGS) return undefined;
      }
    }
  }
}

/** What a new process with connections of its own finds. */
export async function recoveredFrom(
  connectionString: string,
  schema: string,
  life: Life,
  production: Production,
) {
  const pool = new pg.Pool({ connectionString, max: CONNECTIONS, pipeline: true });
  pool.on("error", () => {});
  try {
    await using store = await postgresStore({ pool, schema });
    return await recovered(store, life, production);
  } finally {
    await pool.end();
  }
}

/** Makes the tables, so that a lifecycle finds them. */
export async function migrated(connectionString: string, schema: string): Promise<void> {
  const pool = new pg.Pool({ connectionString, max: CONNECTIONS });
  await (await postgresStore({ pool, schema })).close();
  await pool.end();
}

function askedIn(step: Step, lines: readonly Line[]): Asked {
  const told = lines.flatMap((line) =>
    "told" in line && line.id === step.id && ANSWERS.has(line.did) ? [line.told] : [],
  );
  const mayBeTooLate = true;
  return { ...step, session: SESSION, mayBeTooLate, told: told as CallAnswer["answer"][] };
}

/** Actions that are answered with what became of the call. */
const ANSWERS: ReadonlySet<string> = new Set(["call", "approve", "settle"]);

/** Every attempt at one thing: what was told, and how the last one was refused. */
function cameOf(lines: readonly Line[], id: string, did: Refused["did"]) {
  const own = lines.flatMap((line) =>
    "id" in line && line.id === id && line.did === did ? [line] : [],
  );
  const last = own.at(-1);
  return {
    told: own.flatMap((line) => ("told" in line ? [line.told] : [])),
    refused: last !== undefined && "refused" in last ? last.refused : "",
    /** Every attempt was called safe to repeat: nothing of it may be there. */
    isSafe: own.length > 0 && own.every((line) => "retry" in line && line.retry === "safe"),
  };
}
