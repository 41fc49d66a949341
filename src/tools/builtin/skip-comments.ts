const QUERY_WORDS = ["SELECT", "WITH", "VALUES"];
const SPACES = " \t\n\v\f\r";

/**
 * True when a statement begins with SELECT, WITH or VALUES, after spaces and comments. Goes through the text once: a
 * regular expression that skips spaces and comments in any order needs a nested quantifier, and takes exponential time.
 */
export function startsLikeQuery(sql: string): boolean {
  const start = afterComments(sql);
  return QUERY_WORDS.some((word) => {
    const end = start + word.length;
    return sql.slice(start, end).toUpperCase() === word && !isWord(sql.charAt(end));
  });
}

/** Where the first word begins. A comment that does not end takes the rest of the text. */
function afterComments(sql: string): number {
  let at = 0;
  for (;;) {
    if (at < sql.length && SPACES.includes(sql.charAt(at))) at += 1;
    else if (sql.startsWith("--", at)) at = endOf(sql, "\n", at);
    else if (sql.startsWith("/*", at)) at = endOf(sql, "*/", at + 2);
    else return at;
  }
}

function endOf(sql: string, mark: string, from: number): number {
  const found = sql.indexOf(mark, from);
  return found < 0 ? sql.length : found + mark.length;
}

function isWord(character: string): boolean {
  return /^\w$/.test(character);
}
