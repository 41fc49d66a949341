// For processes that a test starts: `NODE_OPTIONS=--import=…/hook.ts`, with PLANTED naming the bug.

import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { plant, plantedBug } from "./plant.ts";

const bug = plantedBug();
if (bug !== undefined) {
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (!url.startsWith("file:") || loaded.source === undefined || loaded.source === null) {
        return loaded;
      }
      const source = plant(bug, fileURLToPath(url), String(loaded.source));
      return source === undefined ? loaded : { ...loaded, source };
    },
  });
}
