import { readFile, writeFile } from "node:fs/promises";
import { availableParallelism, loadavg } from "node:os";
import path from "node:path";

/** In which minute, and beside how much other work, the figures of a run were measured. */
export interface Conditions {
  readonly date: string;
  readonly node: string;
  readonly cores: number;
  readonly loadBefore: number;
  readonly loadAfter: number;
}

/** Call the result when the run has ended. */
export function conditionsFromNow(): () => Conditions {
  const load = () => Number(loadavg()[0]?.toFixed(1));
  const loadBefore = load();
  return () => ({
    date: new Date().toISOString().slice(0, 10),
    node: process.version,
    cores: availableParallelism(),
    loadBefore,
    loadAfter: load(),
  });
}

export function inWords({ date, node, cores, loadBefore, loadAfter }: Conditions): string {
  const load = `load ${loadBefore} before and ${loadAfter} at the end`;
  return `Measured ${date} on ${cores} cores with Node ${node.slice(1)}, ${load}.`;
}

export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export function markdown({ head, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), `|${head.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}

/** Replaces what stands between two marks of a page below docs, so that its words and the figures of a run stay together. */
export async function writeFigures(page: string, mark: string, figures: string): Promise<void> {
  const file = path.join(import.meta.dirname, "../docs", page);
  const text = await readFile(file, "utf8");
  const [start, end] = [`<!-- ${mark} -->`, `<!-- end of ${mark} -->`];
  const [before, after] = [text.indexOf(start), text.indexOf(end)];
  if (before < 0 || after < before) throw new Error(`${page} has no marks "${mark}"`);
  await writeFile(file, `${text.slice(0, before)}${start}\n${figures}\n\n${text.slice(after)}`);
}
