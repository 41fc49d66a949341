import type { Plugin } from "vite";
import { plant, plantedBug } from "./plant.ts";

/** The same for the modules that vitest loads itself. */
export function plantingPlugin(): Plugin {
  const bug = plantedBug();
  return {
    name: "sallyport-planted-bug",
    enforce: "pre",
    transform: (code, id) => (bug === undefined ? undefined : plant(bug, id, code)),
  };
}
