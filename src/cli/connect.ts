import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline/promises";
import { type Client, createClient, signIn } from "../client/index.ts";
import { SallyportError } from "../model/errors.ts";
import { errorText } from "../util/error-text.ts";
import { PRIVATE_FILE } from "../util/files.ts";
import { printable } from "./render.ts";

export interface Shared {
  readonly data: string;
  readonly url?: string;
  readonly token?: string;
  /** A sign-in link: the command then runs as that person. */
  readonly link?: string;
  readonly json?: boolean;
}

/** The named server, or the local one. Throws store_unavailable if there is none. */
export function connect({ data, ...named }: Shared): Client {
  const { SALLYPORT_URL, SALLYPORT_TOKEN } = process.env;
  const local = readLocalAccess(data);
  const url = named.url ?? SALLYPORT_URL ?? local?.url;
  const token = named.token ?? SALLYPORT_TOKEN ?? (url === local?.url ? local?.token : undefined);
  if (url === undefined || token === undefined) {
    const hint =
      url === undefined
        ? `No server runs over ${data}. Start one with "sallyport serve", or name one with --url and --token. "sallyport review" and "sallyport interactions list" need none.`
        : "Pass your token with --token or SALLYPORT_TOKEN.";
    throw new SallyportError("store_unavailable", { what: "server", hint });
  }
  return createClient({ url, token });
}

/** Whether the command line or the environment says which server to use. */
export function isServerNamed({ url, token }: Pick<Shared, "url" | "token">): boolean {
  const { SALLYPORT_URL, SALLYPORT_TOKEN } = process.env;
  return [url, token, SALLYPORT_URL, SALLYPORT_TOKEN].some((given) => given !== undefined);
}

/**
 * Runs work that needs a person: signs in with the given or typed link, and out at the end. The session is
 * kept in memory only: on disk, an agent on the same machine could read it. Without a link and without a terminal to ask on,
 * the existing token is used and the server says what it refuses.
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
      process.stderr.write(`Not signed out: ${printable(errorText(error))}\n`);
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

/** How local commands reach the local server. */
export interface LocalAccess {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
}

const NAME = "local.json";

/** Replaced atomically: never half written, and never with the wider permissions of an older file. */
export function writeLocalAccess(data: string, access: LocalAccess): void {
  const file = path.join(data, NAME);
  const next = `${file}.${access.pid}.new`;
  rmSync(next, { force: true });
  writeFileSync(next, `${JSON.stringify(access)}\n`, { mode: PRIVATE_FILE, flag: "wx" });
  renameSync(next, file);
}

/** Undefined when no server has written one. Throws damaged_record. */
export function readLocalAccess(data: string): LocalAccess | undefined {
  const file = path.join(data, NAME);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
  try {
    const { url, token, pid } = JSON.parse(text);
    if (typeof url === "string" && typeof token === "string") return { url, token, pid };
  } catch {
    // Reported below, like any other damage.
  }
  const hint = `Remove ${file} and start the server again.`;
  throw new SallyportError("damaged_record", { id: NAME, hint });
}

/** Removes the file if it is still this server's own. */
export function removeLocalAccess(data: string, own: LocalAccess): void {
  if (isOwn(data, own)) rmSync(path.join(data, NAME), { force: true });
}

function isOwn(data: string, { token, pid }: LocalAccess): boolean {
  try {
    const found = readLocalAccess(data);
    return found?.token === token && found.pid === pid;
  } catch {
    // An unreadable file was not written by this server.
    return false;
  }
}
