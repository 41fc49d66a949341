import { readFileSync } from "node:fs";
import type { ConnectionLimits } from "./connections.ts";

/** Files that are kept for the store, the tools and the console. */
const MOST_KEPT = 256;

/**
 * The same limits, smaller in proportion where this process may not open so many files: when the system refuses a
 * connection, it asks nobody whether it is that of an agent or of a person who wants to stop everything.
 */
export function withinOpenFiles(
  limits: ConnectionLimits,
  files: number | undefined = openFileLimit(),
): ConnectionLimits {
  if (files === undefined) return limits;
  const total = Math.ceil(files - Math.min(MOST_KEPT, files / 4));
  if (limits.total <= total) return limits;
  const share = (count: number) => Math.max(1, Math.floor((count * total) / limits.total));
  const { strangers, perSender, agents } = limits;
  return {
    total,
    strangers: share(strangers),
    perSender: share(perSender),
    agents: share(agents),
  };
}

/** How many files this process may have open, connections included; undefined where the system does not tell. */
function openFileLimit(): number | undefined {
  // Elsewhere Node raises its limit to what the system allows, which is far more.
  if (process.platform !== "linux") return undefined;
  const limits = readFileSync("/proc/self/limits", "utf8");
  const found = /^Max open files +(\d+)/m.exec(limits)?.[1];
  return found === undefined ? undefined : Number(found);
}
