// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the braces belong to the shell
// Ways to run `cc z` that stand nowhere as a command: a shell evaluates a value, a name or a setting once more.

import type { Dice } from "./dice.ts";
import { POISON, quoted, TWO_READINGS } from "./shell-grammar.ts";

/** `V` and `W` stand for variables, `@` for a poisoned text, `#` for a poisoned text as a prompt, `S` for sh or bash. */
// biome-ignore format: a list
export const BYPASSES: readonly string[] = [
  // arithmetic, wherever a word can stand
  "V=@; W=$((V)); aa", "V=@; W=$[V]; aa", 'V=@; W="$((V))"; aa', "V=@; W=$((1+V)) aa", "V=@; aa $((V))", "V=@; aa <<<$((V))",
  "V=@; aa <<E\n$((V))\nE\n", "V=@; aa <<E\n$[V]\nE\n", "V=@; aa <<-E\n\t$((V))\n\tE\n", "V=@; aa >$((V))", "V=@; aa 2>$((V))",
  "V=@; case $((V)) in *) aa;; esac", "V=@; case x in $((V))) ;; *) aa;; esac", "for V in @; do case $((V)) in *) aa;; esac; done",
  "V=@; for W in $((V)); do aa; done", "V=@; : $((V)); aa", "V=@; true $((V)); aa", "V=@; exit $((V))", "V=@; (exit $((V))); aa",
  "V=@; while aa; do break $((V)); done", "V=@; set -- $((V)); aa", "V=@; cd $((V)); aa", "V=@; wait $((V)); aa", "V=@; test $((V)) = 0; aa",
  "V=@; [ -n $((V)) ]; aa", "V=@; ((V)); aa", "V=@; for ((;V;)); do break; done; aa", "V=@; let V; aa", "V=@; let W=V; aa", "let @; aa",
  "V=@; env LANG=$((V)) aa", "V=@; timeout $((V)) aa", "V=@; ulimit -n $((V)); aa", "V=@; $((V)); aa",
  "V=@; echo {$((V)),x}; aa", "V=@; echo @($((V))|x); aa", "V=@; echo [$((V))]; aa", "V=@; aa $'x'$((V))", "V=@; W=~/$((V)); aa",
  // parameters that are worked out
  "V=@; W=${!V}; aa", "V=#; W=${V@P}; aa", "V=@; W=${W:V}; aa", "V=@; W=C; W=${W:0:V}; aa", "V=@; W=${W[V]}; aa", "V=@; W=${#W[V]}; aa",
  "V=@; W=C; W=${W[@]:V}; aa", "V=@; set -- ${@:V}; aa", "V=@; W=${W:-$((V))}; aa", "V=@; : ${X:=$((V))}; aa", "V=@; W=C; W=${W/#$((V))/}; aa",
  "V=@; W=C; W=${W%%$((V))}; aa", "V=@; W=C; W=${W##$((V))}; aa", "V=@; W=C; W=${W^^$((V))}; aa", "V=@; W=C; W=${W+$((V))}; aa",
  "V=@; aa <<E\n${!V}\nE\n", "V=#; aa <<E\n${V@P}\nE\n", "V=@; aa <<<${W:V}", "V=#; case ${V@P} in *) aa;; esac",
  // names with a subscript
  "V=@; W[V]=C; aa", "W[$(cc z)]=C; aa", "W[$(cc z)]=C aa", "V=@; W=([V]=C); aa", "V=@; W+=([V]=C); aa", "aa & wait -n -p @; aa",
  "aa & command wait -n -p @; aa", "aa & builtin wait -n -p @; aa", "read @ <<<x; aa", "read -r @ </dev/null; aa", "read -a @ <<<x; aa",
  "printf -v @ x; aa", "command printf -v @ x; aa", "declare @=1; aa", "declare -i W=@; aa", "typeset -i W=@; aa", "declare -n W=@; W=1; aa",
  "declare -a W; unset W@; aa", "V=@; unset W[V]; aa", "W=(1); unset @; aa", "export W=$((@)); aa", "readonly W=$((@)); aa", "test -v @; aa",
  "[ -v @ ]; aa", "test -n x -a -v @; aa", "[ ! -v @ ]; aa", "command test -v @; aa", "[[ -v @ ]]; aa", "V=@; [[ -v $V ]]; aa",
  "V=@; [[ V -eq 0 ]]; aa", "V=@; [[ $V -lt 3 ]]; aa", "[[ @ -eq 0 ]]; aa", "V=@; [[ -n $((V)) ]]; aa", "V=@; [[ -n ${!V} ]] && aa",
  "getopts x @; aa", "mapfile @ <<<x; aa", "aa {W[$(cc z)]}>/dev/null", "test -R @; aa",
  // the same with a word that is worked out first
  'V=@; declare "$V=1"; aa', 'V=@; declare -i W="$V"; aa', 'V=@; typeset "$V=1"; aa', 'V=@; read "$V" <<<x; aa', 'V=@; printf -v "$V" x; aa',
  'V=@; a=(1); unset "$V"; aa', 'V=@; test -v "$V"; aa', 'V=@; [ -v "$V" ]; aa', 'aa & V=@; wait -n -p "$V"; aa', 'V=@; export W="$((V))"; aa',
  'V=@; readonly W="$((V))"; aa', 'V=@; for W in "$V"; do printf -v "$W" x; done; aa', "V=@; W=$V bash -c '[[ W -eq 0 ]]'; aa",
  'for V in @; do test -v "$V"; done; aa', 'a=(1); for V in @; do unset "$V"; done; aa', 'for V in @; do declare "$V=1"; done; aa',
  "for V in @; do W[V]=C; done; aa", "for V in a[$(cc z)]; do aa; done", "for V in a[0] @; do W=${W[V]}; done; aa",
  "f() { local @=1; }; f; aa", "f() { local -i W=@; }; f; aa", "f() { local -n W=@; W=1; }; f; aa", "f() { V=@; local W[V]=1; }; f; aa",
  'f() { V=@; local "$V=1"; }; f; aa', "f() { local W=$(($1)); }; f @; aa", "f() { local W=${!1}; }; f @; aa",
  // text that runs later or elsewhere
  "trap 'cc z' EXIT; aa", "trap 'cc z' 0; aa", "trap 'cc z' DEBUG; aa", "alias aa='cc z'\naa", "PS4=#; set -x; aa", "eval 'cc z'; aa",
  "PS4=# S -xc aa", "env PS4=# bash -xc aa", "jobs -x cc z; aa", "compgen -C 'cc z' x; aa", "compgen -W # x; aa", "enable -n true; aa",
  "command eval 'cc z'; aa", "builtin eval 'cc z'; aa", "coproc cc z; aa", "select W in a; do aa; done", "hash -p /x/cc aa; aa",
  "bash -kc 'aa PATH=x'", "bash -ic aa", "bash -xc aa", "bash -o keyword -c 'aa PATH=x'", "bash -O expand_aliases -c aa", "set -k; aa PATH=x",
  "set -x; aa", "set -o allexport; aa", "shopt -s expand_aliases; aa", "history -s x; aa", "source /dev/stdin <<<'cc z'", ". x; aa",
  // a value that another shell gets
  "V=@ bash -c 'W=$((V)); aa'", "env V=@ bash -c 'W=$((V)); aa'", "V=@ bash -c 'aa'", "env V=@ S -c aa", "export V=@; bash -c 'W=$((V))'",
  "bash -c 'W=$(($1)); aa' x @", "bash -c 'W=${!1}; aa' x @", "bash -c 'for V do W=$((V)); done; aa' x @", "V=@ aa", "env V=@ aa",
  "nice env V=@ timeout 5 bash -c 'aa'", "V=@; aa", "for V in @; do aa; done", "env 'BASH_FUNC_aa%%=() { cc z; }' bash -c aa", "BASH_ENV=x bash -c aa",
  "ENV=x sh -c aa", "LANG=C V=@ aa", "V=C W=@ aa",
  // a locale in which a backslash is half of a letter, and the same bytes are other words
  `LC_ALL=zh;\n${TWO_READINGS}`, `LC_CTYPE=zh; LC_ALL=;\n${TWO_READINGS}`, `LC_ALL=zh bash -c '${TWO_READINGS}'`,
  `env LC_ALL=zh bash -c '${TWO_READINGS}'`, `LC_ALL= LC_CTYPE=zh bash -c '${TWO_READINGS}'`, `LC_ALL= LANG=zh bash -c '${TWO_READINGS}'`,
];

const VARIABLES = ["LINES", "LANG", "TZ", "COLUMNS", "TERM", "CI", "LC_ALL", "FORCE_COLOR"];

/** One of them with its gaps filled. */
export function filled(template: string, dice: Dice, poison: string = dice.pick(POISON)): string {
  const first = dice.below(VARIABLES.length);
  const [one = "", two = ""] = [VARIABLES[first], VARIABLES[(first + 1 + dice.below(7)) % 8]];
  const prompt = dice.pick(["'$(cc z)'", '"\\$(cc z)"', "'`cc z`'"]);
  // Inside single quotes a poison that has quotes of its own would end them.
  const inQuotes = (text: string, at: number) =>
    template.slice(0, at).split("'").length % 2 === 0 ? "x" : text;
  return template.replace(/@(?![\]:P(])|#(?![#W$]| ")|\bV\b|\bW\b|\bS\b/g, (gap, at: number) => {
    if (gap === "V") return one;
    if (gap === "W") return two;
    if (gap === "S") return dice.pick(["sh", "bash"]);
    return inQuotes(gap === "#" ? prompt : poison, at);
  });
}

/** The same script somewhere inside another one. */
export function embedded(script: string, dice: Dice, depth = dice.below(4)): string {
  if (depth === 0) return script;
  // A here document ends with its own line.
  const closed = script.endsWith("\n") ? script : `${script};`;
  const shapes = [
    () => `aa; ${script}`,
    () => `aa x && ${script}`,
    () => `bb || ${script}`,
    () => `aa &\n${script}`,
    () => `${closed} aa y`,
    () => `${script}\naa y`,
    () => `{ ${closed} }`,
    () => `(${script}\n)`,
    () => `if true; then ${closed} fi`,
    () => `if ${closed} then aa; fi`,
    () => `while ${closed} do break; done`,
    () => `case x in *) ${script}\n;; esac`,
    () => `until bb; do ${closed} break; done`,
    () => `aa 'x y' | { ${closed} }`,
    () =>
      `${dice.pick(["sh", "bash", "bash -e", "bash -euo pipefail", "bash -l"])} -c ${quoted(script)}`,
    () => `env LANG=C nice ${dice.pick(["sh", "bash"])} -c ${quoted(script)}`,
    () => `timeout 5 bash -c ${quoted(script)} && aa`,
    () => `# aa\n${script}`,
    () => `aa \\\n x; ${script}`,
    () => `aa <<'E'\nx\nE\n${script}`,
    () => `aa <<E; ${script}\nx\nE\n`,
  ];
  const usable = script.includes("\n") ? shapes.slice(0, -1) : shapes;
  return embedded(dice.pick(usable)(), dice, depth - 1);
}
