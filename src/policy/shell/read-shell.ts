import {
  type Assignment,
  type Command,
  type CommandNode,
  type DoubleQuotedChild,
  type Function as FunctionNode,
  forEachChild,
  type HereDoc,
  type Pipeline,
  parse,
  type Redirect,
  type Redirection,
  type SyntaxNode,
  type Word,
  type WordPart,
} from "unbash";
import { shownError } from "../../util/error-text.ts";
import { isUtf8Locale } from "../../util/utf8-locale.ts";
import {
  ASTRAY,
  changeFolder,
  goesAstray,
  inspectionProblem,
  moveProblem,
  programName,
  type ShellPart,
  type ShellRedirect,
  type ShellScript,
  type ShellWord,
  type StructureDanger,
  UNKNOWN,
  UNKNOWN_TOKEN,
} from "./script.ts";
import { glueOf, isStandard, OTHER_SHELLS, READABLE_SHELLS, readsCode, unwrap } from "./unwrap.ts";

/** The limit for scripts inside scripts (`sh -c 'sh -c …'`). */
const MOST_SHELLS = 8;

/** The limit for nested nodes; a nested substitution takes about five. */
const DEEPEST = 160;

/**
 * Parses a command with a real parser (unbash): lists, pipes, groups, loops, functions, substitutions, here documents,
 * and the texts of `sh -c`. Nothing is run or expanded. Anything that cannot be resolved completely becomes a reason
 * why no rule may allow the command; the rest is still searched for dangers.
 */
export function readShell(command: string): ShellScript {
  const reader = new CommandReader();
  readInto(reader, command, 0);
  return reader.result();
}

function readInto(reader: CommandReader, command: string, shells: number): void {
  const problem =
    shells > MOST_SHELLS ? "it has too many shells inside each other" : inspectionProblem(command);
  if (problem !== undefined) {
    reader.block(problem);
    return;
  }
  try {
    // Only one digit is a descriptor for dash: it passes `a 22>f` the word 22.
    if (/\d\d[<>]/.test(command)) reader.block("it may redirect a descriptor above 9");
    // Shells join continued lines at different places: dash reads `2\⏎>&1` as a redirection, others as the word 2.
    if (command.includes("\\\n")) reader.block("it continues a line with a backslash");
    visit(parse(command), {
      reader,
      depth: 0,
      nested: (text) => readInto(reader, text, shells + 1),
    });
  } catch (error) {
    // The parser should accept any text. If it ever throws, treat the command like one that is too long.
    reader.block(`it cannot be read (${shownError(error)})`);
  }
}

interface Walk {
  readonly reader: CommandReader;
  readonly depth: number;
  readonly nested: (text: string) => void;
}

function visit(node: SyntaxNode, walk: Walk): void {
  const { reader, nested, depth } = walk;
  const deeper = { ...walk, depth: depth + 1 };
  if (depth > DEEPEST) {
    reader.block("it is nested too deeply");
    return;
  }
  const down = () => forEachChild(node, (child) => visit(child, deeper));
  for (const why of problemsOf(node)) reader.block(why);
  switch (node.type) {
    case "Command":
      reader.command(node, down, nested);
      break;
    case "Pipeline":
      reader.pipeline(node, (child) => visit(child, deeper));
      break;
    case "Redirected":
      reader.redirected(node.redirects, down);
      break;
    case "Function":
      reader.function(node, down);
      break;
    // Changes in a child process, such as the folder, end with it.
    case "Subshell":
    case "CommandExpansion":
    case "ProcessSubstitution":
    case "ArithmeticCommandExpansion":
      reader.apart(down);
      break;
    default:
      if (node.type === "Redirect") reader.redirect(node);
      if (node.type === "Assignment") reader.assignment(node);
      down();
  }
}

/**
 * The constructs of an understood script; any other makes it not understood. Expansions are excluded: arithmetic,
 * `${!x}`, `${x@P}` and similar evaluate values again, and what they run is not in the text.
 */
// biome-ignore format: a list
const UNDERSTOOD: ReadonlySet<SyntaxNode["type"]> = new Set<SyntaxNode["type"]>([
  "Script", "Statement", "CompoundList", "AndOr", "Pipeline", "Time", "Negation", "Command", "Redirected", "Subshell",
  "BraceGroup", "If", "Elif", "While", "Case", "CaseItem", "Assignment", "Redirect", "FileDescriptor", "HereString",
  "HereDoc", "HereDocDelimiter", "HereDocBody", "Word", "Literal", "SingleQuoted", "DoubleQuoted", "Glob",
]);

/** Why a script with this construct is not understood, each as the rest of a sentence. */
function problemsOf(node: SyntaxNode): readonly string[] {
  if (!UNDERSTOOD.has(node.type)) return [`it uses ${nameOf(node.type)}`];
  switch (node.type) {
    case "Script":
      return (node.errors ?? []).map(({ message }) => `it does not parse (${message})`);
    case "Pipeline":
      return isPlainPipeline(node)
        ? []
        : ['it uses "time" or "!" in a way that shells read differently'];
    case "HereDoc":
      return isPlainText(node) ? [] : ["a here document in it is more than plain text"];
    case "Literal":
      return hasOpenSign(node.text) ? ["it uses an expansion"] : [];
    case "Word":
      return node.parts === undefined && hasOpenSign(node.text) ? ["it uses an expansion"] : [];
    default:
      return [];
  }
}

const NAMES: Readonly<Partial<Record<SyntaxNode["type"], string>>> = {
  Function: "a function, which changes what its words mean",
  For: "a loop over words",
  Select: "a menu",
  Coproc: "a coprocess",
  FileDescriptorVariable: "a variable for a file descriptor",
  ArrayValue: "an array",
};

function nameOf(type: SyntaxNode["type"]): string {
  if (type.startsWith("Test")) return "[[ ]], which some shells read as a program";
  if (type.startsWith("Arithmetic")) return "arithmetic, which can run or change anything";
  return NAMES[type] ?? "an expansion";
}

/**
 * For dash `time` is a program that runs its arguments, however bash parses them: what bash takes for a command called `-v`
 * is an option there, and the next word is the command.
 */
function isPlainPipeline({ prefixes, commands }: Pipeline): boolean {
  const [first] = commands;
  if (prefixes.length > 1) return false;
  if (prefixes[0]?.type !== "Time") return true;
  if (first?.type !== "Command" || first.prefix.length > 0) return false;
  return first.name !== undefined && !readWord(first.name).text.startsWith("-");
}

/** The delimiter is a plain name and the text contains no shell syntax, not even escaped. */
function isPlainText({ delimiter, body, closing }: HereDoc): boolean {
  if (closing === undefined || delimiter === undefined) return false;
  if (!/^(\w+|\\\w+|'\w+'|"\w+")$/.test(delimiter.text)) return false;
  return delimiter.quoted || !/[$`\\]/.test(body.text);
}

/** Turns a parsed word into a token; `known` only when all supported shells pass on the same text. */
function readWord(word: Word): ShellWord {
  const token = readParts(word);
  // Bash also expands `a=~/x` and `a=b:~/x` anywhere.
  return hasOpenTilde(word.text) ? { text: token.text, known: false } : token;
}

function readParts({ parts, text, value }: Word): ShellWord {
  if (parts === undefined) return { text: value, known: text === "[" || isPlain(text) };
  const token = joined(parts.map(readPart));
  // Checked together: `{a"b",c}` has its braces and its comma in different parts.
  const unquoted = parts.flatMap((part) => (part.type === "Literal" ? [part.text] : []));
  return { text: token.text, known: token.known && isPlain(unquoted.join("")) };
}

function joined(tokens: readonly ShellWord[]): ShellWord {
  return {
    text: tokens.map((token) => token.text).join(""),
    known: tokens.every((token) => token.known),
  };
}

function readPart(part: WordPart): ShellWord {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
      return { text: part.value, known: true };
    case "DoubleQuoted":
      return joined(part.parts.map(readQuoted));
    // `$'…'` is one string for bash and a dollar with a string for dash, so its value is unknown.
    case "AnsiCQuoted":
      return { text: part.value, known: false };
    case "Glob":
      return { text: part.text, known: false };
    case "SimpleExpansion":
      return { text: part.text === "$HOME" ? "~" : UNKNOWN, known: false };
    case "ParameterExpansion":
      return { text: isBareHome(part) ? "~" : UNKNOWN, known: false };
    default:
      return { text: UNKNOWN, known: false };
  }
}

function readQuoted(part: DoubleQuotedChild): ShellWord {
  if (part.type !== "Literal") return readPart(part);
  return { text: part.value, known: !hasOpenSign(part.text) };
}

function isBareHome({
  parameter,
  text,
}: {
  readonly parameter: string;
  readonly text: string;
}): boolean {
  return parameter === "HOME" && text.length === 7;
}

/** Checks again what the parser calls plain text: it must contain no shell syntax. */
function isPlain(text: string): boolean {
  const unescaped = text.replace(/\\./gs, "");
  if (/[$`*?;&|<>()['"\\\n]/.test(unescaped)) return false;
  return !(unescaped.includes("{") && /,|\.\./.test(unescaped));
}

/** True for an unescaped dollar sign or backquote, which the shell may replace. */
function hasOpenSign(text: string): boolean {
  return /[$`]/.test(text.replace(/\\./gs, ""));
}

function hasOpenTilde(text: string): boolean {
  return /(^|[=:])~/.test(text.replaceAll("\\\n", ""));
}

/** The limit for nested wrappers. */
const MOST_WRAPPERS = 8;

/** Scripts beyond these limits are not inspected; a person decides. */
const MOST_PARTS = 200;
const MOST_WORDS = 200;

/** The context of a command. */
interface Around {
  readonly wrappers: ShellPart["wrappers"];
  readonly blocks: readonly string[];
  /** Its standard input is not the terminal. */
  readonly isFed: boolean;
  /** Reads a text as a shell would. */
  readonly nested: (text: string) => void;
}

/** Collects the programs of a script while `readShell` walks it. */
class CommandReader {
  readonly #parts: ShellPart[] = [];
  readonly #redirects: ShellRedirect[] = [];
  readonly #blocks = new Set<string>();
  readonly #structures = new Set<StructureDanger>();
  readonly #met: Met[] = [];
  #folder: string | undefined;
  #isFed = false;
  /** The next command follows `time`. */
  #isTimed = false;

  result(): ShellScript {
    return {
      parts: this.#parts,
      redirects: this.#redirects,
      blocks: [...this.#blocks],
      structures: [...this.#structures],
    };
  }

  /** No rule may allow this script. */
  block(why: string): void {
    this.#blocks.add(why);
  }

  /** `walkInside` visits the substitutions in its words, which the shell runs first. */
  command(node: Command, walkInside: () => void, nested: (text: string) => void): void {
    const wrappers = this.#isTimed ? [[TIME]] : [];
    this.#isTimed = false;
    const before = this.#met.length;
    walkInside();
    const inside = this.#met.slice(before);
    const words = [node.name, ...node.args].flatMap((word) =>
      word === undefined
        ? []
        : [word.type === "Word" ? readWord(word) : { text: word.text, known: false }],
    );
    if (words.length === 0) return;
    if (words.length > MOST_WORDS) this.block("one of its commands has too many words");
    if (this.#parts.length >= MOST_PARTS) {
      this.block("it runs too many programs");
      return;
    }
    const isFed = this.#isFed || feeds(node.redirects);
    const start = this.#met.length;
    this.#run(words.slice(0, MOST_WORDS), { wrappers, blocks: [], isFed, nested });
    // `sh -c "$(curl …)"`, `bash <(curl …)`, `eval "$(base64 -d …)"`.
    if (this.#met.slice(start).some(({ runsText }) => runsText)) this.#found(codeFrom(inside));
  }

  pipeline({ commands, prefixes }: Pipeline, visit: (node: CommandNode) => void): void {
    const [only] = commands;
    this.#isTimed = prefixes.some(({ type }) => type === "Time");
    if (only !== undefined && commands.length === 1) {
      visit(only);
      return;
    }
    const wasFed = this.#isFed;
    const before = this.#met.length;
    for (const [index, command] of commands.entries()) {
      this.#isFed = wasFed || index > 0;
      const start = this.#met.length;
      this.apart(() => visit(command));
      // `curl … | sh`, with any commands between.
      const takesCode = this.#met.slice(start).some(({ runsInput }) => runsInput);
      if (takesCode) this.#found(codeFrom(this.#met.slice(before, start)));
    }
    this.#isFed = wasFed;
  }

  /** Runs `walk` like a child process: its changes of the folder are discarded. */
  apart(walk: () => void): void {
    const folder = this.#folder;
    walk();
    this.#folder = folder;
  }

  /** Runs `walk` with these redirections. */
  redirected(redirects: readonly Redirection[], walk: () => void): void {
    const wasFed = this.#isFed;
    this.#isFed = wasFed || feeds(redirects);
    walk();
    this.#isFed = wasFed;
  }

  redirect({ operator, target }: Redirect): void {
    if (target === undefined) return;
    const token = readWord(target);
    if (/^[<>]&$/.test(operator) && /^(\d+|-)$/.test(target.text)) return;
    // For dash, `a &>f b` is `a &` and `>f b`; for bash, `>&-b` is `>&-` and the word b.
    if (operator.includes("&"))
      this.block(`it uses ${operator} in a way that shells read differently`);
    if (this.#redirects.length >= MOST_PARTS) {
      this.block("it has too many redirections");
      return;
    }
    const access = operator === "<" || operator === "<&" ? "read" : "write";
    this.#redirects.push({ target: token, access, folder: this.#folder });
  }

  function({ name }: FunctionNode, walk: () => void): void {
    const before = this.#met.length;
    this.apart(walk);
    const itself = this.#met.slice(before).filter((met) => met.name === name.value.toLowerCase());
    if (itself.length > 1) this.#found(["fork-bomb"]);
  }

  assignment({ name, value, append, index }: Assignment): void {
    const isWhole = append !== true && index === undefined && value.type === "Word";
    this.#assigned(name, isWhole ? readWord(value) : UNKNOWN_TOKEN);
  }

  #assigned(name: string, value: ShellWord): void {
    const problem = assignmentProblem(name, value);
    if (problem !== undefined) this.block(problem);
  }

  #run(words: readonly ShellWord[], around: Around): void {
    this.#met.push(meet(words));
    const blocks = [...around.blocks];
    if (words.some(({ known }) => !known)) blocks.push("the shell would still replace words of it");
    if (readsCode(words, around.isFed)) blocks.push("it runs code from its input");
    const inside = around.wrappers.length >= MOST_WRAPPERS ? TOO_DEEP : unwrap(words);
    if (inside.kind !== "plain" && !isStandard(words[0])) blocks.push(OWN_PLACE);
    if (inside.kind === "command") {
      for (const { text, known } of inside.variables) {
        const [name = "", value = ""] = text.split(/=(.*)/s);
        this.#assigned(name, { text: value, known });
      }
      if (inside.consent !== undefined) blocks.push(inside.consent);
      this.#run(inside.words, { ...around, blocks, wrappers: [...around.wrappers, words] });
    } else if (inside.kind === "script") {
      this.#script(words, inside, { ...around, blocks });
    } else {
      if (inside.kind === "unreadable") blocks.push(inside.why);
      this.#program(words, { ...around, blocks });
    }
  }

  /** A command without a wrapper. */
  #program(words: readonly ShellWord[], around: Around): void {
    const { wrappers } = around;
    const isMoved = this.#folder !== undefined && isRelative(words[0]);
    const blocks = isMoved ? [...around.blocks, MOVED] : around.blocks;
    this.#add(words, wrappers, blocks);
    // `find -exec find -exec …`: each holds all that follow, so going on would cost the square of their number.
    const isDeepest = wrappers.length >= MOST_WRAPPERS;
    for (const inner of isDeepest ? [] : innerCommands(words)) {
      this.#run(inner, { ...around, blocks: [], wrappers: [...wrappers, words] });
    }
    this.#folder = changeFolder(words, this.#folder);
  }

  /** A shell with its text: the shell becomes a wrapper, and its text is judged. */
  #script(
    words: readonly ShellWord[],
    { text, why }: { readonly text: ShellWord; readonly why?: string },
    around: Around,
  ): void {
    const blocks = why === undefined ? around.blocks : [...around.blocks, why];
    const wrappers = [...around.wrappers, words];
    if (blocks.length > 0) this.#add(words, around.wrappers, blocks);
    const first = this.#parts.length;
    this.apart(() => around.nested(text.text.replaceAll(UNKNOWN, "$unknown")));
    const found = this.#parts.splice(first);
    for (const part of found) {
      this.#parts.push({ ...part, wrappers: [...wrappers, ...part.wrappers] });
    }
  }

  #add(
    words: readonly ShellWord[],
    wrappers: ShellPart["wrappers"],
    blocks: readonly string[],
  ): void {
    const folder = this.#folder;
    const glue = glueOf(words);
    const all = [...blocks];
    if (glue === "never") all.push("the shell may evaluate words of it once more");
    if (words.some(({ text }) => goesAstray(folder, text))) all.push(ASTRAY);
    const move = moveProblem(words, folder);
    if (move !== undefined) all.push(move);
    this.#parts.push({
      words,
      wrappers,
      blocks: all,
      isGlue: all.length === 0 && glue === "glue",
      folder,
    });
  }

  #found(dangers: readonly StructureDanger[]): void {
    for (const danger of dangers) this.#structures.add(danger);
  }
}

/** A keyword in bash, a program in dash. */
const TIME: ShellWord = { text: "time", known: true };

const MOVED = "it names a program by its place after changing the folder";
const OWN_PLACE = "it runs another program through one in an unusual place";
const TOO_DEEP = { kind: "unreadable", why: "it has too many wrappers inside each other" } as const;

function feeds(redirects: readonly Redirection[]): boolean {
  return redirects.some(({ operator }) => operator.startsWith("<"));
}

function isRelative(word: ShellWord | undefined): boolean {
  const at = word?.text.indexOf("/") ?? -1;
  return at > 0;
}

/** Programs that download text. */
// biome-ignore format: a table
const DOWNLOADERS: ReadonlySet<string> = new Set([
  "curl", "wget", "fetch", "aria2c", "http", "https", "xh", "lynx", "ftp", "sftp", "scp", "nc", "ncat", "netcat",
  "socat", "telnet", "openssl", "dig", "nslookup",
]);

/** Programs that decode text into a form that a shell can run. */
// biome-ignore format: a table
const DECODERS: ReadonlySet<string> = new Set([
  "base64", "base32", "basenc", "xxd", "uudecode", "rev", "tr", "gpg",
]);

/** A program found during the walk, including wrappers. */
interface Met {
  readonly name: string;
  /** It runs its arguments as code: a shell, eval, source. */
  readonly runsText: boolean;
  /** It runs its input as code: a shell or an interpreter without a file. */
  readonly runsInput: boolean;
}

function meet(words: readonly ShellWord[]): Met {
  const name = programName(words[0]);
  const isShell = READABLE_SHELLS.has(name) || OTHER_SHELLS.has(name);
  const rest = words.slice(1).map(({ text }) => text);
  const hasFile =
    rest.some((text) => !/^[-+]/.test(text)) && !rest.some((text) => /^-\w*s/.test(text));
  return {
    name,
    runsText: isShell || name === "eval" || name === "source" || name === ".",
    runsInput: (isShell && !hasFile) || readsCode(words, false),
  };
}

/** The problem when the output of `sources` becomes code: it cannot be reviewed before it runs. */
function codeFrom(sources: readonly Met[]): readonly StructureDanger[] {
  const dangers: StructureDanger[] = [];
  if (sources.some(({ name }) => DOWNLOADERS.has(name))) dangers.push("code-from-network");
  if (sources.some(({ name }) => DECODERS.has(name))) dangers.push("code-from-decoder");
  return dangers;
}

const RUNS_EACH: ReadonlySet<string> = new Set(["-exec", "-execdir", "-ok", "-okdir"]);

/** Commands in the arguments of a program that runs others: `find … -exec rm {} \;`. */
function innerCommands(words: readonly ShellWord[]): readonly (readonly ShellWord[])[] {
  const name = programName(words[0]);
  if (name !== "find" && name !== "gfind") return [];
  const commands: ShellWord[][] = [];
  let open: ShellWord[] | undefined;
  for (const word of words.slice(1)) {
    if (open === undefined) {
      if (RUNS_EACH.has(word.text)) open = [];
      // A plus ends the command only directly after `{}`; elsewhere it is an argument.
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

/**
 * Variables that change only the appearance of output. Any other variable may select a program, a library, a
 * configuration or a target (PATH, LD_PRELOAD, GIT_SSH_COMMAND, NODE_OPTIONS, KUBECONFIG …) or is text that a shell
 * evaluates (PS4, ENV, BASH_ENV, PROMPT_COMMAND). New ones keep appearing, so this list names the harmless ones.
 */
const HARMLESS: ReadonlyMap<string, (value: string) => boolean> = new Map([
  ...["CI", "CLICOLOR", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "TERM"].map(
    (name) => [name, isPlainWord] as const,
  ),
  ["TZ", isTimeZone] as const,
  // biome-ignore format: a list
  ...["LANG", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME"].map(
    (name) => [name, isUtf8Locale] as const,
  ),
]);

/**
 * Why a script that sets this is not understood, as the rest of a sentence; undefined when it is harmless. A shell may
 * evaluate a value later, and programs may open it as a file, so each variable has its own allowed form.
 */
function assignmentProblem(name: string, { text, known }: ShellWord): string | undefined {
  const isSafe = HARMLESS.get(name);
  if (isSafe === undefined) return `it sets the variable ${name.slice(0, 40)}`;
  return known && isSafe(text) ? undefined : `the value it gives ${name} is not a plain one`;
}

function isPlainWord(value: string): boolean {
  return /^[\w.+-]*$/.test(value);
}

/** The name of a zone, never the path of a file. */
function isTimeZone(value: string): boolean {
  return /^(\w[\w+-]*(\/\w[\w+-]*){0,2})?$/.test(value);
}
