/** What a talkative text holds: the JSON objects and arrays in it, as written, and everything around them. */
export interface FoundJson {
  readonly values: readonly string[];
  readonly rest: string;
}

const DEEPEST = 64;

/**
 * Finds the outermost JSON objects and arrays in a text that may have prose and code fences around them. A bracket that
 * does not start valid JSON is prose, and the search goes on where the grammar broke. Each character is read at most
 * twice, whatever the text: counting brackets from every `{` would take quadratic time on a page of them, and so would
 * the usual regular expressions. Throws RangeError for nesting deeper than 64, where the answer could not be trusted:
 * starting again inside would present a part as the whole.
 */
export function findJson(text: string): FoundJson {
  const values: string[] = [];
  const rest: string[] = [];
  let restFrom = 0;
  for (let at = 0; at < text.length; ) {
    if (text[at] !== "{" && text[at] !== "[") {
      at += 1;
      continue;
    }
    const scan = new Scan(text, at);
    if (scan.value(0)) {
      values.push(text.slice(at, scan.at));
      rest.push(text.slice(restFrom, at));
      restFrom = scan.at;
      at = scan.at;
    } else {
      at = Math.max(scan.at, at + 1);
    }
  }
  rest.push(text.slice(restFrom));
  // A line break keeps two pieces of prose from joining into a word that is in neither.
  return { values, rest: rest.join("\n") };
}

/** The grammar of RFC 8259, recognised but not built. Each method says whether it holds; `at` is where it ended. */
class Scan {
  at: number;
  readonly #text: string;

  constructor(text: string, at: number) {
    this.#text = text;
    this.at = at;
  }

  value(depth: number): boolean {
    this.#space();
    switch (this.#text[this.at]) {
      case "{":
        return this.#list(
          "}",
          depth,
          () => this.#string() && this.#is(":") && this.value(depth + 1),
        );
      case "[":
        return this.#list("]", depth, () => this.value(depth + 1));
      case '"':
        return this.#string();
      default:
        return this.#match(/true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
    }
  }

  #list(close: string, depth: number, item: () => boolean): boolean {
    if (depth >= DEEPEST) throw new RangeError(`it is nested deeper than ${DEEPEST}`);
    this.at += 1;
    if (this.#is(close)) return true;
    do {
      if (!item()) return false;
      if (this.#is(close)) return true;
    } while (this.#is(","));
    return false;
  }

  #string(): boolean {
    this.#space();
    if (this.#text[this.at] !== '"') return false;
    for (this.at += 1; this.at < this.#text.length; this.at += 1) {
      const code = this.#text.charCodeAt(this.at);
      if (code === 0x22) {
        this.at += 1;
        return true;
      }
      // Control characters cannot stand in a string, so a stray quote in prose reaches no further than its line.
      if (code < 0x20) return false;
      if (code === 0x5c) this.at += 1;
    }
    return false;
  }

  #is(wanted: string): boolean {
    this.#space();
    if (this.#text[this.at] !== wanted) return false;
    this.at += 1;
    return true;
  }

  #space(): void {
    this.#match(/[ \t\r\n]*/y);
  }

  /** Sticky patterns only: they are tried at this place and nowhere else. */
  #match(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    if (!pattern.test(this.#text)) return false;
    this.at = pattern.lastIndex;
    return true;
  }
}
