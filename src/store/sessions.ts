import type { SessionId } from "../model/decision.ts";
import { isRunId, RUNS, type Run, type RunEvent, type RunId } from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import { SESSIONS, type SessionRecord } from "../model/identity.ts";
import { checkName } from "../model/names.ts";
import { definedFields } from "../util/defined-fields.ts";
import type { JsonObject } from "../util/json.ts";
import type { By } from "./decisions.ts";
import { type EventPlan, insertStep, NOW, updateStep } from "./engine.ts";
import { everyOne, peekRecord, type TenantEngine, writeRecord } from "./tenant-engine.ts";

export interface SessionStore {
  /**
   * Opened again by the same agent it is the same session, as it was. Throws already_exists when it is another agent's or
   * works under another claim.
   */
  open(session: NewSession): Promise<SessionRecord>;
  /** Undefined if it was not opened through this store. */
  peek(id: SessionId): Promise<SessionRecord | undefined>;
  /** Oldest first. */
  list(query: SessionQuery): Promise<readonly SessionRecord[]>;
}

export type NewSession = Omit<SessionRecord, "createdAt" | "ord" | "claim" | "metadata"> &
  Partial<Pick<SessionRecord, "claim" | "metadata">>;

export interface SessionQuery {
  readonly agent?: string;
  readonly after?: number;
  readonly limit: number;
}

export function engineSessions(engine: TenantEngine): SessionStore {
  return {
    peek: (id) => peekRecord(engine, SESSIONS, id),
    async open({ id, agent, owner, workingDirectory, claim, metadata = "" }) {
      checkName("session id", id);
      checkName("agent", agent);
      const facts = { agent, owner, workingDirectory, claim, metadata };
      const row = SESSIONS.row({ ...facts, createdAt: NOW });
      const data = claim === undefined ? { owner } : { owner, claim: { ...claim } };
      const result = await engine.commit({
        steps: [insertStep(SESSIONS, id, row)],
        events: [{ type: "session.opened", subject: id, session: id, actor: agent, data }],
      });
      const there = result.committed ? result.rows[0] : result.current;
      if (there !== undefined && there["agent"] === agent) {
        const known = SESSIONS.read(there);
        if (known.claim?.id === claim?.id && known.claim?.fence === claim?.fence) return known;
        const hint = "It works under another claim. Open another session for this one.";
        throw new SallyportError("already_exists", { id, hint });
      }
      const hint = "Choose another id, or leave it out and one is made.";
      throw new SallyportError("already_exists", { id, hint });
    },
    async list({ agent, after, limit }) {
      const where = definedFields({ agent });
      const query = { where, limit, ...definedFields({ afterOrd: after }) };
      return (await engine.find(SESSIONS, query)).map(SESSIONS.read);
    },
  };
}

/** Runs as their events made them. The writer supplies the state that its event leads to. */
export interface RunStore {
  /** Throws already_exists. */
  create(run: Run, event: RunEvent, by: By): Promise<Run>;
  /** Throws not_found. */
  get(id: RunId): Promise<Run>;
  /** Undefined when there is none: a session may have any name. */
  peek(id: string): Promise<Run | undefined>;
  list(status: Run["status"]): Promise<readonly Run[]>;
  /** Undefined if another writer was first: read and reduce again. */
  move(next: Run, event: RunEvent, by: By): Promise<Run | undefined>;
}

export function engineRuns(engine: TenantEngine): RunStore {
  const peek = async (id: string) =>
    isRunId(id) ? (await peekRecord(engine, RUNS, id))?.run : undefined;
  return {
    peek,
    async create(run, event, { actor }) {
      checkName("run id", run.id);
      checkName("actor", actor);
      const row = RUNS.row({ ...cellsOf(run), createdAt: NOW });
      const step = insertStep(RUNS, run.id, row);
      if (await writeRecord(engine, RUNS, step, told(run, event, actor))) return run;
      throw new SallyportError("already_exists", { id: run.id });
    },
    async get(id) {
      const run = await peek(id);
      if (run === undefined) throw new SallyportError("not_found", { id: String(id) });
      return run;
    },
    async list(status) {
      return everyOne(engine, RUNS, { status }, (row) => RUNS.read(row).run);
    },
    async move(next, event, { actor }) {
      checkName("actor", actor);
      const before = { version: next.version - 1 };
      const step = updateStep(RUNS, next.id, before, RUNS.cells(cellsOf(next)));
      return (await writeRecord(engine, RUNS, step, told(next, event, actor))) && next;
    },
  };
}

/** The whole event is in the log, so a run can be rebuilt from it. */
function told({ id }: Run, { kind, ...data }: RunEvent, actor: string): EventPlan {
  const plain = data as unknown as JsonObject;
  return { type: `run.${kind}`, subject: id, session: id, actor, data: plain };
}

function cellsOf(run: Run) {
  const { phase, status, version } = run;
  return { phase, status, version, run, updatedAt: NOW };
}
