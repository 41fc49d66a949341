// The gateway as a program that an MCP host starts: the client is on standard input and output.

import type { Readable, Writable } from "node:stream";
import type { Gateway } from "./gateway.ts";
import { errorMessage, LARGEST_MESSAGE, type Message, RPC } from "./message.ts";

export interface StdioClient {
  readonly input: Readable;
  readonly output: Writable;
  readonly session?: string;
}

/** Serves one client until its input ends. */
export async function serveStdio(gateway: Gateway, client: StdioClient): Promise<void> {
  const { input, output, session } = client;
  const send = (message: Message) => void output.write(`${message.raw}\n`);
  const conversation = gateway.open({
    send,
    ready: () => (output.writableNeedDrain ? drained(output) : undefined),
    ...(session === undefined ? {} : { session }),
  });
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
        if (line.toString("utf8").trim() !== "") void conversation.receive(line, send);
      }
      begun.push(rest);
      length += rest.length;
      if (length > LARGEST_MESSAGE) {
        send(errorMessage(null, RPC.invalid, `A line is longer than ${LARGEST_MESSAGE} bytes.`));
        break;
      }
    }
  } finally {
    await conversation.close();
  }
}

function drained(output: Writable): Promise<void> {
  return new Promise((resolve) => {
    output.once("drain", resolve);
    output.once("close", resolve);
  });
}
