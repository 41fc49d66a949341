// `sallyport` as a real process, with a state folder of the test's own.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");
const BIN = [
  "--conditions=sallyport-source",
  "--disable-warning=ExperimentalWarning",
  path.join(root, "src/cli/bin.ts"),
];

const LIMIT_MS = 25_000;

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly url: string;
  said(): string;
  /** As Ctrl+C does. */
  stop(): Promise<number | null>;
  /** As kill -9 does. */
  kill(): Promise<void>;
}

export interface CliPlace {
  readonly folder: string;
  readonly data: string;
  readonly state: string;
  run(...args: readonly string[]): Promise<Ended>;
  start(...args: readonly string[]): Promise<Running>;
  /** A command that runs until it is stopped and is no server. */
  follow(...args: readonly string[]): { said(): string; stop(): Promise<number | null> };
}

/** A new place: a working folder with a data folder in it, and a state folder beside it. */
export function cliPlace(
  env: Readonly<Record<string, string>> = {},
  dataName = ".sallyport",
): CliPlace {
  const base = mkdtempSync(path.join(tmpdir(), "sallyport-place-"));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const folder = mkdtempSync(path.join(base, "work-"));
  const state = path.join(base, "state");
  const data = path.join(folder, dataName);
  const open = (args: readonly string[]) =>
    spawn(process.execPath, [...BIN, "--data", data, ...args], {
      cwd: folder,
      env: { ...process.env, SALLYPORT_STATE: state, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
  return {
    folder,
    data,
    state,
    run(...args) {
      const child = open(args);
      return new Promise((resolve, reject) => {
        let out = "";
        let err = "";
        child.stdout.on("data", (piece) => (out += piece));
        child.stderr.on("data", (piece) => (err += piece));
        child.on("error", reject);
        // A command that should have ended shows as one without an exit code.
        const limit = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
        child.on("close", (code) => {
          clearTimeout(limit);
          resolve({ code, out, err });
        });
      });
    },
    follow(...args) {
      const child = open(args);
      const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
      onTestFinished(async () => {
        child.kill("SIGKILL");
        await ended;
      });
      let said = "";
      child.stdout.on("data", (piece) => (said += piece));
      child.stderr.on("data", (piece) => (said += piece));
      const stop = () => {
        child.kill("SIGINT");
        return ended;
      };
      return { said: () => said, stop };
    },
    async start(...args) {
      const child = open(args);
      const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
      onTestFinished(async () => {
        child.kill("SIGKILL");
        await ended;
      });
      let said = "";
      const url = await new Promise<string>((resolve, reject) => {
        const read = (piece: Buffer) => {
          said += piece;
          const found = /Sallyport is at (\S+)/.exec(said)?.[1];
          if (found !== undefined) resolve(found);
        };
        child.stdout.on("data", read);
        child.stderr.on("data", read);
        ended.then((code) => reject(new Error(`ended with ${code}: ${said}`)), reject);
      });
      return {
        child,
        url,
        said: () => said,
        stop() {
          child.kill("SIGINT");
          return ended;
        },
        async kill() {
          child.kill("SIGKILL");
          await ended;
        },
      };
    },
  };
}
