// Dates and numbers follow the browser's language. A machine without one reports a name such as `en-US@posix`, on which every
// function of Intl throws.

/** The first language of the browser that Intl knows; undefined, which is the engine's own choice, when there is none. */
export const LOCALE: string | undefined = navigator.languages
  .concat(navigator.language)
  .find(isKnown);

function isKnown(language: string | undefined): boolean {
  if (language === undefined || language === "") return false;
  try {
    return Intl.getCanonicalLocales(language).length > 0;
  } catch {
    return false;
  }
}

/**
 * The chart library makes formats of `navigator.language` while it is loaded and has no option for it, so it is given a name
 * that Intl knows. Called before any page is loaded: an import for its side effect alone would be dropped by the bundler.
 */
export function giveKnownLanguage(): void {
  if (isKnown(navigator.language)) return;
  Object.defineProperty(navigator, "language", { value: LOCALE ?? "en", configurable: true });
}

/** The engine's own choice may be the unusable name itself: then plain English is the last resort. */
function made<Format>(make: (locale: string | undefined) => Format): Format {
  try {
    return make(LOCALE);
  } catch {
    return make("en");
  }
}

const moment = made(
  (locale) => new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" }),
);
const clock = made((locale) => new Intl.DateTimeFormat(locale, { timeStyle: "short" }));
const day = made((locale) => new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" }));
const number = made((locale) => new Intl.NumberFormat(locale));

/** Local date and time, to the second. */
export function momentText(at: Date): string {
  return moment.format(at);
}

/** For axes: the time of day, and the day below it. */
export function tickText(at: Date): string {
  return `${clock.format(at)}\n${day.format(at)}`;
}

export function numberText(count: number): string {
  return number.format(count);
}
