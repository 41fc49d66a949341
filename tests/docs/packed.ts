// The package as `npm pack` makes it, in an empty project.

import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { root } from "./pages.ts";

const run = promisify(execFile);

/** What `npm install sallyport better-sqlite3 ai zod` would bring beside the package; not downloaded again here. */
const BESIDE = ["@hono", "ai", "better-sqlite3", "commander", "diff", "hono", "unbash", "zod"];

/** Returns the file of `npm pack`. It is built apart from the working tree, whose `dist` may be of another day. */
export async function packTarball(scratch: string): Promise<string> {
  const built = path.join(scratch, "built");
  mkdirSync(built);
  const tsc = path.join(root, "node_modules/typescript/bin/tsc");
  const out = path.join(built, "dist");
  await run(process.execPath, [tsc, "-p", "tsconfig.build.json", "--outDir", out], { cwd: root });
  const vite = path.join(root, "node_modules/vite/bin/vite.js");
  const console = ["build", "--config", "console/vite.config.ts", "--logLevel", "error"];
  const args = [vite, ...console, "--outDir", path.join(out, "console")];
  await run(process.execPath, args, { cwd: root, env: { ...process.env, NODE_ENV: "production" } });
  for (const file of ["package.json", "README.md", "LICENSE", "docs", "examples"]) {
    cpSync(path.join(root, file), path.join(built, file), { recursive: true });
  }
  await run("npm", ["pack", "--ignore-scripts", "--pack-destination", scratch], { cwd: built });
  const [tarball = ""] = readdirSync(scratch).filter((name) => name.endsWith(".tgz"));
  return path.join(scratch, tarball);
}

/** Returns the folder of a project with the package in it. */
export async function packedProject(scratch: string): Promise<string> {
  const tarball = await packTarball(scratch);
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
