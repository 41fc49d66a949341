import { forEachChild, parse, type SyntaxNode } from "unbash";
import { shownError } from "../shown.ts";
import { inspectionProblem } from "./inspectable.ts";
import { CommandReader } from "./read-command.ts";
import type { ShellScript } from "./shell-script.ts";

/** Scripts inside scripts (`sh -c 'sh -c …'`) are followed this far. */
const MOST_SHELLS = 8;

/** Nodes inside each other; about five for each substitution inside a substitution. */
const DEEPEST = 160;

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

function readInto(reader: CommandReader, command: string, shells: number): void {
  const problem =
    shells > MOST_SHELLS ? "it has too many shells inside each other" : inspectionProblem(command);
  if (problem !== undefined) {
    reader.block(problem);
    return;
  }
  try {
    visit(parse(command), {
      reader,
      depth: 0,
      nested: (text) => readInto(reader, text, shells + 1),
    });
  } catch (error) {
    // The parser promises to take anything. Should it ever not, the command is as unread as one that is too long.
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
      reader.pipeline(node.commands, (child) => visit(child, deeper));
      break;
    case "Redirected":
      reader.redirected(node.redirects, down);
      break;
    case "Function":
      reader.function(node, down);
      break;
    // What happens in a child process, changes of folder above all, ends with it.
    case "Subshell":
    case "CommandExpansion":
    case "ProcessSubstitution":
    case "ArithmeticCommandExpansion":
      reader.apart(down);
      break;
    default:
      if (node.type === "Redirect") reader.redirect(node);
      if (node.type === "Assignment") reader.assignment(node.name);
      if (node.type === "For") reader.assignment(node.name.value);
      down();
  }
}

/** Why a script with this in it cannot be resolved to the end. */
function problemsOf(node: SyntaxNode): readonly string[] {
  switch (node.type) {
    case "Script":
      return (node.errors ?? []).map(({ message }) => `it does not parse (${message})`);
    case "CommandExpansion":
    case "ProcessSubstitution":
    case "ArithmeticCommandExpansion":
      return node.script === undefined ? ["a substitution in it cannot be read"] : [];
    case "HereDoc":
      return node.closing === undefined ? ["a here document in it has no end"] : [];
    case "TestUnary":
      // These evaluate what stands in brackets, programs included: [[ -v 'a[$(id)]' ]].
      return /^-[vR]$/.test(node.operator) ? ["it uses [[ -v ]], which can run programs"] : [];
    case "TestBinary":
    case "TestLogical":
    case "TestGroup":
      return ["it uses [[ ]] in a way that shells read differently"];
    case "ArithmeticCommand":
    case "ArithmeticFor":
    case "Coproc":
    case "Select":
      return ["it uses arithmetic, select or a coprocess, which can run or change anything"];
    default:
      return [];
  }
}
