// The gateway as a program that an MCP host starts: the client is on standard input and output.

import type { Readable, Writable } from "node:stream";
import { isJsonObject } from "../util/json.ts";
import type { McpConversation } from "./conversation.ts";
import type { Gateway } from "./gateway.ts";
import {
  errorMessage,
  LARGEST_MESSAGE,
  type Message,
  metaOf,
  RPC,
  readClientMessage,
} from "./message.ts";

export interface StdioClient {
  readonly input: Readable;
  readonly output: Writable;
  /** The session of its calls: by its id, or by the name that the client gives itself. Left out: a new one. */
  readonly session?: string | ((client: string) => string);
}

/** Serves one client until its input ends. */
export async function serveStdio(gateway: Gateway, client: StdioClient): Promise<void> {
  const { input, output, session } = client;
  const send = (message: Message) => void output.write(`${message.raw}\n`);
  let conversation: McpConversation | undefined;
  /** By the first line, which says who the client is. */
  const open = (line: Buffer): McpConversation => {
    const id = typeof session === "function" ? session(clientNameIn(line)) : session;
    return gateway.open({
      send,
      ready: () => (output.writableNeedDrain ? drained(output) : undefined),
      ...(id === undefined ? {} : { session: id }),
    });
  };
  // A client that is gone reads nothing more; the end of its input ends the conversation.
  output.on("error", () => input.destroy());
  try {
    let begun: Buffer[] = [];
    let length = 0;
    for await (const piece of input) {
      let rest = piece as Buffer;
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
        const line = Buffer.concat([...begun, rest.subarray(0, end)]);
        rest = rest.subarray(end + 1);
        begun = [];
        length = 0;
        // Not awaited: requests run side by side, in the order in which they came.
        if (line.toString("utf8").trim() === "") continue;
        conversation ??= open(line);
        void conversation.receive(line, send);
      }
      begun.push(rest);
      length += rest.length;
      if (length > LARGEST_MESSAGE) {
        send(errorMessage(null, RPC.invalid, `A line is longer than ${LARGEST_MESSAGE} bytes.`));
        break;
      }
    }
  } finally {
    await conversation?.close();
  }
}

/** What the first message of a client calls it, in either era of the protocol; empty when it does not say. */
function clientNameIn(line: Buffer): string {
  try {
    const message = readClientMessage(line);
    if (message.kind === "response") return "";
    const { clientInfo = metaOf(message)[CLIENT_KEY] } = message.params;
    const name = isJsonObject(clientInfo) ? clientInfo["name"] : undefined;
    return typeof name === "string" ? name.slice(0, 200) : "";
  } catch {
    // The conversation says what is wrong with it.
    return "";
  }
}

const CLIENT_KEY = "io.modelcontextprotocol/clientInfo";

function drained(output: Writable): Promise<void> {
  return new Promise((resolve) => {
    output.once("drain", resolve);
    output.once("close", resolve);
  });
}
