import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

export const root = path.dirname(path.dirname(import.meta.dirname));

/** One fenced block: its language, what else stands behind it, and the line it begins at. */
export interface Block {
  readonly language: string;
  readonly info: string;
  readonly text: string;
  readonly line: number;
}

export interface Page {
  /** From the root of the repository. */
  readonly file: string;
  readonly name: string;
  readonly text: string;
  readonly blocks: readonly Block[];
}

export function pagesIn(folder: string): readonly Page[] {
  return readdirSync(path.join(root, folder))
    .filter((file) => file.endsWith(".md"))
    .map((file) => readPage(path.join(folder, file)));
}

export function readPage(file: string): Page {
  const text = readFileSync(path.join(root, file), "utf8");
  return { file, name: path.basename(file, ".md"), text, blocks: blocksOf(text) };
}

function blocksOf(text: string): readonly Block[] {
  const blocks: Block[] = [];
  let open: { language: string; info: string; line: number; lines: string[] } | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    const fence = /^```(\S*)\s*(.*)$/.exec(line);
    if (fence === null) open?.lines.push(line);
    else if (open === undefined) {
      open = { language: fence[1] ?? "", info: fence[2] ?? "", line: index + 1, lines: [] };
    } else {
      const { lines, ...rest } = open;
      blocks.push({ ...rest, text: `${lines.join("\n")}\n` });
      open = undefined;
    }
  }
  return blocks;
}

/** The program of a page: its unnamed samples one after the other; named ones are files of their own. */
export function programOf({ blocks }: Page): string {
  const samples = blocks.filter(({ language, info }) => language === "ts" && info === "");
  return samples.map(({ text }) => text).join("\n");
}

/** What the page says that its program prints. */
export function outputOf({ blocks }: Page): string {
  const shown = blocks.filter(({ language }) => language === "text");
  return shown.map(({ text }) => text).join("");
}

/** What stands between single backticks in the words of a page. */
export function inlineCode({ text }: Page): readonly string[] {
  const words = text.replace(/^```[\s\S]*?^```$/gm, "");
  return [...words.matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code);
}
