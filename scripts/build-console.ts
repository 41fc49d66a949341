// Builds the web console into dist/console, if its sources are newer than what is there.

import { globSync, statSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { run } from "./process.mjs";

const root = path.dirname(import.meta.dirname);
const SOURCES = ["console/**/*.*", "src/client/*.ts", "src/http/paths.ts", "package-lock.json"];
const vite = ["node_modules/vite/bin/vite.js", "build", "--config", "console/vite.config.ts"];

/** Throws when it cannot be built. */
export async function buildConsole({ always }: { readonly always: boolean }): Promise<void> {
  const built = changedAt(path.join(root, "dist/console/index.html"));
  const files = SOURCES.flatMap((glob) => globSync(glob, { cwd: root }));
  const newest = Math.max(...files.map((file) => changedAt(path.join(root, file))));
  if (!always && built > newest) return;
  console.error("building the web console (once, ~5 s)");
  const env = { ...process.env, NODE_ENV: "production" };
  const args = [...vite, "--logLevel", "error"];
  const { code } = await run(process.execPath, args, { cwd: root, env, stdio: "inherit" });
  if (code !== 0) throw new Error("the web console could not be built");
}

function changedAt(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await buildConsole({ always: true });
}
