import { lookup } from "node:dns/promises";
import type { IncomingMessage } from "node:http";
import * as http from "node:http";
import * as https from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { Readable, Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { errorText, oneLine } from "../../util/error-text.ts";
import { isPrivateAddress } from "../../util/private-address.ts";
import { Refusal } from "./refusal.ts";

interface HttpRequest {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly signal: AbortSignal;
}

/** The connection was established but no complete answer came: the request may have arrived. */
export class AnswerLost extends Error {
  override readonly name = "AnswerLost";
}

/**
 * Sends one request to exactly the pinned address and returns the response once its head has arrived. It follows no
 * redirects, shares no connections and uses no proxies of the environment: each would connect elsewhere. Throws a
 * Refusal when nothing was sent, AnswerLost when something may have been.
 */
export function sendRequest(
  request: HttpRequest,
  pinned: PinnedAddress,
): Promise<http.IncomingMessage> {
  const { url, method, headers, body, signal } = request;
  const library = url.protocol === "https:" ? https : http;
  return new Promise((resolve, reject) => {
    let isConnected = false;
    const outgoing = library.request(url, {
      method,
      headers,
      agent: new library.Agent({ keepAlive: false }),
      lookup: pinnedLookup(pinned),
      family: pinned.family,
      maxHeaderSize: 32 * 1024,
      signal,
    });
    outgoing.once("socket", (socket) => {
      socket.once("connect", () => {
        isConnected = true;
        // The last check before anything is sent, in case an address ever passes the lookup.
        if (!isSameAddress(socket.remoteAddress, pinned.address)) {
          socket.destroy(new Error("the connection went to another address than the checked one"));
        }
      });
    });
    outgoing.once("response", resolve);
    outgoing.on("error", (error) => {
      if (signal.aborted && !isConnected) return reject(signal.reason);
      if (isConnected) return reject(new AnswerLost(errorText(error), { cause: error }));
      const why = `No connection to ${url.host} could be made: ${errorText(error)}`;
      reject(new Refusal("unusable", `${why}. Nothing was sent. Check the address or try later.`));
    });
    outgoing.end(body);
  });
}

function pinnedLookup({ address, family }: PinnedAddress): LookupFunction {
  return (_host, options, callback) => {
    if (options.all === true) callback(null, [{ address, family }]);
    else callback(null, address, family);
  };
}

function isSameAddress(connected: string | undefined, pinned: string): boolean {
  if (connected === undefined) return false;
  const plain = (address: string) => new URL(`http://${bracketed(address)}/`).hostname;
  return plain(connected) === plain(pinned);
}

function bracketed(address: string): string {
  return address.includes(":") ? `[${address.replace(/%.*$/, "")}]` : address;
}

export interface HttpBody {
  readonly encoding: "utf8" | "base64";
  readonly content: string;
  readonly truncated: boolean;
}

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/** Supported encodings, for the request header. */
export const ACCEPTED_ENCODINGS = "gzip, deflate, br";

/**
 * The body as text where it is text, otherwise as base64. The limit applies to the decoded size, so that a small answer
 * that decompresses to gigabytes is cut.
 */
export async function readBody(response: IncomingMessage, maxBytes: number): Promise<HttpBody> {
  const chunks: Buffer[] = [];
  let total = 0;
  try {
    for await (const chunk of decoded(response)) {
      chunks.push(chunk as Buffer);
      total += (chunk as Buffer).byteLength;
      if (total > maxBytes) break;
    }
  } catch (error) {
    throw new AnswerLost(`the answer broke off: ${errorText(error)}`, { cause: error });
  } finally {
    response.destroy();
  }
  const bytes = Buffer.concat(chunks).subarray(0, maxBytes);
  const truncated = total > maxBytes;
  const text = textOf(bytes, response.headers["content-type"] ?? "", truncated);
  return text === undefined
    ? { encoding: "base64", content: bytes.toString("base64"), truncated }
    : { encoding: "utf8", content: text, truncated };
}

function decoded(response: IncomingMessage): Readable {
  const name = (response.headers["content-encoding"] ?? "identity").trim().toLowerCase();
  if (name === "identity" || name === "") return response;
  if (!Object.hasOwn(DECODERS, name)) throw new Error(`its encoding ${name} is not known`);
  const decoder = DECODERS[name]?.() as Transform;
  // A broken connection must reach the reader of the decoder; pipe alone would leave it waiting forever.
  response.once("error", (error) => decoder.destroy(error));
  response.once("aborted", () => decoder.destroy(new Error("the connection was lost")));
  return response.pipe(decoder);
}

function textOf(bytes: Buffer, contentType: string, truncated: boolean): string | undefined {
  if (/^(?:image|audio|video|font)\/(?!svg)/i.test(contentType)) return undefined;
  const charset = /charset\s*=\s*"?([\w-]+)/i.exec(contentType)?.[1] ?? "utf-8";
  try {
    // The cut may split a character; streaming drops that one.
    return new TextDecoder(charset, { fatal: true }).decode(bytes, { stream: truncated });
  } catch {
    return undefined;
  }
}

const MOST_REDIRECTS = 5;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

interface Followed {
  readonly url: URL;
  readonly response: IncomingMessage;
  /** The target of a redirect that was not followed. */
  readonly redirectTo?: string;
}

/**
 * GET or HEAD through redirects within one host and port; every hop is resolved, checked and pinned again (T18). A
 * redirect to another host or port needs a new decision of the gate, so it is returned to the agent instead of being
 * followed.
 */
export async function followRedirects(
  request: {
    readonly url: URL;
    readonly method: "GET" | "HEAD";
    readonly headers: Readonly<Record<string, string>>;
    readonly signal: AbortSignal;
  },
  options: EgressOptions,
): Promise<Followed> {
  let { url } = request;
  for (let hops = 0; hops <= MOST_REDIRECTS; hops += 1) {
    const response = await sendRequest({ ...request, url }, await pinAddress(url, options));
    const { location } = response.headers;
    const isRedirect = REDIRECTS.includes(response.statusCode ?? 0) && location !== undefined;
    if (!isRedirect) return { url, response };
    const next = nextTarget(response, location, url);
    if (!isSameTarget(url, next)) return { url, response, redirectTo: next.href };
    response.destroy();
    url = next;
  }
  throw new Refusal(
    "unusable",
    `${shownUrl(request.url.href)} redirects more than ${MOST_REDIRECTS} times. Fetch the final address itself.`,
  );
}

function nextTarget(response: IncomingMessage, location: string, from: URL): URL {
  try {
    return readTarget(location, from.href);
  } catch (error) {
    response.destroy();
    throw error;
  }
}

/** The allowed targets of requests. */
export interface EgressOptions {
  /**
   * `example.com`, `*.example.com`; by default every public host. Independent of the gate's rules, which apply first.
   */
  readonly allowHosts?: readonly string[];
  /** All addresses of a name; by default the system's resolver. */
  readonly resolver?: (host: string) => Promise<readonly string[]>;
  /** For tests only: private addresses such as `127.0.0.2:8080` that are allowed. */
  readonly unsafeAllowAddresses?: readonly string[];
}

/** The only address that a connection may use. */
interface PinnedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Parses an address as fetch does: octal, hexadecimal and short IP addresses get their canonical form. */
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
 * Resolves the host once and returns the address to connect to (T18). All of its addresses must be public: otherwise
 * the next lookup could return only the private one. The name is not resolved again.
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

/** Whether two addresses have the same host and port. */
function isSameTarget(a: URL, b: URL): boolean {
  return a.protocol === b.protocol && a.host === b.host;
}

/** Without the query, which often holds secrets; messages are stored. */
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
