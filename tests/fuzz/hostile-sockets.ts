// What no HTTP client would send: unreadable requests, two meanings in one stream, lines that end in the middle.

import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const CHUNKED = "Transfer-Encoding: chunked\r\n";

export function hostileStreams(host: string, token: string): readonly string[] {
  const head = (line: string, more = "") =>
    `${line}\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n${more}`;
  const post = (more: string) => head("POST /v1/tasks HTTP/1.1", more);
  const body = '{"subject":"smuggled"}';
  const next = "GET /v1/me HTTP/1.1\r\n\r\n";
  return [
    "\u0000\u0001\u0002\r\n\r\n",
    "GET\r\n\r\n",
    "GET / HTTP/9.9\r\n\r\n",
    "get / http/1.1\r\n\r\n",
    `${"A".repeat(20_000)} / HTTP/1.1\r\n\r\n`,
    `GET /${"a".repeat(20_000)} HTTP/1.1\r\n\r\n`,
    "GET / HTTP/1.1\r\n\r\n",
    `GET / HTTP/1.1\r\nHost: ${host}\r\nHost: evil.example\r\n\r\n`,
    `GET / HTTP/1.1\r\nHost: ${host}\r\nA\u0000B: 1\r\n\r\n`,
    `GET / HTTP/1.1\r\nHost: ${host}\r\n${"x: y\r\n".repeat(3_000)}\r\n`,
    `GET / HTTP/1.1\r\nHost: ${host}\r\n folded: 1\r\n\r\n`,
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "\u0016\u0003\u0001\u0002\u0000\u0001\u0000",
    head("CONNECT evil.example:443 HTTP/1.1", "\r\n"),
    head("GET http://evil.example/v1/me HTTP/1.1", "\r\n"),
    head("GET /v1/me HTTP/1.1", "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
    `${post(`Content-Length: 5\r\n${CHUNKED}\r\n`)}0\r\n\r\n${next}`,
    `${post("Content-Length: 5\r\nContent-Length: 6\r\n\r\n")}${body}`,
    `${post("Content-Length: -1\r\n\r\n")}${body}`,
    `${post("Content-Length: 99999999999999999999\r\n\r\n")}${body}`,
    `${post("Content-Length: 1e3\r\n\r\n")}${body}`,
    `${post(`${CHUNKED}\r\n`)}ffffffffffffffff\r\n${body}`,
    `${post(`${CHUNKED}\r\n`)}-1\r\n${body}`,
    `${post(`${CHUNKED}\r\n`)}5;${"e".repeat(20_000)}\r\n${body}`,
    `${post("Transfer-Encoding: chunked, identity\r\n\r\n")}0\r\n\r\n`,
    `${post("Transfer-Encoding:\tchunked\r\n\r\n")}0\r\n\r\n${next}`,
    `${post(`Content-Length: ${body.length + 40}\r\n\r\n`)}${body}${next}`,
    `${post(`Content-Length: ${body.length - 4}\r\n\r\n`)}${body}`,
  ];
}

/** How the other end is left: closed at once, half closed, reset, or left open until it is closed for us. */
const ENDINGS = ["end", "reset", "half", "wait"] as const;

/** Sends one stream and answers with every status line that came back. */
export async function sendStream(port: number, text: string, nth: number): Promise<string[]> {
  const ending = ENDINGS[nth % ENDINGS.length] ?? "end";
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: ending === "half" });
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  // What happens to its own line is the attacker's problem; what the server does is looked at by its answers.
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.write(text, "latin1");
  if (ending === "reset") setImmediate(() => socket.resetAndDestroy());
  if (ending === "end" || ending === "half") socket.end();
  await Promise.race([closed, sleep(250)]);
  socket.destroy();
  return (
    Buffer.concat(chunks)
      .toString("latin1")
      .match(/HTTP\/1\.1 \d{3}/g) ?? []
  );
}

export interface SlowSenders {
  /** How many of those that stopped inside a body have been cut off. */
  cutOff(): number;
  close(): void;
}

/** Half of them stop in the middle of the head, half in the middle of the body, and then say a byte now and then. */
export function slowSenders(port: number, token: string, count: number): SlowSenders {
  let cut = 0;
  const sockets: Socket[] = [];
  const head = `POST /v1/tasks HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n`;
  for (let nth = 0; nth < count; nth += 1) {
    const inBody = nth % 2 === 1;
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.resume();
    socket.on("close", () => {
      if (inBody) cut += 1;
    });
    socket.write(inBody ? `${head}Content-Length: 1000\r\n\r\n{"subject":"` : head);
    sockets.push(socket);
  }
  const drip = setInterval(() => {
    for (const socket of sockets) if (socket.writable) socket.write("a");
  }, 200);
  return {
    cutOff: () => cut,
    close() {
      clearInterval(drip);
      for (const socket of sockets) socket.destroy();
    },
  };
}
