import { problemIn } from "./send.ts";

/** The two halves of a person's session. Both are needed with every request; keep them in memory only. */
export interface Session {
  /** `name=value`, as it goes into a `Cookie` header. */
  readonly cookie: string;
  readonly key: string;
}

export interface SignInOptions {
  /** The address that was printed, or that a second device made. It works once. */
  readonly link: string;
  /** The inviter's half, for a link that two admins made. */
  readonly code?: string;
  readonly fetch?: typeof fetch;
}

export interface SignedIn {
  /** The server that the link is of. */
  readonly url: string;
  readonly session: Session;
}

/**
 * Uses a sign-in link up, for a program that a person sits in front of. Throws unauthenticated when the link was used or is too
 * old, TypeError when it is no link.
 */
export async function signIn(options: SignInOptions): Promise<SignedIn> {
  const { link, code = "", fetch: send = fetch } = options;
  const address = URL.parse(link.trim());
  const secret = address?.searchParams.get("link");
  if (address === null || secret == null || !/^https?:$/.test(address.protocol)) {
    throw new TypeError(
      "signIn: that is not a sign-in link; it looks like http://…/signin?link=….",
    );
  }
  const response = await send(`${address.origin}/signin`, {
    method: "POST",
    headers: { Accept: "application/json", Origin: address.origin },
    body: new URLSearchParams(code === "" ? { link: secret } : { link: secret, code }),
    redirect: "error",
  });
  if (!response.ok) throw await problemIn(response);
  const { key } = (await response.json()) as { key: string };
  const cookie = response.headers.getSetCookie()[0]?.split(";")[0] ?? "";
  return { url: address.origin, session: { cookie, key } };
}
