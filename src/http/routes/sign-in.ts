import { z } from "zod";
import { SallyportError } from "../../model/errors.ts";
import { cookieHeader, readCookie } from "../cookie.ts";
import { escapeHtml, htmlPage, STYLE_HASH } from "../html.ts";
import { readForm } from "../read-body.ts";
import { type HttpContext, openRoute } from "../route.ts";
import { contentSecurityPolicy } from "../security-headers.ts";
import { redeemSignInLink, signIn } from "../sign-in.ts";
import { NO_INPUT } from "../wire/common.ts";

const OIDC_COOKIE = "sallyport_oidc";
const OIDC_MS = 10 * 60_000;
const BEFORE = { anyone: "whoever signs in is nobody yet" } as const;

export const signInRoutes = {
  "signIn.page": openRoute({
    summary:
      "The page that a sign-in link opens. Looking at it uses nothing up: link scanners look too.",
    rule: BEFORE,
    input: z.strictObject({ link: z.string().max(800).optional() }),
    contentType: "text/html",
    async handle({ link }, context, { oidc }) {
      const form = `<p>This link signs you in once.</p><form method="post" action="/signin"><input type="hidden" name="link" value="${escapeHtml(link ?? "")}"><button>Sign in</button></form>`;
      const team =
        '<p><a class="button" href="/signin/oidc">Sign in with your organisation</a></p>';
      const none = "<p>Start the server again, or ask an operator, for a sign-in link.</p>";
      const rest = oidc === undefined ? none : team;
      return page(context, 200, "Sign in to Sallyport", link === undefined ? rest : form);
    },
  }),
  "signIn.use": openRoute({
    summary: "Uses a sign-in link up and sets the cookie.",
    rule: BEFORE,
    input: NO_INPUT,
    contentType: "text/html",
    async handle(_, context, services) {
      const form = await readForm(context.env.incoming, services.limits, services.timers);
      const cookie = await redeemSignInLink(form.get("link") ?? "", services);
      if (cookie === undefined) {
        services.metrics.refusedSignIn();
        const why = "<p>The link was used before, or is too old. Ask for a new one.</p>";
        return page(context, 401, "Not signed in", why);
      }
      context.header("Set-Cookie", cookie);
      context.header("Cache-Control", "no-store");
      return context.redirect("/", 303);
    },
  }),
  "signIn.oidc": openRoute({
    summary: "Sends a person to the organisation's own sign-in.",
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
    summary: "Where the organisation's sign-in sends people back to.",
    rule: BEFORE,
    // What the other side adds to its answer is checked by the protocol, not by us.
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
      context.header("Set-Cookie", await signIn(person, services), { append: true });
      context.header("Set-Cookie", oidcCookie("", 0, origins.isSecure), { append: true });
      // A page and not a redirect: the strict cookie is sent only on the way from one of our own pages.
      return page(context, 200, "Signed in", '<p><a href="/">Go on</a></p>', "/");
    },
  }),
};

function page(
  context: HttpContext,
  status: 200 | 401 | 403,
  title: string,
  body: string,
  refresh = "",
): Response {
  context.header("Content-Security-Policy", contentSecurityPolicy([STYLE_HASH]));
  context.header("Cache-Control", "no-store");
  return context.html(htmlPage(title, body, refresh), status);
}

/** Lax, because the way back starts on a page of somebody else. */
function oidcCookie(value: string, maxAgeMs: number, secure: boolean): string {
  const path = "/signin/oidc";
  return cookieHeader({ name: OIDC_COOKIE, value, maxAgeMs, secure, sameSite: "Lax", path });
}

function noOidc(): SallyportError {
  const hint = "This server has no organisation to ask; use a sign-in link.";
  return new SallyportError("not_found", { id: "oidc", hint });
}
