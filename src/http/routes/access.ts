import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { isSallyportError, SallyportError } from "../../model/errors.ts";
import { REVIEWERS, ROLES, TOKEN_KINDS, TOKENS, type Token } from "../../model/identity.ts";
import { foldName } from "../../model/names.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { readForm } from "../answer.ts";
import { cookieHeader, readCookie } from "../authenticate.ts";
import {
  access,
  type Call,
  type HttpContext,
  jsonRoute,
  openRoute,
  rawRoute,
  type Services,
} from "../route.ts";
import {
  checkProgramName,
  contentSecurityPolicy,
  escapeHtml,
  htmlPage,
  invite,
  KEEP_KEY_HASH,
  knownAdmins,
  knownPeople,
  knownPrograms,
  linkOfInvite,
  liveOf,
  makeSignInLink,
  makeToken,
  type NewPersonSession,
  redeemSignInLink,
  rotateToken,
  STYLE_HASH,
  signedInPage,
  signInPerson,
  signOutEverywhere,
} from "../sign-in.ts";
import {
  anyText,
  instantText,
  list,
  NO_INPUT,
  name,
  pageByOrd,
  pageOf,
  paging,
  reason,
  texts,
  wireOf,
} from "../wire.ts";

const PERSON_ROLES = ["reviewer", "operator", "auditor", "admin"] as const;

const invitation = z.object({
  ...texts("id", "subject"),
  roles: list(z.enum(PERSON_ROLES)),
  invitedBy: anyText,
  /** False once it was confirmed or ended. */
  isOpen: z.boolean(),
  createdAt: instantText,
  expiresAt: instantText,
});

export const peopleRoutes = {
  "people.invite": jsonRoute({
    summary:
      "Invite a person. With one admin the answer has the link; with several it has a code, and another admin confirms.",
    ...access("administer", "none", "people"),
    input: z.strictObject({
      subject: name,
      roles: z.array(z.enum(PERSON_ROLES)).min(1).max(PERSON_ROLES.length),
    }),
    /** `code` and `link` are empty when the answer is repeated for its idempotency key. */
    answer: z.discriminatedUnion("state", [
      z.object({ state: z.literal("ready"), link: anyText }),
      z.object({ state: z.literal("waits"), id: anyText, code: anyText }),
    ]),
    status: 201,
    toKeep: (answer) =>
      answer.state === "ready" ? { ...answer, link: "" } : { ...answer, code: "" },
    async handle({ subject, roles }, call) {
      const { identity, by, services, store } = call;
      const isAlone = new Set(await knownAdmins(store)).add(foldName(by)).size === 1;
      await checkInvitable(subject, isAlone, call);
      if (isAlone && roles.includes("admin")) throw noSecondAdmin();
      const person = { tenant: identity.tenant, subject, roles, owner: "" };
      if (!isAlone) return { state: "waits" as const, ...(await invite(person, services, by)) };
      const link = await makeSignInLink(person, services, by, services.signIn.inviteMs);
      return { state: "ready" as const, link };
    },
  }),
  "people.confirm": jsonRoute({
    summary:
      "Confirm another admin's invitation. The answer has the link; the person also needs the inviter's code.",
    ...access("administer", "none", "people"),
    input: z.strictObject({ id: name }),
    /** `link` is empty when the answer is repeated for its idempotency key. */
    answer: z.object({ link: anyText, ended: z.int() }),
    toKeep: (answer) => ({ ...answer, link: "" }),
    async handle({ id }, call) {
      const { identity, by, services, store } = call;
      const invited = await store.tokens.invitation(id);
      if (invited !== undefined && foldName(invited.subject) === foldName(by)) {
        const hint = "Another admin must confirm it: no one gives themselves a role.";
        throw new SallyportError("not_allowed", { id, by, hint });
      }
      const live = invited === undefined ? [] : await liveOf(store, invited.subject);
      const link = await linkOfInvite(id, services, identity);
      // Revokes all other sessions and links of this person.
      let ended = 0;
      for (const token of live.filter((one) => one.id !== id)) {
        if (await store.tokens.end(token.id, "invited again", { actor: by })) ended += 1;
      }
      services.authenticator.forget();
      return { link, ended };
    },
  }),
  "people.signOut": jsonRoute({
    summary: "Sign a person out on every device, and end the links they have not used.",
    ...access("administer", "none", "people"),
    input: z.strictObject({ subject: name, reason: z.string().max(500).optional() }),
    answer: z.object({ ended: z.int() }),
    handle: async ({ subject, reason = "signed out by an admin" }, call) => ({
      ended: await signOutEverywhere(call, subject, reason),
    }),
  }),
  "people.list": jsonRoute({
    summary: "List invitations that wait or waited for a second admin, oldest first.",
    ...access("readAccess", "none", "people"),
    input: z.strictObject(paging),
    answer: pageOf(invitation),
    handle: (paged, { store }) =>
      pageByOrd(paged, (query) => store.tokens.invitations(query), wireInvitation),
  }),
};

/** One admin can invite only a new person. A known person is invited again by two, and signed out first. */
async function checkInvitable(subject: string, isAlone: boolean, call: Call): Promise<void> {
  const folded = foldName(subject);
  if (folded === "" || (await knownPrograms(call.store)).has(folded)) {
    const hint = "This is the name of a program; choose another name for the person.";
    throw new SallyportError("not_allowed", { what: "subject", hint });
  }
  if (folded === foldName(call.by)) {
    const hint = "Make a link for yourself with me.link; another admin changes your roles.";
    throw new SallyportError("not_allowed", { what: "subject", hint });
  }
  if (!isAlone || !(await knownPeople(call)).has(folded)) return;
  const hint =
    "This person is already known. They can make a new link with me.link, sign in with the identity provider, or get a link from the server's operator.";
  throw new SallyportError("not_allowed", { what: "subject", hint });
}

/** One person who admits both admins controls both, and two admins can sign in as any known person. */
function noSecondAdmin(): SallyportError {
  const hint =
    "An admin alone cannot add another admin. The second one signs in with the identity provider, or with a link from the server's operator: `sallyport serve --as NAME`.";
  return new SallyportError("not_allowed", { what: "roles", hint });
}

function wireInvitation({ madeBy, isLive, ...token }: Token): z.output<typeof invitation> {
  const roles = PERSON_ROLES.filter((role) => token.roles.includes(role));
  return { ...token, roles, invitedBy: madeBy, isOpen: isLive };
}

const reviewer = wireOf(
  REVIEWERS,
  // biome-ignore format: a list
  ["id", "status", "approved", "rejected", "caught", "missed", "hourCount", "hourAt"],
);

export const reviewerRoutes = {
  "reviewers.list": jsonRoute({
    summary: "Show how each reviewer decides: approvals, rejections, decoys caught and missed.",
    ...access("checkAudit", "none", "people"),
    input: NO_INPUT,
    answer: z.object({ items: list(reviewer) }),
    handle: async (_, { gate }) => ({ items: await gate.reviewers.list() }),
  }),
  "reviewers.restore": jsonRoute({
    summary: "Count a reviewer's approvals again after they missed decoys. Not your own.",
    ...access("restoreReviewer", "none", "people"),
    input: z.strictObject({ id: name, reason }),
    answer: reviewer,
    handle: ({ id, reason: why }, { gate, by }) => gate.reviewers.restore(id, { by, reason: why }),
  }),
};

const token = wireOf(
  TOKENS,
  // biome-ignore format: a list
  ["id", "kind", "subject", "roles", "taskRoles", "owner", "note", "isLive", "madeBy", "createdAt", "expiresAt"],
  { roles: list(z.enum(ROLES)), taskRoles: list(anyText) },
);

const OVERLAP_MS = 3_600_000;
const MOST_OVERLAP_MS = 7 * 24 * 3_600_000;

/** Roles of programs. People act in their own session. */
const PROGRAM_ROLES = ["agent", "auditor", "executor"] as const;

export const tokenRoutes = {
  "me.get": jsonRoute({
    summary: "Show who is signed in, and what they may do.",
    ...access("everybody", "none", "people"),
    input: NO_INPUT,
    answer: z.object({
      ...texts("tenant", "subject"),
      roles: list(z.enum(ROLES)),
      /** Questions assigned to one of these wait for this person too. */
      groups: list(anyText),
      kind: z.enum(TOKEN_KINDS),
      expiresAt: instantText,
    }),
    handle: async (_, { identity, by, gate }) => ({
      ...identity,
      groups: gate.people?.find(({ id }) => id === by)?.groups ?? [],
    }),
  }),
  "me.signOut": rawRoute({
    summary: "Revoke the token of this request.",
    ...access("everybody", "none", "people"),
    input: NO_INPUT,
    contentType: "application/json",
    async handle(_, context, { store, identity, by, services }) {
      await store.tokens.end(identity.id, "signed out", { actor: by });
      services.authenticator.forget();
      const { cookie: name } = services.signIn;
      const secure = services.origins.isSecure;
      const gone = cookieHeader({ name, value: "", maxAgeMs: 0, secure, sameSite: "Strict" });
      context.header("Set-Cookie", gone);
      return context.json({ signedOut: true });
    },
  }),
  "me.signOutEverywhere": jsonRoute({
    summary: "Sign yourself out on every device, this one included, and end your unused links.",
    ...access("ownSignIns", "none", "people"),
    input: NO_INPUT,
    answer: z.object({ ended: z.int() }),
    handle: async (_, call) => ({
      ended: await signOutEverywhere(call, call.by, "signed out everywhere"),
    }),
  }),
  "me.link": jsonRoute({
    summary:
      "Make a sign-in link for yourself, for another device or the command line. It works once.",
    ...access("ownLink", "none", "people"),
    input: NO_INPUT,
    /** Empty when the answer is repeated for its idempotency key. */
    answer: z.object({ link: anyText }),
    status: 201,
    toKeep: () => ({ link: "" }),
    handle: async (_, { identity, by, services }) => ({
      link: await makeSignInLink(identity, services, by),
    }),
  }),
  "tokens.make": jsonRoute({
    summary:
      "Make a token for a program. Its secret is shown only now. People are invited instead.",
    ...access("administer", "none", "people"),
    input: z.strictObject({
      /** Not a person's name: no one acts as someone else. */
      subject: name,
      roles: z.array(z.enum(PROGRAM_ROLES)).min(1).max(PROGRAM_ROLES.length),
      /** The person on whose behalf an agent acts; they must not approve its calls. */
      owner: name.optional(),
      note: z.string().max(500).optional(),
      lifeMs: z.int().min(1_000).optional(),
      /** Which tasks that ask for a role it may claim. */
      taskRoles: z.array(name).max(50).optional(),
    }),
    /** `secret` is empty when the answer is repeated for its idempotency key. */
    answer: z.object({ token, secret: anyText }),
    status: 201,
    toKeep: (answer) => ({ ...answer, secret: "" }),
    async handle(input, call) {
      await checkProgramName(input.subject, call);
      return makeToken(
        { ...definedFields(input), tenant: call.identity.tenant },
        call.services,
        call.by,
      );
    },
  }),
  "tokens.list": jsonRoute({
    summary: "List tokens and sign-ins, without their secrets.",
    ...access("readAccess", "none", "people"),
    input: z.strictObject({ kind: z.enum(TOKEN_KINDS).optional(), ...paging }),
    answer: pageOf(token),
    handle: ({ kind = "token", ...paged }, { store }) =>
      pageByOrd(
        paged,
        (query) => store.tokens.list({ kind, ...query }),
        (one) => one,
      ),
  }),
  "tokens.rotate": jsonRoute({
    summary:
      "Replace a program's token. The new secret is shown only now; the old one works until the overlap is over.",
    ...access("administer", "none", "people"),
    input: z.strictObject({
      id: name,
      /** How long the old secret still works, at most seven days; an hour when left out. 0 ends it now. */
      overlapMs: z.int().min(0).max(MOST_OVERLAP_MS).optional(),
      lifeMs: z.int().min(1_000).optional(),
    }),
    /** `secret` is empty when the answer is repeated for its idempotency key. */
    answer: z.object({ token, secret: anyText }),
    status: 201,
    toKeep: (answer) => ({ ...answer, secret: "" }),
    async handle({ id, overlapMs = OVERLAP_MS, lifeMs }, { services, identity }) {
      const rotated = await rotateToken({ id, overlapMs, lifeMs }, services, identity);
      services.authenticator.forget();
      return rotated;
    },
  }),
  "tokens.revoke": jsonRoute({
    summary: "Revoke a token permanently. Its open streams are closed.",
    ...access("administer", "none", "people"),
    input: z.strictObject({ id: name, reason: z.string().max(500).optional() }),
    answer: z.object({ ended: z.boolean() }),
    async handle({ id, reason = "" }, { store, by, services }) {
      const ended = await store.tokens.end(id, reason, { actor: by });
      services.authenticator.forget();
      return { ended };
    },
  }),
};

const OIDC_COOKIE = "sallyport_oidc";
const OIDC_MS = 10 * 60_000;
const BEFORE = { anyone: "who signs in is not known yet" } as const;

export const signInRoutes = {
  "signIn.page": openRoute({
    summary:
      "Show the page of a sign-in link. Opening it does not use the link up, because mail scanners open links too.",
    rule: BEFORE,
    input: z.strictObject({
      link: z.string().max(800).optional(),
      needs: z.literal("code").optional(),
    }),
    contentType: "text/html",
    async handle({ link, needs }, context, { oidc }) {
      const code = needs === undefined ? "" : CODE_FIELD;
      const form = `<p>This link signs you in once.</p><form method="post" action="/signin"><input type="hidden" name="link" value="${escapeHtml(link ?? "")}">${code}<button>Sign in</button></form>`;
      const team =
        '<p><a class="button" href="/signin/oidc">Sign in with your organisation</a></p>';
      const none = "<p>Start the server again, or ask an operator, for a sign-in link.</p>";
      const rest = oidc === undefined ? none : team;
      return signInPage(context, 200, "Sign in to Sallyport", link === undefined ? rest : form);
    },
  }),
  "signIn.use": openRoute({
    summary:
      "Use a sign-in link: sets the cookie and returns the page key, as a page or, for programs, as JSON.",
    rule: BEFORE,
    input: NO_INPUT,
    contentType: "text/html",
    async handle(_, context, services) {
      const form = await readForm(context.env.incoming, services.limits, services.timers);
      const given = { link: form.get("link") ?? "", code: form.get("code") ?? "" };
      const session = await redeemed(given, context.env.incoming, services);
      if (session === undefined) {
        services.metrics.refusedSignIn();
        if (wantsJson(context)) throw new SallyportError("unauthenticated", { hint: OLD_LINK });
        const why = `<p>${OLD_LINK}</p>`;
        return signInPage(context, 401, "Not signed in", why);
      }
      return signedIn(context, session, "/");
    },
  }),
  "signIn.oidc": openRoute({
    summary: "Redirect a person to the organisation's identity provider.",
    rule: BEFORE,
    input: NO_INPUT,
    contentType: "text/html",
    async handle(_, context, { oidc, origins }) {
      if (oidc === undefined) throw noOidc();
      const { url, memory } = await oidc.begin(`${origins.main}/signin/oidc/callback`);
      context.header("Set-Cookie", oidcCookie(memory, OIDC_MS, origins.isSecure));
      context.header("Cache-Control", "no-store");
      return context.redirect(url, 303);
    },
  }),
  "signIn.oidcCallback": openRoute({
    summary: "Receive people whom the identity provider sends back.",
    rule: BEFORE,
    // Extra parameters of the response are checked by the protocol.
    input: z.looseObject({}),
    contentType: "text/html",
    async handle(_, context, services) {
      const { oidc, origins } = services;
      if (oidc === undefined) throw noOidc();
      const memory = readCookie(context.env.incoming.headers.cookie, OIDC_COOKIE) ?? "";
      const { search } = new URL(context.req.url);
      const person = await oidc.finish(`${origins.main}/signin/oidc/callback${search}`, memory);
      if (person === undefined) {
        services.metrics.refusedSignIn();
        const why =
          "<p>Your organisation knows you, but you have no role here. Ask an admin for one.</p>";
        return signInPage(context, 403, "Not signed in", why);
      }
      context.header("Set-Cookie", oidcCookie("", 0, origins.isSecure), { append: true });
      return signedIn(context, await signInPerson(person, services), "/");
    },
  }),
};

/** Undefined for a link that is not good, or was shown a moment ago and was not. Throws too_fast. */
async function redeemed(
  given: { readonly link: string; readonly code: string },
  incoming: IncomingMessage,
  services: Services,
): Promise<NewPersonSession | undefined> {
  try {
    const knock = services.door.knockWithLink(given.link, given.code, incoming);
    const session = await redeemSignInLink(given, services);
    if (session === undefined) knock.refused();
    else knock.known();
    return session;
  } catch (error) {
    if (isSallyportError(error, "unauthenticated")) return undefined;
    throw error;
  }
}

function signInPage(
  context: HttpContext,
  status: 200 | 401 | 403,
  title: string,
  body: string,
): Response {
  context.header("Content-Security-Policy", contentSecurityPolicy([STYLE_HASH]));
  context.header("Cache-Control", "no-store");
  return context.html(htmlPage(title, body), status);
}

const OLD_LINK =
  "The link was already used, has expired, or its code is wrong. Try the code again, or ask for a new link.";
const CODE_FIELD =
  '<p><label>Code from the admin who invited you <input name="code" required autocomplete="off"></label></p>';

/**
 * A page and not a redirect: only a page can keep the key for its own origin, and a strict cookie is sent only on the way from
 * one of our own pages. Programs ask for JSON.
 */
function signedIn(context: HttpContext, { cookie, key }: NewPersonSession, next: string): Response {
  context.header("Set-Cookie", cookie, { append: true });
  context.header("Cache-Control", "no-store");
  if (wantsJson(context)) return context.json({ key });
  context.header("Content-Security-Policy", contentSecurityPolicy([STYLE_HASH], [KEEP_KEY_HASH]));
  return context.html(signedInPage(key, next));
}

function wantsJson(context: HttpContext): boolean {
  return context.req.header("accept") === "application/json";
}

/** Lax, because the redirect back comes from another site. */
function oidcCookie(value: string, maxAgeMs: number, secure: boolean): string {
  const path = "/signin/oidc";
  return cookieHeader({ name: OIDC_COOKIE, value, maxAgeMs, secure, sameSite: "Lax", path });
}

function noOidc(): SallyportError {
  const hint = "This server has no identity provider; use a sign-in link.";
  return new SallyportError("not_found", { id: "oidc", hint });
}
