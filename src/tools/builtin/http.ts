import { lookup } from "node:dns/promises";
import type { IncomingMessage } from "node:http";
import * as http from "node:http";
import * as https from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { Readable, Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { SallyportError } from "../../model/errors.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { errorText, oneLine, withoutUrlSecrets } from "../../util/error-text.ts";
import type { JsonObject } from "../../util/json.ts";
import { isPrivateAddress } from "../../util/private-address.ts";
import { systemTimers, TimeoutError, type Timers, withDeadline } from "../../util/timers.ts";
import { defineTool } from "../define-tool.ts";
import type { Tool } from "../tool.ts";
import { type Answered, answerOrRefuse, jsonInput, ToolRefusal } from "./file-place.ts";

export interface HttpOptions extends EgressOptions {
  /** Header fields that the operator adds for a host, such as authorization. The agent never sees them. */
  readonly credentials?: (url: URL) => Readonly<Record<string, string>>;
  readonly maxBytes?: number;
  readonly timeoutMs?: number;
  readonly timers?: Timers;
}

interface HttpData extends HttpBody {
  readonly url: string;
  readonly status: number;
  readonly contentType: string;
  readonly redirectTo?: string;
}

interface FetchInput {
  readonly url: string;
  readonly method?: "GET" | "HEAD";
  readonly headers?: Readonly<Record<string, string>>;
}

const HTTP_DEFAULTS = { maxBytes: 1024 * 1024, timeoutMs: 30_000 } as const;

const URL_INPUT = {
  type: "string",
  minLength: 1,
  maxLength: 8192,
  description: "Complete address, for instance https://example.com/page.",
} as const;

/** Fetches a page. Never reaches this machine, private networks or a cloud's metadata services (T18). */
export function httpFetch(options: HttpOptions = {}): Tool {
  const { timers = systemTimers, timeoutMs = HTTP_DEFAULTS.timeoutMs } = options;
  return defineTool({
    name: "http.fetch",
    description:
      "Fetches a public web address with GET or HEAD and gives status and body (base64 when it is not text). Redirects to another host are reported, not followed: fetch that address by itself. To change something, use http.send.",
    input: jsonInput<FetchInput>(
      { url: URL_INPUT, method: { enum: ["GET", "HEAD"] }, headers: HEADERS_INPUT },
      ["url"],
    ),
    safety: { effect: "read", concurrencySafe: true, affects: ["network"] },
    permissionClass: "webfetch",
    auditOperation: "read",
    searchHint: "web page download get url browse",
    resources: ({ input }) => [{ kind: "url", url: input.url }],
    execute: ({ input, signal }) =>
      answerOrRefuse<HttpData>(() =>
        withDeadline((stop) => fetchOnce(input, stop, options), timeoutMs, timers, signal).catch(
          (error) => {
            // A read has no effect, so a lost answer is a plain failure.
            if (!(error instanceof TimeoutError || error instanceof AnswerLost)) throw error;
            throw new ToolRefusal("timed_out", `No whole answer came: ${error.message} Try later.`);
          },
        ),
      ),
  });
}

async function fetchOnce(
  { url: address, method = "GET", headers = {} }: FetchInput,
  signal: AbortSignal,
  options: HttpOptions,
): Promise<Answered<HttpData>> {
  const first = readTarget(address);
  const sent = {
    ...readHeaders(headers),
    "accept-encoding": ACCEPTED_ENCODINGS,
    ...options.credentials?.(first),
  };
  const followed = await followRedirects({ url: first, method, headers: sent, signal }, options);
  const { url, response, redirectTo } = followed;
  const body = await readBody(response, options.maxBytes ?? HTTP_DEFAULTS.maxBytes);
  const data = {
    url: url.href,
    status: response.statusCode ?? 0,
    contentType: response.headers["content-type"] ?? "",
    ...definedFields({ redirectTo }),
    ...body,
  };
  return { text: httpText(data), data, isError: data.status >= 400 };
}

/** The answer as the model sees it. */
function httpText(data: HttpData): string {
  const { url, status, contentType, encoding, content, truncated, redirectTo } = data;
  if (redirectTo !== undefined) {
    return `Status ${status}: ${url} redirects to another host, which was not followed. If you need it, call http.fetch with ${redirectTo}`;
  }
  const cut = truncated ? "\n(The rest was too long and is left out.)" : "";
  return `Status ${status} from ${url} (${contentType || "no content type"}, ${encoding}):\n${content}${cut}`;
}

interface SendInput {
  readonly url: string;
  readonly method: "POST" | "PUT" | "PATCH" | "DELETE";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface SentCall {
  readonly input: SendInput;
  readonly idempotencyKey: string;
}

/** Status codes of intermediaries: the effect on the server behind them is unknown. */
const UNKNOWN: readonly number[] = [502, 504];

/** Sends a request that changes something elsewhere. Never repeated automatically, never redirected. */
export function httpSend(options: HttpOptions = {}): Tool {
  const { timers = systemTimers, timeoutMs = HTTP_DEFAULTS.timeoutMs } = options;
  return defineTool({
    name: "http.send",
    description:
      "Sends a request with POST, PUT, PATCH or DELETE to a public web address and gives status and body. It changes something elsewhere and cannot be undone here. To read, use http.fetch.",
    input: jsonInput<SendInput>(
      {
        url: URL_INPUT,
        method: { enum: ["POST", "PUT", "PATCH", "DELETE"] },
        headers: HEADERS_INPUT,
        body: { type: "string", description: "Set its type in the header content-type." },
      },
      ["url", "method"],
    ),
    safety: { effect: "external", reversible: false, undoMethod: "manual", affects: ["network"] },
    permissionClass: "webfetch",
    auditOperation: "invoke",
    searchHint: "post put patch delete api webhook",
    resources: ({ input }) => [{ kind: "url", url: input.url }],
    // The key is sent, but the tool cannot promise that the server honours it.
    idempotency: "none",
    dryRun: ({ input }) => ({
      summary: `would send ${input.method} to ${shownUrl(input.url)}`,
      preview: `${input.method} ${input.url}\n\n${input.body ?? ""}`,
      impact: { bytes: Buffer.byteLength(input.body ?? "") },
    }),
    execute: (call) =>
      answerOrRefuse<HttpData>(() =>
        withDeadline((stop) => sendOnce(call, stop, options), timeoutMs, timers, call.signal).catch(
          (error) => {
            if (!(error instanceof TimeoutError || error instanceof AnswerLost)) throw error;
            throw unknown(call.input, `no whole answer came (${error.message})`, error);
          },
        ),
      ),
  });
}

async function sendOnce(
  { input, idempotencyKey }: SentCall,
  signal: AbortSignal,
  options: HttpOptions,
): Promise<Answered<HttpData>> {
  const url = readTarget(input.url);
  const body = Buffer.from(input.body ?? "", "utf8");
  const headers = {
    ...readHeaders(input.headers ?? {}),
    "accept-encoding": ACCEPTED_ENCODINGS,
    "content-length": String(body.byteLength),
    ...(idempotencyKey === "" ? {} : { "idempotency-key": idempotencyKey }),
    ...options.credentials?.(url),
  };
  const pinned = await pinAddress(url, options);
  const response = await sendRequest({ url, method: input.method, headers, body, signal }, pinned);
  const status = response.statusCode ?? 0;
  const contentType = response.headers["content-type"] ?? "";
  if (UNKNOWN.includes(status)) {
    response.destroy();
    throw unknown(input, `a server in between answered ${status}`);
  }
  const read = await readBody(response, options.maxBytes ?? HTTP_DEFAULTS.maxBytes);
  const data = { url: url.href, status, contentType, ...read };
  const undo = {
    irreversible: true as const,
    description: `${input.method} was sent to ${shownUrl(url.href)}`,
    manualGuide: `Ask the operator of ${url.host} how to undo this ${input.method} (answer: status ${status}).`,
  };
  return { text: httpText(data), data, isError: status >= 300, undo };
}

function unknown({ method, url }: SendInput, why: string, cause?: unknown): SallyportError {
  const hint = `${method} to ${shownUrl(url)} may or may not have happened: ${why}. Do not repeat it blindly; look at the other side first.`;
  return new SallyportError("outcome_unknown", { tool: "http.send", hint }, cause);
}

const HEADERS_INPUT = {
  type: "object",
  additionalProperties: { type: "string", maxLength: 8192 },
  maxProperties: 50,
  description:
    "Header fields, for instance accept. Passwords and tokens are the operator's to add.",
} as const satisfies JsonObject;

/** They decide where a request ends or goes, which the agent must not control. */
const OURS =
  /^(?:host|connection|content-length|transfer-encoding|upgrade|te|trailer|keep-alive|expect|via|forwarded|accept-encoding|idempotency-key|(?:proxy|sec|x-forwarded)-.*)$/;
/** Inputs are stored and shown. */
const SECRET = /^(?:authorization|cookie|x-api-key|api-key|x-auth-token|.*-(?:secret|token))$/;

/** The agent's header fields in lower case. Throws a ToolRefusal for fields that it must not set. */
function readHeaders(given: Readonly<Record<string, string>>): Record<string, string> {
  const headers: Record<string, string> = { "user-agent": "sallyport" };
  for (const [name, value] of Object.entries(given)) {
    const lower = name.toLowerCase();
    const why = problemOf(lower, value);
    if (why !== undefined) {
      const shown = JSON.stringify(name.slice(0, 80));
      throw new ToolRefusal(
        "not_allowed",
        `The header ${shown} is refused: ${why}. Nothing was sent. Leave it out.`,
      );
    }
    headers[lower] = value;
  }
  return headers;
}

function problemOf(name: string, value: string): string | undefined {
  if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name)) return "it is not a name that a header can have";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are the ones looked for.
  if (/[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]/.test(value)) return "its value cannot be sent";
  if (OURS.test(name)) return "it decides where the request goes or ends";
  if (SECRET.test(name)) return "secrets in an input would be stored; the operator sets them";
  return undefined;
}

interface HttpRequest {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly signal: AbortSignal;
}

/** The connection was established but no complete answer came: the request may have arrived. */
class AnswerLost extends Error {
  override readonly name = "AnswerLost";
}

/**
 * Sends one request to exactly the pinned address and returns the response once its head has arrived. It follows no
 * redirects, shares no connections and uses no proxies of the environment: each would connect elsewhere. Throws a
 * ToolRefusal when nothing was sent, AnswerLost when something may have been.
 */
function sendRequest(request: HttpRequest, pinned: PinnedAddress): Promise<http.IncomingMessage> {
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
      reject(
        new ToolRefusal("unusable", `${why}. Nothing was sent. Check the address or try later.`),
      );
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

interface HttpBody {
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
const ACCEPTED_ENCODINGS = "gzip, deflate, br";

/**
 * The body as text where it is text, otherwise as base64. The limit applies to the decoded size, so that a small answer
 * that decompresses to gigabytes is cut.
 */
async function readBody(response: IncomingMessage, maxBytes: number): Promise<HttpBody> {
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
async function followRedirects(
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
  throw new ToolRefusal(
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
interface EgressOptions {
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
function readTarget(text: string, base?: string): URL {
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
async function pinAddress(url: URL, options: EgressOptions): Promise<PinnedAddress> {
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

function shownUrl(text: string): string {
  return oneLine(withoutUrlSecrets(text), 200);
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

function refused(url: string, why: string): ToolRefusal {
  return new ToolRefusal(
    "not_allowed",
    `Connecting to ${shownUrl(url)} is refused: ${why}. Nothing was sent. Use a public http or https address.`,
  );
}
