import { randomInt } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDice, type Dice } from "../../../tests/support/dice.ts";
import { record } from "../../../tests/support/record.ts";
import { findShell, openShellRoom, type ShellRoom } from "../../../tests/support/run-in-shell.ts";
import { SCALE, scaled } from "../../../tests/support/scale.ts";
import { BYPASSES, embedded, filled } from "../../../tests/support/shell-bypasses.ts";
import { randomCommand } from "../../../tests/support/shell-grammar.ts";
import { readShell } from "./read-shell.ts";
import type { ShellScript } from "./script.ts";

/**
 * The parser against the shells themselves: random commands that `readShell` believes to understand completely are run
 * where all programs are stubs that write down how they were called. Whatever ran must be among the parts.
 */
const COMMANDS = {
  // Starting bash takes several times as long.
  bash: scaled({ test: 400, proof: 3_000, full: 200_000 }),
  dash: scaled({ test: 800, proof: 7_000, full: 200_000 }),
};
const EMBEDDED = scaled({ test: 5_000, proof: 30_000, full: 200_000 });
const BATCH = 500;
const HOUR = 3_600_000;
/** New ones at the larger scales; the same each time in `npm test`, which is no place for rare finds. */
const seed = process.env["SHELL_SEED"] ?? (SCALE === "test" ? "1" : String(randomInt(2 ** 31)));

let room: ShellRoom;
beforeAll(() => {
  room = openShellRoom();
});
afterAll(() => room.close());

function isUnderstood({ blocks, parts }: ShellScript): boolean {
  return blocks.length === 0 && parts.every((part) => part.blocks.length === 0);
}

/** A command that would open a file outside of its folder is not run; the gate asks about it in any case. */
function staysInside({ redirects }: ShellScript): boolean {
  return redirects.every(({ target: { text } }) => text === "/dev/null" || !text.includes("/"));
}

/** The allowed calls of the stubs, in the form in which the sandbox reports them. */
function reported({ parts }: ShellScript): ReadonlySet<string> {
  const calls = parts.map(({ words }) => words.map(({ text }) => `${text}\x1e`).join(""));
  const isTimed = parts.some(({ wrappers }) => wrappers.some(([word]) => word?.text === "time"));
  return new Set(isTimed ? [...calls, "time\x1e"] : calls);
}

describe.each(["bash", "dash"] as const)("differential with %s", (shell) => {
  test("shell gate: no program starts that the gate has not seen [T32 I-21 C1]", {
    timeout: HOUR,
  }, (context) => {
    const program = findShell(shell);
    if (program === undefined) return context.skip("the shell is not installed");
    const dice = createDice(`${seed} ${shell}`);
    let [generated, understood, started] = [0, 0, 0];
    const unseen: string[] = [];
    const wanted = COMMANDS[shell];
    while (generated < wanted && unseen.length === 0) {
      const count = Math.min(BATCH, wanted - generated);
      const known = Array.from({ length: count }, () => randomCommand(dice))
        .map((command) => ({ command, script: readShell(command) }))
        .filter(({ script }) => isUnderstood(script) && staysInside(script));
      generated += count;
      understood += known.length;
      const calls = room.run(
        program,
        known.map(({ command }) => command),
      );
      for (const [index, { command, script }] of known.entries()) {
        const seen = reported(script);
        for (const call of calls[index] ?? []) {
          started += 1;
          if (!seen.has(call))
            unseen.push(`${JSON.stringify(command)} ran ${JSON.stringify(call)}`);
        }
      }
    }
    const figures = { generated, understood, started, unseen: unseen.length };
    record({ goal: "T32", what: `shell gate against ${shell}`, figures, seed });
    expect(unseen, `seed ${seed}: ${JSON.stringify(figures)}`).toEqual([]);
    // A run in which little was understood or started would prove nothing.
    expect(generated, JSON.stringify(figures)).toBe(wanted);
    expect(understood, JSON.stringify(figures)).toBeGreaterThan(wanted / 5);
    expect(started, JSON.stringify(figures)).toBeGreaterThan(understood / 2);
  });
});

test("shell gate: nothing that a shell evaluates a second time is understood, wherever it occurs [T32 C1]", {
  timeout: HOUR,
}, () => {
  const dice = createDice(`${seed} embedded`);
  const understood: string[] = [];
  for (let number = 0; number < EMBEDDED; number += 1) {
    const command = embedded(filled(templateAt(number), dice), dice);
    if (isUnderstood(readShell(command))) understood.push(command);
  }
  const figures = { bypasses: EMBEDDED, "understood bypasses": understood.length };
  record({ goal: "T32", what: "bypasses of the shell gate", figures, seed });
  expect(understood.slice(0, 20), `seed ${seed}: ${JSON.stringify(figures)}`).toEqual([]);
});

test("shell gate: the bypasses tried here are real, and plain commands in the same places are understood [T32 C1]", {
  timeout: HOUR,
}, (context) => {
  const bash = findShell("bash");
  if (bash === undefined) return context.skip("bash is not installed");
  const dice = createDice("real");
  const commands = BYPASSES.map((template) => filled(template, dice, "'a[$(cc z)]'"));
  const calls = room.run(bash, commands);
  const real = calls.filter((list) => list.includes("cc\x1ez\x1e")).length;
  expect(real, "ways that ran the hidden program").toBeGreaterThan(BYPASSES.length / 2);
  const plain = plainCommands(dice);
  const understood = plain.filter((command) => isUnderstood(readShell(command))).length;
  expect(understood, "plain commands understood").toBeGreaterThan(plain.length * 0.9);
});

function templateAt(number: number): string {
  return BYPASSES[number % BYPASSES.length] ?? "";
}

function plainCommands(dice: Dice): readonly string[] {
  return Array.from({ length: 500 }, () =>
    embedded(dice.pick(["aa", "LANG=C aa x", "aa y"]), dice),
  );
}
