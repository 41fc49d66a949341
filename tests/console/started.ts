// The very command of the README, in a data folder of its own: its process, its sign-in link, its way in for programs.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { type Client, createClient } from "../../src/client/index.ts";

const root = path.resolve(import.meta.dirname, "../..");

export interface Started {
  readonly link: string;
  readonly url: string;
  /** From the start of the process until the link stood on its output. */
  readonly linkMs: number;
  readonly client: Client;
  /** What it said about problems; empty in a good run. */
  problems(): string;
  /** As Ctrl+C does; gives the exit code. */
  stop(): Promise<number | null>;
}

/** `npm start -- …`. Throws what the process said when it ends without a link. */
export async function startDemo(data: string, ...more: readonly string[]): Promise<Started> {
  const began = performance.now();
  const args = ["scripts/run.mjs", "start", "--data", data, "--port", "0", ...more];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  let out = "";
  let err = "";
  child.stderr.on("data", (piece) => (err += piece));
  const link = await new Promise<string>((resolve, reject) => {
    child.stdout.on("data", (piece) => {
      out += piece;
      const found = /http:\/\/\S+\/signin\?link=\S+/.exec(out)?.[0];
      if (found !== undefined) resolve(found);
    });
    ended.then((code) => reject(new Error(`npm start ended with ${code}:\n${out}${err}`)), reject);
  });
  const linkMs = performance.now() - began;
  const { url, token } = JSON.parse(readFileSync(path.join(data, "local.json"), "utf8"));
  return {
    link,
    url,
    linkMs,
    client: createClient({ url, token }),
    problems: () => err.replace(/^building the web console.*\n/m, ""),
    stop() {
      child.kill("SIGINT");
      return ended;
    },
  };
}
