/** The value of one cookie, undefined when it is not there or there twice: then nobody can tell which one is ours. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  if (header === undefined || header.length > 8_192) return undefined;
  const values = header
    .split(";")
    .map((part) => part.trim())
    .filter((part) => part.startsWith(`${name}=`))
    .map((part) => part.slice(name.length + 1));
  return values.length === 1 ? values[0] : undefined;
}

export interface CookieTerms {
  readonly name: string;
  readonly value: string;
  readonly maxAgeMs: number;
  readonly secure: boolean;
  /** `Lax` only where a page of somebody else has to send the person back to us. */
  readonly sameSite: "Strict" | "Lax";
  readonly path?: string;
}

export function cookieHeader(terms: CookieTerms): string {
  const { name, value, maxAgeMs, secure, sameSite, path = "/" } = terms;
  const age = Math.max(0, Math.floor(maxAgeMs / 1_000));
  const parts = [`${name}=${value}`, `Path=${path}`, `Max-Age=${age}`, "HttpOnly"];
  return [...parts, `SameSite=${sameSite}`, ...(secure ? ["Secure"] : [])].join("; ");
}
