// Splits untrusted text into pieces that can be shown without deceiving the reader (T13): characters that a screen
// would hide, reorder or render like others get a mark. The joined pieces equal the text. Used by the console and the
// command line.

export type Piece =
  | { readonly kind: "text"; readonly raw: string }
  /** Shown instead of the character, because showing it would hide or reorder something. */
  | { readonly kind: "code"; readonly raw: string; readonly label: string; readonly why: string }
  /** Shown after the character, or after a word in a different script from the rest: it may look like another text. */
  | { readonly kind: "twin"; readonly raw: string; readonly label: string; readonly why: string }
  /** A run of spaces or empty lines, shown as a count. */
  | { readonly kind: "gap"; readonly raw: string; readonly label: string; readonly why: string }
  | { readonly kind: "newline"; readonly raw: string };

const HIDDEN: readonly (readonly [RegExp, string])[] = [
  [/[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/u, "changes the direction of text"],
  [/[\u{e0000}-\u{e007f}]/u, "invisible tag"],
  [/[\ufe00-\ufe0f\u{e0100}-\u{e01ef}\u180b-\u180f]/u, "invisible variant mark"],
  [/[\u200b-\u200d\u2060-\u2064\ufeff\u00ad]/u, "invisible"],
  [/\p{Cc}/u, "control character"],
  [/[\u2028\u2029]/u, "invisible line break"],
  [/\p{Zs}/u, "space that is not a plain space"],
  [/[\u115f\u1160\u3164\uffa0\u2800\u{1d159}]/u, "looks empty"],
  [/\p{Co}/u, "private character: every font draws it differently"],
  [/\p{Cs}/u, "half a character"],
  [/[\ufff9-\ufffc]/u, "annotation mark"],
  [/\p{Default_Ignorable_Code_Point}|\p{Cf}/u, "invisible"],
  [/\p{Cn}/u, "not a character"],
  [/[\u0334-\u0338\u20d0-\u20f0]|\p{Me}/u, "drawn over the letter before it"],
];

/** One expression for all of the above, so that plain text costs one test. */
const ANY_HIDDEN =
  /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u115f\u1160\u3164\uffa0\u2800\u{1d159}\ufff9-\ufffc]|[\u0334-\u0338]|[\u20d0-\u20f0]|\p{Me}/u;

/** More than a reader counts at a glance. */
const MOST_SPACES = 8;
const MOST_INDENT = 40;
const MOST_EMPTY_LINES = 3;
/** More combining marks than any script needs; they would cover neighbouring characters. */
const MOST_COMBINING = 2;

const PLAIN = /^[\x20-\x7e]*$/;

export function piecesOf(text: string): readonly Piece[] {
  if (PLAIN.test(text) && !text.includes(" ".repeat(MOST_SPACES + 1))) {
    return text === "" ? [] : [{ kind: "text", raw: text }];
  }
  const marks = marksIn(text);
  const pieces: Piece[] = [];
  let plain = "";
  let combining = 0;
  const push = (piece: Piece) => {
    if (plain !== "") pieces.push({ kind: "text", raw: plain });
    plain = "";
    pieces.push(piece);
  };
  for (let at = 0; at < text.length; ) {
    const gap = gapAt(text, at);
    if (gap !== undefined) {
      push(gap);
      at += gap.raw.length;
      continue;
    }
    const mark = marks.get(at);
    const sign = mark?.raw ?? String.fromCodePoint(text.codePointAt(at) ?? 0);
    combining = /^\p{M}$/u.test(sign) ? combining + 1 : 0;
    if (sign === "\n") push({ kind: "newline", raw: sign });
    else if (combining > MOST_COMBINING) {
      push({ kind: "code", raw: sign, label: labelOf(sign), why: "one mark too many on a letter" });
    } else if (mark === undefined && sign !== " " && ANY_HIDDEN.test(sign)) {
      push({ kind: "code", raw: sign, label: labelOf(sign), why: whyHidden(sign) });
    } else if (mark !== undefined) push({ kind: "twin", ...mark });
    else plain += sign;
    at += sign.length;
  }
  if (plain !== "") pieces.push({ kind: "text", raw: plain });
  return pieces;
}

/** The start of a text, without splitting a character. */
export function headOf(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 1 : most);
}

function gapAt(text: string, at: number): Extract<Piece, { kind: "gap" }> | undefined {
  const sign = text[at];
  if (sign !== " " && sign !== "\n") return undefined;
  let end = at;
  while (text[end] === sign) end += 1;
  const raw = text.slice(at, end);
  // Indentation is harmless: leading spaces hide only themselves.
  const isIndent = at === 0 || text[at - 1] === "\n";
  const most = sign === "\n" ? MOST_EMPTY_LINES : isIndent ? MOST_INDENT : MOST_SPACES;
  if (raw.length <= most) return undefined;
  const [what, lines] = sign === " " ? ["spaces", "spaces"] : ["line breaks", "empty lines"];
  const why = `this many ${lines} could push something out of sight`;
  return { kind: "gap", raw, label: `${raw.length} ${what}`, why };
}

function labelOf(sign: string): string {
  return `U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

function whyHidden(sign: string): string {
  return HIDDEN.find(([pattern]) => pattern.test(sign))?.[1] ?? "not visible";
}

type Mark = Omit<Extract<Piece, { kind: "twin" }>, "kind">;

/** By position: letters, digits, words and punctuation that look like others. */
function marksIn(text: string): ReadonlyMap<number, Mark> {
  const found = new Map<number, Mark>();
  const words = [...text.matchAll(/[\p{L}\p{N}\p{M}_]+/gu)];
  const main = mainScript(words.map(([word]) => word));
  for (const { 0: word, index } of words) {
    if (main === "Latin" && PLAIN.test(word)) continue;
    const script = foreignScript(word, main);
    if (script !== undefined && !ANY_HIDDEN.test(word) && !/\p{M}{3}/u.test(word)) {
      found.set(index, { raw: word, label: script, why: `a word in ${script} letters` });
      continue;
    }
    const twinOf = twinsOf(word, main);
    let at = index;
    for (const sign of word) {
      const why = ANY_HIDDEN.test(sign) ? undefined : twinOf(sign);
      if (why !== undefined) found.set(at, { raw: sign, label: labelOf(sign), why });
      at += sign.length;
    }
  }
  for (const { 0: sign, index } of text.matchAll(/[\p{P}\p{S}]/gu)) {
    if (PLAIN.test(sign) || ANY_HIDDEN.test(sign)) continue;
    const why = sign === "↵" ? "looks like our sign for a line break" : punctuationTwin(sign, main);
    if (why !== undefined) found.set(index, { raw: sign, label: labelOf(sign), why });
  }
  return found;
}

/** Scripts in everyday use. One writing system may use several: Japanese and Korean mix theirs. */
const SCRIPTS: readonly (readonly [string, readonly string[]])[] = [
  ["Latin", ["Latin"]],
  ["Cyrillic", ["Cyrillic"]],
  ["Greek", ["Greek"]],
  ["East Asian", ["Han", "Hiragana", "Katakana", "Bopomofo", "Hangul"]],
  ["Arabic", ["Arabic"]],
  ["Hebrew", ["Hebrew"]],
  ["Devanagari", ["Devanagari"]],
  ["Bengali", ["Bengali"]],
  ...(
    "Armenian Georgian Cherokee Lisu Coptic Syriac Thaana Gurmukhi Gujarati Oriya Tamil Telugu " +
    "Kannada Malayalam Sinhala Thai Lao Tibetan Myanmar Ethiopic Khmer Mongolian Canadian_Aboriginal Tifinagh Nko Vai Yi"
  )
    .split(" ")
    .map((name) => [name.replace("_", " "), [name]] as const),
];

const PATTERNS = SCRIPTS.map(
  ([name, parts]) =>
    [name, new RegExp(`[${parts.map((part) => `\\p{Script=${part}}`).join("")}]`, "u")] as const,
);

const UNLISTED = "another script";
const known = new Map<string, string | undefined>();

/** The script of a letter or digit; undefined for symbols common to all scripts. */
function scriptOf(sign: string): string | undefined {
  if (sign <= "\x7f") return /[A-Za-z]/.test(sign) ? "Latin" : undefined;
  if (!known.has(sign)) known.set(sign, findScript(sign));
  return known.get(sign);
}

function findScript(sign: string): string | undefined {
  // Unicode assigns these digits to several scripts; readers see them as Arabic.
  if (/[\u0660-\u0669\u06f0-\u06f9]/u.test(sign)) return "Arabic";
  const found = PATTERNS.find(([, pattern]) => pattern.test(sign))?.[0];
  if (found !== undefined) return found;
  return /[\p{L}\p{Nd}]/u.test(sign) && !/[\p{Script=Common}\p{Script=Inherited}]/u.test(sign)
    ? UNLISTED
    : undefined;
}

/** Letters that most fonts draw like an ASCII one, a digit, `|`, `!` or `:`: Cyrillic, Greek, Armenian, and non-ASCII Latin. */
const LOOKS_LATIN = new Set(
  "аеорсухіјѕһԁԛԝӏґАВЕЗКМНОРСТУХІЈЅԌԚԜӀΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϳαινοτυρϲսոօհցյԼՕՍıɑɡℓƖⅼƅƨƽǀǃːȷ",
);

/** IPA letters that living alphabets use and that do not look like an ASCII letter. */
const AFRICAN = new Set("ɓɖɗəɛɣɔɲʃʒɨʉɦ");

/** Phonetic and archaic Latin letters: `ᴏ`, `ɩ`, `ꮯ` and the like do not occur in ordinary text. */
const RARE_LATIN =
  /[\u0250-\u02af\u1d00-\u1dbf\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f\u{10780}-\u{107bf}\u{1df00}-\u{1dfff}]/u;

function looksLatin(sign: string): boolean {
  if (sign <= "\x7f") return false;
  if (LOOKS_LATIN.has(sign)) return true;
  return RARE_LATIN.test(sign) && !AFRICAN.has(sign);
}

/** ASCII letters that Cyrillic and Greek readers see as their own. */
const LOOKS_FOREIGN = /^[aceopxyijsABCEHIKMOPTXYZNv]+$/;

/** Symbols outside words that look like the punctuation of paths, addresses and commands. */
const LOOKS_PUNCTUATION = new Set("⁄∕⧸╱⟋∖⧵․ꓸ⸱‧꞉∶꞊᐀∣❘∼⁓˂˃⁎∗‐‑⁃˗﹘");

/** A non-ASCII symbol that looks like an ASCII one. */
function punctuationTwin(sign: string, main: string): string | undefined {
  if (LOOKS_PUNCTUATION.has(sign)) return "looks like plain punctuation";
  // Wide punctuation is ordinary in Chinese, Japanese and Korean text.
  if (main === "East Asian" || !/[\p{P}\p{S}]/u.test(sign)) return undefined;
  const folded = sign.normalize("NFKC");
  return /^[\x21-\x7e]$/.test(folded) ? `another form of "${folded}"` : undefined;
}

/** The script of a text. A script other than Latin needs letters that do not look like Latin ones. */
function mainScript(words: readonly string[]): string {
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

/** Why each letter and digit of a word is marked; undefined for one that is not. */
function twinsOf(word: string, main: string): (sign: string) => string | undefined {
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
 * The script of a word in a single script other than the text's, with letters that do not look Latin: one mark for the
 * whole word is enough. Undefined for every other word.
 */
function foreignScript(word: string, main: string): string | undefined {
  const [only, ...more] = scriptsIn(word);
  if (only === undefined || more.length > 0) return undefined;
  return only !== main && only !== "Latin" && isClear(word) ? only : undefined;
}

function scriptsIn(word: string): ReadonlySet<string> {
  return new Set([...word].map(scriptOf).filter((script) => script !== undefined));
}

/** At least one of its letters does not look like a Latin one. */
function isClear(word: string): boolean {
  const letters = [...word].filter((sign) => /\p{L}/u.test(sign));
  return letters.some((sign) => sign > "\x7f" && !looksLatin(sign));
}
