import { SallyportError } from "../model/errors.ts";
import { type Identity, isRole } from "../model/identity.ts";

/** Sign-in with an OpenID provider: it says who a person is, `identify` what they may do here. */
export interface OidcOptions {
  readonly issuer: string;
  readonly clientId: string;
  /** Omitted for a public client; PKCE protects the code in either case. */
  readonly clientSecret?: string;
  readonly scope?: string;
  /** Ask the provider for a sign-in that is not older than this. */
  readonly maxAgeSeconds?: number;
  /** Maps the claims of a verified id token to a person; undefined refuses the sign-in. Shape: callback. */
  readonly identify: (claims: Readonly<Record<string, unknown>>) => Identity | undefined;
}

export interface SignInWithOidc {
  /** Where to redirect the person, and what to remember until they return. */
  begin(redirectUri: string): Promise<{ readonly url: string; readonly memory: string }>;
  /** Who returned. Throws unauthenticated when the response does not belong to a request of this server. */
  finish(url: string, memory: string): Promise<Identity | undefined>;
}

interface Memory {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** The code flow with PKCE, state and nonce. The provider's discovery document is read at the first sign-in. */
export function signInWithOidc(options: OidcOptions): SignInWithOidc {
  const { scope = "openid profile email", maxAgeSeconds, identify } = options;
  let connecting: ReturnType<typeof connect> | undefined;
  async function connected() {
    connecting ??= connect(options);
    try {
      return await connecting;
    } catch (error) {
      // The provider may be reachable again at the next sign-in.
      connecting = undefined;
      throw new SallyportError("unauthenticated", { hint: NO_PROVIDER }, error);
    }
  }
  return {
    async begin(redirectUri) {
      const { client, config } = await connected();
      const memory: Memory = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
      };
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope,
        state: memory.state,
        nonce: memory.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(memory.verifier),
        code_challenge_method: "S256",
        ...(maxAgeSeconds === undefined ? {} : { max_age: String(maxAgeSeconds) }),
      });
      const text = Buffer.from(JSON.stringify(memory)).toString("base64url");
      return { url: url.href, memory: text };
    },
    async finish(url, memory) {
      const { client, config } = await connected();
      const { state, nonce, verifier } = readMemory(memory);
      let claims: Readonly<Record<string, unknown>> | undefined;
      try {
        const tokens = await client.authorizationCodeGrant(config, new URL(url), {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
          ...(maxAgeSeconds === undefined ? {} : { maxAge: maxAgeSeconds }),
        });
        claims = tokens.claims();
      } catch (error) {
        throw new SallyportError("unauthenticated", { hint: NOT_OURS }, error);
      }
      const person = claims === undefined ? undefined : identify(claims);
      // An agent is a program with a token; no one signs in as one.
      const isPerson = person?.roles.every((role) => isRole(role) && role !== "agent") ?? false;
      return isPerson ? person : undefined;
    },
  };
}

const NO_PROVIDER = "The identity provider does not answer. Try again, or use a sign-in link.";
const NOT_OURS = "This does not belong to a sign-in that started here. Start again.";

/** Loaded only when used: it is an optional dependency. */
async function connect({ issuer, clientId, clientSecret }: OidcOptions) {
  const client = await import("openid-client");
  const server = new URL(issuer);
  const isLocal = ["127.0.0.1", "localhost", "[::1]"].includes(server.hostname);
  // By default the client trusts the TLS connection and does not verify the id token's signature.
  const always = [client.enableNonRepudiationChecks];
  const execute = isLocal ? [...always, client.allowInsecureRequests] : always;
  const auth = clientSecret === undefined ? client.None() : client.ClientSecretPost(clientSecret);
  const config = await client.discovery(server, clientId, undefined, auth, { execute });
  return { client, config };
}

function readMemory(text: string): Memory {
  try {
    const value = JSON.parse(Buffer.from(text, "base64url").toString("utf8")) as Partial<Memory>;
    const { state, nonce, verifier } = value;
    if ([state, nonce, verifier].every((part) => typeof part === "string" && part !== "")) {
      return value as Memory;
    }
  } catch {
    // The same answer as for memory that is incomplete.
  }
  throw new SallyportError("unauthenticated", { hint: NOT_OURS });
}
