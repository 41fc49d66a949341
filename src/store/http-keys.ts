import { damaged } from "../model/field.ts";
import { HTTP_KEYS, type StoredAnswer } from "../model/http-key.ts";
import { checkName } from "../model/names.ts";
import { NOW, type Row, type Step } from "./engine.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/**
 * Makes a request happen once although it is sent again: whoever sends the same key with the same content gets the first
 * answer. Written before anything is done and again when it is done, so it holds across processes and crashes.
 */
export interface HttpKeyStore {
  begin(request: KeyedRequest, terms: KeyTerms): Promise<KeyAnswer>;
  /** Still at it: nobody else takes it over for so long. False when somebody has. */
  renew(id: string, fence: number, leaseMs: number, actor: string): Promise<boolean>;
  /** Keeps the answer, if the fence is still ours; false when somebody took the request over. */
  answer(id: string, fence: number, answer: StoredAnswer, actor: string): Promise<boolean>;
  /** The request changed nothing and may be tried again under its key. */
  forget(id: string, fence: number, actor: string): Promise<void>;
  /** Deletes what is older than its time, at most so many; answers how many it were. */
  sweep(limit: number, actor: string): Promise<number>;
}

export interface KeyedRequest {
  /** Made of the sender and the key, so that nobody meets somebody else's. */
  readonly id: string;
  readonly route: string;
  readonly contentHash: string;
  readonly actor: string;
}

export interface KeyTerms {
  /** How long nothing may be heard of whoever does a request before it counts as broken off. */
  readonly leaseMs: number;
  /** How long its answer is kept. */
  readonly keepMs: number;
}

export type KeyAnswer =
  /** Ours to do; `again` when somebody began it before and never came to an answer. */
  | { readonly found: "nothing"; readonly fence: number; readonly again: boolean }
  | { readonly found: "answer"; readonly answer: StoredAnswer }
  | { readonly found: "running" }
  | { readonly found: "other_content" };

export function engineHttpKeys(engine: TenantEngine): HttpKeyStore {
  const told = (type: string, { id, route, actor }: Omit<KeyedRequest, "contentHash">) => ({
    type,
    subject: id,
    session: "",
    actor,
    data: { route },
  });

  async function begin(request: KeyedRequest, terms: KeyTerms): Promise<KeyAnswer> {
    const { id, route, contentHash, actor } = request;
    checkName("actor", actor);
    const row = HTTP_KEYS.row({
      route,
      contentHash,
      state: "begun",
      fence: 1,
      leaseUntil: { nowPlusMs: terms.leaseMs },
      expiresAt: { nowPlusMs: terms.keepMs },
      createdAt: NOW,
    });
    const made = await engine.commit({
      steps: [{ op: "insert", table: HTTP_KEYS, id, row }],
      events: [told("request.begun", request)],
    });
    if (made.committed) return { found: "nothing", fence: 1, again: false };
    const { current } = made;
    // It was swept between the two looks: then it is new again.
    if (current === undefined) return begin(request, terms);
    if (current["route"] !== route || current["content_hash"] !== contentHash) {
      return { found: "other_content" };
    }
    if (current["state"] === "answered") return { found: "answer", answer: answerOf(current) };
    return takeOver(request, terms);
  }

  /** The first sender's process went away without an answer. */
  async function takeOver(request: KeyedRequest, terms: KeyTerms): Promise<KeyAnswer> {
    const step: Step = {
      op: "update",
      table: HTTP_KEYS,
      id: request.id,
      where: { state: "begun", lease_until: { atMost: NOW } },
      set: { fence: { plus: 1 }, lease_until: { nowPlusMs: terms.leaseMs } },
    };
    const events = [told("request.taken_over", request)];
    const taken = await engine.commit({ steps: [step], events });
    if (taken.committed) {
      return { found: "nothing", fence: Number(taken.rows[0]?.["fence"]), again: true };
    }
    if (taken.current?.["state"] === "answered") {
      return { found: "answer", answer: answerOf(taken.current) };
    }
    return { found: "running" };
  }

  return {
    begin,
    async renew(id, fence, leaseMs, actor) {
      const set = { lease_until: { nowPlusMs: leaseMs } };
      const where = { state: "begun", fence };
      const result = await engine.commit({
        steps: [{ op: "update", table: HTTP_KEYS, id, where, set }],
        events: [{ type: "request.renewed", subject: id, session: "", actor, data: {} }],
      });
      return result.committed;
    },
    async answer(id, fence, { status, body }, actor) {
      const set = HTTP_KEYS.cells({ state: "answered", answer: { status, body } });
      const where = { state: "begun", fence };
      const data = { status };
      const result = await engine.commit({
        steps: [{ op: "update", table: HTTP_KEYS, id, where, set }],
        events: [{ type: "request.answered", subject: id, session: "", actor, data }],
      });
      return result.committed;
    },
    async forget(id, fence, actor) {
      await engine.commit({
        steps: [{ op: "delete", table: HTTP_KEYS, id, where: { state: "begun", fence } }],
        events: [{ type: "request.forgotten", subject: id, session: "", actor, data: {} }],
      });
    },
    async sweep(limit, actor) {
      const where = { expires_at: { atMost: NOW } };
      const rows = await engine.find(HTTP_KEYS, { where, limit });
      if (rows.length === 0) return 0;
      const ids = rows.map((row) => String(row["id"]));
      const result = await engine.commit({
        steps: ids.map((id) => ({ op: "delete", table: HTTP_KEYS, id, where })),
        events: [
          {
            type: "request.keys_swept",
            subject: "http_keys",
            session: "",
            actor,
            data: { count: ids.length },
          },
        ],
      });
      // Another process was at it too; what is left is found next time.
      return result.committed ? ids.length : 0;
    },
  };
}

function answerOf(row: Row): StoredAnswer {
  const { answer } = HTTP_KEYS.read(row);
  if (answer === undefined) throw damaged(row, "answer");
  return answer;
}
