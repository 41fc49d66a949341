/** What the name of a field says about its value. `counted` is a secret unless it is a number: `tokens: 812` is a bill. */
export type KeyVerdict = "plain" | "secret" | "counted";

/** A name, matched like the built-in ones, or a test of your own (which must be fast: it sees every new name). */
export type SecretKey = string | ((key: string) => boolean);

/** Whole words, or words that belong together, written as one. `userPassword`, `USER_PASSWORD` and `pass-word` all match. */
const SECRETS = `password passwd passphrase passcode pwd secret secrets token apikey apikeys authorization bearer jwt
  cookie cookies credential credentials creds privatekey accesskey accountkey authkey encryptionkey masterkey sessionkey
  sharedkey signingkey sshkey otp totp mfacode securitycode verificationcode pincode cvv cvc cardnumber ssn`;
const COUNTED = "tokens pass";

/** A last word that makes the value speak about the secret instead of being it: `secretRef`, `token_type`, `expires_at`. */
const ABOUT = `name names type ref reference arn count counts length policy version expires expiry expiration at in ttl ms
  seconds limit budget usage url uri endpoint status scope scopes issuer required enabled id ids`;
/** Vault's `secret_id` is half of a login, whatever its name says. */
const NEVER_ABOUT = "secretid";

const MAX_WORDS = 3;
const MAX_KEY = 256;

/** Answers by words, not by pieces of text: `secretary`, `tokenizer` and `compassion` stay readable. */
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
    // Nobody names a field in more than a few words; past that the beginning has to do.
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

/** `X-APIKey2` → `x`, `api`, `key`. By hand, because the regular expression for `APIKey` takes quadratic time. */
function splitWords(key: string): string[] {
  // Full-width and other compatible letters read as the plain ones they look like.
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
