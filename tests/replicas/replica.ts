// The processes of a deployment: each is killed and comes back under the same name and address.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { freePort } from "../../src/crashkit/child.ts";
import { NODE } from "../faults/production/start-production.ts";

export interface Replica {
  readonly name: string;
  /** Of a server; empty for a worker. */
  readonly url: string;
  readonly data: string;
  isReady(): boolean;
  /** The last sign-in link that a server printed. */
  link(): string;
  /** Of its running process. */
  pid(): number | undefined;
  start(): Promise<void>;
  /** kill -9, and it is gone when this answers. */
  kill(): Promise<void>;
  /** As an operator does it. */
  stop(): Promise<void>;
}

export interface ReplicaOptions {
  readonly folder: string;
  /** One SQLite file in a folder that all share when left out. */
  readonly databaseUrl?: string;
  readonly tenant: string;
  readonly productionPort: number;
  readonly onError: (text: string) => void;
}

const BIN = path.resolve(import.meta.dirname, "../../src/cli/bin.ts");
const CONFIG = path.join(import.meta.dirname, "replica.config.ts");

export async function server(name: string, options: ReplicaOptions): Promise<Replica> {
  const port = await freePort();
  const args = ["serve", "--port", String(port)];
  return replica(name, `http://127.0.0.1:${port}`, args, "Sign in", options);
}

export function worker(name: string, options: ReplicaOptions): Replica {
  return replica(name, "", ["worker", "--every", "250"], "working", options);
}

function replica(
  name: string,
  url: string,
  args: readonly string[],
  readyText: string,
  { folder, databaseUrl, tenant, productionPort, onError }: ReplicaOptions,
): Replica {
  const data = path.join(folder, databaseUrl === undefined ? "data" : name);
  const database = databaseUrl === undefined ? [] : ["--database", databaseUrl];
  mkdirSync(data, { recursive: true });
  let child: ChildProcess | undefined;
  let isReady = false;
  let link = "";

  async function end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const running = child;
    isReady = false;
    child = undefined;
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return;
    const gone = once(running, "exit");
    running.kill(signal);
    await gone;
  }

  return {
    name,
    url,
    data,
    isReady: () => isReady,
    link: () => link,
    pid: () => child?.pid,
    start() {
      const all = [...NODE, BIN, "--data", data, ...args, "--tenant", tenant];
      const starting = spawn(process.execPath, [...all, ...database, "--config", CONFIG], {
        stdio: ["ignore", "pipe", "pipe"],
        env: {
          ...process.env,
          PRODUCTION_PORT: String(productionPort),
        },
      });
      child = starting;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      let said = "";
      const read = (chunk: Buffer, isError: boolean) => {
        const text = chunk.toString();
        said += text;
        link = /http:\S+\/signin\?link=\S+/.exec(text)?.[0] ?? link;
        if (text.includes(readyText)) {
          isReady = child === starting;
          resolve();
        } else if (isError) onError(`${name}: ${text}`);
      };
      starting.stdout.on("data", (chunk: Buffer) => read(chunk, false));
      starting.stderr.on("data", (chunk: Buffer) => read(chunk, true));
      starting.once("exit", (code) => {
        // Killed while it started: that is what the test is about.
        if (child !== starting) return resolve();
        const problem = `${name} ended by itself with ${code}: ${said}`;
        onError(problem);
        reject(new Error(problem));
      });
      return promise;
    },
    kill: () => end("SIGKILL"),
    stop: () => end("SIGTERM"),
  };
}
