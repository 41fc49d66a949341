// Loaded first by every process that a whole test run starts: a process that has a bundle runs that instead of its source.

const { readFileSync } = require("node:fs");
const { registerHooks } = require("node:module");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { isMainThread } = require("node:worker_threads");

const [, main, ...args] = process.argv;
// A module that is named on the command line imports the source, which then must be the only copy of it.
const isAlone = !args.some((arg) => /\.[cm]?[jt]s\b/.test(arg));
if (isMainThread && isAlone && main?.endsWith(".ts")) {
  const table = path.join(__dirname, "../../node_modules/.cache/bundled-processes/bundles.json");
  const bundle = JSON.parse(readFileSync(table, "utf8"))[main];
  if (bundle !== undefined) {
    const source = pathToFileURL(main).href;
    registerHooks({
      resolve(specifier, context, next) {
        const found = next(specifier, context);
        return found.url === source
          ? { ...found, url: pathToFileURL(bundle).href, format: "module" }
          : found;
      },
    });
  }
}
