import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A loopback address of a database that counts what is asked through it. */
export interface CountingProxy extends AsyncDisposable {
  readonly url: string;
  /**
   * How often a connection that waited for nothing asked something and waited for the answer. Statements that are sent
   * together, or before an answer came, share a round trip; hints to other processes are not waited for and do not count.
   */
  trips(): number;
  /** How many hints were sent, each a transaction of its own for the database. */
  hints(): number;
}

export async function countingProxy(target: string): Promise<CountingProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let trips = 0;
  let hints = 0;
  const server = createServer((client) => {
    const database = connect(Number(port), hostname);
    for (const socket of [client, database]) {
      sockets.add(socket.setNoDelay(true));
      // One end closes with the other.
      socket
        .on("error", () => {})
        .on("close", () => {
          client.destroy();
          database.destroy();
        });
    }
    let waiting = 0;
    let isHint = false;
    const asked = new Messages(true, (type, body) => {
      // A simple query, or the end of a batch of prepared steps.
      if (type === "P" || type === "Q") isHint ||= /pg_notify/i.test(body.toString("latin1"));
      if (type !== "Q" && type !== "S") return;
      if (isHint) hints += 1;
      else if (waiting === 0) trips += 1;
      isHint = false;
      waiting += 1;
    });
    // "Ready for query" ends the answer to each.
    const answered = new Messages(false, (type) => {
      if (type === "Z" && waiting > 0) waiting -= 1;
    });
    client.on("data", (data: Buffer) => {
      asked.read(data);
      database.write(data);
    });
    database.on("data", (data: Buffer) => {
      answered.read(data);
      client.write(data);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = `${(server.address() as AddressInfo).port}`;
  return {
    url: url.href,
    trips: () => trips,
    hints: () => hints,
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}

/** Cuts one direction of a connection into messages: a letter, a length that counts itself, the body. */
class Messages {
  readonly #heard: (type: string, body: Buffer) => void;
  /** The first message of a client has no letter. */
  #isFirst: boolean;
  #rest = Buffer.alloc(0);

  constructor(fromClient: boolean, heard: (type: string, body: Buffer) => void) {
    this.#isFirst = fromClient;
    this.#heard = heard;
  }

  read(data: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, data]);
    for (;;) {
      const letter = this.#isFirst ? 0 : 1;
      if (this.#rest.length < letter + 4) return;
      const end = letter + this.#rest.readUInt32BE(letter);
      if (this.#rest.length < end) return;
      const type = String.fromCharCode(this.#rest[0] ?? 0);
      if (!this.#isFirst) this.#heard(type, this.#rest.subarray(5, end));
      this.#isFirst = false;
      this.#rest = this.#rest.subarray(end);
    }
  }
}
