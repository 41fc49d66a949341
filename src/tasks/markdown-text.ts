/**
 * How texts lie in the Markdown file. The one escape is `\uXXXX`, a character by its number; everything else stands for
 * itself. It is used for what an editor, git or a screen would change or hide: line ends other than ours, control
 * characters, white space at an end, marks that turn the direction of writing, halves of characters, and a backslash
 * that would otherwise begin such an escape.
 */

const HIDDEN =
  /(?!\t)\p{Cc}|\p{Cs}|[\u2028\u2029\u202a-\u202e\u2066-\u2069]|\\(?=u[0-9a-fA-F]{4})/gu;
const ESCAPE = /\\u([0-9a-fA-F]{4})/g;

/** One line, to stand where the place says what it is: in a heading or after the name of a field. */
export function lineOf(text: string): string {
  return text.replace(HIDDEN, escaped).replace(/^\s|\s$/gu, escaped);
}

/** Several lines as a quotation: no line of a text ever begins a line of the file. */
export function quoteOf(text: string): readonly string[] {
  return text.split("\n").map((line) => {
    const safe = line.replace(HIDDEN, escaped).replace(/\s$/u, escaped);
    return safe === "" ? ">" : `> ${safe}`;
  });
}

export function textOfLine(line: string): string {
  return unescaped(line.trim());
}

/** Lines that begin with `>`. */
export function textOfQuote(lines: readonly string[]): string {
  return lines.map((line) => unescaped(line.replace(/^> ?/, ""))).join("\n");
}

function unescaped(text: string): string {
  return text.replace(ESCAPE, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
