/** What somebody says of a check. */
export interface Claim {
  readonly command: string;
  readonly exitCode: number;
  readonly keyOutput: string;
  readonly verdict: "passed" | "failed";
  readonly conclusion: string;
}

/**
 * Words that put a check off, or say that it was not made. Compared after everything is taken away that hides them: case,
 * look-alike forms, invisible characters, punctuation between words.
 */
const PUT_OFF: readonly RegExp[] = [
  /\b(?:to|will|should|must|can|needs? to|yet to|remains? to) be (?:\w+ )?(?:verified|tested|checked|confirmed|validated|determined)\b/,
  /\b(?:will|shall|going to|plan to|need to|have to) (?:\w+ )?(?:verify|test|check|confirm|validate)\b/,
  /\b(?:verif|test|check|confirm|validat)\w* (?:\w+ ){0,3}(?:later|afterwards?|soon|tomorrow|pending|follows|manually)\b/,
  /\b(?:not|never) (?:(?:yet|been) )*(?:verified|tested|checked|confirmed|validated)\b/,
  /待验证|待测|稍后|后续|未验证|未测试/,
];

/** Beyond these, a conclusion may not hedge; in the output of a tool the same words mean something else ("0 skipped"). */
const HEDGED: readonly RegExp[] = [
  /\b(?:not|never|didn t|did not|could not|couldn t|unable to) (?:(?:yet|been) )*(?:run|execute|executed|verify|test|check)\b/,
  /\b(?:tbd|tbc|todo|wip|n a|untested|unverified|unchecked)\b/,
  /\b(?:assum\w+|presumably|probably|likely|should (?:pass|work|be fine)|expected to (?:pass|work)|looks? (?:fine|good))\b/,
  /(?<!\b(?:0|no|nothing|none) )\b(?:pending|skipped|later)\b/,
];

/** Why a claim is no green evidence, as a sentence; undefined when it is. */
export function notGreen(claim: Claim): string | undefined {
  const { command, exitCode, keyOutput, verdict, conclusion } = claim;
  if (verdict !== "passed") return "The check failed.";
  if (exitCode !== 0) return `The command ended with ${exitCode}, and only 0 is a success.`;
  if (plain(command) === "") return "There is no command: nothing was checked.";
  if (plain(keyOutput) === "") return "There is no output: show the lines that prove it.";
  if (plain(conclusion) === "") return "There is no conclusion.";
  if (!isPutOff(conclusion, "conclusion") && !isPutOff(keyOutput, "output")) return undefined;
  return "It says that the check was put off or not made. Make it, and record what came out.";
}

function isPutOff(text: string, what: "conclusion" | "output"): boolean {
  const words = plain(text);
  const patterns = what === "conclusion" ? [...PUT_OFF, ...HEDGED] : PUT_OFF;
  return patterns.some((pattern) => pattern.test(words));
}

function plain(text: string): string {
  return text
    .normalize("NFKD")
    .replace(/[\p{M}\p{Cf}]/gu, "")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
}
