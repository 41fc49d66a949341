import { forEachChild, parse, type SyntaxNode } from "unbash";
import { CommandReader } from "./read-command.ts";
import { inspectionProblem } from "./inspectable.ts";
import type { ShellScript } from "./shell-script.ts";

/** Scripts inside scripts (`sh -c 'sh -c …'`) are followed this far. */
const DEEPEST = 8;

/**
 * Takes a command apart with a real parser (unbash): lists, pipes, groups, loops, functions, substitutions, here
 * documents, and the texts that `sh -c` would read. Nothing is run and nothing is expanded. What cannot be resolved
 * completely is kept as a reason why no rule may allow the command; dangers are still looked for in the rest.
 */
export function readShell(command: string): ShellScript {
  const reader = new CommandReader();
  readInto(reader, command, 0);
  return reader.result();
}

function readInto(reader: CommandReader, command: string, depth: number): void {
  const problem =
    depth > DEEPEST ? "it has too many shells inside each other" : inspectionProblem(command);
  if (problem !== undefined) return reader.block(problem);
  const nested = (text: string) => readInto(reader, text, depth + 1);
  return visit(parse(command), reader, nested);
}

function visit(node: SyntaxNode, reader: CommandReader, nested: (text: string) => void): void {
  const down = () => forEachChild(node, (child) => visit(child, reader, nested));
  switch (node.type) {
    case "Script":
      for (const error of node.errors ?? []) reader.block(`it does not parse (${error.message})`);
      return down();
    case "Command":
      return reader.command(node, down, nested);
    case "Redirected":
      return reader.redirected(node.redirects, down);
    case "Pipeline":
      return reader.pipeline(node.commands, (child) => visit(child, reader, nested));
    // What happens in a child process, changes of folder above all, ends with it.
    case "Subshell":
      return reader.apart(down);
    case "CommandExpansion":
    case "ProcessSubstitution":
    case "ArithmeticCommandExpansion":
      if (node.script === undefined) reader.block("a substitution in it cannot be read");
      return reader.apart(down);
    case "Redirect":
      down();
      return reader.redirect(node);
    case "Function":
      return reader.function(node, down);
    case "Assignment":
      reader.assignment(node.name);
      return down();
    case "For":
      reader.assignment(node.name.value);
      return down();
    case "TestUnary":
      // These evaluate what stands in brackets, programs included: [[ -v 'a[$(id)]' ]].
      if (/^-[vR]$/.test(node.operator)) reader.block("it uses [[ -v ]], which can run programs");
      return down();
    case "TestBinary":
    case "TestLogical":
    case "TestGroup":
      reader.block("it uses [[ ]] in a way that shells read differently");
      return down();
    case "HereDoc":
      if (node.closing === undefined) reader.block("a here document in it has no end");
      return down();
    case "ArithmeticCommand":
    case "ArithmeticFor":
    case "Coproc":
    case "Select":
      reader.block("it uses arithmetic, select or a coprocess, which can run or change anything");
      return down();
    default:
      return down();
  }
}
