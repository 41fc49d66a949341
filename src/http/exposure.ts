// How far a server is reached: its host, its addresses, TLS, the proxies in front of it, and what must hold for each.

import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";

export interface ExposureOptions {
  /** 127.0.0.1 unless `remote` is given. */
  readonly host?: string;
  /**
   * For access from other machines: the addresses (https, with TLS here or in front), and how people and programs
   * authenticate. Neither has a default.
   */
  readonly remote?: { readonly origins: readonly string[]; readonly auth: "tokens" | "oidc" };
  /** Certificate chain and key in PEM; without them the server speaks plain HTTP, and TLS is up to a proxy. */
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer };
  /**
   * Addresses, or networks like `10.0.0.0/8`, of the proxies in front. Only what they say in `X-Forwarded-For` is believed:
   * without them all callers behind a proxy share one address, and one of them can use up the limit of the others.
   */
  readonly trustedProxies?: readonly string[];
}

/** Refuses options that would let strangers in. Throws TypeError. */
export function checkExposure(
  { host = "127.0.0.1", remote, trustedProxies = [] }: ExposureOptions,
  hasOidc: boolean,
): void {
  proxyList(trustedProxies);
  if (remote === undefined) {
    if (isLoopbackHost(host)) return;
    throw new TypeError(
      `createServer: ${host} is reached from other machines. Say with \`remote\` under which addresses, and how people sign in.`,
    );
  }
  const problem = remote.origins.map(originProblem).find((text) => text !== undefined);
  if (remote.origins.length === 0 || problem !== undefined) {
    throw new TypeError(`createServer: ${problem ?? "remote.origins must name an address."}`);
  }
  if (remote.auth !== "tokens" && remote.auth !== "oidc") {
    throw new TypeError('createServer: remote.auth must be "tokens" or "oidc".');
  }
  if (remote.auth === "oidc" && !hasOidc) {
    throw new TypeError("createServer: remote.auth is oidc, so `oidc` must be given.");
  }
}

/** Whether only this machine reaches a server that listens there: `localhost`, `::1` or any of 127.0.0.0/8. */
export function isLoopbackHost(host: string): boolean {
  if (host === "localhost" || host === "::1") return true;
  return isIPv4(host) && host.startsWith("127.");
}

/** The origins under which this machine itself reaches a server. */
export function localOrigins(port: number, host: string, isTls: boolean): readonly string[] {
  const own = isLoopbackHost(host) ? [isIPv6(host) ? `[${host}]` : host] : [];
  const names = new Set([...own, "127.0.0.1", "localhost", "[::1]"]);
  return [...names].map((name) => new URL(`http${isTls ? "s" : ""}://${name}:${port}`).origin);
}

/** Why an origin cannot be served; undefined if it can. */
export function originProblem(origin: string): string | undefined {
  const url = URL.parse(origin);
  if (url === null || url.origin !== origin) {
    return `"${origin}" is not an origin; write it like https://gate.example.com, without a path.`;
  }
  const isLocal = isLoopbackHost(url.hostname.replaceAll(/[[\]]/g, ""));
  if (url.protocol === "https:" || (url.protocol === "http:" && isLocal)) return undefined;
  return `"${origin}" would send tokens and cookies in the clear; put TLS in front and use https.`;
}

/** Throws TypeError for what is no address and no network. */
export function proxyList(trusted: readonly string[]): BlockList {
  const list = new BlockList();
  for (const one of trusted) {
    const [address = "", bits, more] = one.split("/");
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    const most = family === "ipv6" ? 128 : 32;
    const isNetwork = bits !== undefined && /^\d{1,3}$/.test(bits) && Number(bits) <= most;
    if (isIP(address) === 0 || more !== undefined || (bits !== undefined && !isNetwork)) {
      throw new TypeError(
        `createServer: trustedProxies has "${one}"; write an address, or a network like 10.0.0.0/8.`,
      );
    }
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}
