// Builds the package into dist: plain tsc, one output file per source file, and the web console.

import { rmSync } from "node:fs";
import path from "node:path";
import { buildConsole } from "./build-console.ts";
import { run } from "./process.mjs";

const root = path.dirname(import.meta.dirname);
const tsc = ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"];

// From nothing each time: a file that was renamed or removed in src must not stay in the package.
rmSync(path.join(root, "dist"), { recursive: true, force: true });
const args = [...tsc, ...process.argv.slice(2)];
const { code } = await run(process.execPath, args, { cwd: root, stdio: "inherit" });
process.exitCode = code ?? 1;
if (code === 0) await buildConsole({ always: true });
