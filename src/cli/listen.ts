// Where a server listens and how it is reached: what flags and configuration make of each other, and what is refused.

import { readFileSync } from "node:fs";
import { isLoopbackHost, type ServerOptions } from "../http/index.ts";
import { SallyportError } from "../model/errors.ts";
import { definedFields } from "../util/defined-fields.ts";
import { errorText } from "../util/error-text.ts";

/** The part of the configuration about the server. */
export interface HttpConfig
  extends Pick<ServerOptions, "host" | "trustedProxies" | "oidc" | "signIn" | "audit" | "limits"> {
  /** 0 or left out: a free one. */
  readonly port?: number;
  /** Under which address people and programs reach it from other machines, like https://gate.example.com. */
  readonly publicUrl?: string;
  /** How people sign in from there: `oidc` when that is configured; `links` has to be said. */
  readonly signInBy?: "oidc" | "links";
  /** Files in PEM. They are read again on SIGHUP, so that a renewed certificate needs no restart. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

export interface ListenFlags {
  readonly port?: number;
  readonly host?: string;
  readonly publicUrl?: string;
  readonly trustedProxies?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
}

/** The configuration with the flags over it. */
export function withListenFlags(http: HttpConfig, flags: ListenFlags): HttpConfig {
  const { port, host, publicUrl, trustedProxies, tlsCert, tlsKey } = flags;
  const { cert = tlsCert, key = tlsKey } = { ...http.tls, ...given(tlsCert, tlsKey) };
  if ((cert === undefined) !== (key === undefined)) {
    const hint =
      "TLS needs both files: --tls-cert and --tls-key, or http.tls.cert and http.tls.key.";
    throw new SallyportError("invalid_input", { what: "http.tls", hint });
  }
  return {
    ...http,
    ...definedFields({ port, host, publicUrl }),
    ...(cert !== undefined && key !== undefined ? { tls: { cert, key } } : {}),
    ...(trustedProxies === undefined ? {} : { trustedProxies: listed(trustedProxies) }),
  };
}

function given(cert: string | undefined, key: string | undefined) {
  return definedFields({ cert, key });
}

function listed(text: string): readonly string[] {
  return text
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
}

/** The options of `createServer`. Throws invalid_input with the field and the flag for what would let strangers in. */
export function listenOptions(http: HttpConfig): Partial<ServerOptions> {
  const { port: listenPort, publicUrl, signInBy, tls, ...rest } = http;
  const { host = "127.0.0.1", oidc } = rest;
  const by = signInBy ?? (oidc === undefined ? undefined : "oidc");
  const wrong = (what: string, hint: string) => new SallyportError("invalid_input", { what, hint });
  if (publicUrl === undefined && !isLoopbackHost(host)) {
    const hint = `${host} is reached from other machines: say under which address with --public-url or http.publicUrl, and configure http.oidc so that people sign in.`;
    throw wrong("http.publicUrl", hint);
  }
  if (publicUrl !== undefined && by === undefined) {
    const hint =
      'A server that other machines reach needs a sign-in method: configure http.oidc, or write http.signInBy: "links" if you hand out sign-in links yourself.';
    throw wrong("http.signInBy", hint);
  }
  const auth = by === "oidc" ? "oidc" : "tokens";
  return {
    ...rest,
    ...definedFields({ listenPort, tls: tls && readTls(tls) }),
    ...(publicUrl === undefined
      ? {}
      : { remote: { origins: [publicUrl.replace(/\/$/, "")], auth } }),
  };
}

/** Throws invalid_input that names the file. */
export function readTls({ cert, key }: NonNullable<HttpConfig["tls"]>) {
  return { cert: readPem("http.tls.cert", cert), key: readPem("http.tls.key", key) };
}

function readPem(what: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new SallyportError("invalid_input", { what, hint: `${errorText(error)}.` }, error);
  }
}
