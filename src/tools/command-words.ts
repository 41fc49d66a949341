/** A word of a command, judged by its text alone. */
export interface CommandWord {
  readonly text: string;
  /** It starts a program: the first word, or the first one after an operator. */
  readonly isProgram: boolean;
}

const OPERATORS = ";&|()<>\n`{}";
const DEEPEST = 4;

/**
 * Every text in a command that may be a file name for the shell or for a program it runs, quoted parts also word by
 * word (`sh -c './x'`). It finds too much rather than too little: the gate judges what may run, this only selects the
 * files to inspect.
 */
export function commandWords(command: string, depth = 0): readonly CommandWord[] {
  const words: CommandWord[] = [];
  let text = "";
  let isProgram = true;
  let hasText = false;
  const quoted: string[] = [];
  const end = () => {
    if (hasText) {
      words.push({ text, isProgram });
      // After an assignment the next word is still the program.
      if (!/^\w+=/.test(text)) isProgram = false;
    }
    text = "";
    hasText = false;
  };
  for (let at = 0; at < command.length; at += 1) {
    const sign = command[at] ?? "";
    if (sign === "'" || sign === '"') {
      const close = closingQuote(command, at);
      const inside = command.slice(at + 1, close);
      text += sign === '"' ? inside.replaceAll(/\\(.)/gs, "$1") : inside;
      hasText = true;
      quoted.push(text.slice(-inside.length));
      at = close;
    } else if (sign === "\\") {
      at += 1;
      if (command[at] !== "\n") text += command[at] ?? "";
      hasText = true;
    } else if (sign === " " || sign === "\t") {
      end();
    } else if (OPERATORS.includes(sign)) {
      end();
      // A redirection names a file; after the other operators a program follows.
      isProgram = sign !== "<" && sign !== ">";
    } else {
      text += sign;
      hasText = true;
    }
  }
  end();
  if (depth >= DEEPEST) return words;
  return [...words, ...quoted.flatMap((inside) => commandWords(inside, depth + 1))];
}

function closingQuote(command: string, open: number): number {
  const quote = command[open];
  for (let at = open + 1; at < command.length; at += 1) {
    if (command[at] === "\\" && quote === '"') at += 1;
    else if (command[at] === quote) return at;
  }
  return command.length;
}

const MOST_NAMES = 6;
const LONGEST_NAME = 4_096;

/** The file names that a word may hold: itself, and its parts after `--option=`, `@` and a short option. */
export function namesIn(text: string): readonly string[] {
  const short = /^-\w./.test(text) ? [text.slice(2)] : [];
  const names = [text, ...short, ...text.split(/[=@,:]/)].slice(0, MOST_NAMES);
  return [...new Set(names)].filter(
    (name) => name !== "" && name.length <= LONGEST_NAME && !name.includes("\0"),
  );
}
