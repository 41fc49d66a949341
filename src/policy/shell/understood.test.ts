// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the braces belong to the shell
import { expect, test } from "vitest";
import { readShell } from "./read-shell.ts";

function isUnderstood(command: string): boolean {
  const { blocks, parts } = readShell(command);
  return blocks.length === 0 && parts.every((part) => part.blocks.length === 0);
}

function expectEach(commands: readonly string[], expected: boolean): void {
  for (const command of commands) expect(isUnderstood(command), command).toBe(expected);
}

test("shell gate: a script with any expansion is not understood, wherever it occurs [C1]", () => {
  // biome-ignore format: a list
  const expansions = [
    "$X", "${X}", "$1", "$@", "$?", "${!X}", "${X@P}", "${X@E}", "${X:1}", "${X[1]}", "${#X}", "${X:-y}", "${X/a/b}", "${X^^}",
    "$((1))", "$[1]", "$(aa)", "`aa`", "$\\\n(aa)", "$\\\n((1))", "$'x'", '$"x"',
  ];
  for (const one of expansions) {
    expectEach(
      [
        `aa ${one}`,
        `aa "${one}"`,
        `LANG=${one} aa`,
        `LANG="${one}" aa`,
        `env LANG=${one} aa`,
        `aa <<<${one}`,
        `aa >${one}`,
        `case ${one} in *) aa;; esac`,
        `case x in ${one}) aa;; esac`,
        `aa; : ${one}`,
        `for LANG in ${one}; do aa; done`,
        `[ -n ${one} ] && aa`,
        `[[ -n ${one} ]] && aa`,
        `exit ${one}`,
        `sh -c 'aa "${one}"'`,
        `bash -c aa x ${one}`,
        `{ aa; } 2>${one}`,
        `timeout ${one} aa`,
        `if aa; then aa x${one}y; fi`,
        `aa "x"'y'${one}`,
        `aa x\\\n${one}`,
      ],
      false,
    );
  }
});

test("shell gate: a locale is set only by a name that says UTF-8, C or POSIX [C1]", () => {
  const names = ["LANG", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_TIME"];
  const forms = (set: string) => [`${set} aa`, `${set}; aa`, `env ${set} aa`, `sh -c '${set} aa'`];
  const each = (values: readonly string[]) =>
    names.flatMap((name) => values.flatMap((value) => forms(`${name}=${value}`)));
  // biome-ignore format: a list
  const foreign = [
    "zh_CN.GBK", "zh_CN.gb18030", "zh_TW", "zh_TW.BIG5", "ja_JP.SJIS", "ko_KR.eucKR", "de_DE", "de_DE@euro", "GBK", "/work/locale",
    "../locale", "UTF-8", "zh_CN.GBK.UTF-8x", "zh_CN.UTF-8/../zh_CN.GBK", "C.GBK", "zh_CN.UTF-8.GBK", "zh_CN.GBK@UTF-8",
  ];
  expectEach(each(foreign), false);
  expectEach(each(["C", "POSIX", "C.UTF-8", "en_US.UTF-8", "de_DE.utf8@euro", ""]), true);
});

test("shell gate: here documents are understood as plain text only [C1]", () => {
  expectEach(
    [
      "aa <<E\nx y\nE\n",
      "aa <<-E\n\tx\n\tE\n",
      "aa <<'E'\n$(bb) $((1)) `bb`\nE\n",
      'aa <<"E"\n${x@P}\nE\n',
      "aa <<\\E\n$(bb)\nE\n",
      "aa <<E; bb\nx\nE\n",
    ],
    true,
  );
  expectEach(
    [
      "aa <<E\n$X\nE\n",
      "aa <<E\n$((1))\nE\n",
      "aa <<E\n\\$(bb)\nE\n",
      "aa <<E\nx\\\nE\nbb\nE\n",
      "aa <<E\n`bb`\nE\n",
      "aa <<E\nx",
      "aa <<E'F'\nx\nEF\n",
      "aa <<$X\nx\n$X\n",
      "aa <<''\nx\n\n",
      "aa <<'E F'\nx\nE F\n",
      "aa <<E\\\nF\nx\nEF\n",
    ],
    false,
  );
});

test("shell gate: builtins are glue in plain forms only, and no rule allows the others [C1]", () => {
  expectEach(
    [
      "exit",
      "exit 3",
      "break",
      "return 1",
      ": x y",
      "true",
      "pwd",
      "wait",
      "set -e",
      "set -euo pipefail",
      "set -o pipefail",
      "set +e -u",
      "command -v aa",
      "test -f 'a b'",
      "[ ! -d x ]",
      "[ a = b ]",
      "test x != y",
      "printf %s x",
    ],
    true,
  );
  expectEach(
    [
      "exit x",
      "exit 1 2",
      "break 'a[0]'",
      "return -1",
      ": 'a[0]'",
      "true '$(aa)'",
      "pwd x",
      "wait 1",
      "wait -n",
      "wait -p x",
      "set",
      "set -x",
      "set -k",
      "set -o",
      "set -o history",
      "set pipefail",
      "set -- x",
      "set -eo",
      "command -v 'a[0]'",
      "test",
      "test x",
      "test -v x",
      "test -R x",
      "test -t 1",
      "test -n 'a[0]'",
      "[ -n x",
      "[ 1 -eq 1 ]",
      "[ -n x -a -v y ]",
      "[ a = b ] ]",
      "[ '(' a ')' ]",
      "printf -v x y",
      "printf -vx y",
      "jobs -x aa",
      "builtin wait -p x",
      "command test -v x",
      "let x",
      "read x",
    ],
    false,
  );
});

test("shell gate: constructs that shells parse differently are not understood [C1]", () => {
  expectEach(["time aa", "time -p aa | bb", "! aa", "aa {}", "aa stash@{0}", "exec aa"], true);
  expectEach(
    [
      "time ! aa",
      "! time aa",
      "! ! aa",
      "time -p'' aa",
      "time -v aa",
      "time '-p' aa",
      "time -p -f x aa",
      "time \\-p aa",
      "time",
      "time { aa; }",
      "time (aa)",
      "time LANG=C aa",
      "time time; LANG=C time aa x=`y`",
      "[[ -n x ]]",
      "((1))",
      "for LANG in C; do aa; done",
      "for LANG do aa; done",
      "f() { aa; }",
      "select x in a; do aa; done",
      "coproc aa",
      "LANG+=C aa",
      "LANG[0]=C aa",
      "LANG=(C) aa",
      "{LANG}>/dev/null aa",
      "exec -a bb aa",
      "env -i aa",
      "env =C aa",
      "env LANG=C = aa",
      "env -u PATH aa",
      'aa {a"b",c}',
      "aa x=\\\n~/y",
      'aa ["a"]',
      "aa @(a|b)",
      "case x in @(x|y)) aa;; esac",
      "bash -kc aa",
      "bash -xc aa",
      "bash -ic aa",
      "bash -o keyword -c aa",
      "bash -O extglob -c aa",
      "bash +e -c aa",
    ],
    false,
  );
});

test("shell gate: a shell with unusual options is still searched for dangers [C1]", () => {
  for (const options of ["-xc", "-kc", "-ic", "-O extglob -c", "-o history -c", "+e -c"]) {
    const { parts } = readShell(`bash ${options} 'rm -rf /'`);
    expect(
      parts.some(({ words }) => words[0]?.text === "rm"),
      options,
    ).toBe(true);
  }
});

test("shell gate: time is reported as a program, as some shells treat it [C1]", () => {
  const [part] = readShell("time nice aa").parts;
  expect(part?.wrappers.map(([word]) => word?.text)).toEqual(["time", "nice"]);
  expect(readShell("time aa; bb").parts.map(({ wrappers }) => wrappers.length)).toEqual([1, 0]);
});

test("a script that changes the folder twice is not understood, because the first change can fail [M10]", () => {
  expectEach(["cd /srv; ls"], true);
  expectEach(["cd /srv; cd /tmp; ls", "cd /srv && cd /tmp && ls"], false);
});

test("shell gate: a continued line is not understood, because shells join it at different places [C1]", () => {
  for (const command of ["ls \\\n  src", "cc a\\\nb 2\\\n>&1", "sh -c 'ls \\\n src'"]) {
    expect(readShell(command).blocks.join(" "), command).toContain("continues a line");
  }
});
