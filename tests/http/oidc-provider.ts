// A small OpenID provider: discovery, a sign-in page that accepts immediately, PKCE, and id tokens that are really signed.

import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export interface Provider {
  readonly issuer: string;
  /** Claims of the next person to sign in. */
  claims: Record<string, unknown>;
  /** What a dishonest provider or a man in the middle changes in an id token. */
  forge: { claims?: Record<string, unknown>; key?: KeyObject; alg?: string; nonce?: string };
  /** Codes that were exchanged. */
  readonly exchanged: string[];
  close(): Promise<void>;
}

interface Grant {
  readonly challenge: string;
  readonly nonce: string;
  readonly redirect: string;
  readonly maxAge: string;
}

export async function startProvider(clientId: string): Promise<Provider> {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const grants = new Map<string, Grant>();
  const exchanged: string[] = [];
  const server: Server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", provider.issuer);
    const json = (value: unknown, status = 200) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(value));
    };
    if (url.pathname === "/.well-known/openid-configuration") {
      const { issuer } = provider;
      return json({
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
        response_types_supported: ["code"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: ["RS256"],
        code_challenge_methods_supported: ["S256"],
      });
    }
    if (url.pathname === "/jwks") {
      return json({
        keys: [{ ...publicKey.export({ format: "jwk" }), kid: "1", use: "sig", alg: "RS256" }],
      });
    }
    if (url.pathname === "/authorize") {
      const get = (name: string) => url.searchParams.get(name) ?? "";
      const code = randomBytes(16).toString("hex");
      grants.set(code, {
        challenge: get("code_challenge"),
        nonce: get("nonce"),
        redirect: get("redirect_uri"),
        maxAge: get("max_age"),
      });
      const back = new URL(get("redirect_uri"));
      back.searchParams.set("code", code);
      back.searchParams.set("state", get("state"));
      response.writeHead(302, { location: back.href });
      return response.end();
    }
    let text = "";
    request.on("data", (chunk) => {
      text += chunk;
    });
    request.on("end", () => {
      const form = new URLSearchParams(text);
      const code = form.get("code") ?? "";
      const grant = grants.get(code);
      const challenge = createHash("sha256")
        .update(form.get("code_verifier") ?? "")
        .digest("base64url");
      grants.delete(code);
      if (
        grant === undefined ||
        grant.challenge !== challenge ||
        grant.redirect !== form.get("redirect_uri")
      ) {
        return json({ error: "invalid_grant" }, 400);
      }
      exchanged.push(code);
      return json({ access_token: "at", token_type: "bearer", id_token: idToken(grant) });
    });
    return undefined;
  });

  /** With `max_age` a provider has to say when the person signed in there; this one has just seen them. */
  function idToken({ nonce, maxAge }: Grant): string {
    const now = Math.floor(Date.now() / 1_000);
    const { forge } = provider;
    const claims = {
      iss: provider.issuer,
      aud: clientId,
      iat: now,
      exp: now + 60,
      nonce,
      ...(maxAge === "" ? {} : { auth_time: now }),
      ...provider.claims,
      ...forge.claims,
    };
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const head = `${part({ alg: forge.alg ?? "RS256", kid: "1" })}.${part(claims)}`;
    if (forge.alg === "none") return `${head}.`;
    return `${head}.${sign("sha256", Buffer.from(head), forge.key ?? privateKey).toString("base64url")}`;
  }

  const provider: Provider = {
    issuer: "",
    claims: { sub: "ada", groups: ["reviewers"] },
    forge: {},
    exchanged,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(provider, { issuer: `http://127.0.0.1:${port}` });
}
