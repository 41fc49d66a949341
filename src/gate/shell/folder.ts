import { programName, type Token, UNKNOWN } from "./token.ts";

/** Where a script stands after this command; only `cd` moves it. Unknown places hold a null character. */
export function changeFolder(
  words: readonly Token[],
  folder: string | undefined,
): string | undefined {
  if (programName(words[0]) !== "cd") return folder;
  const target = words.slice(1).find(({ text }) => !text.startsWith("-"))?.text ?? "~";
  return resolveIn(folder, target);
}

/** A path as seen from a folder, with `.` and `..` worked out by their letters alone: good enough to find dangers. */
export function resolveIn(folder: string | undefined, path: string): string {
  const isRooted = path.startsWith("/") || path.startsWith("~");
  const start = isRooted ? [] : (folder ?? UNKNOWN).split("/");
  const names: string[] = [];
  for (const name of [...start, ...path.split("/")]) {
    if (name === "" || name === ".") continue;
    if (name === "..") names.pop();
    else names.push(name);
  }
  const isFromRoot = isRooted ? path.startsWith("/") : folder?.startsWith("/") === true;
  return isFromRoot ? `/${names.join("/")}` : names.join("/");
}
