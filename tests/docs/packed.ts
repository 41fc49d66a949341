// The package as `npm pack` makes it, in an empty project.

import { execFile } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { builtConsole, stateOf } from "../console/built-console.ts";
import { root } from "./pages.ts";

const run = promisify(execFile);

/** What `npm install sallyport better-sqlite3 ai zod` would bring beside the package; not downloaded again here. */
const BESIDE = ["@hono", "ai", "better-sqlite3", "commander", "diff", "hono", "unbash", "zod"];

/**
 * Returns the file of `npm pack`, made once for each state of what is packed. It is built apart from the working tree, whose
 * `dist` may be of another day.
 */
export async function packTarball(): Promise<string> {
  const home = path.join(root, "node_modules/.cache/sallyport-package");
  const folder = path.join(home, stateOf(PACKED));
  if (!existsSync(folder)) {
    const partial = `${folder}.${process.pid}`;
    mkdirSync(partial, { recursive: true });
    await packInto(partial);
    // Two test files may pack at the same time; the first one in place counts.
    try {
      renameSync(partial, folder);
    } catch (error) {
      if (!existsSync(folder)) throw error;
      rmSync(partial, { recursive: true });
    }
  }
  const [tarball = ""] = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
  return path.join(folder, tarball);
}

const FILES = ["package.json", "README.md", "LICENSE"];
const FOLDERS = ["docs", "examples"];
const PACKED = [
  ...FILES,
  ...["src", "console", ...FOLDERS].map((folder) => `${folder}/**/*.*`),
  "tsconfig*.json",
];

async function packInto(folder: string): Promise<void> {
  const built = path.join(folder, "built");
  const tsc = path.join(root, "node_modules/typescript/bin/tsc");
  const out = path.join(built, "dist");
  await run(process.execPath, [tsc, "-p", "tsconfig.build.json", "--outDir", out], { cwd: root });
  cpSync(await builtConsole(), path.join(out, "console"), { recursive: true });
  for (const file of [...FILES, ...FOLDERS]) {
    cpSync(path.join(root, file), path.join(built, file), { recursive: true });
  }
  await run("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], { cwd: built });
  rmSync(built, { recursive: true });
}

/** Returns the folder of a project with the package in it. */
export async function packedProject(scratch: string): Promise<string> {
  const tarball = await packTarball();
  const project = path.join(scratch, "project");
  const installed = path.join(project, "node_modules", "sallyport");
  mkdirSync(installed, { recursive: true });
  await run("tar", ["-xzf", tarball, "-C", installed, "--strip-components=1"]);
  for (const name of BESIDE) {
    symlinkSync(path.join(root, "node_modules", name), path.join(project, "node_modules", name));
  }
  writeFileSync(path.join(project, "package.json"), '{ "type": "module", "private": true }\n');
  return project;
}
