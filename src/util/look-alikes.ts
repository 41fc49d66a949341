// Which letters look like others. Pure data and functions without dependencies: the console and the command line share them.

/** Scripts that are in everyday use. One writing system may use several: Japanese and Korean mix theirs. */
const SCRIPTS: readonly (readonly [string, readonly string[]])[] = [
  ["Latin", ["Latin"]],
  ["Cyrillic", ["Cyrillic"]],
  ["Greek", ["Greek"]],
  ["East Asian", ["Han", "Hiragana", "Katakana", "Bopomofo", "Hangul"]],
  ["Arabic", ["Arabic"]],
  ["Hebrew", ["Hebrew"]],
  ["Devanagari", ["Devanagari"]],
  ["Bengali", ["Bengali"]],
  ...[
    "Armenian",
    "Georgian",
    "Cherokee",
    "Lisu",
    "Coptic",
    "Syriac",
    "Thaana",
    "Gurmukhi",
    "Gujarati",
    "Oriya",
    "Tamil",
    "Telugu",
    "Kannada",
    "Malayalam",
    "Sinhala",
    "Thai",
    "Lao",
    "Tibetan",
    "Myanmar",
    "Ethiopic",
    "Khmer",
    "Mongolian",
    "Canadian_Aboriginal",
    "Tifinagh",
    "Nko",
    "Vai",
    "Yi",
  ].map((name) => [name.replace("_", " "), [name]] as const),
];

const PATTERNS = SCRIPTS.map(
  ([name, parts]) =>
    [name, new RegExp(`[${parts.map((part) => `\\p{Script=${part}}`).join("")}]`, "u")] as const,
);

const UNLISTED = "another script";
const known = new Map<string, string | undefined>();

/** The script of a letter or digit; undefined for signs that belong to all scripts. */
export function scriptOf(sign: string): string | undefined {
  if (sign <= "\x7f") return /[A-Za-z]/.test(sign) ? "Latin" : undefined;
  if (!known.has(sign)) known.set(sign, findScript(sign));
  return known.get(sign);
}

function findScript(sign: string): string | undefined {
  // Unicode shares these digits between several scripts; all of them are Arabic to a reader.
  if (/[\u0660-\u0669\u06f0-\u06f9]/u.test(sign)) return "Arabic";
  const found = PATTERNS.find(([, pattern]) => pattern.test(sign))?.[0];
  if (found !== undefined) return found;
  return /[\p{L}\p{Nd}]/u.test(sign) && !/[\p{Script=Common}\p{Script=Inherited}]/u.test(sign)
    ? UNLISTED
    : undefined;
}

/** Letters that most fonts draw like an ASCII letter or digit: Cyrillic, Greek, Armenian, and Latin ones outside of ASCII. */
const LOOKS_LATIN = new Set(
  "аеорсухіјѕһԁԛԝӏґАВЕЗКМНОРСТУХІЈЅԌԚԜӀΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϳαινοτυρϲսոօհցյԼՕՍıɑɡℓƖⅼƅƨƽǀȷ",
);

/** IPA letters that living alphabets use and that no one takes for an ASCII letter. */
const AFRICAN = new Set("ɓɖɗəɛɣɔɲʃʒɨʉɦ");

/** Phonetic and archaic Latin letters: `ᴏ`, `ɩ`, `ꮯ` and the like are in no ordinary text. */
const RARE_LATIN =
  /[\u0250-\u02af\u1d00-\u1dbf\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f\u{10780}-\u{107bf}\u{1df00}-\u{1dfff}]/u;

export function looksLatin(sign: string): boolean {
  if (sign <= "\x7f") return false;
  if (LOOKS_LATIN.has(sign)) return true;
  return RARE_LATIN.test(sign) && !AFRICAN.has(sign);
}

/** ASCII letters that Cyrillic and Greek readers take for their own. */
const LOOKS_FOREIGN = /^[aceopxyijsABCEHIKMOPTXYZNv]+$/;

/** Signs outside of words that pass for the punctuation of paths, addresses and commands. */
const LOOKS_PUNCTUATION = new Set("⁄∕⧸․ꓸ꞉∶ǃ⁎∗‐‑⁃﹘");

/** A sign that is no letter and not ASCII, but looks like an ASCII one. */
export function punctuationTwin(sign: string, main: string): string | undefined {
  if (LOOKS_PUNCTUATION.has(sign)) return "looks like plain punctuation";
  // Wide punctuation is what Chinese, Japanese and Korean text is written with.
  if (main === "East Asian" || !/[\p{P}\p{S}]/u.test(sign)) return undefined;
  const folded = sign.normalize("NFKC");
  return /^[\x21-\x7e]$/.test(folded) ? `another form of "${folded}"` : undefined;
}

/** The script that a text is written in. A foreign one has to show itself by letters that cannot be taken for Latin ones. */
export function mainScript(words: readonly string[]): string {
  const counts = new Map<string, number>([["Latin", 0]]);
  for (const word of words) {
    const scripts = scriptsIn(word);
    const [only] = scripts;
    if (scripts.size !== 1 || only === undefined || only === UNLISTED) continue;
    if (only !== "Latin" && !isClear(word)) continue;
    counts.set(only, (counts.get(only) ?? 0) + word.length);
  }
  return [...counts].reduce((best, one) => (one[1] > best[1] ? one : best))[0];
}

/** Says for each letter and digit of a word why it is marked; undefined when it is what it seems. */
export function twinsOf(word: string, main: string): (sign: string) => string | undefined {
  const isMixed = scriptsIn(word).size > 1;
  const hasAsciiDigit = /[0-9]/.test(word);
  const isLatinDisguise = main !== "Latin" && LOOKS_FOREIGN.test(word);
  return (sign) => {
    const script = scriptOf(sign);
    if (sign <= "\x7f") {
      if (script !== "Latin" || main === "Latin") return undefined;
      if (isMixed) return "Latin letter in a word of another script";
      return isLatinDisguise ? `Latin letter in ${main} text` : undefined;
    }
    const folded = sign.normalize("NFKC");
    if (/^[\x21-\x7e]+$/.test(folded)) return `another form of "${folded}"`;
    if (looksLatin(sign) && (script !== main || main === "Latin" || isMixed)) {
      return `${script ?? "foreign"} letter that looks like an ASCII one`;
    }
    if (script === undefined) return undefined;
    if (/\p{Nd}/u.test(sign)) {
      return script !== main || hasAsciiDigit ? `${script} digit` : undefined;
    }
    if (script === main) return undefined;
    return isMixed ? `${script} letter in a word of another script` : `${script} letter`;
  };
}

/**
 * The script of a word that is written in one script, not the text's own, and cannot be taken for Latin: one mark for all of
 * it is enough. Undefined for every other word.
 */
export function foreignScript(word: string, main: string): string | undefined {
  const [only, ...more] = scriptsIn(word);
  if (only === undefined || more.length > 0) return undefined;
  return only !== main && only !== "Latin" && isClear(word) ? only : undefined;
}

function scriptsIn(word: string): ReadonlySet<string> {
  return new Set([...word].map(scriptOf).filter((script) => script !== undefined));
}

/** At least one of its letters could not be taken for a Latin one. */
function isClear(word: string): boolean {
  const letters = [...word].filter((sign) => /\p{L}/u.test(sign));
  return letters.some((sign) => sign > "\x7f" && !looksLatin(sign));
}
