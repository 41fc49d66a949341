// Starts a private PostgreSQL server for tests and benchmarks, from the binaries in tools/postgres.

import { type ChildProcess, spawn } from "node:child_process";
import {
  appendFile,
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { freePort } from "../../src/crashkit/child.ts";
import {
  findBinaries,
  type Identity,
  makeRunnable,
  runAs,
  serverIdentity,
} from "./postgres-binaries.ts";

export interface PostgresServer {
  /** Connection string of the superuser to the database `postgres`. */
  readonly url: string;
  /** SIGKILL: dies on the spot. SIGQUIT: an immediate stop, without a checkpoint. Answers when none of its processes is left. */
  crash(signal: "SIGKILL" | "SIGQUIT"): Promise<void>;
  /** After a crash: the same data at the same address. Answers when it takes connections. */
  startAgain(): Promise<void>;
  /** Stops all its processes where they are: connections stay open and nothing is answered. Answers when they go on. */
  pause(ms: number): Promise<void>;
  /** A copy that follows it by streaming replication. The server restarts for that, so there should be no connections. */
  startStandby(): Promise<Standby>;
  stop(): Promise<void>;
}

/** Follows a primary, and ends with it. */
export interface Standby {
  readonly url: string;
  /** Lags from now on. */
  stop(): Promise<void>;
  /** Once the primary is dead: takes its place at its address. Answers when it is promoted. */
  takeOver(): Promise<void>;
  /** From now on the primary acknowledges nothing that the standby has not written. */
  beSynchronous(): Promise<void>;
  /** Takes writes at its own address. */
  promote(): Promise<void>;
}

/** A server on a free port of this machine. `durable: false` trades crash safety for speed. */
export async function startPostgres(options: { durable: boolean }): Promise<PostgresServer> {
  const installed = await findBinaries();
  const identity = await serverIdentity();
  const folder = await makeFolder(identity);
  const removeFolder = () => rm(folder, { recursive: true, force: true });
  try {
    const bin = await makeRunnable(installed, identity, folder);
    const data = path.join(folder, "data");
    await runAs(identity, path.join(bin, "initdb"), [
      ...["-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C"],
      ...["--no-sync", "--no-instructions"],
    ]);
    const port = await freePort();
    const startAt = (where: string, at: number) =>
      startServer(path.join(bin, "postgres"), identity, [
        ...["-D", where, "-p", `${at}`, "-c", "max_connections=200"],
        ...["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="],
        ...(options.durable ? [] : NOT_DURABLE),
      ]);
    const start = () => startAt(data, port);
    let server = await start();
    const standbys: ChildProcess[] = [];
    const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
    return {
      url,
      async startStandby() {
        await end(server);
        const copy = path.join(folder, "standby");
        await mkdir(copy, { mode: 0o700 });
        if (identity) await chown(copy, identity.uid, identity.gid);
        await runAs(identity, "cp", ["-a", `${data}/.`, copy]);
        const conninfo = `primary_conninfo = 'host=127.0.0.1 port=${port} user=postgres'`;
        await appendFile(path.join(copy, "postgresql.auto.conf"), `${conninfo}\n`);
        await writeFile(path.join(copy, "standby.signal"), "");
        server = await start();
        const at = await freePort();
        standbys.push(await startAt(copy, at));
        const stopLast = async () => {
          const last = standbys.pop();
          if (last !== undefined) await end(last);
        };
        return {
          url: `postgres://postgres@127.0.0.1:${at}/postgres`,
          stop: stopLast,
          async beSynchronous() {
            const client = new pg.Client({ connectionString: url });
            await client.connect();
            await client.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
            await client.query("SELECT pg_reload_conf()");
            const text = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
            while ((await client.query(text)).rowCount === 0) await setTimeout(20);
            await client.end();
          },
          async promote() {
            const own = `postgres://postgres@127.0.0.1:${at}/postgres`;
            const client = new pg.Client({ connectionString: own });
            await client.connect();
            await client.query("ALTER SYSTEM SET synchronous_standby_names = ''");
            await client.query("SELECT pg_promote()");
            await client.end();
          },
          async takeOver() {
            await stopLast();
            standbys.push(await startAt(copy, port));
            const client = new pg.Client({ connectionString: url });
            await client.connect();
            await client.query("SELECT pg_promote()");
            await client.end();
          },
        };
      },
      async crash(signal) {
        await crash(data, signal);
        // Its shell waits for the dead one, whose number would else be taken for a server that still runs.
        await end(server);
      },
      async pause(ms) {
        const all = await processesOf(data);
        for (const pid of all) signal(pid, "SIGSTOP");
        await setTimeout(ms);
        for (const pid of all) signal(pid, "SIGCONT");
      },
      async startAgain() {
        server = await start();
      },
      async stop() {
        for (const one of [server, ...standbys]) await end(one);
        await removeFolder();
      },
    };
  } catch (error) {
    await removeFolder();
    throw error;
  }
}

const NOT_DURABLE = [
  ...["fsync=off", "synchronous_commit=off", "full_page_writes=off"],
  // A store refuses such a server unless it says itself that its data may be lost.
  "sallyport.accept_unsafe_server=on",
].flatMap((setting) => ["-c", setting]);

/**
 * The shell around the server waits on our end of a pipe: when this process ends, even by SIGKILL, the
 * pipe closes and the shell stops the server. No exit hook could do that.
 */
const UNTIL_STDIN_CLOSES = '"$@" </dev/null & P=$!; cat >/dev/null; kill -INT $P; wait $P';

function startServer(file: string, identity: Identity, args: string[]): Promise<ChildProcess> {
  const server = spawn("sh", ["-c", UNTIL_STDIN_CLOSES, "sh", file, ...args], {
    ...identity,
    cwd: "/",
    stdio: ["pipe", "ignore", "pipe"],
    // A Ctrl-C in the terminal is for the tests; the server has to outlive their tidying up.
    detached: true,
  });
  return new Promise((resolve, reject) => {
    let log = "";
    const fail = (why: string) => {
      server.stdin?.end();
      reject(new Error(`PostgreSQL did not start: ${why}\n${log}`));
    };
    server.once("error", (error) => fail(error.message));
    server.once("close", () => fail("its shell ended"));
    server.stderr?.on("data", function read(chunk: Buffer) {
      log += chunk.toString();
      // Clients that come too early are told so in the log, and a standby that its primary is away: not about the server.
      if (/FATAL: +(?! |the database system is|could not connect).*\n/.test(log))
        fail("it gave up");
      if (/ready to accept (?:read-only )?connections/.test(log)) {
        // The log is not read from here on, but it must not fill the pipe and block the server.
        server.stderr?.off("data", read).resume();
        resolve(server);
      }
    });
  });
}

/** A server that starts while some of the killed one's processes still live refuses the data, so all of them are waited for. */
async function crash(data: string, signal: "SIGKILL" | "SIGQUIT"): Promise<void> {
  const all = await processesOf(data);
  process.kill(all[0], signal);
  while ((await Promise.all(all.map(isRunning))).includes(true)) await setTimeout(5);
}

/** A backend may have ended since it was listed. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** The main one first. */
async function processesOf(data: string): Promise<readonly [number, ...number[]]> {
  const [first = ""] = (await readFile(path.join(data, "postmaster.pid"), "utf8")).split("\n");
  const main = Number(first);
  const children = await readFile(`/proc/${main}/task/${main}/children`, "utf8");
  return [main, ...children.trim().split(" ").filter(Boolean).map(Number)];
}

/** A process that has ended and has not been waited for (Z) no longer runs. */
async function isRunning(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "State:\tZ");
  return !/^State:\tZ/m.test(status);
}

async function end(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const closed = new Promise((resolve) => server.once("close", resolve));
  server.stdin?.end();
  await closed;
}

const PREFIX = "sallyport-pg-";

/** A folder that the server's user can reach; also clears what killed runs have left behind. */
async function makeFolder(identity: Identity): Promise<string> {
  const bases = [tmpdir(), "/tmp"];
  for (const base of bases) {
    await removeStale(base);
    const folder = await mkdtemp(path.join(base, `${PREFIX}${process.pid}-`));
    await chmod(folder, 0o755);
    const data = path.join(folder, "data");
    await mkdir(data, { mode: 0o700 });
    try {
      if (identity) await chown(data, identity.uid, identity.gid);
      await runAs(identity, "sh", ["-c", 'cd "$1"', "sh", data]);
      return folder;
    } catch {
      await rm(folder, { recursive: true, force: true });
    }
  }
  throw new Error(`PostgreSQL's user can reach none of ${bases.join(", ")}`);
}

async function removeStale(base: string): Promise<void> {
  for (const name of await readdir(base)) {
    const pid = Number(name.match(`^${PREFIX}(\\d+)-`)?.[1]);
    if (pid > 0 && !isAlive(pid)) {
      await rm(path.join(base, name), { recursive: true, force: true }).catch(() => {});
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
