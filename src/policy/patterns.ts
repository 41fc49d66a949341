import { isPrivateAddress } from "../util/private-address.ts";

/**
 * Splits a path into names, the root first: `/a/b` is `["", "a", "b"]`, `C:\a` is `["C:", "a"]`. Undefined for a path
 * that is not absolute or not fully resolved (`.`, `..`, empty names, a null character): such a path is never compared.
 */
export function segmentsOf(path: string): readonly string[] | undefined {
  if (path.includes("\0")) return undefined;
  const isWindows = /^[A-Za-z]:[\\/]/.test(path);
  if (!isWindows && !path.startsWith("/")) return undefined;
  const segments = path.split(isWindows ? /[\\/]/ : "/");
  if (segments.at(-1) === "") segments.pop();
  if (segments.length === 0) return undefined;
  const isPlain = (name: string) => name !== "" && name !== "." && name !== "..";
  return segments.slice(1).every(isPlain) ? segments : undefined;
}

/** True for the folder itself and everything below it, by whole names: `/work` does not contain `/workshop`. */
export function isWithin(path: readonly string[], folder: readonly string[]): boolean {
  return folder.length <= path.length && folder.every((name, index) => name === path[index]);
}

/**
 * Matches a path against a pattern by whole names: `*` inside a name matches any characters of that name, a name `**`
 * matches any number of names, including none. So `/work/**` also matches `/work`.
 */
export function matchPath(path: readonly string[], pattern: readonly string[]): boolean {
  return matchWithGaps(path, pattern, {
    isGap: (piece) => piece === "**",
    fits: (piece, name) => matchText(name, piece),
  });
}

/** The names of a pattern before its first wildcard, used as an index key. */
export function literalStart(pattern: readonly string[]): readonly string[] {
  const wild = pattern.findIndex((name) => name.includes("*"));
  return wild < 0 ? pattern : pattern.slice(0, wild);
}

/** The problem with a path pattern, as the rest of a sentence. */
export function pathPatternProblem(pattern: string): string | undefined {
  if (pattern.length > 4096) return "is longer than 4096 characters";
  const segments = segmentsOf(pattern);
  if (segments === undefined) {
    return 'must be an absolute path such as "/work/**", without ".", ".." and empty names';
  }
  const odd = segments.find((name) => name.includes("**") && name !== "**");
  return odd === undefined ? undefined : 'may use "**" only as a whole name';
}

/** A host in its normal form, and a port. */
export interface HostIdentity {
  /** Lower case, punycode, canonical addresses, without brackets and without a trailing dot. */
  readonly host: string;
  readonly port: number;
}

interface HostPattern extends HostIdentity {
  /** True for `*.example.com`, which matches every name below example.com but not example.com itself. */
  readonly below: boolean;
}

const HTTPS_PORT = 443;

/** Parses `example.com`, `*.example.com`, `[::1]:8080`, `bücher.example:444`; undefined for anything else. */
export function parseHostPattern(pattern: string): HostPattern | undefined {
  const below = pattern.startsWith("*.");
  const rest = below ? pattern.slice(2) : pattern;
  if (rest === "" || /[\s/?#@\\*%]/.test(rest)) return undefined;
  const url = parseUrl(`https://${rest}/`);
  if (url === undefined || url.username !== "" || url.password !== "") return undefined;
  const host = plainHost(url.hostname);
  // `*.com` would open half the internet, and addresses have no subdomains.
  if (below && (!host.includes(".") || isAddress(host))) return undefined;
  return { below, host, port: url.port === "" ? HTTPS_PORT : Number(url.port) };
}

export function matchHost({ host, port }: HostIdentity, pattern: HostPattern): boolean {
  if (port !== pattern.port) return false;
  return pattern.below ? host.endsWith(`.${pattern.host}`) : host === pattern.host;
}

/** WHATWG parsing, as in fetch: octal, hexadecimal and short addresses get their canonical form. */
function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** Removes the brackets of an address and the trailing root dot, which does not change the host. */
function plainHost(hostname: string): string {
  const bare = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
  return bare.endsWith(".") ? bare.slice(0, -1) : bare;
}

function isAddress(host: string): boolean {
  return host.includes(":") || /^\d+\.\d+\.\d+\.\d+$/.test(host);
}

const PORTS: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

/** Names that resolve to this machine, this network or the cloud's metadata services. */
const INTERNAL_NAMES = [
  "localhost",
  "localdomain",
  "local",
  "internal",
  "intranet",
  "private",
  "corp",
  "home",
  "lan",
  "home.arpa",
  "test",
  "invalid",
  "example",
  "onion",
];

export type ReadUrl =
  | { readonly ok: true; readonly identity: HostIdentity }
  /** Why it must never be fetched, as the rest of a sentence. */
  | { readonly ok: false; readonly why: string };

/** Parses an address as fetch does and rejects what must never be fetched, as far as the text shows. */
export function readUrl(text: string): ReadUrl {
  const url = parseUrl(text);
  if (url === undefined) return refuse("it is not a complete address such as https://example.com/");
  const port = PORTS[url.protocol];
  if (port === undefined) return refuse("only http and https addresses can be fetched");
  if (url.username !== "" || url.password !== "") {
    return refuse("it holds a user name or password, which also hides the real host");
  }
  const host = plainHost(url.hostname);
  if (host === "" || host.endsWith(".")) return refuse("it names no host");
  if (isAddress(host)) {
    if (isPrivateAddress(host)) {
      return refuse(
        "the host is an address of this machine, a private network or a cloud's own service",
      );
    }
  } else if (isInternalName(host)) {
    return refuse("the host is a name of this machine or of an internal network");
  }
  return { ok: true, identity: { host, port: url.port === "" ? port : Number(url.port) } };
}

function isInternalName(host: string): boolean {
  // A name without a dot is resolved in the local network.
  return !host.includes(".") || INTERNAL_NAMES.some((name) => host.endsWith(`.${name}`));
}

function refuse(why: string): ReadUrl {
  return { ok: false, why };
}

/**
 * Matches a list against a pattern with gaps in at most pattern × list steps: after a mismatch only the last gap is
 * widened, so nothing backtracks twice. Regular expressions of users are never compiled: one of 29 characters can block
 * a process for 19 seconds.
 */
export function matchWithGaps<Item, Piece>(
  items: ArrayLike<Item>,
  pattern: ArrayLike<Piece>,
  rules: {
    readonly isGap: (piece: Piece) => boolean;
    readonly fits: (piece: Piece, item: Item) => boolean;
    /** Whether a gap may match this item; by default any. */
    readonly maySkip?: (item: Item) => boolean;
  },
): boolean {
  let at = 0;
  let next = 0;
  let gapAt = -1;
  let gapEnd = 0;
  while (at < items.length) {
    const piece = pattern[next] as Piece;
    if (next < pattern.length && rules.isGap(piece)) {
      gapAt = next;
      gapEnd = at;
      next += 1;
    } else if (next < pattern.length && rules.fits(piece, items[at] as Item)) {
      at += 1;
      next += 1;
    } else if (gapAt >= 0 && (rules.maySkip?.(items[gapEnd] as Item) ?? true)) {
      gapEnd += 1;
      at = gapEnd;
      next = gapAt + 1;
    } else {
      return false;
    }
  }
  while (next < pattern.length && rules.isGap(pattern[next] as Piece)) next += 1;
  return next === pattern.length;
}

/** Matches a text against a pattern in which `*` matches any run of characters. */
export function matchText(text: string, pattern: string): boolean {
  return matchWithGaps(text, pattern, {
    isGap: (piece) => piece === "*",
    fits: (piece, character) => piece === character,
  });
}
