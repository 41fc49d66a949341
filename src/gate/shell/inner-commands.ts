import { programName, type Token, UNKNOWN_TOKEN } from "./token.ts";

const RUNS_EACH: ReadonlySet<string> = new Set(["-exec", "-execdir", "-ok", "-okdir"]);

/** Commands in the words of a program that runs others besides its own work: `find … -exec rm {} \;`. */
export function innerCommands(words: readonly Token[]): readonly (readonly Token[])[] {
  const name = programName(words[0]);
  if (name !== "find" && name !== "gfind") return [];
  const commands: Token[][] = [];
  let open: Token[] | undefined;
  for (const word of words.slice(1)) {
    if (open === undefined) {
      if (RUNS_EACH.has(word.text)) open = [];
      // A plus ends the command only right behind `{}`; anywhere else it is one of its words.
    } else if (word.text === ";" || (word.text === "+" && open.at(-1) === UNKNOWN_TOKEN)) {
      commands.push(open);
      open = undefined;
    } else {
      open.push(word.text.includes("{}") ? UNKNOWN_TOKEN : word);
    }
  }
  if (open !== undefined) commands.push(open);
  return commands.filter((command) => command.length > 0);
}
