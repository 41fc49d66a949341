// Where a person wanted to go before they had to sign in. The sign-in may happen in another tab, so it is kept for all of them.

const NAME = "sallyport.return";
const LASTS_MS = 60 * 60_000;

export function rememberPlace(): void {
  const { pathname, search } = location;
  if (pathname === "/" || pathname === "/inbox") return;
  localStorage.setItem(NAME, JSON.stringify({ to: pathname + search, at: Date.now() }));
}

/** The place, once; undefined when there is none, or it is too long ago. Only a path of this page. */
export function takePlace(): string | undefined {
  const text = localStorage.getItem(NAME);
  if (text === null) return undefined;
  localStorage.removeItem(NAME);
  try {
    const { to, at } = JSON.parse(text) as { to?: unknown; at?: unknown };
    const isOurs = typeof to === "string" && /^\/(?!\/)/.test(to);
    return isOurs && Date.now() - Number(at) < LASTS_MS ? to : undefined;
  } catch {
    return undefined;
  }
}
