import { pathOf, type RouteName } from "../http/paths.ts";
import { ERRORS, type ErrorCode, type ErrorDetails, SallyportError } from "../model/errors.ts";
import type { Random } from "../util/random.ts";
import type { Timers } from "../util/timers.ts";

export interface SendParts {
  /** Empty in a browser: the server that the page came from. */
  readonly url: string;
  /** Who sends: headers that go with every request. Asked anew each time, because a browser may sign in again. */
  readonly credentials: () => Readonly<Record<string, string>>;
  readonly fetch: typeof fetch;
  readonly retries: number;
  readonly timers: Timers;
  readonly random: Random;
}

export interface SendOptions {
  readonly signal?: AbortSignal;
  /** Made anew for each call unless given: give one to make a call once although your program starts again. */
  readonly idempotencyKey?: string;
}

export interface Sender {
  /** The answer to a request, tried again where that is safe. Throws SallyportError with the server's code. */
  send(name: RouteName, input: object, options?: SendOptions): Promise<Response>;
}

/**
 * Only what is safe is tried again: reads, and requests with an idempotency key, which the server does once however often
 * they come. Every request that changes something gets such a key.
 */
export function createSender(parts: SendParts): Sender {
  async function send(
    name: RouteName,
    input: object,
    options: SendOptions = {},
  ): Promise<Response> {
    const { signal, idempotencyKey = newKey(parts.random) } = options;
    for (let attempt = 0; ; attempt += 1) {
      signal?.throwIfAborted();
      const { answer, again } = await tryOnce(name, input, idempotencyKey, signal);
      if (answer instanceof Response) return answer;
      if (!again || attempt >= parts.retries) throw answer;
      await parts.timers.sleep(waitMs(attempt, parts.random), signal);
    }
  }

  async function tryOnce(
    name: RouteName,
    input: object,
    key: string,
    signal: AbortSignal | undefined,
  ): Promise<{ answer: Response | Error; again: boolean }> {
    const { method, address, body } = requestOf(name, input);
    try {
      const changes =
        method === "GET" ? {} : { "Content-Type": "application/json", "Idempotency-Key": key };
      const response = await parts.fetch(`${parts.url}${address}`, {
        method,
        headers: { ...parts.credentials(), ...changes },
        credentials: "same-origin",
        redirect: "error",
        ...(body === undefined ? {} : { body }),
        ...(signal === undefined ? {} : { signal }),
      });
      if (response.ok) return { answer: await received(name, response), again: false };
      const error = await problemIn(response);
      return { answer: error, again: error.retry === "safe" || error.code === "still_running" };
    } catch (cause) {
      if (signal?.aborted) throw cause;
      if (cause instanceof SallyportError) return { answer: cause, again: false };
      const hint = "The server was not reached, or the line broke.";
      return { answer: new SallyportError("store_unavailable", { hint }, cause), again: true };
    }
  }

  return { send };
}

/** A line that breaks within an answer is a broken line too: it is read where it can be tried again. What streams goes on by itself. */
async function received(name: RouteName, response: Response): Promise<Response> {
  if (name === "audit.export") return response;
  return new Response(await response.arrayBuffer(), response);
}

/** Where a request goes: names in the path from the input, the rest as query or body. */
export function requestOf(name: RouteName, input: object) {
  const { method, path, params } = pathOf(name);
  const rest: Record<string, unknown> = { ...input };
  let address = path;
  for (const param of params) {
    address = address.replace(`:${param}`, encodeURIComponent(String(rest[param])));
    delete rest[param];
  }
  if (method === "POST") return { method, address, body: JSON.stringify(rest) };
  const query = new URLSearchParams();
  for (const [field, value] of Object.entries(rest)) {
    if (value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) query.append(field, String(one));
  }
  const text = query.toString();
  return { method, address: text === "" ? address : `${address}?${text}`, body: undefined };
}

/** The server's problem as the error that the library would have thrown. */
export async function problemIn(response: Response): Promise<SallyportError> {
  const problem: unknown = await response.json().catch(() => undefined);
  const { code, details } = (problem ?? {}) as { code?: unknown; details?: unknown };
  if (typeof code === "string" && Object.hasOwn(ERRORS, code)) {
    return new SallyportError(code as ErrorCode, readDetails(details));
  }
  const hint = `It answered ${response.status} in words that this client does not know.`;
  return new SallyportError("internal_error", { hint });
}

/** Only what details can be: whoever answers may be a proxy, a newer version or somebody else. */
function readDetails(given: unknown): ErrorDetails {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return {};
  const isPlain = (value: unknown) =>
    ["string", "number", "boolean"].includes(typeof value) ||
    (Array.isArray(value) && value.every((one) => typeof one === "string"));
  const fits = ([name, value]: [string, unknown]) =>
    name === "hint" ? typeof value === "string" : isPlain(value);
  return Object.fromEntries(Object.entries(given).filter(fits)) as ErrorDetails;
}

/** Longer each time, and not the same for two who were cut off together. */
export function waitMs(attempt: number, random: Random): number {
  const jitter = (random.bytes(1)[0] ?? 0) / 255;
  return Math.min(5_000, 100 * 2 ** attempt) * (0.5 + jitter);
}

function newKey(random: Random): string {
  return Array.from(random.bytes(16), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
