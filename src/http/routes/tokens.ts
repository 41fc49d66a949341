import { z } from "zod";
import { ROLES, TOKEN_KINDS, TOKENS } from "../../model/identity.ts";
import { cookieHeader, newSecret } from "../authenticate.ts";
import { jsonRoute, RULES, rawRoute } from "../route.ts";
import { checkProgramName, makeSignInLink } from "../sign-in.ts";
import {
  DEFAULT_PAGE,
  instant,
  list,
  NO_INPUT,
  name,
  page,
  pageOf,
  paging,
  placeOf,
} from "../wire/common.ts";
import { wireOf } from "../wire/record.ts";

const token = wireOf(
  TOKENS,
  ["id", "kind", "subject", "roles", "owner", "note", "isLive", "madeBy", "createdAt", "expiresAt"],
  { roles: list(z.enum(ROLES)) },
);

/** Roles of programs. People act in their own session. */
const PROGRAM_ROLES = ["agent", "auditor"] as const;
const DEFAULT_LIFE_MS = 30 * 24 * 3_600_000;

export const tokenRoutes = {
  "me.get": jsonRoute({
    summary: "Show who is signed in, and what they may do.",
    rule: RULES.everybody,
    of: "none",
    input: NO_INPUT,
    answer: z.object({
      tenant: z.string(),
      subject: z.string(),
      roles: list(z.enum(ROLES)),
      /** Questions assigned to one of these wait for this person too. */
      groups: list(z.string()),
      kind: z.enum(TOKEN_KINDS),
      expiresAt: instant,
    }),
    lane: "people",
    async handle(_, { identity, gate }) {
      const { tenant, subject, roles, kind, expiresAt } = identity;
      const groups = gate.people?.find(({ id }) => id === subject)?.groups ?? [];
      return { tenant, subject, roles, groups, kind, expiresAt };
    },
  }),
  "me.signOut": rawRoute({
    summary: "Revoke the token of this request.",
    rule: RULES.everybody,
    of: "none",
    input: NO_INPUT,
    contentType: "application/json",
    async handle(_, context, { store, identity, services }) {
      await store.tokens.end(identity.id, "signed out", { actor: identity.subject });
      services.authenticator.forget();
      const { cookie: name } = services.signIn;
      const secure = services.origins.isSecure;
      const gone = cookieHeader({ name, value: "", maxAgeMs: 0, secure, sameSite: "Strict" });
      context.header("Set-Cookie", gone);
      return context.json({ signedOut: true });
    },
  }),
  "me.link": jsonRoute({
    summary:
      "Make a sign-in link for yourself, for another device or the command line. It works once.",
    rule: RULES.ownLink,
    of: "none",
    input: NO_INPUT,
    /** Empty when the answer is repeated for its idempotency key. */
    answer: z.object({ link: z.string() }),
    status: 201,
    lane: "people",
    toKeep: () => ({ link: "" }),
    handle: async (_, { identity, services }) => ({
      link: await makeSignInLink(identity, services, identity.subject),
    }),
  }),
  "tokens.make": jsonRoute({
    summary:
      "Make a token for a program. Its secret is shown only now. People are invited instead.",
    rule: RULES.administer,
    of: "none",
    input: z.strictObject({
      /** Not a person's name: no one acts as someone else. */
      subject: name,
      roles: z.array(z.enum(PROGRAM_ROLES)).min(1).max(PROGRAM_ROLES.length),
      /** The person on whose behalf an agent acts; they must not approve its calls. */
      owner: name.optional(),
      note: z.string().max(500).optional(),
      lifeMs: z.int().min(1_000).optional(),
    }),
    /** `secret` is empty when the answer is repeated for its idempotency key. */
    answer: z.object({ token, secret: z.string() }),
    status: 201,
    lane: "people",
    toKeep: (answer) => ({ ...answer, secret: "" }),
    async handle(input, call) {
      const { store, identity, services } = call;
      const { subject, roles, owner = "", note = "", lifeMs = DEFAULT_LIFE_MS } = input;
      await checkProgramName(subject, call);
      const { hash, text: secret } = newSecret(identity.tenant, services.random);
      const fresh = { kind: "token", hash, subject, roles, owner, note, lifeMs } as const;
      const made = await store.tokens.make(fresh, { actor: identity.subject });
      services.door.admit(`Bearer ${secret}`);
      return { token: made, secret };
    },
  }),
  "tokens.list": jsonRoute({
    summary: "List tokens and sign-ins, without their secrets.",
    rule: RULES.readAccess,
    of: "none",
    input: z.strictObject({ kind: z.enum(TOKEN_KINDS).optional(), ...paging }),
    answer: pageOf(token),
    lane: "people",
    async handle({ kind = "token", cursor, limit = DEFAULT_PAGE }, { store }) {
      const found = await store.tokens.list({ kind, after: placeOf(cursor), limit: limit + 1 });
      return page(found, limit, ({ ord }) => ord);
    },
  }),
  "tokens.revoke": jsonRoute({
    summary: "Revoke a token permanently. Its open streams are closed.",
    rule: RULES.administer,
    of: "none",
    input: z.strictObject({ id: name, reason: z.string().max(500).optional() }),
    answer: z.object({ ended: z.boolean() }),
    lane: "people",
    async handle({ id, reason = "" }, { store, identity, services }) {
      const ended = await store.tokens.end(id, reason, { actor: identity.subject });
      services.authenticator.forget();
      return { ended };
    },
  }),
};
