import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { errorText, oneLine } from "../../util/error-text.ts";
import { isPrivateAddress } from "../../util/private-address.ts";
import { Refusal } from "./refusal.ts";

/** Where requests may go. */
export interface EgressOptions {
  /** `example.com`, `*.example.com`; left out: every public host. The gate's rules come before this and apart from it. */
  readonly allowHosts?: readonly string[];
  /** All addresses of a name; the system's resolver when left out. */
  readonly resolver?: (host: string) => Promise<readonly string[]>;
  /** For tests only: `127.0.0.2:8080` and the like, which are let through although they are private. */
  readonly unsafeAllowAddresses?: readonly string[];
}

/** The one address that a connection may be made to. */
export interface PinnedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Reads an address as fetch does: octal, hexadecimal and short forms of IP addresses come out in their one form. */
export function readTarget(text: string, base?: string): URL {
  if (!URL.canParse(text, base)) throw refused(text, "it is not a complete address");
  const url = new URL(text, base);
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw refused(text, "only http and https can be used");
  }
  if (url.username !== "" || url.password !== "") {
    throw refused(text, "it holds a user name or password, which also hides the real host");
  }
  return url;
}

/**
 * Looks the host up once and gives the address to connect to (T18). All of its addresses must be public: of a name that
 * leads inside with one of them, the next lookup could give just that one. Nobody looks the name up again after this.
 */
export async function pinAddress(url: URL, options: EgressOptions): Promise<PinnedAddress> {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (options.allowHosts !== undefined && !isAllowed(host, options.allowHosts)) {
    throw refused(url.href, "the operator's list of hosts does not hold this one");
  }
  const addresses = isIP(host) === 0 ? await addressesOf(host, url, options) : [host];
  const port = url.port === "" ? (url.protocol === "https:" ? "443" : "80") : url.port;
  for (const address of addresses) {
    const isExcepted = options.unsafeAllowAddresses?.includes(`${address}:${port}`) === true;
    if (isIP(address) === 0 || (isPrivateAddress(address) && !isExcepted)) {
      throw refused(
        url.href,
        "the host leads to this machine, a private network or a cloud's own service",
      );
    }
  }
  const [address] = addresses;
  if (address === undefined) throw refused(url.href, "the host has no address");
  return { address, family: isIP(address) === 6 ? 6 : 4 };
}

/** Two addresses at the same host and port: what one was let through for, the other may have. */
export function isSameTarget(a: URL, b: URL): boolean {
  return a.protocol === b.protocol && a.host === b.host;
}

/** Without the query, which often holds secrets; messages are kept. */
export function shownUrl(text: string): string {
  return oneLine(text.replace(/[?#].*$/s, "").replace(/\/\/[^/]*@/, "//"), 200);
}

async function addressesOf(
  host: string,
  url: URL,
  { resolver = systemResolver }: EgressOptions,
): Promise<readonly string[]> {
  try {
    return await resolver(host);
  } catch (error) {
    throw refused(url.href, `the host could not be looked up (${errorText(error)})`);
  }
}

async function systemResolver(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);
}

function isAllowed(host: string, patterns: readonly string[]): boolean {
  const bare = host.replace(/\.$/, "");
  return patterns.some((pattern) => {
    const wanted = pattern.toLowerCase();
    return wanted.startsWith("*.") ? bare.endsWith(wanted.slice(1)) : bare === wanted;
  });
}

function refused(url: string, why: string): Refusal {
  return new Refusal(
    "not_allowed",
    `Connecting to ${shownUrl(url)} is refused: ${why}. Nothing was sent. Use a public http or https address.`,
  );
}
