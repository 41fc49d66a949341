/** The position of a secret in a text, as UTF-16 offsets. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * One family of secrets that can be recognised by their shape. `hint` is a cheap test that fails on almost every text.
 * In `find` the secret is the last group that matched, or the whole match, and always its end. Both must take linear
 * time on hostile text (T27): an unbounded repetition comes last in a pattern, so that it never backtracks.
 */
interface Shape {
  readonly hint: RegExp;
  readonly find: RegExp;
  readonly accept?: (secret: string, match: RegExpExecArray) => boolean;
}

/** Key prefixes of vendors. They must follow a non-word character, or `task-…` would contain `sk-…`. */
const VENDOR =
  "(?<![A-Za-z0-9])(?:A[KS]IA[0-9A-Z]{16}|AIza[\\w-]{35}|ya29\\.[\\w-]{20,}|GOCSPX-[\\w-]{20,}|" +
  "gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\\w{20,}|glpat-[\\w-]{16,}|xox[abeoprs]-[\\w-]{10,}|xapp-[\\w-]{16,}|" +
  "[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9]{16,}|sk-[\\w-]{20,}|npm_[A-Za-z0-9]{30,}|" +
  "pypi-[\\w-]{20,}|SG\\.[\\w-]{16,64}\\.[\\w-]{16,}|do[opr]_v1_[0-9a-f]{32,}|" +
  "shp(?:at|ss|ca|pa)_[0-9A-Fa-f]{24,}|hf_[A-Za-z0-9]{24,}|dapi[0-9a-f]{32,}|hv[sb]\\.[\\w-]{20,}|" +
  "AGE-SECRET-KEY-1[0-9A-Z]{20,}|sbp_[0-9a-f]{30,}|lin_api_\\w{20,}|ntn_\\w{20,}|ATATT3[\\w=-]{20,}|" +
  "hooks\\.slack\\.com\\/services\\/[\\w/]{20,})";

const WORD =
  "(?:pass(?:word|wd|phrase|code)|pwd|secret(?:[-_ ]?(?:access[-_]?)?key)?|token|" +
  "(?:api|access|account|private|shared|signing|encryption)[-_ ]?key|credentials?|[?&]sig(?:nature)?)";

/** In quotes up to the quote, with its escapes; in escaped quotes up to the next quote; bare up to a delimiter. */
const VALUE = `(?:"([^"\\\\]*(?:\\\\[^][^"\\\\]*)*)|'([^'\\\\]*(?:\\\\[^][^'\\\\]*)*)|\\\\+["']([^"'\\\\]+)|([^\\s"'\\\\&;,<>=][^\\s"'&;,<>]*))`;

const SHAPES: readonly Shape[] = [
  { hint: new RegExp(VENDOR), find: new RegExp(VENDOR, "g") },
  {
    // A JSON Web Token, signed or encrypted. Without a dot it is any Base64 of a JSON object.
    hint: /eyJ[\w-]{8}/,
    find: /eyJ[\w-]{8,}(?:\.[\w-]*)*/g,
    accept: (secret) => secret.includes("."),
  },
  {
    // A truncated key is a key too: without its end marker the rest of the text is redacted.
    hint: /PRIVATE KEY/,
    find: /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
  },
  {
    hint: /(?:bearer|basic)\s/i,
    find: /\b(?:bearer|basic)\s{1,8}([\w.~+/=-]{8,})/gi,
    accept: (secret) => secret.length >= 16 || /[0-9=]|[a-z][A-Z]/.test(secret),
  },
  {
    // scheme://user:password@host. A slash ends the part before the host, so each one is scanned once.
    hint: /:\/\/[^\s/:@]{0,256}:[^\s/"'<>]{1,256}@/,
    find: /:\/\/[^\s/:@]{0,256}:([^\s/"'<>]{1,256})(?=@)/g,
  },
  {
    hint: /(?:cookie|authorization)["'\\]{0,3}\s{0,4}[:=]/i,
    find: /(?:cookie|authorization)["'\\]{0,3}\s{0,4}[:=][ \t]{0,4}["'\\]{0,3}([^\r\n"'\\]+)/gi,
    accept: (secret, match) => /^c/i.test(match[0]) || looksMade(secret),
  },
  {
    // password=…, "api_key": "…", --token …; and `password: …`, where only unambiguous words count.
    hint: new RegExp(`${WORD}[\\s"'\\\\:=]`, "i"),
    find: new RegExp(
      `${WORD}["'\\\\]{0,4}(?:\\s{0,4}=\\s{0,4}|(\\s{0,4}:\\s{0,4})|(?<=--[\\w-]{0,64})\\s{1,4})${VALUE}`,
      "gi",
    ),
    accept: (secret, match) =>
      match[1] === undefined || match[5] === undefined || /^p/i.test(match[0]) || looksMade(secret),
  },
];

/**
 * Nearly every text holds no secret, so this is the common cost. Three joined patterns take 1.2 µs for ten typical
 * texts, seven single ones 1.9 µs, and a single joined one 1.7 µs, because it can use none of the engine's shortcuts.
 */
const FIRST_LOOK: readonly RegExp[] = [
  new RegExp(VENDOR),
  anyOf(SHAPES.slice(1).filter((shape) => !shape.hint.ignoreCase)),
  anyOf(SHAPES.slice(1).filter((shape) => shape.hint.ignoreCase)),
];

const SHORTEST = 8;
/** Both far above legitimate use. A text that is too long or has too many matches is redacted as a whole. */
const LONGEST = 4 * 1024 * 1024;
const MOST = 1_000;

/** The secrets in a text by shape, in order and without overlap; undefined, as almost always, when there are none. */
export function findSecrets(text: string): readonly Span[] | undefined {
  if (text.length < SHORTEST) return undefined;
  if (text.length > LONGEST) return [{ start: 0, end: text.length }];
  if (!mayHoldSecret(text)) return undefined;
  let spans: Span[] | undefined;
  for (const shape of SHAPES) {
    if (!shape.hint.test(text)) continue;
    for (const match of text.matchAll(shape.find)) {
      const secret = match.findLast((part) => part !== undefined) ?? "";
      if (secret === "" || isMarked(secret) || shape.accept?.(secret, match) === false) continue;
      spans ??= [];
      const end = match.index + match[0].length;
      spans.push({ start: end - secret.length, end });
      if (spans.length > MOST) return [{ start: 0, end: text.length }];
    }
  }
  return spans && merged(spans);
}

function mayHoldSecret(text: string): boolean {
  for (const look of FIRST_LOOK) if (look.test(text)) return true;
  return false;
}

function anyOf(shapes: readonly Shape[]): RegExp {
  return new RegExp(shapes.map((shape) => shape.hint.source).join("|"), shapes[0]?.hint.flags);
}

/** Natural words are not secrets: "authorization: denied" stays, a run of eight with a digit does not. */
function looksMade(value: string): boolean {
  return value.split(/[\s;,]/).some((run) => run.length >= 8 && /\d/.test(run));
}

/** Already replaced, by a redactor or by stars. */
function isMarked(secret: string): boolean {
  return /^(?:\[redacted:(?:secret|hmac-sha256:[0-9a-f]{64})\]|\*+$)/.test(secret);
}

function merged(spans: Span[]): readonly Span[] {
  const result: { start: number; end: number }[] = [];
  for (const { start, end } of spans.sort((a, b) => a.start - b.start)) {
    const last = result.at(-1);
    if (last !== undefined && start <= last.end) last.end = Math.max(last.end, end);
    else result.push({ start, end });
  }
  return result;
}

/**
 * What the name of a field implies for its value. `counted` is a secret unless it is a number: `tokens: 812` is a bill.
 */
export type KeyVerdict = "plain" | "secret" | "counted";

/** A name, matched like the built-in ones, or a custom test (which must be fast: it sees every new name). */
export type SecretKey = string | ((key: string) => boolean);

/** Whole words, or compounds written as one. `userPassword`, `USER_PASSWORD` and `pass-word` all match. */
const SECRETS = `password passwd passphrase passcode pwd secret secrets token apikey apikeys authorization bearer jwt
  cookie cookies credential credentials creds privatekey accesskey accountkey authkey encryptionkey masterkey sessionkey
  sharedkey signingkey sshkey otp totp mfacode securitycode verificationcode pincode cvv cvc cardnumber ssn`;
const COUNTED = "tokens pass";

/**
 * A last word that makes the value describe the secret instead of being it: `secretRef`, `token_type`, `expires_at`.
 */
const ABOUT = `name names type ref reference arn count counts length policy version expires expiry expiration at in ttl ms
  seconds limit budget usage url uri endpoint status scope scopes issuer required enabled id ids`;
/** Vault's `secret_id` is half of a login, whatever its name says. */
const NEVER_ABOUT = "secretid";

const MAX_WORDS = 3;
const MAX_KEY = 256;

/** Matches words, not substrings: `secretary`, `tokenizer` and `compassion` stay readable. */
export function createKeyTest(options: {
  readonly secretKeys?: readonly SecretKey[];
  readonly plainKeys?: readonly string[];
}): (key: string) => KeyVerdict {
  const { secretKeys = [], plainKeys = [] } = options;
  const named = secretKeys.filter((key) => typeof key === "string").map(joined);
  const tests = secretKeys.filter((key) => typeof key === "function");
  const secrets = new Set([...wordList(SECRETS), ...named]);
  const counted = new Set(wordList(COUNTED));
  const about = new Set(wordList(ABOUT));
  const plain = new Set(plainKeys.map(joined));

  return (key) => {
    if (tests.some((test) => test(key))) return "secret";
    // Field names have few words; longer names are judged by their start.
    const words = splitWords(key.slice(0, MAX_KEY));
    const whole = words.join("");
    if (plain.has(whole)) return "plain";
    if (named.includes(whole)) return "secret";
    if (about.has(words.at(-1) ?? "") && !whole.endsWith(NEVER_ABOUT)) return "plain";
    if (hasAny(words, secrets)) return "secret";
    return hasAny(words, counted) ? "counted" : "plain";
  };
}

function hasAny(words: readonly string[], wanted: ReadonlySet<string>): boolean {
  for (let start = 0; start < words.length; start += 1) {
    let run = "";
    for (const word of words.slice(start, start + MAX_WORDS)) {
      run += word;
      if (wanted.has(run)) return true;
    }
  }
  return false;
}

function joined(key: string): string {
  return splitWords(key).join("");
}

function wordList(text: string): string[] {
  return text.split(/\s+/);
}

/** `X-APIKey2` → `x`, `api`, `key`. Without a regular expression, because the one for `APIKey` takes quadratic time. */
function splitWords(key: string): string[] {
  // Full-width and other compatibility letters are read as the plain ones they look like.
  const text = key.normalize("NFKC");
  const words: string[] = [];
  let word = "";
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    const lower = char.toLowerCase();
    const isLetter = lower !== char.toUpperCase();
    const startsWord = isLetter && lower !== char && !isInsideCapitals(text, at);
    if ((!isLetter || startsWord) && word !== "") {
      words.push(word);
      word = "";
    }
    if (isLetter) word += lower;
  }
  if (word !== "") words.push(word);
  return words;
}

/** True for the P and the I of `APIKey`, not for its A and K. */
function isInsideCapitals(text: string, at: number): boolean {
  const before = text.charAt(at - 1);
  const after = text.charAt(at + 1);
  const isCapital = (char: string) => char.toLowerCase() !== char;
  return isCapital(before) && (after === "" || isCapital(after) || after.toUpperCase() === after);
}
