// The console as it is in the working tree, built once for each state of its sources.

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";

const root = path.resolve(import.meta.dirname, "../..");
const SOURCES = [
  "console/**/*.*",
  "src/client/*.ts",
  "src/http/paths.ts",
  "src/model/errors.ts",
  "src/util/*.ts",
];

/** The folder with the built files. */
export async function builtConsole(): Promise<string> {
  const home = path.join(root, "node_modules/.cache/sallyport-console");
  const folder = path.join(home, stateOf(SOURCES));
  if (existsSync(folder)) return folder;
  mkdirSync(home, { recursive: true });
  const partial = `${folder}.${process.pid}`;
  // As `npm run build:console` does it, and not in the test runner's own environment.
  const args = [
    "build",
    "--config",
    "console/vite.config.ts",
    "--outDir",
    partial,
    "--logLevel",
    "error",
  ];
  await promisify(execFile)(process.execPath, ["node_modules/vite/bin/vite.js", ...args], {
    cwd: root,
    env: { ...process.env, NODE_ENV: "production" },
  });
  // Two test files may build at the same time; the first one in place counts.
  try {
    renameSync(partial, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
    rmSync(partial, { recursive: true });
  }
  return folder;
}

/** A name for what these files and the installed packages are now. */
export function stateOf(globs: readonly string[]): string {
  const hash = createHash("sha256");
  const files = globs.flatMap((glob) => globSync(glob, { cwd: root, exclude: isInstalled }));
  for (const file of [...files, "package-lock.json"].sort()) {
    hash.update(`${file}\n`).update(readFileSync(path.join(root, file)));
  }
  return hash.digest("hex").slice(0, 16);
}

function isInstalled(name: string): boolean {
  return path.basename(name) === "node_modules";
}
