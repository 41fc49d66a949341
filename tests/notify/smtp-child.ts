// An SMTP server as a process of its own: prints its port, then each mail that it received as one line of JSON.

import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";

const installed = createRequire(new URL("../../tools/notify/package.json", import.meta.url));
const { SMTPServer } = installed("smtp-server");
const server = new SMTPServer({
  authOptional: true,
  disabledCommands: ["STARTTLS"],
  onData(stream: NodeJS.ReadableStream, session: unknown, done: () => void) {
    let text = "";
    stream.on("data", (piece) => {
      text += piece;
    });
    stream.on("end", () => {
      const { envelope } = session as { envelope: { rcptTo: { address: string }[] } };
      const to = envelope.rcptTo.map(({ address }) => address);
      process.stdout.write(`${JSON.stringify({ to, text })}\n`);
      done();
    });
  },
});
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${(server.server.address() as AddressInfo).port}\n`);
});
