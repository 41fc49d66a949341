// What the gateway needs of a connection to one upstream server, whatever carries it.

import type { Message, NotificationMessage, RequestMessage, ResponseMessage } from "./message.ts";

export interface Wire {
  /**
   * Sends a request and resolves with its response. Throws UpstreamGoneError when the connection ends first: whether the
   * request had an effect is then unknown.
   */
  request(request: RequestMessage, options?: WireRequest): Promise<ResponseMessage>;
  /** Sends what has no answer: a notification, or the response to a request of the upstream. */
  send(message: NotificationMessage | ResponseMessage): void;
  close(): Promise<void>;
}

export interface WireRequest {
  readonly signal?: AbortSignal | undefined;
  /** Receives what the upstream says in the course of this request, where the carrier tells. Shape: push. */
  readonly related?: ((message: Message) => void) | undefined;
  /** Called when the upstream answers with a stream of messages, before the first of them. Shape: push. */
  readonly onStream?: (() => void) | undefined;
  /** Called when the upstream closed that stream before its answer and wants to be asked again later. Shape: push. */
  readonly onPause?: (() => void) | undefined;
  /** Headers that repeat arguments of the call (`Mcp-Param-…`); for carriers that have headers. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface WireEvents {
  /** Requests and notifications of the upstream. Shape: push. */
  onMessage(message: Message): void;
  /** Called once, when the connection is over. Shape: push. */
  onEnd(reason: string): void;
  /** For the operator: something the upstream should not have sent. Shape: push. */
  onProblem(text: string): void;
  /** Resolves when the client can take more. Shape: callback. */
  ready?(): Promise<void> | undefined;
}

/** The connection to an upstream ended before it answered. */
export class UpstreamGoneError extends Error {
  override readonly name = "UpstreamGoneError";
}
