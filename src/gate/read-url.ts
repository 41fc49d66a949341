import { isPrivateAddress } from "../util/private-address.ts";
import { type HostIdentity, isAddress, parseUrl, plainHost } from "./host-pattern.ts";

const PORTS: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

/** Names that lead to this machine, this network or the cloud's own services, wherever they are looked up. */
const INTERNAL_NAMES = [
  "localhost",
  "localdomain",
  "local",
  "internal",
  "intranet",
  "private",
  "corp",
  "home",
  "lan",
  "home.arpa",
  "test",
  "invalid",
  "example",
  "onion",
];

export type ReadUrl =
  | { readonly ok: true; readonly identity: HostIdentity }
  /** Why it may not be fetched at all, as the rest of a sentence. */
  | { readonly ok: false; readonly why: string };

/** Parses an address as fetch does and refuses what must never be fetched, as far as its letters tell. */
export function readUrl(text: string): ReadUrl {
  const url = parseUrl(text);
  if (url === undefined) return refuse("it is not a complete address such as https://example.com/");
  const port = PORTS[url.protocol];
  if (port === undefined) return refuse("only http and https addresses can be fetched");
  if (url.username !== "" || url.password !== "") {
    return refuse("it holds a user name or password, which also hides the real host");
  }
  const host = plainHost(url.hostname);
  if (host === "" || host.endsWith(".")) return refuse("it names no host");
  if (isAddress(host)) {
    if (isPrivateAddress(host)) {
      return refuse(
        "the host is an address of this machine, a private network or a cloud's own service",
      );
    }
  } else if (isInternalName(host)) {
    return refuse("the host is a name of this machine or of an internal network");
  }
  return { ok: true, identity: { host, port: url.port === "" ? port : Number(url.port) } };
}

function isInternalName(host: string): boolean {
  // A name without a dot is looked up in the local network.
  return !host.includes(".") || INTERNAL_NAMES.some((name) => host.endsWith(`.${name}`));
}

function refuse(why: string): ReadUrl {
  return { ok: false, why };
}
