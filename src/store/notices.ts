import { SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import { NOTICE_CURSORS, NOTICES, type Notice, type NoticeState } from "../model/notice.ts";
import { definedFields } from "../util/defined-fields.ts";
import type { JsonValue } from "../util/json.ts";
import type { By } from "./decisions.ts";
import { type Conditions, insertStep, NOW, type Row, updateStep, type Values } from "./engine.ts";
import { getRecord, type TenantEngine } from "./tenant-engine.ts";

/**
 * The outbox of notifications. What is planned moves the cursor in the same transaction, so that each entry of the trail is
 * planned for once, however many processes read it. An attempt is a lease: a process that dies during one leaves a notice
 * that is sent again under its id.
 */
export interface NoticeStore {
  /** Undefined before anything was planned. */
  cursor(): Promise<number | undefined>;
  /** False when another process moved the cursor first: then nothing was planned. */
  plan(move: CursorMove, planned: readonly PlannedNotice[]): Promise<boolean>;
  peek(id: string): Promise<Notice | undefined>;
  /** Those whose time has come, by the store's clock. */
  due(limit: number): Promise<readonly Notice[]>;
  /**
   * Begins an attempt for all of them in one step; none when another process has one of them, or one is over. The bundle is
   * theirs from then on, so that later attempts are for the same ones.
   */
  claim(together: readonly Notice[], bundle: string, leaseMs: number): Promise<readonly Notice[]>;
  /** Ends an attempt for all of them. False when its lease was over and another process is at it. */
  finish(together: readonly Notice[], how: NoticeEnd): Promise<boolean>;
  list(query: NoticeQuery): Promise<readonly Notice[]>;
  /** Of one question, oldest first. */
  about(interactionId: string): Promise<readonly Notice[]>;
  /** Tries a dead one again. Throws not_found, illegal_transition. */
  retry(id: string, by: By): Promise<Notice>;
}

export interface CursorMove {
  readonly from: number | undefined;
  readonly to: number;
}

export interface PlannedNotice
  extends Pick<Notice, "id" | "channel" | "kind" | "interactionId" | "bundle" | "facts"> {
  /** From now; 0 for immediately. */
  readonly afterMs: number;
}

export type NoticeEnd =
  | { readonly state: "sent"; readonly receipt: JsonValue | undefined }
  | { readonly state: "dropped" }
  | { readonly state: "dead"; readonly problem: string }
  | { readonly state: "waiting"; readonly problem: string; readonly retryMs: number };

export interface NoticeQuery {
  readonly state: NoticeState;
  /** Only those planned after this one (`ord`). */
  readonly after?: number;
  readonly limit: number;
}

const CURSOR = "feed";
const ACTOR = "notify";

export function engineNotices(engine: TenantEngine): NoticeStore {
  const read = (row: Row): Notice => {
    const { updatedAt, ...notice } = NOTICES.read(row);
    return notice;
  };
  const told = (
    type: string,
    { id, channel, kind, facts }: Pick<Notice, "id" | "channel" | "kind" | "facts">,
    actor = ACTOR,
  ) => ({ type, subject: id, session: facts.sessionId, actor, data: { channel, kind } });

  async function update(
    together: readonly Notice[],
    terms: (notice: Notice) => { readonly where: Conditions; readonly set: Values },
    type: string,
    actor?: string,
  ): Promise<readonly Notice[]> {
    const steps = together.map((notice) => {
      const { where, set } = terms(notice);
      return updateStep(NOTICES, notice.id, where, { ...set, updated_at: NOW });
    });
    const events = together.map((notice) => told(type, notice, actor));
    const result = await engine.commit({ steps, events });
    return result.committed ? result.rows.map((row) => read(row ?? {})) : [];
  }

  return {
    async cursor() {
      const row = await engine.get(NOTICE_CURSORS, CURSOR);
      return row === undefined ? undefined : NOTICE_CURSORS.read(row).seq;
    },
    async plan({ from, to }, planned) {
      const cells = NOTICE_CURSORS.row({ seq: to, updatedAt: NOW });
      const move =
        from === undefined
          ? insertStep(NOTICE_CURSORS, CURSOR, cells)
          : updateStep(NOTICE_CURSORS, CURSOR, { seq: from }, cells);
      const inserts = planned.map(({ id, afterMs, ...notice }) =>
        insertStep(
          NOTICES,
          id,
          NOTICES.row({
            ...notice,
            state: "waiting",
            attempts: 0,
            nextAt: { nowPlusMs: Math.max(0, Math.ceil(afterMs)) },
            createdAt: NOW,
            updatedAt: NOW,
          }),
        ),
      );
      const moved = {
        type: "notices.planned",
        subject: CURSOR,
        session: "",
        actor: ACTOR,
        data: { to, count: planned.length },
      };
      const events = [moved, ...planned.map((one) => told("notice.planned", one))];
      const { committed } = await engine.commit({ steps: [move, ...inserts], events });
      return committed;
    },
    async peek(id) {
      const row = await engine.get(NOTICES, id);
      return row === undefined ? undefined : read(row);
    },
    async due(limit) {
      const rows = await engine.find(NOTICES, { where: { next_at: { atMost: NOW } }, limit });
      return rows.map(read);
    },
    claim: (together, bundle, leaseMs) =>
      update(
        together,
        ({ attempts }) => ({
          where: { state: "waiting", attempts, next_at: { atMost: NOW } },
          set: {
            attempts: { plus: 1 },
            next_at: { nowPlusMs: leaseMs },
            ...NOTICES.cells({ bundle }),
          },
        }),
        "notice.tried",
      ),
    async finish(together, how) {
      const { state } = how;
      const set = {
        state,
        next_at: state === "waiting" ? { nowPlusMs: how.retryMs } : null,
        ...NOTICES.cells({
          ...("problem" in how ? { problem: how.problem.toWellFormed() } : {}),
          ...(state === "sent" ? definedFields({ receipt: how.receipt }) : {}),
        }),
      };
      const done = await update(
        together,
        ({ attempts }) => ({ where: { state: "waiting", attempts }, set }),
        `notice.${ENDS[state]}`,
      );
      return done.length > 0;
    },
    async list({ state, after, limit }) {
      const query = { where: { state }, limit, ...definedFields({ afterOrd: after }) };
      return (await engine.find(NOTICES, query)).map(read);
    },
    async about(interactionId) {
      const where = { interaction_id: interactionId };
      return (await engine.find(NOTICES, { where, limit: MOST_ABOUT_ONE })).map(read);
    },
    async retry(id, { actor }) {
      checkName("actor", actor);
      const found = await getRecord(engine, NOTICES, id, "List the notices first.");
      // By itself: under the id of its digest a receiver may have seen others of it.
      const set = { state: "waiting", attempts: 0, next_at: NOW, ...NOTICES.cells({ bundle: "" }) };
      const terms = () => ({ where: { state: "dead" }, set });
      const [again] = await update([found], terms, "notice.retried", actor);
      if (again !== undefined) return again;
      const hint = "Only a notice that failed for good is tried again.";
      throw new SallyportError("illegal_transition", { id, hint });
    },
  };
}

/** Several channels, reminders and escalations of one question; far more than a sensible configuration makes. */
const MOST_ABOUT_ONE = 1_000;

const ENDS: Readonly<Record<NoticeState, string>> = {
  sent: "sent",
  dropped: "dropped",
  dead: "dead",
  waiting: "failed",
};
