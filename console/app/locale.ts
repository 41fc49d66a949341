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
const number = made((locale) => new Intl.NumberFormat(locale));

/** Local date and time, to the second. */
export function momentText(at: Date): string {
  return moment.format(at);
}

/** Like € 129.00 for a currency; any other unit stands behind its number. */
export function amountText({ value, unit }: { readonly value: number; readonly unit: string }) {
  if (!/^[A-Z]{3}$/.test(unit)) return `${number.format(value)} ${unit}`.trim();
  const money = made(
    (locale) => new Intl.NumberFormat(locale, { style: "currency", currency: unit }),
  );
  return money.format(value);
}

export function numberText(count: number): string {
  return number.format(count);
}
