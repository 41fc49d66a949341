import { expect, test } from "vitest";
import { checkPermission, seeCall } from "../decide.ts";
import { compilePolicy, NO_RULES } from "../policy.ts";
import { readShell } from "./read-shell.ts";
import { inspectionProblem } from "./script.ts";

// biome-ignore format: a list
const openings = [
  "$(", "\x24{a:-", '"$(', "$((", "<(", "$[", "(", "{a,", "`", "{ ", "a<<E\n", "!(", "[[ (", "\x24{a[", "a=(", "case a in a) ",
  "if ", "f() { ", "$'", '"\x24{a:-', "{1..", "a[", "((", "[", "@(", "time ", "! ", "a|", "a&&", "a;", "'", "\\", '"a" ', "$a",
  "~ ", "# \n", "a=b ", ">a ", "<<<a ", "env ", "sh -c ", "\t", "a\n",
];

/** As often as the inspection takes it. */
function mostOf(piece: string, tail: string): string {
  let count = 1;
  while (count < 9000 && inspectionProblem(piece.repeat(count * 2) + tail) === undefined)
    count *= 2;
  return piece.repeat(count) + tail;
}

test("no hostile command blocks the process or overflows its stack [T27 I24]", () => {
  readShell("echo $(ls `pwd`) && a | b; if x; then y; fi"); // compiled before it is measured
  for (const opening of openings) {
    for (const tail of ["", "x".repeat(4000), " a".repeat(1500), opening.repeat(5000)]) {
      const start = process.cpuUsage();
      readShell(opening.repeat(5000) + tail);
      readShell(mostOf(opening, tail));
      const { user, system } = process.cpuUsage(start);
      // The goal is 100 ms of stall; processor time is measured, because the machine may be busy, with room for noise.
      expect((user + system) / 1000, JSON.stringify(opening)).toBeLessThan(500);
    }
  }
});

test("judging a parsed command takes no longer than parsing it [T27]", () => {
  const state = { policy: compilePolicy(NO_RULES), fileRoots: [] };
  const commands = [
    ">~/.x ",
    "a /etc/x ~/y /dev/z|",
    "cat /a/b/c/d/e/f/g /h/i/j;",
    "a ",
    "rm -rf /x ",
    "b<c ",
  ].map((piece) => mostOf(piece, ""));
  for (const command of commands) {
    const facts = {
      tool: "bash",
      permissionClass: "bash",
      input: {},
      tenant: "t",
      sessionId: "s",
      chain: [],
      now: 0,
    } as const;
    const start = process.cpuUsage();
    checkPermission(seeCall({ ...facts, resources: [{ kind: "command", command }] }), state);
    const { user, system } = process.cpuUsage(start);
    expect((user + system) / 1000, command.slice(0, 20)).toBeLessThan(500);
  }
});

test("a command that a person could not read is not inspected", () => {
  for (const command of [
    "",
    " \n",
    "ls\r\nls",
    "ls\u001b[2K",
    "ls\u0000",
    "ls\u00ad",
    "ls\u2028",
    "ls\ud800",
    "ls\ufeff",
  ]) {
    expect(inspectionProblem(command), JSON.stringify(command)).toBeDefined();
  }
  for (const command of ["ls", "ls\tsrc", "ls\nls", "echo 'größe 日本 🙂'", "x".repeat(16_000)]) {
    expect(inspectionProblem(command)).toBeUndefined();
  }
});

test("a command that was not fully inspected always has a block", () => {
  const long = [
    `ls ${"a ".repeat(300)}`,
    "ls;".repeat(300),
    `${"$(".repeat(60)}ls${")".repeat(60)}`,
    `${"env ".repeat(20)}ls`,
    `ls '${"x".repeat(20_000)}'`,
    "ls\n".repeat(600),
  ];
  for (const command of long) {
    const { blocks, parts } = readShell(command);
    const all = [...blocks, ...parts.flatMap((part) => part.blocks)];
    expect(all.length, command.slice(0, 20)).toBeGreaterThan(0);
  }
});
