// Installing the packages of one folder: only when its lock file changed, quietly, and never twice
// at the same time.

import { createHash } from "node:crypto";
import { appendFileSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { run } from "./process.mjs";

/**
 * Makes `folder/node_modules` agree with `folder/package-lock.json`; throws with npm's words if it cannot.
 *
 * @param {string} folder
 * @param {string} what
 * @param {NodeJS.ProcessEnv} env
 */
export async function install(folder, what, env) {
  if (isInstalled(folder)) return;
  const lock = await acquire(path.join(folder, ".installing"));
  try {
    // The previous holder of the lock may have done the work.
    if (isInstalled(folder)) return;
    process.stderr.write(`installing ${what}…\n`);
    const { code, signal, output } = await npmCi(folder, env, lock.heldBy);
    if (code !== 0) {
      throw new Error(`npm ci failed in ${folder} (${signal ?? `exit code ${code}`})\n${output}`);
    }
    // Written last: an install that was cut short has no mark and is done again.
    writeFileSync(markOf(folder), hashOf(folder));
  } finally {
    lock.release();
  }
}

/** @param {string} folder */
function isInstalled(folder) {
  return existsSync(markOf(folder)) && readFileSync(markOf(folder), "utf8") === hashOf(folder);
}

/** @param {string} folder */
function markOf(folder) {
  return path.join(folder, "node_modules/.installed");
}

/** @param {string} folder */
function hashOf(folder) {
  const lock = readFileSync(path.join(folder, "package-lock.json"));
  return createHash("sha256").update(lock).digest("hex");
}

/**
 * With the npm that started us if there is one, so that both halves of an `npm test` are the same npm.
 *
 * @param {string} cwd
 * @param {NodeJS.ProcessEnv} env
 * @param {(pid: number | undefined) => void} started
 */
function npmCi(cwd, env, started) {
  // Named because NODE_ENV=production and a user's own settings would leave them out.
  const include = ["--include=dev", "--include=optional"];
  const args = ["ci", "--no-audit", "--no-fund", ...include, "--loglevel=error"];
  const own = env["npm_execpath"] ?? "";
  // Either way npm runs on the first `node` of PATH, which is the one that `env` brings.
  return /npm-cli\.c?js$/.test(own)
    ? run("node", [own, ...args], { cwd, env }, started)
    : run("npm", args, { cwd, env, shell: process.platform === "win32" }, started);
}

const ABANDONED_AFTER_MS = 30 * 60_000;

/**
 * Takes the lock file, waiting for its holder. The holder's process id stands in it and that of its npm,
 * which goes on installing when the holder alone is killed. A lock is abandoned when they are all gone,
 * or when it is very old: their ids may belong to others by then.
 *
 * @param {string} lock
 */
async function acquire(lock) {
  for (let waited = false; !create(lock); waited = true) {
    if (isAbandoned(lock)) {
      clear(lock);
      continue;
    }
    if (!waited) process.stderr.write(`waiting for another install (${lock})…\n`);
    await sleep(200);
  }
  return {
    /** @param {number | undefined} pid */
    heldBy: (pid) => appendFileSync(lock, ` ${pid}`),
    release: () => rmSync(lock, { force: true }),
  };
}

/**
 * Creates the file with our process id in it; false when it exists.
 *
 * @param {string} file
 */
function create(file) {
  try {
    writeFileSync(file, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

/** @param {string} lock */
function isAbandoned(lock) {
  try {
    if (Date.now() - statSync(lock).mtimeMs > ABANDONED_AFTER_MS) return true;
    return !readFileSync(lock, "utf8").split(" ").some(isAlive);
  } catch {
    return false; // just released
  }
}

/**
 * A file caught before its id was written gives 0, which means our own process group: alive, as it should.
 *
 * @param {string} pid
 */
function isAlive(pid) {
  try {
    return process.kill(Number(pid), 0);
  } catch (error) {
    return codeOf(error) === "EPERM"; // it belongs to another user
  }
}

/**
 * Removes an abandoned lock. One waiter at a time and looking again, or it could be a newcomer's lock.
 *
 * @param {string} lock
 */
function clear(lock) {
  const clearing = `${lock}.clearing`;
  if (!create(clearing)) return;
  if (isAbandoned(lock)) rmSync(lock, { force: true });
  rmSync(clearing);
}

/** @param {unknown} error */
function codeOf(error) {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
