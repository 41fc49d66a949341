/** Exit codes, so that a script can tell the outcomes apart. `docs/reference/cli.md` lists the same rows. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  refused: 3,
  unreachable: 4,
  unanchored: 5,
  tampered: 6,
} as const;

export const EXIT_WORDS: Readonly<Record<keyof typeof EXIT, string>> = {
  done: "It was done.",
  failed:
    "It failed: an internal error, a store that cannot be used, or a check of `doctor` that did not pass.",
  usage: "Wrong usage: an unknown command or flag.",
  refused: "The server or the command refused it.",
  unreachable: "No server or store answers.",
  unanchored:
    "`audit verify`: the chain is intact, but no recent anchor covers its end, so missing entries there cannot be noticed.",
  tampered:
    "`audit verify`, `store check`: entries or records were changed, deleted or rolled back.",
};
