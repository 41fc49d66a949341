import { existsSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const here = path.join(import.meta.dirname, "..");

/** The folder that is named by `--previous PATH`, a checkout of an earlier release with its packages installed. */
export function previousIn(args: readonly string[]): string | undefined {
  const at = args.indexOf("--previous");
  if (at < 0) return undefined;
  const root = path.resolve(args[at + 1] ?? "");
  if (args[at + 1] !== undefined && existsSync(path.join(root, "src/index.ts"))) return root;
  throw new Error("--previous needs the folder of a checkout of this repository");
}

/** `--quick` shows in a minute that a comparison works. Its figures say nothing. */
export const isQuick = process.argv.includes("--quick");

/** Which code a system runs: one with `-previous` in its name that of the earlier release, each other the code here. */
export function rootOf(system: string): string {
  if (!system.includes("-previous")) return here;
  const previous = previousIn(process.argv);
  if (previous === undefined) throw new Error(`${system} needs --previous PATH`);
  return previous;
}

/** What the systems use of Sallyport, from a checkout. These names did not change since the release that is compared with. */
export async function codeOf(root: string) {
  const from = (file: string) => import(pathToFileURL(path.join(root, "src", file)).href);
  const [main, sqlite, postgres, tool] = await Promise.all(
    ["index.ts", "store/sqlite/index.ts", "store/postgres/index.ts", "tools/define-tool.ts"].map(
      from,
    ),
  );
  return { ...main, ...sqlite, ...postgres, ...tool } as typeof import("../src/index.ts") &
    typeof import("../src/store/sqlite/index.ts") &
    typeof import("../src/store/postgres/index.ts") &
    typeof import("../src/tools/define-tool.ts");
}

export type Code = Awaited<ReturnType<typeof codeOf>>;
