// Connection strings with several hosts, as libpq has them: after a failover the pool finds the server that takes writes.

import { SallyportError } from "../../model/errors.ts";

/** What is used of the driver: `import pg from "pg"`. */
export interface PgDriver<Pool> {
  readonly Client: new (config?: never) => object;
  readonly Pool: new (config: never) => Pool;
}

interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** A connection string for each host; one for a string that names one. Throws invalid_input. */
export function hostsIn(connectionString: string): readonly string[] {
  const parts = /^(postgres(?:ql)?:\/\/(?:[^@/]*@)?)([^/?]+)(.*)$/s.exec(connectionString);
  const [, before = "", hosts = "", after = ""] = parts ?? [];
  if (!hosts.includes(",")) return [connectionString];
  return hosts.split(",").map((host) => {
    const one = `${before}${host}${after}`;
    if (host !== "" && URL.canParse(one)) return one;
    const hint = "Write several hosts as postgres://user@one:5432,two:5432/database.";
    throw new SallyportError("invalid_input", { what: "database", hint });
  });
}

/**
 * A pool over `postgres://user@one:5432,two:5432/database`. A new connection goes to the host that took the last one; if it does
 * not answer or is a standby, the next is tried. Connections of a server that became a standby end by themselves: it refuses
 * their writes, and they are replaced.
 */
export function primaryPool<Pool>(
  { Client, Pool: PoolOf }: PgDriver<Pool>,
  connectionString: string,
  options: object,
): Pool {
  const hosts = hostsIn(connectionString).map(hostPort);
  if (hosts.length === 1) return new PoolOf({ ...options, connectionString } as never);
  let current = 0;
  const first = hostsIn(connectionString)[0] ?? "";
  const next = (from: number) => {
    // Several connections fail together; the first of them moves on.
    if (from === current) current = (current + 1) % hosts.length;
  };
  const places = new WeakMap<object, number>();
  class PrimaryClient extends (Client as unknown as new (config: object) => ConnectingClient) {
    constructor(config: object) {
      const place = current;
      const { host, port } = hosts[place] ?? { host: "", port: 0 };
      super({ ...config, connectionString: undefined, ...credentials(first), host, port });
      places.set(this, place);
    }

    override connect(done?: (error?: Error) => void): Promise<unknown> | undefined {
      const tell = (error?: Error) => {
        if (error) next(places.get(this) ?? current);
        done?.(error);
      };
      if (done !== undefined) return super.connect(tell);
      return super.connect()?.catch((error: Error) => {
        next(places.get(this) ?? current);
        throw error;
      });
    }
  }
  return new PoolOf({
    ...options,
    Client: PrimaryClient,
    /** Only for new connections. */
    verify(client: ConnectingClient, done: (error?: Error) => void) {
      client.query("SELECT pg_is_in_recovery() AS standby").then(
        ({ rows: [row] }) => {
          if (row?.["standby"] !== true) return done();
          next(places.get(client) ?? current);
          done(new Error("This server is a standby; the next host is tried."));
        },
        (error: Error) => done(error),
      );
    },
  } as never);
}

interface ConnectingClient {
  connect(done?: (error?: Error) => void): Promise<unknown> | undefined;
  query(text: string): Promise<{ rows: readonly Record<string, unknown>[] }>;
}

function hostPort(connectionString: string): HostPort {
  const { hostname, port } = new URL(connectionString);
  return { host: hostname.replaceAll(/[[\]]/g, ""), port: port === "" ? 5_432 : Number(port) };
}

function credentials(connectionString: string) {
  const { username, password, pathname, searchParams } = new URL(connectionString);
  const ssl = searchParams.get("sslmode");
  return {
    user: decodeURIComponent(username),
    database: decodeURIComponent(pathname.slice(1)),
    ...(password === "" ? {} : { password: decodeURIComponent(password) }),
    ...(ssl === null || ssl === "disable"
      ? {}
      : { ssl: { rejectUnauthorized: ssl !== "no-verify" } }),
  };
}
