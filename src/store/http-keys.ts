import { HTTP_KEYS, type StoredAnswer } from "../model/identity.ts";
import { checkName } from "../model/names.ts";
import { damaged } from "../model/record.ts";
import { deleteStep, insertStep, NOW, type Row, updateStep } from "./engine.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/**
 * Idempotency keys of requests: the same key with the same content gets the first answer. Written before and after the
 * request is executed, so it holds across processes and crashes.
 */
export interface HttpKeyStore {
  begin(request: KeyedRequest, terms: KeyTerms): Promise<KeyAnswer>;
  /** Extends the lease of a running request; false if another process took it over. */
  renew(id: string, fence: number, leaseMs: number, actor: string): Promise<boolean>;
  /** Stores the answer if the fence is still current; false if another process took the request over. */
  answer(id: string, fence: number, answer: StoredAnswer, actor: string): Promise<boolean>;
  /** The request changed nothing and may be tried again under its key. */
  forget(id: string, fence: number, actor: string): Promise<void>;
  /** Deletes what is older than its time, at most so many; answers how many it were. */
  sweep(limit: number, actor: string): Promise<number>;
}

export interface KeyedRequest {
  /** Derived from the sender and the key, so that senders never share one. */
  readonly id: string;
  readonly route: string;
  readonly contentHash: string;
  readonly actor: string;
}

export interface KeyTerms {
  /** How long a request may run without a renewal before another process may take it over. */
  readonly leaseMs: number;
  /** How long its answer is kept. */
  readonly keepMs: number;
}

export type KeyAnswer =
  /** To be executed now; `again` if it was begun before and not answered. */
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
      steps: [insertStep(HTTP_KEYS, id, row)],
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
    const where = { state: "begun", lease_until: { atMost: NOW } };
    const set = { fence: { plus: 1 }, lease_until: { nowPlusMs: terms.leaseMs } };
    const step = updateStep(HTTP_KEYS, request.id, where, set);
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
        steps: [updateStep(HTTP_KEYS, id, where, set)],
        events: [{ type: "request.renewed", subject: id, session: "", actor, data: {} }],
      });
      return result.committed;
    },
    async answer(id, fence, { status, body }, actor) {
      const set = HTTP_KEYS.cells({ state: "answered", answer: { status, body } });
      const where = { state: "begun", fence };
      const data = { status };
      const result = await engine.commit({
        steps: [updateStep(HTTP_KEYS, id, where, set)],
        events: [{ type: "request.answered", subject: id, session: "", actor, data }],
      });
      return result.committed;
    },
    async forget(id, fence, actor) {
      await engine.commit({
        steps: [deleteStep(HTTP_KEYS, id, { state: "begun", fence })],
        events: [{ type: "request.forgotten", subject: id, session: "", actor, data: {} }],
      });
    },
    async sweep(limit, actor) {
      const where = { expires_at: { atMost: NOW } };
      const rows = await engine.find(HTTP_KEYS, { where, limit });
      if (rows.length === 0) return 0;
      const ids = rows.map((row) => String(row["id"]));
      const result = await engine.commit({
        steps: ids.map((id) => deleteStep(HTTP_KEYS, id, where)),
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
