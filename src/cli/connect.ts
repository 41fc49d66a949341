import { createInterface } from "node:readline/promises";
import { type Client, createClient, signIn } from "../client/index.ts";
import { SallyportError } from "../model/errors.ts";
import { errorText } from "../util/error-text.ts";
import { readLocalAccess } from "./local-access.ts";
import { shown } from "./render.ts";

export interface Shared {
  readonly data: string;
  readonly url?: string;
  readonly token?: string;
  /** A sign-in link: the command is then done as that person. */
  readonly link?: string;
  readonly json?: boolean;
}

/** The server that was named, or the one that runs here. Throws store_unavailable when there is none. */
export function connect({ data, ...named }: Shared): Client {
  const { SALLYPORT_URL, SALLYPORT_TOKEN } = process.env;
  const local = readLocalAccess(data);
  const url = named.url ?? SALLYPORT_URL ?? local?.url;
  const token = named.token ?? SALLYPORT_TOKEN ?? (url === local?.url ? local?.token : undefined);
  if (url === undefined || token === undefined) {
    const hint =
      url === undefined
        ? `No server runs over ${data}. Start one with "sallyport serve", or name one with --url and --token.`
        : "Say who you are with --token or SALLYPORT_TOKEN.";
    throw new SallyportError("store_unavailable", { what: "server", hint });
  }
  return createClient({ url, token });
}

/**
 * Does work that counts only from a person: signs in with the link that was given or typed, and out at the end. The session is
 * kept in memory only: on disk, an agent on the same machine could read it. Without a link and without a terminal to ask on,
 * the server is asked with the token there is and says what it refuses.
 */
export async function asPerson<Done>(
  shared: Shared,
  work: (client: Client) => Promise<Done>,
): Promise<Done> {
  const link = shared.link ?? (await askForLink(shared));
  if (link === "") return work(connect(shared));
  const { url, session } = await signIn({ link });
  const client = createClient({ url, session });
  try {
    return await work(client);
  } finally {
    await client.signOut().catch((error: unknown) => {
      process.stderr.write(`Not signed out: ${shown(errorText(error))}\n`);
    });
  }
}

async function askForLink({ token }: Shared): Promise<string> {
  const isNamed = token !== undefined || process.env["SALLYPORT_TOKEN"] !== undefined;
  if (isNamed || !process.stdin.isTTY || !process.stderr.isTTY) return "";
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return (await terminal.question("Paste a sign-in link: ")).trim();
  } finally {
    terminal.close();
  }
}
