import { createServer, type Socket, connect as tcpConnect } from "node:net";

export const CUTS = [
  "two-way",
  "to the server",
  "from the server",
  "half-open",
  "reset",
  "delay",
] as const;
export type Cut = (typeof CUTS)[number];

export interface BreakableLine {
  readonly port: number;
  /** Breaks all connections in this way. New ones get through only where the cut lets them. */
  cut(how: Cut): void;
  /** What was held back comes through; half-open ones learn that the other side is gone. */
  mend(): void;
  close(): Promise<void>;
}

const DELAY_MS = 150;

/** A line between a client and a server that can be cut: bytes are held back as a network would, lines are reset or half closed. */
export async function breakableLine(to: { host: string; port: number }): Promise<BreakableLine> {
  const pairs = new Set<{ readonly client: Socket; readonly server: Socket }>();
  let how: Cut | undefined;

  /** Hands bytes on unless this direction is cut; then the sender's socket fills, as it would with a silent network. */
  function carry(from: Socket, onto: Socket, direction: "to the server" | "from the server"): void {
    const held: Buffer[] = [];
    const pass = (chunk: Buffer) => {
      if (how === "two-way" || how === "half-open" || how === direction) held.push(chunk);
      else if (!onto.destroyed) onto.write(chunk);
    };
    from.on("data", (chunk) => {
      if (how === "delay" || held.length > 0) setTimeout(() => flush(chunk), DELAY_MS);
      else pass(chunk);
    });
    function flush(chunk?: Buffer): void {
      const all = held.splice(0);
      for (const one of chunk === undefined ? all : [...all, chunk]) pass(one);
    }
    from.on("mended", () => flush());
    // Nobody hears of an end while the line is cut.
    from.on("close", () => {
      if (how === undefined || how === "reset" || how === "delay") onto.destroy();
      else from.once("mended", () => onto.resetAndDestroy());
    });
    from.on("error", () => {});
  }

  const proxy = createServer((client) => {
    const server = tcpConnect(to.port, to.host);
    const pair = { client, server };
    pairs.add(pair);
    carry(client, server, "to the server");
    carry(server, client, "from the server");
    client.on("close", () => pairs.delete(pair));
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const address = proxy.address();
  return {
    port: typeof address === "object" ? (address?.port ?? 0) : 0,
    cut(next) {
      how = next;
      for (const { client, server } of pairs) {
        if (next === "reset") client.resetAndDestroy();
        // The server forgets the line, and the client is not told.
        if (next === "reset" || next === "half-open") server.resetAndDestroy();
      }
      if (next === "reset") how = undefined;
    },
    mend() {
      how = undefined;
      for (const { client, server } of pairs) {
        client.emit("mended");
        server.emit("mended");
      }
    },
    async close() {
      for (const { client, server } of pairs) {
        client.destroy();
        server.destroy();
      }
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
