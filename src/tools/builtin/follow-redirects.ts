import type { IncomingMessage } from "node:http";
import { type EgressOptions, isSameTarget, pinAddress, readTarget, shownUrl } from "./egress.ts";
import { Refusal } from "./refusal.ts";
import { sendRequest } from "./send-request.ts";

const MOST_REDIRECTS = 5;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

export interface Followed {
  readonly url: URL;
  readonly response: IncomingMessage;
  /** Where the answer points to, when that was not followed. */
  readonly redirectTo?: string;
}

/**
 * GET or HEAD through redirects within one host and port; every hop is looked up, checked and pinned anew (T18). A redirect
 * to another host or port is a new question for the gate, so it is given back to the agent instead of being followed.
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
