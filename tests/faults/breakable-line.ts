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

export const DIRECTIONS = ["to the server", "from the server"] as const;
export type Direction = (typeof DIRECTIONS)[number];

export interface Break {
  readonly direction: Direction;
  /** Counted from 1 over all connections, from when the line was made. */
  readonly packet: number;
  /** 0: only the connection that carried it is reset. Else all of them, and new ones for so long. */
  readonly awayMs: number;
}

export interface BreakableLine {
  readonly port: number;
  /** How many packets were carried, or lost. */
  readonly packets: Readonly<Record<Direction, number>>;
  /** Loses one packet and resets its connection: a request that never arrives, or an answer to what was done. */
  breakAt(where: Break): void;
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
  let awaited: Break | undefined;
  let isAway = false;
  const packets = { "to the server": 0, "from the server": 0 };

  /** Whether this packet is the one to be lost. */
  function loses(direction: Direction): boolean {
    packets[direction] += 1;
    return awaited?.direction === direction && awaited.packet === packets[direction];
  }

  function breakNow(own: { readonly client: Socket; readonly server: Socket }): void {
    const { awayMs = 0 } = awaited ?? {};
    awaited = undefined;
    for (const { client, server } of awayMs === 0 ? [own] : pairs) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
    if (awayMs === 0) return;
    isAway = true;
    setTimeout(() => {
      isAway = false;
    }, awayMs).unref();
  }

  /** Hands bytes on unless this direction is cut; then the sender's socket fills, as it would with a silent network. */
  function carry(from: Socket, onto: Socket, direction: Direction, lose: () => void): void {
    const held: Buffer[] = [];
    const pass = (chunk: Buffer) => {
      if (how === "two-way" || how === "half-open" || how === direction) held.push(chunk);
      else if (!onto.destroyed) onto.write(chunk);
    };
    from.on("data", (chunk) => {
      if (loses(direction)) lose();
      else if (how === "delay" || held.length > 0) setTimeout(() => flush(chunk), DELAY_MS);
      else pass(chunk);
    });
    function flush(chunk?: Buffer): void {
      const all = held.splice(0);
      for (const one of chunk === undefined ? all : [...all, chunk]) pass(one);
    }
    from.on("mended", () => flush());
    // While the line is cut, no end of a connection gets through.
    from.on("close", () => {
      if (how === undefined || how === "reset" || how === "delay") onto.destroy();
      else from.once("mended", () => onto.resetAndDestroy());
    });
    from.on("error", () => {});
  }

  const proxy = createServer((client) => {
    if (isAway) {
      client.on("error", () => {}).resetAndDestroy();
      return;
    }
    const server = tcpConnect(to.port, to.host);
    const pair = { client, server };
    pairs.add(pair);
    carry(client, server, "to the server", () => breakNow(pair));
    carry(server, client, "from the server", () => breakNow(pair));
    client.on("close", () => pairs.delete(pair));
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const address = proxy.address();
  return {
    port: typeof address === "object" ? (address?.port ?? 0) : 0,
    packets,
    breakAt(where) {
      awaited = where;
    },
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
