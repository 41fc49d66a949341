// What an agent wrote, cut into pieces that can be shown without deceiving anybody (T13): everything that a screen would hide,
// reorder or make look like something else becomes a mark with its number. Put together again, the pieces are the text.

export type Piece =
  | { readonly kind: "text"; readonly raw: string }
  /** Shown instead of the character, because showing it would hide or reorder something. */
  | { readonly kind: "code"; readonly raw: string; readonly label: string; readonly why: string }
  /** Shown after the character: it looks like another one. */
  | { readonly kind: "twin"; readonly raw: string; readonly label: string; readonly why: string }
  /** Many spaces or empty lines in a row, counted instead of being drawn. */
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
];

/** One look through all of the above, so that plain text costs one test. */
const ANY_HIDDEN =
  /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u115f\u1160\u3164\uffa0\u2800\u{1d159}\ufff9-\ufffc]/u;

/** More than a reader counts at a glance. */
const MOST_SPACES = 8;
const MOST_EMPTY_LINES = 3;
/** Letters with more marks on them than any writing needs cover their neighbours. */
const MOST_COMBINING = 2;

const PLAIN = /^[\x20-\x7e]*$/;

export function piecesOf(text: string): readonly Piece[] {
  if (PLAIN.test(text) && !text.includes(" ".repeat(MOST_SPACES + 1))) {
    return text === "" ? [] : [{ kind: "text", raw: text }];
  }
  const twins = twinsIn(text);
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
    const sign = String.fromCodePoint(text.codePointAt(at) ?? 0);
    combining = /\p{M}/u.test(sign) ? combining + 1 : 0;
    const twin = twins.get(at);
    if (sign === "↵") {
      push({ kind: "twin", raw: sign, label: labelOf(sign), why: "looks like our sign for a line break" });
    } else if (sign === "\n") push({ kind: "newline", raw: sign });
    else if (combining > MOST_COMBINING) {
      push({ kind: "code", raw: sign, label: labelOf(sign), why: "one mark too many on a letter" });
    } else if (ANY_HIDDEN.test(sign) && sign !== " ") {
      push({ kind: "code", raw: sign, label: labelOf(sign), why: whyHidden(sign) });
    } else if (twin !== undefined) push({ kind: "twin", raw: sign, label: labelOf(sign), why: twin });
    else plain += sign;
    at += sign.length;
  }
  if (plain !== "") pieces.push({ kind: "text", raw: plain });
  return pieces;
}

/** How many characters in it are not what they seem. */
export function oddities(text: string): number {
  return piecesOf(text).filter(({ kind }) => kind === "code" || kind === "twin" || kind === "gap")
    .length;
}

/** The beginning of a text, not cut through the middle of a character. */
export function headOf(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 1 : most);
}

function gapAt(text: string, at: number): Extract<Piece, { kind: "gap" }> | undefined {
  if (text[at] === " ") {
    let end = at;
    while (text[end] === " ") end += 1;
    const count = end - at;
    // An indented line is no trick: spaces at the start of a line move nothing out of sight but themselves.
    const most = at === 0 || text[at - 1] === "\n" ? 40 : MOST_SPACES;
    if (count <= most) return undefined;
    const why = "so many spaces could push something out of sight";
    return { kind: "gap", raw: text.slice(at, end), label: `${count} spaces`, why };
  }
  if (text[at] === "\n") {
    let end = at;
    while (text[end] === "\n") end += 1;
    const count = end - at;
    if (count <= MOST_EMPTY_LINES) return undefined;
    const why = "so many empty lines could push something out of sight";
    return { kind: "gap", raw: text.slice(at, end), label: `${count} line breaks`, why };
  }
  return undefined;
}

function labelOf(sign: string): string {
  return `U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

function whyHidden(sign: string): string {
  return HIDDEN.find(([pattern]) => pattern.test(sign))?.[1] ?? "not visible";
}

const SCRIPTS = ["Latin", "Cyrillic", "Greek", "Armenian", "Cherokee", "Lisu", "Coptic", "Georgian"];
const OF_SCRIPT = SCRIPTS.map((name) => [name, new RegExp(`\\p{Script=${name}}`, "u")] as const);

/** Letters of other scripts that most fonts draw like a Latin one. */
const LOOKS_LATIN = new Set(
  // Cyrillic, Greek, Armenian, Latin letters that stand outside of ASCII but look like it.
  "аеорсухіјѕһԁԛԝɡӏАВЕЗКМНОРСТУХІЈЅԌԚԜΑΒΕΖΗΙΚΜΝΟΡΤΥΧαινοτυορսոօհցյԼՕՍıɑℓƖⅼո",
);

/** Where a letter is not what it seems, and what it seems to be. */
function twinsIn(text: string): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  const words = [...text.matchAll(/[\p{L}\p{N}\p{M}_]+/gu)];
  // Somebody who writes Russian writes some words that consist of such letters only.
  const isForeignProse = words.some(([word]) => isForeignWord(word));
  const hasLatin = /[A-Za-z]/.test(text);
  for (const { 0: word, index } of words) {
    const scripts = new Set([...word].map(scriptOf).filter((name) => name !== undefined));
    const isMixed = scripts.size > 1;
    const isDisguise = !isForeignProse && (hasLatin || words.length === 1) && isAllTwins(word);
    let at = index;
    for (const sign of word) {
      const why = twinOf(sign, isMixed, isDisguise);
      if (why !== undefined) found.set(at, why);
      at += sign.length;
    }
  }
  return found;
}

function twinOf(sign: string, isMixed: boolean, isDisguise: boolean): string | undefined {
  if (sign <= "\x7f") return undefined;
  const folded = sign.normalize("NFKC");
  if (/^[\x21-\x7e]+$/.test(folded)) return `another form of "${folded}"`;
  const script = scriptOf(sign);
  if (isMixed && script !== undefined && script !== "Latin") {
    return `${script} letter in a word of another script`;
  }
  if (LOOKS_LATIN.has(sign) && (isDisguise || isMixed)) {
    return `${script ?? "foreign"} letter that looks like a Latin one`;
  }
  return undefined;
}

function scriptOf(sign: string): string | undefined {
  return OF_SCRIPT.find(([, pattern]) => pattern.test(sign))?.[0];
}

function isAllTwins(word: string): boolean {
  const letters = [...word].filter((sign) => /\p{L}/u.test(sign));
  return letters.length > 0 && letters.every((sign) => sign > "\x7f" && LOOKS_LATIN.has(sign));
}

function isForeignWord(word: string): boolean {
  return [...word].some((sign) => {
    const script = scriptOf(sign);
    return script !== undefined && script !== "Latin" && !LOOKS_LATIN.has(sign);
  });
}
