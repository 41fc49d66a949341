import { systemTimers, TimeoutError, type Timers, withDeadline } from "../../util/timers.ts";
import { defineTool } from "../define-tool.ts";
import type { Tool } from "../tool.ts";
import { type EgressOptions, readTarget } from "./egress.ts";
import { followRedirects } from "./follow-redirects.ts";
import { HEADERS_INPUT, readHeaders } from "./http-headers.ts";
import { jsonInput } from "./json-input.ts";
import { ACCEPTED_ENCODINGS, type HttpBody, readBody } from "./read-body.ts";
import { type Answered, answerOrRefuse, Refusal } from "./refusal.ts";
import { AnswerLost } from "./send-request.ts";

export interface HttpOptions extends EgressOptions {
  /** Header fields that the operator adds for a host, such as authorization. The agent never sees them. */
  readonly credentials?: (url: URL) => Readonly<Record<string, string>>;
  readonly maxBytes?: number;
  readonly timeoutMs?: number;
  readonly timers?: Timers;
}

export interface HttpData extends HttpBody {
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

export const HTTP_DEFAULTS = { maxBytes: 1024 * 1024, timeoutMs: 30_000 } as const;

export const URL_INPUT = {
  type: "string",
  minLength: 1,
  maxLength: 8192,
  description: "Complete address, for instance https://example.com/page.",
} as const;

/** Gets a page. It never reaches this machine, private networks or a cloud's own services, by whatever name (T18). */
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
            // Nothing is at stake in a read, so a lost answer is simply a failure.
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
    ...(redirectTo === undefined ? {} : { redirectTo }),
    ...body,
  };
  return { text: httpText(data), data, isError: data.status >= 400 };
}

/** What the model reads of an answer. */
export function httpText(data: HttpData): string {
  const { url, status, contentType, encoding, content, truncated, redirectTo } = data;
  if (redirectTo !== undefined) {
    return `Status ${status}: ${url} redirects to another host, which was not followed. If you need it, call http.fetch with ${redirectTo}`;
  }
  const cut = truncated ? "\n(The rest was too long and is left out.)" : "";
  return `Status ${status} from ${url} (${contentType || "no content type"}, ${encoding}):\n${content}${cut}`;
}
