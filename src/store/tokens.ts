import { SallyportError } from "../model/errors.ts";
import {
  type Identity,
  type Role,
  rolesProblem,
  TOKENS,
  type Token,
  type TokenKind,
} from "../model/identity.ts";
import { checkName, foldName, isName } from "../model/names.ts";
import { encodeValue } from "../util/value-codec.ts";
import type { By } from "./decisions.ts";
import { NOW, type Row, type Step } from "./engine.ts";
import type { TenantEngine } from "./tenant-engine.ts";

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
  /** Oldest first, of one kind. Invitations that were not confirmed are links that nobody can use yet. */
  list(query: TokenQuery): Promise<readonly Token[]>;
  /** A link that waits for a second person. `hash` is of the half that the inviter keeps, and signs nobody in. */
  invite(link: NewToken, by: By): Promise<Token>;
  /** Undefined when there is none with this id. */
  invitation(id: string): Promise<Token | undefined>;
  invitations(query: Omit<TokenQuery, "kind">): Promise<readonly Token[]>;
  /**
   * Ends the invitation and makes its link, together; `make` gets the hash of the inviter's half. Throws not_found, not_allowed
   * for whoever invited, illegal_transition when it was confirmed before, ended or is too old.
   */
  confirm(id: string, make: (half: string) => ConfirmedLink, by: By): Promise<Token>;
}

export type ConfirmedLink = Pick<NewToken, "hash" | "lifeMs">;

export interface NewToken extends Omit<Identity, "tenant"> {
  readonly kind: TokenKind;
  /** SHA-256 of the secret, in hexadecimal. */
  readonly hash: string;
  readonly note: string;
  readonly lifeMs: number;
}

/** The note of links that wait for a second person; no other link has a note. */
const INVITATION = "waits for a second admin";

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
    const { lifeMs, ...given } = token;
    const { kind, subject, roles, owner } = token;
    const row = TOKENS.row({
      ...given,
      isLive: true,
      madeBy: by,
      expiresAt: { nowPlusMs: lifeMs },
      createdAt: NOW,
      updatedAt: NOW,
    });
    const data = { kind, subject, roles: [...roles], owner, life_ms: lifeMs };
    return {
      insert: { op: "insert", table: TOKENS, id, row } satisfies Step,
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

  async function make(token: NewToken, { actor }: By): Promise<Token> {
    const { insert, event } = made(token, actor, 0);
    const result = await engine.commit({ steps: [insert], events: [event] });
    if (!result.committed) throw new SallyportError("already_exists", { id: insert.id });
    return tokenOf(engine.tenant, result.rows[0] ?? {});
  }

  /** The row of an invitation, which alone has the hash. */
  async function invitationRow(id: string): Promise<Row | undefined> {
    const row = isName(id) ? await engine.get(TOKENS, id) : undefined;
    return row !== undefined && isInvitation(tokenOf(engine.tenant, row)) ? row : undefined;
  }

  return {
    make,
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
    invite: (link, by) => make({ ...link, kind: "link", note: INVITATION }, by),
    async invitation(id) {
      const row = await invitationRow(id);
      return row === undefined ? undefined : tokenOf(engine.tenant, row);
    },
    async invitations({ after, limit }) {
      const paging = after === undefined ? {} : { afterOrd: after };
      const where = { kind: "link", note: encodeValue(INVITATION) };
      const rows = await engine.find(TOKENS, { where, limit, ...paging });
      return rows.map((row) => tokenOf(engine.tenant, row));
    },
    async confirm(id, makeLink, { actor }) {
      checkName("actor", actor);
      const row = await invitationRow(id);
      if (row === undefined) {
        const hint = "List the invitations first.";
        throw new SallyportError("not_found", { id: String(id), hint });
      }
      const { subject, roles, owner, madeBy } = tokenOf(engine.tenant, row);
      if (foldName(actor) === foldName(madeBy)) {
        const hint = "Another admin has to confirm it: nobody lets people in alone.";
        throw new SallyportError("not_allowed", { id, by: actor, hint });
      }
      const { hash, lifeMs } = makeLink(String(row["hash"]));
      const use = ended(id, "confirmed", actor);
      const link = made({ kind: "link", hash, subject, roles, owner, note: "", lifeMs }, actor, 1);
      const result = await engine.commit({
        steps: [use.update, link.insert],
        events: [use.event, link.event],
      });
      if (result.committed) return tokenOf(engine.tenant, result.rows[1] ?? {});
      const hint = "It was confirmed before, ended, or is too old. Invite the person again.";
      throw new SallyportError("illegal_transition", { id, hint });
    },
  };
}

function isInvitation({ kind, note }: Token): boolean {
  return kind === "link" && note === INVITATION;
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

function tokenOf(tenant: string, row: Row): Token {
  const { hash, updatedAt, ...token } = TOKENS.read(row);
  return { ...token, tenant };
}
