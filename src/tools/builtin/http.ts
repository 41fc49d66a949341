import { SallyportError } from "../../model/errors.ts";
import { definedFields } from "../../util/defined-fields.ts";
import type { JsonObject } from "../../util/json.ts";
import { systemTimers, TimeoutError, type Timers, withDeadline } from "../../util/timers.ts";
import { defineTool } from "../define-tool.ts";
import type { Tool } from "../tool.ts";
import {
  ACCEPTED_ENCODINGS,
  AnswerLost,
  type EgressOptions,
  followRedirects,
  type HttpBody,
  pinAddress,
  readBody,
  readTarget,
  sendRequest,
  shownUrl,
} from "./http-request.ts";
import { type Answered, answerOrRefuse, jsonInput, Refusal } from "./refusal.ts";

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
            throw new Refusal("timed_out", `No whole answer came: ${error.message} Try later.`);
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

/** The agent's header fields in lower case. Throws a Refusal for fields that it must not set. */
function readHeaders(given: Readonly<Record<string, string>>): Record<string, string> {
  const headers: Record<string, string> = { "user-agent": "sallyport" };
  for (const [name, value] of Object.entries(given)) {
    const lower = name.toLowerCase();
    const why = problemOf(lower, value);
    if (why !== undefined) {
      const shown = JSON.stringify(name.slice(0, 80));
      throw new Refusal(
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
