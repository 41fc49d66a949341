import type { IncomingMessage } from "node:http";
import { SallyportError } from "../model/errors.ts";

/**
 * Host and Origin, each against its own list: a page that uses DNS rebinding
 * sends a foreign Host, a page of another site a foreign Origin.
 */
export interface OriginCheck {
  /** Throws wrong_origin. */
  check(request: IncomingMessage): void;
  /** The address for people: the first of the list. */
  readonly main: string;
  readonly isSecure: boolean;
}

/** `origins` like `http://127.0.0.1:4100`; all others are refused. */
export function createOriginCheck(origins: readonly string[]): OriginCheck {
  const [main = ""] = origins;
  const allowed = new Set(origins);
  const hosts = new Set(origins.flatMap(hostsOf));
  return {
    main,
    isSecure: main.startsWith("https:"),
    check(request) {
      const { host, origin, cookie, authorization } = request.headers;
      if (host === undefined || !hosts.has(host.toLowerCase()) || isDoubled(request, "host")) {
        throw refused("host");
      }
      if (isDoubled(request, "origin")) throw refused("origin");
      if (origin !== undefined) {
        if (!allowed.has(origin)) throw refused("origin");
        return;
      }
      // Browsers send Origin with every request that changes state. A client without it is not a browser and has no cookie.
      const isPlainRead = request.method === "GET" || request.method === "HEAD";
      const byCookie = cookie !== undefined && authorization === undefined;
      if (!isPlainRead && byCookie) throw refused("origin");
      const site = request.headers["sec-fetch-site"];
      if (!isPlainRead && site !== undefined && site !== "same-origin" && site !== "none") {
        throw refused("origin");
      }
    },
  };
}

/** The origins of a server on this loopback port. */
export function loopbackOrigins(port: number): readonly string[] {
  return ["127.0.0.1", "localhost", "[::1]"].map(
    (name) => new URL(`http://${name}:${port}`).origin,
  );
}

/** Why an origin cannot be served; undefined if it can. */
export function originProblem(origin: string): string | undefined {
  const url = URL.parse(origin);
  if (url === null || url.origin !== origin) {
    return `"${origin}" is not an origin; write it like https://gate.example.com, without a path.`;
  }
  const isLocal = ["127.0.0.1", "localhost", "[::1]"].includes(url.hostname);
  if (url.protocol === "https:" || (url.protocol === "http:" && isLocal)) return undefined;
  return `"${origin}" would send tokens and cookies in the clear; put TLS in front and use https.`;
}

/** Browsers omit the default port; other programs may send it. */
function hostsOf(origin: string): readonly string[] {
  const { host, hostname, port, protocol } = new URL(origin);
  return port === "" ? [host, `${hostname}:${protocol === "https:" ? 443 : 80}`] : [host];
}

/** Node keeps the first Host and joins other repeated headers; two of them are an attack or a broken proxy. */
function isDoubled(request: IncomingMessage, name: string): boolean {
  let count = 0;
  for (let at = 0; at < request.rawHeaders.length; at += 2) {
    if (request.rawHeaders[at]?.toLowerCase() === name) count += 1;
  }
  return count > 1;
}

function refused(what: "host" | "origin"): SallyportError {
  const hint =
    what === "host"
      ? "Use the address that this server printed, or add yours to `remote.origins`."
      : "Open the console under the server's own address; pages of other servers cannot use it.";
  return new SallyportError("wrong_origin", { what, hint });
}
