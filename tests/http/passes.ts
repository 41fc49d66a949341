// What people and programs show to a server, as one text that can be handed to another process: people both halves of a
// session, programs a bearer token.

import { type Client, type ClientOptions, createClient, signIn } from "../../src/client/index.ts";
import type { Server } from "../../src/http/index.ts";

/** A person who has just signed in by a link, as a text for `credentials` and `clientOf`. */
export async function newSession(
  server: Server,
  person: Parameters<Server["signInLink"]>[0],
): Promise<string> {
  return passOf(await server.signInLink(person));
}

/** Uses a sign-in link up. */
export async function passOf(link: string): Promise<string> {
  const { url, session } = await signIn({ link });
  return [url, session.cookie, session.key].join(" ");
}

/** A client with this pass, at any server over the same store: the cookie's name has the server's port. */
export function clientOf(
  url: string,
  pass: string,
  options: Omit<ClientOptions, "url" | "token" | "session"> = {},
): Client {
  const [, cookie = "", key = ""] = pass.split(" ");
  if (cookie === "") return createClient({ url, token: pass, ...options });
  const here = cookie.replace(/^sallyport_\d+/, `sallyport_${new URL(url).port}`);
  return createClient({ url, session: { cookie: here, key }, ...options });
}

export function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}`, "content-type": "application/json" };
}

/** The headers of this pass. */
export function credentials(pass: string): Record<string, string> {
  const [origin = "", cookie = "", key = ""] = pass.split(" ");
  if (cookie === "") return bearer(pass);
  return { cookie, origin, "x-sallyport-key": key, "content-type": "application/json" };
}
