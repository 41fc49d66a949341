// @ts-nocheck
// Between the gateway and a published server: passes everything on, and writes each line for the server to a file, so that a
// test can say what had arrived by then. `wire-tap.mjs LOG COMMAND ARGS…`

import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [log, command, ...args] = process.argv.slice(2);
const server = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
server.stdout.pipe(process.stdout);
server.on("exit", (code) => process.exit(code ?? 1));
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  appendFileSync(log, `${line}\n`);
  server.stdin.write(`${line}\n`);
});
lines.on("close", () => server.stdin.end());
