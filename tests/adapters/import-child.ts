// Imports one adapter after its framework, and reports which files that has loaded.

import { registerHooks } from "node:module";

const [adapter = "", framework = ""] = process.argv.slice(2);
if (framework !== "") await import(framework);
const files: string[] = [];
registerHooks({
  load(url, context, next) {
    if (url.startsWith("file:")) files.push(url);
    return next(url, context);
  },
});
await import(adapter);
process.stdout.write(JSON.stringify(files));
