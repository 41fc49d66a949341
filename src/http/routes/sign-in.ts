import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { isSallyportError, SallyportError } from "../../model/errors.ts";
import {
  contentSecurityPolicy,
  escapeHtml,
  htmlPage,
  KEEP_KEY_HASH,
  STYLE_HASH,
  signedInPage,
} from "../app.ts";
import { cookieHeader, readCookie } from "../authenticate.ts";
import { readForm } from "../read-input.ts";
import { type HttpContext, openRoute } from "../route.ts";
import type { Services } from "../services.ts";
import { type NewSession, redeemSignInLink, signIn } from "../sign-in.ts";
import { NO_INPUT } from "../wire/common.ts";

const OIDC_COOKIE = "sallyport_oidc";
const OIDC_MS = 10 * 60_000;
const BEFORE = { anyone: "whoever signs in is nobody yet" } as const;

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
      return page(context, 200, "Sign in to Sallyport", link === undefined ? rest : form);
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
        return page(context, 401, "Not signed in", why);
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
        const why = "<p>Your organisation knows you, but nobody gave you a role here.</p>";
        return page(context, 403, "Not signed in", why);
      }
      context.header("Set-Cookie", oidcCookie("", 0, origins.isSecure), { append: true });
      return signedIn(context, await signIn(person, services), "/");
    },
  }),
};

/** Undefined for a link that is not good, or was shown a moment ago and was not. Throws too_fast. */
async function redeemed(
  given: { readonly link: string; readonly code: string },
  incoming: IncomingMessage,
  services: Services,
): Promise<NewSession | undefined> {
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

function page(
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
function signedIn(context: HttpContext, { cookie, key }: NewSession, next: string): Response {
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
