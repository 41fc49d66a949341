import { SallyportError } from "../model/errors.ts";
import { checkName, isName } from "../model/names.ts";
import { isRunId, RUNS, type Run, type RunEvent, type RunId } from "../model/run.ts";
import type { JsonObject } from "../util/json.ts";
import type { By } from "./decisions.ts";
import { type EventPlan, NOW, type Row } from "./engine.ts";
import { everyOne } from "./readable.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** Runs as their events have made them. The one who writes brings the state that its event leads to. */
export interface RunStore {
  /** Throws already_exists. */
  create(run: Run, event: RunEvent, by: By): Promise<Run>;
  /** Throws not_found. */
  get(id: RunId): Promise<Run>;
  /** Undefined when there is none: a session may bear any name. */
  peek(id: string): Promise<Run | undefined>;
  list(status: Run["status"]): Promise<readonly Run[]>;
  /** Undefined when somebody else was first: read it again, and reduce again. */
  move(next: Run, event: RunEvent, by: By): Promise<Run | undefined>;
}

export function engineRuns(engine: TenantEngine): RunStore {
  async function peek(id: string): Promise<Run | undefined> {
    const row = isName(id) && isRunId(id) ? await engine.get(RUNS, id) : undefined;
    return row === undefined ? undefined : runOf(row);
  }
  return {
    peek,
    async create(run, event, { actor }) {
      checkName("run id", run.id);
      checkName("actor", actor);
      const row = RUNS.row({ ...cellsOf(run), createdAt: NOW });
      const result = await engine.commit({
        steps: [{ op: "insert", table: RUNS, id: run.id, row }],
        events: [told(run, event, actor)],
      });
      if (result.committed) return run;
      throw new SallyportError("already_exists", { id: run.id });
    },
    async get(id) {
      const run = await peek(id);
      if (run === undefined) throw new SallyportError("not_found", { id: String(id) });
      return run;
    },
    async list(status) {
      return everyOne(engine, RUNS, { status }, runOf);
    },
    async move(next, event, { actor }) {
      checkName("actor", actor);
      const result = await engine.commit({
        steps: [
          {
            op: "update",
            table: RUNS,
            id: next.id,
            where: { version: next.version - 1 },
            set: RUNS.cells(cellsOf(next)),
          },
        ],
        events: [told(next, event, actor)],
      });
      return result.committed ? next : undefined;
    },
  };
}

/** The whole event is in the trail: from there a run can be made again. */
function told({ id }: Run, { kind, ...data }: RunEvent, actor: string): EventPlan {
  const plain = data as unknown as JsonObject;
  return { type: `run.${kind}`, subject: id, session: id, actor, data: plain };
}

function cellsOf(run: Run) {
  const { phase, status, version } = run;
  return { phase, status, version, run, updatedAt: NOW };
}

function runOf(row: Row): Run {
  return RUNS.read(row).run;
}
