import { Argument, Command } from "commander";

/** Generated from the commands, so that it is always current. */
export function completionCommand(program: Command): Command {
  return new Command("completion")
    .description("Print a completion script; source it in your shell's start-up file.")
    .addArgument(new Argument("<shell>").choices(["bash", "zsh", "fish"]))
    .action((shell: "bash" | "zsh" | "fish") => {
      process.stdout.write(SCRIPTS[shell](wordsOf(program)));
    });
}

/** Words after "sallyport", and after each of its nouns. */
function wordsOf(program: Command): ReadonlyMap<string, readonly string[]> {
  const names = (commands: readonly Command[]) => commands.map((command) => command.name());
  const nouns = program.commands.filter(({ commands }) => commands.length > 0);
  return new Map([
    ["", names(program.commands)],
    ...nouns.map((noun) => [noun.name(), names(noun.commands)] as const),
  ]);
}

type Words = ReadonlyMap<string, readonly string[]>;

/** Braces for the shell, not a JavaScript template. */
const braced = (inside: string) => `$\{${inside}}`;

const SCRIPTS = {
  bash: (words: Words) =>
    [
      "_sallyport() {",
      '  local noun="" word',
      `  for word in "${braced("COMP_WORDS[@]:1:COMP_CWORD-1")}"; do case "$word" in -*) ;; *) noun="$word"; break ;; esac; done`,
      '  case "$noun" in',
      ...[...words].map(([noun, verbs]) => `    "${noun}") set -- ${verbs.join(" ")} ;;`),
      "    *) set -- ;;",
      "  esac",
      `  COMPREPLY=($(compgen -W "$*" -- "${braced("COMP_WORDS[COMP_CWORD]")}"))`,
      "}",
      "complete -F _sallyport sallyport",
      "",
    ].join("\n"),
  zsh: (words: Words) =>
    [
      "#compdef sallyport",
      "_sallyport() {",
      `  local noun=${braced(`${braced("words[2,CURRENT-1]:#-*")}[1]`)}`,
      '  case "$noun" in',
      ...[...words].map(([noun, verbs]) => `    "${noun}") compadd ${verbs.join(" ")} ;;`),
      "  esac",
      "}",
      "compdef _sallyport sallyport",
      "",
    ].join("\n"),
  fish: (words: Words) =>
    [...words]
      .map(([noun, verbs]) => {
        const when = noun === "" ? "__fish_use_subcommand" : `__fish_seen_subcommand_from ${noun}`;
        return `complete -c sallyport -f -n "${when}" -a "${verbs.join(" ")}"`;
      })
      .concat("")
      .join("\n"),
};
