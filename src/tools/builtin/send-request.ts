import * as http from "node:http";
import * as https from "node:https";
import type { LookupFunction } from "node:net";
import { errorText } from "../../util/error-text.ts";
import type { PinnedAddress } from "./egress.ts";
import { Refusal } from "./refusal.ts";

export interface HttpRequest {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly signal: AbortSignal;
}

/** The connection was there, and then no whole answer came: the request may have arrived. */
export class AnswerLost extends Error {
  override readonly name = "AnswerLost";
}

/**
 * Sends one request to exactly the pinned address and gives the response as soon as its head is there. Redirects are not
 * followed, connections are not shared, and proxies of the environment are not used: each would connect elsewhere.
 * Throws a Refusal when nothing was sent, AnswerLost when something may have been.
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
        // The last word before anything is sent, should an address ever get past the lookup.
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
