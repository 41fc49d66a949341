/** As long as the MCP specification allows. Adapters turn the dots into what their model's API accepts. */
const LONGEST_NAME = 128;
const LONGEST_PART = 64;
const NAME =
  /^[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?)*$/;

/** What is wrong with a tool's name, as a sentence that says what to do; undefined when nothing is. */
export function nameProblem(name: unknown): string | undefined {
  if (typeof name !== "string" || name === "") return "A tool needs a name.";
  if (name.length > LONGEST_NAME) return `A tool's name has at most ${LONGEST_NAME} characters.`;
  if (!NAME.test(name)) {
    return (
      "A tool's name is made of ASCII letters, digits, hyphens and underscores, in parts joined by dots, and each part " +
      "begins and ends with a letter or digit, like billing.refund."
    );
  }
  if (name.split(".").some((part) => part.length > LONGEST_PART)) {
    return `Each part of a tool's name has at most ${LONGEST_PART} characters.`;
  }
  return undefined;
}

/** The part before the first dot, for instance the server; empty when there is none. */
export function qualifierOf(name: string): string {
  const dot = name.indexOf(".");
  return dot < 0 ? "" : name.slice(0, dot);
}

/**
 * What is left of a name when everything is taken away that a hurried reader does not see (T11): two names with one
 * skeleton are look-alikes, and the registry holds only one of them. Letter case and the separators go, so that
 * `sendMail`, `send_mail` and `send.mail` are one; that also means an adapter may write every separator as `_` without
 * two tools becoming one. Then the ASCII pairs of Unicode's list of confusables (0 and O; 1, l and I; rn and m) and four
 * more of the same kind (vv and w, 2 and Z, 5 and S, 8 and B). Since case is gone, i counts as l too. `cl` and `d` are left
 * apart: they are not in Unicode's list, and `ci.run` against `d.run` would be a refusal that nobody understands.
 */
export function nameSkeleton(name: string): string {
  return name
    .toLowerCase()
    .replace(/[._-]/g, "")
    .replace(/[01258i]/g, (character) => LOOKS_LIKE[character] ?? character)
    .replaceAll("rn", "m")
    .replaceAll("vv", "w");
}

const LOOKS_LIKE: Readonly<Record<string, string>> = {
  "0": "o",
  "1": "l",
  i: "l",
  "2": "z",
  "5": "s",
  "8": "b",
};
