/** Who is spoken to: a host in its one spelling, and a port. */
export interface HostIdentity {
  /** Lower case, punycode, addresses in their canonical form, without brackets and without a trailing dot. */
  readonly host: string;
  readonly port: number;
}

export interface HostPattern extends HostIdentity {
  /** True for `*.example.com`, which holds every name below example.com but not itself. */
  readonly below: boolean;
}

const HTTPS_PORT = 443;

/** Reads `example.com`, `*.example.com`, `[::1]:8080`, `bücher.example:444`; undefined for anything else. */
export function parseHostPattern(pattern: string): HostPattern | undefined {
  const below = pattern.startsWith("*.");
  const rest = below ? pattern.slice(2) : pattern;
  if (rest === "" || /[\s/?#@\\*%]/.test(rest)) return undefined;
  const url = parseUrl(`https://${rest}/`);
  if (url === undefined || url.username !== "" || url.password !== "") return undefined;
  const host = plainHost(url.hostname);
  // `*.com` would open half the internet, and addresses have no names below them.
  if (below && (!host.includes(".") || isAddress(host))) return undefined;
  return { below, host, port: url.port === "" ? HTTPS_PORT : Number(url.port) };
}

export function matchHost({ host, port }: HostIdentity, pattern: HostPattern): boolean {
  if (port !== pattern.port) return false;
  return pattern.below ? host.endsWith(`.${pattern.host}`) : host === pattern.host;
}

/** WHATWG parsing, as fetch itself does it: octal, hexadecimal and short addresses come out in their one form. */
export function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** Without the brackets of an address and without the root's dot, which names the same host. */
export function plainHost(hostname: string): string {
  const bare = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
  return bare.endsWith(".") ? bare.slice(0, -1) : bare;
}

export function isAddress(host: string): boolean {
  return host.includes(":") || /^\d+\.\d+\.\d+\.\d+$/.test(host);
}
