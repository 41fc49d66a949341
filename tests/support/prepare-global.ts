// What a whole run, or one at full scale, needs many times is made once. It starts hundreds of processes, and each loads hundreds of
// files: as one file they start in a third of the time. Without this, the first test files of a whole run would each build the
// console and the package and unpack the browser.

import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Plugin } from "vite";
import { unpackedChromium } from "../console/browser.ts";
import { packTarball } from "../docs/packed.ts";
import { SCALE } from "./scale.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const FOLDER = path.join(ROOT, "node_modules/.cache/bundled-processes");
const CONDITIONS = ["sallyport-source", "node", "import", "module", "default"];

/** What is started most often. Everything else runs from its source. */
const PROCESSES = [
  "src/cli/bin.ts",
  "src/crashkit/actors/actor-process.ts",
  "src/crashkit/cases/case-process.ts",
  "tests/adapters/ai-child.ts",
  "tests/adapters/decide-child.ts",
  "tests/adapters/langchain-child.ts",
  "tests/adapters/mastra-child.ts",
  "tests/adapters/openai-agents-child.ts",
  "tests/faults/lifecycle-child.ts",
  "tests/flow/kill-child.ts",
  "tests/interactions/processes/person-child.ts",
];

export async function setup(): Promise<void> {
  const isWhole = isWholeRun(process.argv.slice(2));
  // A planted bug is put into the source, and for a few files at a small scale the work is not worth it.
  if (process.env["PLANTED"] !== undefined || !(isWhole || SCALE === "full")) return;
  const [bundles] = await Promise.all([
    Promise.all(PROCESSES.map(async (file) => [path.join(ROOT, file), await bundle(file)])),
    ...(isWhole ? [packTarball(), unpackedChromium()] : []),
  ]);
  const table = path.join(FOLDER, "bundles.json");
  await writeFile(table, JSON.stringify(Object.fromEntries(bundles)));
  const preload = path.join(import.meta.dirname, "start-bundled.cjs");
  process.env["SALLYPORT_TEST_BUNDLES"] = "prepared";
  process.env["NODE_OPTIONS"] =
    `${process.env["NODE_OPTIONS"] ?? ""} --require ${JSON.stringify(preload)}`;
}

/** `run` and how it is reported, but no file or title that narrows it. */
function isWholeRun([command, ...options]: readonly string[]): boolean {
  return (
    command === "run" && options.every((one) => /^--(reporter|outputFile|includeTask)/.test(one))
  );
}

async function bundle(file: string): Promise<string> {
  const name = path.basename(file, ".ts");
  const outDir = path.join(FOLDER, name);
  await mkdir(outDir, { recursive: true });
  await build({
    root: ROOT,
    configFile: false,
    logLevel: "error",
    plugins: [ownPlaces],
    resolve: { conditions: CONDITIONS },
    ssr: {
      noExternal: true,
      // With files of their own beside their code, or loaded only when they are there.
      external: ["ai", "better-sqlite3", "openid-client", "pg"],
      resolve: { conditions: CONDITIONS },
    },
    build: { ssr: file, outDir, target: "esnext", minify: false, emptyOutDir: true },
  });
  return path.join(outDir, `${name}.js`);
}

/** Every module still is where its source is: files are found beside it, and processes see whether they are the main one. */
const ownPlaces: Plugin = {
  name: "own-places",
  enforce: "pre",
  transform(code, id) {
    if (!id.endsWith(".ts") || !code.includes("import.meta.")) return undefined;
    const places: Record<string, string> = {
      url: pathToFileURL(id).href,
      filename: id,
      dirname: path.dirname(id),
    };
    return code.replace(/\bimport\.meta\.(url|filename|dirname)\b/g, (whole, name: string) =>
      JSON.stringify(places[name] ?? whole),
    );
  },
};
