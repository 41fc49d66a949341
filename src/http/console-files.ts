import { readFile } from "node:fs/promises";
import path from "node:path";
import { htmlPage, STYLE_HASH } from "./html.ts";
import type { HttpContext } from "./route.ts";
import { contentSecurityPolicy } from "./security-headers.ts";

/** The web console's built files. Gives undefined for a path that is none of them. */
export type Console = (context: HttpContext, pathname: string) => Promise<Response | undefined>;

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

/** One segment after the other, none of them hidden or odd: there is no spelling of `..` in it. */
const FILE = /^(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$/;

/** A folder as a bundler makes it: `index.html` for every page, names with a hash under `assets`. */
export function consoleFolder(folder: string): Console {
  const root = path.resolve(folder);
  return async (context, pathname) => {
    const type = FILE.test(pathname) ? TYPES[path.extname(pathname)] : undefined;
    const isAsset = pathname === "/assets" || pathname.startsWith("/assets/");
    // Below assets there are files only: an answer with the page would be kept as that file for a year.
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

/** Without a console there is still a page to land on after signing in. */
export const noConsole: Console = async (context, pathname) => {
  if (pathname !== "/") return undefined;
  context.header("Content-Security-Policy", contentSecurityPolicy([STYLE_HASH]));
  context.header("Cache-Control", "no-store");
  return context.html(
    htmlPage("Sallyport", "<p>The server runs. There is no console in this installation.</p>"),
  );
};
