/**
 * True for a locale in which text is ASCII or UTF-8, and for none at all. In others (GBK, Big5, Shift JIS) a backslash or a
 * quote can be the second half of a letter, so bash finds other words in the same bytes than a reader of UTF-8 does. A name
 * without an encoding stands for any of them: `zh_TW` is Big5.
 */
export function isUtf8Locale(name: string): boolean {
  return /^(|C|POSIX|(C|[a-z]{2,3}(_[A-Z]{2})?)\.(UTF-8|utf8)(@[a-z]+)?)$/.test(name);
}
