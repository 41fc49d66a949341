import type { Argument, Command, Option } from "commander";
import { expect, test } from "vitest";
import { createProgram } from "../../src/cli/main.ts";
import { EXIT, EXIT_WORDS } from "../../src/cli/render.ts";

test("docs/reference/cli.md lists the commands as they are (vitest -u writes it)", async () => {
  const page = cliPage(createProgram());
  expect(page.split("\n").length, "void: too few commands").toBeGreaterThan(60);
  await expect(page).toMatchFileSnapshot("../../docs/reference/cli.md");
});

const INTRO = `# Commands

\`sallyport NOUN VERB\`: the command line can do what the server can; its verbs are generated from the routes.
\`sallyport help COMMAND\` explains each flag. This page is generated from the commands.
`;

function cliPage(program: Command): string {
  const leaves = program.commands.flatMap((command) =>
    command.commands.length === 0 ? [[command]] : command.commands.map((verb) => [command, verb]),
  );
  return [
    INTRO,
    "Flags of every command:",
    "",
    ...program.options.map((option) => `- \`${option.flags}\`: ${escaped(option.description)}`),
    "",
    "| command | flags | description |",
    "|---|---|---|",
    ...leaves.map(row),
    "",
    "## Exit codes",
    "",
    "| code | meaning |",
    "|---|---|",
    ...Object.entries(EXIT).map(
      ([name, code]) => `| ${code} | ${EXIT_WORDS[name as keyof typeof EXIT]} |`,
    ),
    "",
  ].join("\n");
}

function row(path: readonly Command[]): string {
  const leaf = path.at(-1) as Command;
  const words = [...path.map((one) => one.name()), ...leaf.registeredArguments.map(shownArgument)];
  const flags = leaf.options.map(shownOption).join(" ");
  return `| \`${words.join(" ")}\` | ${flags} | ${escaped(leaf.description())} |`;
}

function shownArgument(argument: Argument): string {
  return argument.required ? `<${argument.name()}>` : `[${argument.name()}]`;
}

/** Those that must be given stand out. */
function shownOption({ flags, mandatory }: Option): string {
  const shown = `\`${escaped(flags)}\``;
  return mandatory ? `**${shown}**` : shown;
}

function escaped(text: string): string {
  return text.replaceAll("|", "\\|");
}
