// Running one child process and passing signals on to it.

import { spawn } from "node:child_process";

/**
 * Runs a program to its end. With `stdio: "inherit"` it shares our streams; otherwise everything it
 * says is collected in `output`. Signals we get while it runs are passed on, so that it can end itself
 * in order; we end after it.
 *
 * @param {string} file
 * @param {readonly string[]} args
 * @param {import("node:child_process").SpawnOptions} options
 * @param {(pid: number | undefined) => void} [started]
 * @returns {Promise<{ code: number | null, signal: NodeJS.Signals | null, output: string }>}
 */
export function run(file, args, options, started) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      ...options,
      stdio: options.stdio ?? ["ignore", "pipe", "pipe"],
    });
    started?.(child.pid);
    /** @type {Buffer[]} */
    const said = [];
    child.stdout?.on("data", (chunk) => said.push(chunk));
    child.stderr?.on("data", (chunk) => said.push(chunk));

    /** @param {NodeJS.Signals} signal */
    const passOn = (signal) => {
      // Ctrl-C in a terminal reaches the whole process group: the child has had it already, and
      // many programs take the second one as "now, without tidying up".
      if (signal === "SIGINT" && process.stdin.isTTY) return;
      child.kill(signal);
    };
    const signals = /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]);
    for (const signal of signals) process.on(signal, passOn);
    const settle = () => {
      for (const signal of signals) process.off(signal, passOn);
    };

    child.on("error", (error) => {
      settle();
      reject(error);
    });
    child.on("close", (code, signal) => {
      settle();
      resolve({ code, signal, output: Buffer.concat(said).toString() });
    });
  });
}
