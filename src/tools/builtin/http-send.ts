import { SallyportError } from "../../model/errors.ts";
import { systemTimers, TimeoutError, withDeadline } from "../../util/timers.ts";
import { defineTool } from "../define-tool.ts";
import type { Tool } from "../tool.ts";
import { pinAddress, readTarget, shownUrl } from "./egress.ts";
import {
  HTTP_DEFAULTS,
  type HttpData,
  type HttpOptions,
  httpText,
  URL_INPUT,
} from "./http-fetch.ts";
import { HEADERS_INPUT, readHeaders } from "./http-headers.ts";
import { jsonInput } from "./json-input.ts";
import { ACCEPTED_ENCODINGS, readBody } from "./read-body.ts";
import { type Answered, answerOrRefuse } from "./refusal.ts";
import { AnswerLost, sendRequest } from "./send-request.ts";

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

/** Answers of a server in between: what the server behind it did is not known. */
const UNKNOWN: readonly number[] = [502, 504];

/** Sends a request that changes something elsewhere. Never repeated by itself, never redirected. */
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
        body: { type: "string", description: "Say its kind in the header content-type." },
      },
      ["url", "method"],
    ),
    safety: { effect: "external", reversible: false, undoMethod: "manual", affects: ["network"] },
    permissionClass: "webfetch",
    auditOperation: "invoke",
    searchHint: "post put patch delete api webhook",
    resources: ({ input }) => [{ kind: "url", url: input.url }],
    // The key is sent along, but whether the other side looks at it is not ours to promise.
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
    manualGuide: `Ask whoever runs ${url.host} how to take back what this ${input.method} did (answer: status ${status}).`,
  };
  return { text: httpText(data), data, isError: status >= 300, undo };
}

function unknown({ method, url }: SendInput, why: string, cause?: unknown): SallyportError {
  const hint = `${method} to ${shownUrl(url)} may or may not have happened: ${why}. Do not repeat it blindly; look at the other side first.`;
  return new SallyportError("outcome_unknown", { tool: "http.send", hint }, cause);
}
