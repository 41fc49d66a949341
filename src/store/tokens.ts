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
import { definedFields } from "../util/defined-fields.ts";
import { encodeValue } from "../util/value-codec.ts";
import type { By } from "./decisions.ts";
import { insertStep, NOW, type Row, requireStep, updateStep } from "./engine.ts";
import { getRecord, type TenantEngine } from "./tenant-engine.ts";

/** Tokens, sign-in links and invitations. Every change is one transaction with its audit entry. */
export interface TokenStore {
  /** Throws invalid_input for names and roles that cannot be given. */
  make(token: NewToken, by: By): Promise<Token>;
  /** The live token with this hash; undefined when there is none, it was ended, or it has expired by the store's clock. */
  find(hash: string): Promise<Token | undefined>;
  /** Ends it for good. False when it had ended before. Throws not_found. */
  end(id: string, reason: string, by: By): Promise<boolean>;
  /**
   * Another secret for the program of this token, in one transaction with the end of the old one: after `overlapMs`, or at its
   * own time if that is sooner. Throws not_found, not_allowed for what is no token of a program, illegal_transition when it
   * has ended.
   */
  rotate(id: string, next: RotatedSecret, by: By): Promise<Token>;
  /** Consumes a link and creates its token in one transaction. Undefined when the link was used, ended or has expired. */
  exchange(link: Token, next: NewToken): Promise<Token | undefined>;
  /** Oldest first, of one kind. Unconfirmed invitations are links that cannot be used yet. */
  list(query: TokenQuery): Promise<readonly Token[]>;
  /** A link that a second person has to confirm. `hash` is of the inviter's half, which cannot be used to sign in. */
  invite(link: NewToken, by: By): Promise<Token>;
  /** Undefined when there is none with this id. */
  invitation(id: string): Promise<Token | undefined>;
  invitations(query: Omit<TokenQuery, "kind">): Promise<readonly Token[]>;
  /**
   * Ends the invitation and creates its link in one transaction; `make` gets the hash of the inviter's half. Throws not_found,
   * not_allowed for the inviter, illegal_transition when it was confirmed before, ended or has expired.
   */
  confirm(id: string, make: (half: string) => ConfirmedLink, by: By): Promise<Token>;
}

export interface RotatedSecret extends Pick<NewToken, "hash" | "lifeMs"> {
  readonly overlapMs: number;
}

export type ConfirmedLink = Pick<NewToken, "hash" | "lifeMs">;

export interface NewToken extends Omit<Identity, "tenant"> {
  readonly kind: TokenKind;
  /** SHA-256 of the secret, in hexadecimal. */
  readonly hash: string;
  readonly note: string;
  readonly lifeMs: number;
  /** Roles on the task list, at most 50. */
  readonly taskRoles?: readonly string[];
}

/** The note of links that wait for a second person; no other link has a note. */
const INVITATION = "waits for a second admin";

export interface TokenQuery {
  readonly kind: TokenKind;
  /** Only those made after this one (`ord`). */
  readonly after?: number;
  readonly limit: number;
}

/** Upper limit for the life of a token. */
const LONGEST_LIFE_MS = 5 * 366 * 24 * 3_600_000;

export function engineTokens(engine: TenantEngine): TokenStore {
  function made(token: NewToken, by: string, step: number) {
    checkToken(token);
    checkName("actor", by);
    const id = engine.newId();
    const { lifeMs, ...given } = token;
    const { kind, subject, roles, owner, taskRoles = [] } = token;
    const row = TOKENS.row({
      ...given,
      isLive: true,
      madeBy: by,
      expiresAt: { nowPlusMs: lifeMs },
      createdAt: NOW,
      updatedAt: NOW,
    });
    const data = {
      kind,
      subject,
      roles: [...roles],
      owner,
      life_ms: lifeMs,
      task_roles: [...taskRoles],
    };
    return {
      insert: insertStep(TOKENS, id, row),
      event: { type: "token.made", subject: { left: "id", step }, session: "", actor: by, data },
    };
  }

  function ended(id: string, reason: string, by: string) {
    const isLive = { state: "live", expires_at: { atLeast: NOW } };
    const update = updateStep(TOKENS, id, isLive, { state: "ended", updated_at: NOW });
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
      await getRecord(engine, TOKENS, id, "List the tokens first.");
      const { update, event } = ended(id, reason, actor);
      return (await engine.commit({ steps: [update], events: [event] })).committed;
    },
    async rotate(id, { hash, lifeMs, overlapMs }, { actor }) {
      checkName("actor", actor);
      const row = await getRecord(engine, TOKENS, id, "List the tokens first.");
      const { kind, subject, roles, owner, note, taskRoles } = row;
      if (kind !== "token" || roles.includes("local") || roles.includes("subagent")) {
        const hint = "Only tokens that an admin made for a program are rotated.";
        throw new SallyportError("not_allowed", { id, hint });
      }
      const next = made({ kind, hash, subject, roles, owner, note, taskRoles, lifeMs }, actor, 1);
      const end = { nowPlusMs: overlapMs };
      const data = { overlap_ms: overlapMs };
      const event = { type: "token.rotated", subject: id, session: "", actor, data };
      const events = [event, next.event];
      const live = { state: "live", expires_at: { atLeast: end } };
      const set = { expires_at: end, updated_at: NOW };
      const cut = updateStep(TOKENS, id, live, set);
      const result = await engine.commit({ steps: [cut, next.insert], events });
      if (result.committed) return tokenOf(engine.tenant, result.rows[1] ?? {});
      // It ends sooner than the overlap: its own time stands.
      const kept = requireStep(TOKENS, id, { state: "live", expires_at: { atLeast: NOW } });
      const short = await engine.commit({ steps: [kept, next.insert], events });
      if (short.committed) return tokenOf(engine.tenant, short.rows[1] ?? {});
      const hint = "It was revoked or has expired. Make a new token.";
      throw new SallyportError("illegal_transition", { id, hint });
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
      const query = { where: { kind }, limit, ...definedFields({ afterOrd: after }) };
      const rows = await engine.find(TOKENS, query);
      return rows.map((row) => tokenOf(engine.tenant, row));
    },
    invite: (link, by) => make({ ...link, kind: "link", note: INVITATION }, by),
    async invitation(id) {
      const row = await invitationRow(id);
      return row === undefined ? undefined : tokenOf(engine.tenant, row);
    },
    async invitations({ after, limit }) {
      const where = { kind: "link", note: encodeValue(INVITATION) };
      const query = { where, limit, ...definedFields({ afterOrd: after }) };
      const rows = await engine.find(TOKENS, query);
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
        const hint = "Another admin has to confirm it: no one can admit people alone.";
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

const MOST_TASK_ROLES = 50;

function checkToken({ subject, roles, owner, note, lifeMs, taskRoles = [] }: NewToken): void {
  checkName("subject", subject);
  for (const role of taskRoles) checkName("task role", role);
  if (owner !== "") checkName("owner", owner);
  const hint =
    rolesProblem(roles) ??
    ownerProblem(roles, owner) ??
    (taskRoles.length > MOST_TASK_ROLES
      ? `Give at most ${MOST_TASK_ROLES} task roles.`
      : undefined) ??
    (note.length > 500 ? "Shorten the note to 500 characters." : undefined) ??
    (lifeMs > 0 && lifeMs <= LONGEST_LIFE_MS
      ? undefined
      : "Give a life of more than zero and at most five years, in milliseconds.");
  if (hint !== undefined) throw new SallyportError("invalid_input", { what: "token", hint });
}

/** A token with an owner is that person's automation: its decisions count as theirs. */
function ownerProblem(roles: readonly Role[], owner: string): string | undefined {
  if (owner === "" || roles.includes("agent")) return undefined;
  return "Only an agent acts on another's behalf: leave the owner out, or give the role agent.";
}

function tokenOf(tenant: string, row: Row): Token {
  const { hash, updatedAt, ...token } = TOKENS.read(row);
  return { ...token, tenant };
}
