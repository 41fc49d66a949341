// Whether a text of SQL only reads, whatever the database is. Everything that is not understood counts as a write: the answer
// decides whether a person is asked.

/** Longer texts are not looked at. */
const LONGEST = 100_000;

/** Words after which a parenthesis is no call of a function. */
// biome-ignore format: a list
const BEFORE_PARENTHESIS: ReadonlySet<string> = new Set([
  "select", "distinct", "all", "any", "some", "from", "where", "and", "or", "not", "in", "exists", "as", "on", "using", "join",
  "union", "intersect", "except", "having", "by", "over", "partition", "order", "limit", "offset", "between", "like", "is", "case",
  "when", "then", "else", "values", "with", "materialized", "filter",
]);

/** Functions that no database lets change anything. Others may do anything: `nextval`, `pg_terminate_backend`, one's own. */
// biome-ignore format: a list
const PURE: ReadonlySet<string> = new Set([
  "count", "sum", "avg", "min", "max", "total", "abs", "round", "ceil", "ceiling", "floor", "sign", "mod", "power", "sqrt",
  "coalesce", "nullif", "ifnull", "greatest", "least", "lower", "upper", "length", "char_length", "trim", "ltrim", "rtrim",
  "substr", "substring", "replace", "concat", "concat_ws", "instr", "date", "datetime", "strftime", "julianday", "date_trunc",
  "to_char", "to_date", "row_number", "rank", "dense_rank", "ntile", "lag", "lead", "first_value", "last_value", "string_agg",
  "array_agg", "group_concat", "json_agg",
]);

/** Words that begin or are part of what changes something, or may, in any of the databases; also after a SELECT without `;`. */
// biome-ignore format: a list
const CHANGING: ReadonlySet<string> = new Set([
  "add", "alter", "analyse", "analyze", "attach", "backup", "begin", "bulk", "call", "checkpoint", "close", "cluster", "comment",
  "commit", "copy", "create", "dbcc", "deallocate", "declare", "delete", "deny", "detach", "disable", "discard", "do", "drop",
  "dumpfile", "enable", "exec", "execute", "explain", "fetch", "flush", "for", "get", "go", "goto", "grant", "handler",
  "if", "import", "insert", "install", "into", "kill", "listen", "load", "lock", "merge", "move", "notify", "open", "optimize",
  "outfile", "pragma", "prepare", "print", "procedure", "purge", "raiserror", "reassign", "receive", "reconfigure", "refresh",
  "reindex", "release", "rename", "repair", "reset", "restore", "return", "returning", "revert", "revoke", "rollback", "save",
  "savepoint", "send", "set", "setuser", "shutdown", "start", "stop", "throw", "truncate", "unlisten", "unlock", "update",
  "updatetext", "upsert", "use", "vacuum", "waitfor", "while", "writetext", "xa",
]);

const FIRST: ReadonlySet<string> = new Set(["select", "with", "values"]);

/** Names, numbers, texts, quoted names and the signs of plain expressions: what else there is, is read differently somewhere. */
const TOKEN =
  /\s+|(?<word>[A-Za-z_][A-Za-z0-9_]*)|(?<number>[0-9][0-9.]*)|(?<quoted>'(?:[^'\\]|'')*'|"(?:[^"\\]|"")*")|(?<sign>--|\/\*|[-,.()*+/%<>=!|;])/gy;

/**
 * True for one SELECT (also WITH and VALUES) that calls no function but well-known ones. Comments, several statements, locks,
 * variables, casts and whatever databases read differently make it false. A view or an operator may still do more than it
 * says: only the rights of the database's own user prevent that.
 */
export function isReadOnlySql(text: string): boolean {
  if (text.length > LONGEST) return false;
  const tokens = tokensOf(text);
  if (tokens === undefined || tokens[0]?.kind !== "word") return false;
  const words = tokens.filter(({ kind }) => kind === "word");
  if (!FIRST.has(tokens[0].text) || words.some((word) => CHANGING.has(word.text))) return false;
  return tokens.every((token, index) => {
    if (token.text === ";") return index === tokens.length - 1;
    return token.text !== "(" || isGroup(tokens, index);
  });
}

interface Token {
  readonly kind: "word" | "number" | "quoted" | "sign";
  readonly text: string;
}

/** Undefined when there is anything that is not known, a comment included. */
function tokensOf(text: string): readonly Token[] | undefined {
  const found: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const groups = TOKEN.exec(text)?.groups;
    if (groups === undefined) return undefined;
    const { word, number, quoted, sign } = groups;
    if (sign === "--" || sign === "/*") return undefined;
    if (word !== undefined) found.push({ kind: "word", text: word.toLowerCase() });
    else if (number !== undefined) found.push({ kind: "number", text: number });
    else if (quoted !== undefined) found.push({ kind: "quoted", text: quoted });
    else if (sign !== undefined) found.push({ kind: "sign", text: sign });
  }
  return found;
}

/** Whether the parenthesis there groups something, or belongs to a function that changes nothing. */
function isGroup(tokens: readonly Token[], at: number): boolean {
  const [before, beforeThat] = [tokens[at - 1], tokens[at - 2]];
  if (before === undefined || before.kind === "sign") return before?.text !== ")";
  if (before.kind !== "word") return false;
  if (BEFORE_PARENTHESIS.has(before.text)) return beforeThat?.text !== ".";
  return PURE.has(before.text) && beforeThat?.text !== ".";
}
