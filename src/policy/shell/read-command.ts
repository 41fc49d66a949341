import type {
  Assignment,
  Command,
  CommandNode,
  Function as FunctionNode,
  Pipeline,
  Redirect,
  Redirection,
} from "unbash";
import { isUtf8Locale } from "../../util/utf8-locale.ts";
import { ASTRAY, changeFolder, goesAstray, moveProblem } from "./folder.ts";
import { readWord } from "./read-shell.ts";
import {
  programName,
  type ShellPart,
  type ShellRedirect,
  type ShellScript,
  type StructureDanger,
  type Token,
  UNKNOWN,
  UNKNOWN_TOKEN,
} from "./script.ts";
import { glueOf, isStandard, OTHER_SHELLS, READABLE_SHELLS, readsCode, unwrap } from "./unwrap.ts";

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
export class CommandReader {
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

  #assigned(name: string, value: Token): void {
    const problem = assignmentProblem(name, value);
    if (problem !== undefined) this.block(problem);
  }

  #run(words: readonly Token[], around: Around): void {
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
  #program(words: readonly Token[], around: Around): void {
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
    words: readonly Token[],
    { text, why }: { readonly text: Token; readonly why?: string },
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

  #add(words: readonly Token[], wrappers: ShellPart["wrappers"], blocks: readonly string[]): void {
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
const TIME: Token = { text: "time", known: true };

const MOVED = "it names a program by its place after changing the folder";
const OWN_PLACE = "it runs another program through one in an unusual place";
const TOO_DEEP = { kind: "unreadable", why: "it has too many wrappers inside each other" } as const;

function feeds(redirects: readonly Redirection[]): boolean {
  return redirects.some(({ operator }) => operator.startsWith("<"));
}

function isRelative(word: Token | undefined): boolean {
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

function meet(words: readonly Token[]): Met {
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
function innerCommands(words: readonly Token[]): readonly (readonly Token[])[] {
  const name = programName(words[0]);
  if (name !== "find" && name !== "gfind") return [];
  const commands: Token[][] = [];
  let open: Token[] | undefined;
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
function assignmentProblem(name: string, { text, known }: Token): string | undefined {
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
