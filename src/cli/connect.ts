import { type Client, createClient } from "../client/index.ts";
import { SallyportError } from "../model/errors.ts";
import { readLocalAccess } from "./local-access.ts";

export interface Shared {
  readonly data: string;
  readonly url?: string;
  readonly token?: string;
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
