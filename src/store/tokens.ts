import { SallyportError } from "../model/errors.ts";
import { type Identity, type Role, rolesProblem, type TokenKind } from "../model/identity.ts";
import type { Instant } from "../model/instant.ts";
import { checkName, isName } from "../model/names.ts";
import type { By } from "./decisions.ts";
import { NOW, type Step } from "./engine.ts";
import type { TenantEngine } from "./tenant-engine.ts";
import { rowOfToken, TOKENS, tokenOf } from "./token-rows.ts";

/** Who may speak for whom. Every call that changes something is one transaction with its audit entry. */
export interface TokenStore {
  /** Throws invalid_input for names and roles that cannot be given. */
  make(token: NewToken, by: By): Promise<Token>;
  /** The live token with this hash; undefined when there is none, it was ended, or its time is over by the store's clock. */
  find(hash: string): Promise<Token | undefined>;
  /** Ends it for good. False when it had ended before. Throws not_found. */
  end(id: string, reason: string, by: By): Promise<boolean>;
  /** Uses a link up and makes what it is good for, together. Undefined when the link was used, ended or is too old. */
  exchange(link: Token, next: NewToken): Promise<Token | undefined>;
  /** Oldest first, of one kind. */
  list(query: TokenQuery): Promise<readonly Token[]>;
}

export interface Token extends Identity {
  readonly id: string;
  readonly kind: TokenKind;
  /** For people: what it is used for. */
  readonly note: string;
  /** False once it was ended; it may be over by time all the same. */
  readonly isLive: boolean;
  readonly madeBy: string;
  /** For a session: when its person signed in. */
  readonly createdAt: Instant;
  readonly expiresAt: Instant;
  /** For paging. */
  readonly ord: number;
}

export interface NewToken extends Omit<Identity, "tenant"> {
  readonly kind: TokenKind;
  /** SHA-256 of the secret, in hexadecimal. */
  readonly hash: string;
  readonly note: string;
  readonly lifeMs: number;
}

export interface TokenQuery {
  readonly kind: TokenKind;
  /** Only those made after this one (`ord`). */
  readonly after?: number;
  readonly limit: number;
}

/** Longer than that nobody remembers what it was for. */
const LONGEST_LIFE_MS = 5 * 366 * 24 * 3_600_000;

export function engineTokens(engine: TenantEngine): TokenStore {
  function made(token: NewToken, by: string, step: number) {
    checkToken(token);
    checkName("actor", by);
    const id = engine.newId();
    const { kind, subject, roles, owner, lifeMs } = token;
    const data = { kind, subject, roles: [...roles], owner, life_ms: lifeMs };
    return {
      insert: { op: "insert", table: TOKENS, id, row: rowOfToken(token, by) } satisfies Step,
      event: { type: "token.made", subject: { left: "id", step }, session: "", actor: by, data },
    };
  }

  function ended(id: string, reason: string, by: string) {
    const update = {
      op: "update",
      table: TOKENS,
      id,
      where: { state: "live", expires_at: { atLeast: NOW } },
      set: { state: "ended", updated_at: NOW },
    } as const satisfies Step;
    const data = { reason: reason.toWellFormed() };
    return { update, event: { type: "token.ended", subject: id, session: "", actor: by, data } };
  }

  return {
    async make(token, { actor }) {
      const { insert, event } = made(token, actor, 0);
      const result = await engine.commit({ steps: [insert], events: [event] });
      if (!result.committed) throw new SallyportError("already_exists", { id: insert.id });
      return tokenOf(engine.tenant, result.rows[0] ?? {});
    },
    async find(hash) {
      const where = { hash, state: "live", expires_at: { atLeast: NOW } };
      const [row] = await engine.find(TOKENS, { where, limit: 1 });
      return row === undefined ? undefined : tokenOf(engine.tenant, row);
    },
    async end(id, reason, { actor }) {
      checkName("actor", actor);
      const there = isName(id) ? await engine.get(TOKENS, id) : undefined;
      if (there === undefined) {
        throw new SallyportError("not_found", { id: String(id), hint: "List the tokens first." });
      }
      const { update, event } = ended(id, reason, actor);
      return (await engine.commit({ steps: [update], events: [event] })).committed;
    },
    async exchange(link, next) {
      const use = ended(link.id, "used", link.subject);
      const session = made(next, link.subject, 1);
      const result = await engine.commit({
        steps: [use.update, session.insert],
        events: [use.event, session.event],
      });
      return result.committed ? tokenOf(engine.tenant, result.rows[1] ?? {}) : undefined;
    },
    async list({ kind, after, limit }) {
      const paging = after === undefined ? {} : { afterOrd: after };
      const rows = await engine.find(TOKENS, { where: { kind }, limit, ...paging });
      return rows.map((row) => tokenOf(engine.tenant, row));
    },
  };
}

function checkToken({ subject, roles, owner, note, lifeMs }: NewToken): void {
  checkName("subject", subject);
  if (owner !== "") checkName("owner", owner);
  const hint =
    rolesProblem(roles) ??
    ownerProblem(roles, owner) ??
    (note.length > 500 ? "Shorten the note to 500 characters." : undefined) ??
    (lifeMs > 0 && lifeMs <= LONGEST_LIFE_MS
      ? undefined
      : "Give a life of more than zero and at most five years, in milliseconds.");
  if (hint !== undefined) throw new SallyportError("invalid_input", { what: "token", hint });
}

/** What acts for somebody is their automation: whatever it decides, they would have decided themselves. */
function ownerProblem(roles: readonly Role[], owner: string): string | undefined {
  if (owner === "" || roles.includes("agent")) return undefined;
  return "Only an agent acts on somebody's behalf: leave the owner out, or give the role agent.";
}
