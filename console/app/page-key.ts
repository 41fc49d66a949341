/** Written by the page that signs in. Storage belongs to one origin, port included; the cookie does not. */
const NAME = "sallyport-key";

/** Read with every request: another tab may have signed in again. */
export function pageKey(): string | undefined {
  return localStorage.getItem(NAME) ?? undefined;
}

export function keepPageKey(key: string): void {
  localStorage.setItem(NAME, key);
}

export function forgetPageKey(): void {
  localStorage.removeItem(NAME);
}

/** Calls back when another tab signs in or out. Returns how to stop. */
export function onPageKey(listener: () => void): () => void {
  const heard = ({ key }: StorageEvent) => {
    if (key === NAME || key === null) listener();
  };
  addEventListener("storage", heard);
  return () => removeEventListener("storage", heard);
}
