import { hash } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import type { HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import { SallyportError } from "../model/errors.ts";
import { handlerOf, problem } from "./answer.ts";
import { PATHS, pathOf, type RouteName } from "./paths.ts";
import type { HttpContext } from "./route.ts";
import { ROUTES } from "./routes.ts";
import type { Services } from "./services.ts";

/** The router: every path of the table, each behind its authorization, and the console's files. Nothing else is served. */
export function createApp(
  services: Services,
  files: Console = noConsole,
): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.use("*", async (context, next) => {
    for (const [header, value] of Object.entries(SECURITY_HEADERS)) context.header(header, value);
    context.header("Content-Security-Policy", NO_PAGE_POLICY);
    try {
      services.origins.check(context.env.incoming);
    } catch (error) {
      return problem(context, error, services);
    }
    return next();
  });
  for (const name of Object.keys(PATHS) as RouteName[]) {
    const { method, path } = pathOf(name);
    app.on(method, path, handlerOf(name, ROUTES[name], services));
  }
  app.get("*", async (context) => {
    const { pathname } = new URL(context.req.url);
    const response = pathname.startsWith("/v1/") ? undefined : await files(context, pathname);
    return response ?? problem(context, unknownPath(), services);
  });
  app.notFound((context) => problem(context, unknownPath(), services));
  app.onError((error, context) => problem(context, error, services));
  return app;
}

function unknownPath(): SallyportError {
  return new SallyportError("not_found", {
    hint: "See GET /v1/openapi.json for the available routes.",
  });
}

/** The web console's built files. Undefined for any other path. */
type Console = (context: HttpContext, pathname: string) => Promise<Response | undefined>;

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".webmanifest": "application/manifest+json",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
};

/** Plain path segments only: no spelling of `..` matches. */
const FILE = /^(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$/;

/** A folder as a bundler makes it: `index.html` for every page, names with a hash under `assets`. */
export function consoleFolder(folder: string): Console {
  const root = path.resolve(folder);
  return async (context, pathname) => {
    const type = FILE.test(pathname) ? TYPES[path.extname(pathname)] : undefined;
    const isAsset = pathname === "/assets" || pathname.startsWith("/assets/");
    // Only files below assets: the page would be cached as that file for a year.
    if (isAsset && (type === undefined || type === TYPES[".html"])) return undefined;
    const isPage = type === undefined || pathname === "/index.html";
    const file = isPage ? "index.html" : pathname.slice(1);
    const bytes = await readFile(path.join(root, file)).catch(() => undefined);
    if (bytes === undefined) return undefined;
    context.header("Content-Security-Policy", contentSecurityPolicy());
    context.header("Cache-Control", isAsset ? "public, max-age=31536000, immutable" : "no-cache");
    const contentType = isPage ? TYPES[".html"] : type;
    return context.body(new Uint8Array(bytes), 200, { "Content-Type": contentType ?? "" });
  };
}

/** The landing page after sign-in if there is no console. */
export const noConsole: Console = async (context, pathname) => {
  if (pathname !== "/") return undefined;
  context.header("Content-Security-Policy", contentSecurityPolicy([STYLE_HASH]));
  context.header("Cache-Control", "no-store");
  return context.html(
    htmlPage("Sallyport", "<p>The server runs. There is no console in this installation.</p>"),
  );
};

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

const STYLE = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:32rem;margin:12vh auto;padding:0 1.25rem}
button,a.button{display:inline-block;font:inherit;padding:.6rem 1.4rem;border-radius:.5rem;border:1px solid;cursor:pointer;text-decoration:none;color:inherit;background:none}`;

/** The hash of the one inline style of the server's pages, for their content security policy. */
export const STYLE_HASH = `'sha256-${sha256Base64(STYLE)}'`;

/** A page without scripts. `body` is HTML; untrusted parts must be escaped. */
export function htmlPage(title: string, body: string, head = ""): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">${head}<title>${escapeHtml(title)}</title><style>${STYLE}</style></head><body><main><h1>${escapeHtml(title)}</h1>${body}</main></body></html>`;
}

/** Where the page key is kept in the browser: storage belongs to one origin, port included. The console reads the same name. */
const PAGE_KEY_NAME = "sallyport-key";

/** A constant text, so that the content security policy can allow it by hash. */
const KEEP_KEY = `const of=(n)=>document.querySelector('meta[name="'+n+'"]').content;localStorage.setItem("${PAGE_KEY_NAME}",of("sallyport-key"));location.replace(of("sallyport-next"));`;
export const KEEP_KEY_HASH = `'sha256-${sha256Base64(KEEP_KEY)}'`;

/** What a browser gets once after signing in: it stores the key and continues to `next`. */
export function signedInPage(key: string, next: string): string {
  const meta = (name: string, content: string) =>
    `<meta name="${name}" content="${escapeHtml(content)}">`;
  const head = meta("sallyport-key", key) + meta("sallyport-next", next);
  const body = `<p>You are signed in.</p><p><a href="${escapeHtml(next)}">Continue</a></p><noscript><p>The console needs JavaScript.</p></noscript><script>${KEEP_KEY}</script>`;
  return htmlPage("Signed in", body, head);
}

function sha256Base64(text: string): string {
  return hash("sha256", text, "base64");
}

/**
 * For pages: only our own scripts and styles, no inline code, no plugins, no framing, and the browser refuses to turn
 * text into code (Trusted Types). `styles` and `scripts` are hashes of inline ones.
 */
export function contentSecurityPolicy(
  styles: readonly string[] = [],
  scripts: readonly string[] = [],
): string {
  return [
    "default-src 'none'",
    `script-src 'self' ${scripts.join(" ")}`.trim(),
    `style-src 'self' ${styles.join(" ")}`.trim(),
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}

/** For every response. */
const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  // Not "no-referrer": with it browsers send `Origin: null` with forms, and sign-in links would not work.
  "Referrer-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
};

/** The policy of everything that is not a page: nothing is allowed. */
const NO_PAGE_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox";
