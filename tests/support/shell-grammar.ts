// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the braces belong to the shell
// Random commands for the shell gate: what people write, what shells disagree about, and what bash evaluates twice.

import type { Dice } from "./dice.ts";

/** Programs that exist only as stubs; `bb` fails, so that both ways of a condition are gone. */
export const STUBS = ["aa", "bb", "cc"];

/** Words that are part of bash and a program, if one has that name, for dash. */
export const OTHER_STUBS = ["[[", "let", "declare", "source", "select", "coproc", "function"];

const VARIABLES = ["LINES", "LANG", "TZ", "COLUMNS", "TERM", "CI", "LC_ALL", "NO_COLOR"];
const OTHER_VARIABLES = ["V", "PS4", "BASH_ENV", "ENV", "PROMPT_COMMAND", "IFS", "LC_X", "i"];

/** Texts that run `cc z` where a shell evaluates them as a number, a name or a prompt. */
// biome-ignore format: a list
export const POISON = [
  "'a[$(cc z)]'", '"a[\\$(cc z)]"', "a[\\$\\(cc\\ z\\)]", "'a[`cc z`]'", "'x[0$(cc z)]'", "'0,a[$(cc z)]'", "'$(cc z)'",
  "'x=a[$(cc z)]'", "'`cc z`'", "'a[$(cc z)]=1'", "'(a[$(cc z)])'", '"a["\'$(cc z)\'"]"', "a'[$(cc z)]'",
];

/** One program for a reader of UTF-8; in GBK `\xa0\\` is a letter, so the string ends before `cc`. */
export const TWO_READINGS = String.raw`aa "你\" ; cc z; aa " # "`;

// biome-ignore format: a list
const PLAIN_WORDS = [
  "x", "y1", "'q r'", '"d q"', "''", '""', "-x", "--", "a=b", "\\;", "';'", '"a;b"', "a#b", "'\\'", "\\ ", "\\$V", "é", "{}", "aa",
  "'$V'", "'$(cc z)'", '"\\$(cc z)"', "a\\\nb", "\\\n", "]", "./x", "a:b", "x@y", "1", "-1", "'a[0]'", "stash@{0}", "x\\*y", '"*"',
  "'`cc z`'", '"\\`cc z\\`"', "-n", "-p", "-v", "-eq", "%1", "a\"b\"'c'", '"it\'s"', "a\\'b", "=", "!=", "0", "pipefail", "'#'",
  '"你\\\\"', '"你\\""', "'你\\'", "你\\ x", '"ü\\\\"',
];

// biome-ignore format: a list
const ODD_WORDS = [
  "$V", '"$V"', "${V}", "*", "a*b", "?", "[a]", "~", "a=~", "{p,q}", "{1..3}", "{a\"b\",c}", '["a"]', "$(aa s)", "`bb t`", '"$(cc u)"',
  "$((1+1))", "$[1]", "$'x\\'; cc y; #'", '$"x"', "!", "[", "{", "}", '"`cc n`"', "aa;bb", "&", "@(a|b)", "!(a)", "$(", "`", "'", '"',
  "(", ")", "#", "$\\\n(cc z)", "`cc\\\n z`", "${x:-$(cc z)}", "${!LINES}", "${LANG@P}", "${LANG:LINES}", "${LANG[LINES]}",
  "$((LINES))", "$[LINES]", '"$((LINES))"', "<(cc z)", ">(cc z)", "$1", '"$@"', "${10}", "$", '"$"', "\\", "\\\\\n", "a[LINES]=1",
  "LINES=1", "$((", "${", "((", "[[", "]]", "esac", "fi", "done", ";;", "|&", "&>x", "<<<", "<<E", "2>&1", "\t", "~+", "~-", "\\\n~", "x=\\\n~", "x=~", "a:~", "$\\\n((1))",
];

// Not `kill`: with a word like -1 or 0 it would end this very test, or everything on the machine. Not `continue`: it would loop.
// biome-ignore format: a list
const BUILTINS = [
  "true", ":", "false", "pwd", "wait", "exit", "break", "return", "test", "[", "command", "set", "echo", "printf", "cd",
  "ulimit", "shift", "umask", "type", "times", "export", "declare", "typeset", "local", "readonly", "unset", "read", "let",
  "getopts", "mapfile", "trap", "alias", "hash", "jobs", "fg", "eval", "source", ".", "exec", "builtin", "compgen", "caller", "dirs",
];

/** Before a word that is the name of a variable. */
// biome-ignore format: a list
const COMPUTED = [
  "wait -n -p", "read", "printf -v", "declare", "export", "local", "unset", "test -v", "typeset -i", "readonly", "getopts x",
];

// biome-ignore format: a list
const SAFE_BUILTINS = [
  "true", ":", "false x", "pwd", "wait", "set -e", "set -euo pipefail", "set +u", "test -n x", "[ -f x ]", "[ ! -d x ]", "[ a = b ]",
  "test x != y", "command -v aa", "echo x", "cd .", "exit 3", "echo 'a[$(cc z)]'", "umask", "printf %s x", "test -z ''",
];

// biome-ignore format: a list
const AFTER = [
  " >/dev/null", " 2>&1", " 2>/dev/null", " </dev/null", " >&2", " <<'E'\n$(cc z)\nE\n", " <<E\nplain\nE\n", " <<-E\n\tplain\n\tE\n",
  " <<\\E\n`cc z`\nE\n", ' <<"E"\n$((LINES))\nE\n', " <<<x", " <<<'$(cc z)'", " # aa", " >o", " 2>&-",
];

// biome-ignore format: a list
const ODD_AFTER = [
  " <<E\nx $(aa h)\nE\n", ' <<<"$(cc j)"', " &>o", " &>/dev/null", " <<E\n$((LINES))\nE\n", " <<<$((LINES))", " >$((LINES))",
  " <<E\nx\\\nE\naa y\nE\n", " <<E\n\\$(cc z)\nE\n", ' <<E"F"\nx\nEF\n', " <<$V\nx\n$V\n", " <<E\nno end", " <<-E\n\tx\n E\naa y\n\tE\n",
  " {LINES}>/dev/null", " {a[$(cc z)]}>/dev/null", " <<E <<F\nx\nE\n$(cc z)\nF\n", " >&o", " <>o", " >|o", " <<'E F'\nx\nE F\n",
  " <<E\\\nF\nx\nEF\n", " 3<&1-", " <&-", " <<''\naa y\n\naa z\n", " <<E\n`cc z`\nE\n", " <<E\n${LANG@P}\nE\n", " |& aa", " ;& aa",
  " &>/dev/null aa y", " &>>o bb", " >&-aa", " 2>&1-aa", " <&-cc z", " >&1 aa",
];

const JOINTS = ["; ", " && ", " || ", " | ", " & ", "\n", " |& ", " ;\n", " &\n", " |\n", " &&\n"];

// biome-ignore format: a list
const BEFORE = [
  "env ", "env LANG=C ", "nice -n 3 ", "timeout 5 ", "nohup ", "stdbuf -o0 ", "exec ", "command ", "time ", "! ", "time -p ", "LANG=C ",
  "TZ=Europe/Berlin LC_ALL=C ", "env LC_ALL=C nice timeout 5 ", "find . -maxdepth 0 -exec ",
];

// biome-ignore format: a list
const ODD_BEFORE = [
  "V=1 ", "eval ", "time ! ", "! time ", "! ! ", "time LANG=C ", "env -i ", "env -u PATH ", "exec -a bb ", "LANG+=C ", "LANG[0]=C ",
  "LANG=(C) ", "LANG=~ ", "LANG=$V ", "LANG=$(cc z) ", "builtin ", "exec -c ", "env -- ", "nice ", "timeout ", "time -- ", "command -p ",
  "time -v ", "time -p'' ", "time '-p' ", "time -o x ", "time \\-p ", "env '-i' ", "nice -n'' 3 ", "timeout -k'' 1 5 ", "command '-p' ",
  "coproc ", "time time ", "env PATH=x ", "LANG=`cc z` ", "xargs ", "busybox ", "sudo ", "function f ", "f() ", "select ", "LANG='a b' ",
  "LC_ALL=zh;\n", "LC_CTYPE=zh;\n", "LC_ALL=zh ", "env LC_ALL=zh ", "LANG=zh_CN.GBK ", "TZ=/x/y ",
];

export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** One command, mostly of the kind that can be understood, with something odd in it now and then. */
export function randomCommand(dice: Dice): string {
  const command = list(dice, 3);
  // Loops stay whole: one that lost its end would never end.
  if (dice.percent(85) || /while|until/.test(command)) return command;
  return mutated(dice, command);
}

function list(dice: Dice, depth: number): string {
  const one = compound(dice, depth);
  return depth > 0 && dice.percent(45) ? one + dice.pick(JOINTS) + list(dice, depth - 1) : one;
}

function compound(dice: Dice, depth: number): string {
  if (depth === 0 || dice.percent(50)) return simple(dice);
  const inner = () => list(dice, depth - 1);
  const [name, other] = [dice.pick(VARIABLES), dice.pick(VARIABLES)];
  const shapes: readonly (() => string)[] = [
    () => `{ ${inner()}; }`,
    () => `( ${inner()} )`,
    () => `if ${inner()}; then ${inner()}; else ${inner()}; fi`,
    () => `if ${inner()}\nthen ${inner()}; elif bb; then ${inner()}\nfi`,
    () => `while ${simple(dice)}; do ${inner()}; break; done`,
    () => `until bb; do ${inner()}; break; done`,
    () => `case ${dice.pick(PLAIN_WORDS)} in x|y1) ${inner()} ;; *) ${inner()};; esac`,
    () => `${dice.pick(["sh", "bash"])} ${shellOptions(dice)}-c ${quoted(inner())}${after(dice)}`,
    () => `{ ${inner()}; }${after(dice)}`,
    () => `( ${inner()} )${after(dice)}`,
  ];
  const odd: readonly (() => string)[] = [
    () => `for ${name} in ${poison(dice)}; do ${inner()}; done`,
    () => `for ${name} do ${inner()}; done`,
    () => `case $((${name})) in *) ${inner()};; esac`,
    () => `case x in $((${name}))|*) ${inner()};; esac`,
    () => `case x in [$(cc z)]) ${inner()};; *) aa;& esac`,
    () =>
      `[[ ${dice.pick(["-n x", "-v a", `-v $${name}`, `${name} -eq 0`, "x == y", "-n $((LINES))"])} ]] && ${inner()}`,
    () => `f() { ${inner()}; }; f`,
    () => `(( ${name} )); ${inner()}`,
    () => `${name}=${poison(dice)}; ${other}=\${${other}:${name}}; ${inner()}`,
    () => `bash -c ${quoted(inner())} x ${poison(dice)}`,
    () => `time ${compound(dice, depth - 1)}`,
    () => `! ${compound(dice, depth - 1)}`,
    () => `for ((;${name};)); do ${inner()}; break; done`,
    () => `${dice.pick(["LC_ALL=zh", "LC_CTYPE=zh", "LANG=zh"])};\n${TWO_READINGS}`,
    () => `LC_ALL=zh bash -c ${quoted(TWO_READINGS)}`,
    () => `for ${name} in ${poison(dice)}; do ${dice.pick(COMPUTED)} "$${name}"; done; ${inner()}`,
    () => `${name}=${poison(dice)}; ${dice.pick(COMPUTED)} "$${name}"; ${inner()}`,
    () => `f() { local ${dice.pick(["", "-i W=", "-n W="])}${poison(dice)}=1; ${inner()}; }; f`,
    () => `${name}[${poison(dice)}]=C; ${inner()}`,
  ];
  return dice.pick(dice.percent(88) ? shapes : odd)();
}

function simple(dice: Dice): string {
  if (dice.percent(12)) return dice.pick(SAFE_BUILTINS) + after(dice);
  if (dice.percent(8)) return builtin(dice);
  const words = Array.from({ length: dice.below(4) }, () => word(dice));
  const names = dice.percent(96)
    ? [...STUBS, '"aa"', "a\\a", "'bb'", "c'c'"]
    : ["$V", "`aa`", "a*", "./aa", "$'aa'"];
  const start = before(dice);
  const end = start.startsWith("find") ? " \\;" : "";
  return `${start}${[dice.pick(names), ...words].join(" ")}${end}${after(dice)}`;
}

function builtin(dice: Dice): string {
  const option = dice.percent(50)
    ? ` -${dice.pick([..."abcdefiklmnopqrstuvwxzAEFGILNPRSVX"])}`
    : "";
  const words = Array.from({ length: 1 + dice.below(2) }, () =>
    dice.percent(60) ? poison(dice) : word(dice),
  );
  const name = dice.pick(BUILTINS);
  return `${before(dice)}${name}${option} ${words.join(" ")}${name === "[" ? " ]" : ""}${after(dice)}`;
}

function word(dice: Dice): string {
  if (dice.percent(4)) return poison(dice);
  return dice.pick(dice.percent(95) ? PLAIN_WORDS : ODD_WORDS);
}

function poison(dice: Dice): string {
  return dice.pick(POISON);
}

function before(dice: Dice): string {
  if (dice.percent(75)) return "";
  if (dice.percent(10)) {
    return `${dice.percent(30) ? "env " : ""}${dice.pick([...VARIABLES, ...OTHER_VARIABLES])}=${word(dice)} `;
  }
  return dice.pick(dice.percent(85) ? BEFORE : ODD_BEFORE);
}

function after(dice: Dice): string {
  if (dice.percent(75)) return "";
  return dice.pick(dice.percent(88) ? AFTER : ODD_AFTER);
}

function shellOptions(dice: Dice): string {
  if (dice.percent(70)) return "";
  return `${dice.pick(["-e", "-l", "-u", "-eu", "-o pipefail", "-x", "-k", "-i", "-O extglob", "+e", "--posix", "--norc"])} `;
}

// biome-ignore format: a list
const PIECES = [
  "\\\n", "'", '"', "`", "$", "#", "\n", "(", ")", "[", "]", " ", "\\", "\t", "{", "}", ";", "&", "|", "<", ">", "<<", "$(", "${", "$((", "=",
  "!", "~", "*", "?", "E", "\nE\n", "\\\\", "$'", "''", '""', "\\'", ",", "..", "x", "-", "+=", " # ", "case x in ", " esac ", "{ ", "; }",
];

/** With a few letters put in, taken out or doubled anywhere. */
function mutated(dice: Dice, command: string): string {
  let text = command;
  for (let times = 1 + dice.below(3); times > 0; times -= 1) {
    const at = dice.below(text.length + 1);
    const end = Math.min(text.length, at + 1 + dice.below(3));
    const piece = dice.percent(60)
      ? dice.pick(PIECES)
      : dice.percent(50)
        ? ""
        : text.slice(at, end).repeat(2);
    text = text.slice(0, at) + piece + text.slice(dice.percent(40) ? end : at);
  }
  return text;
}
