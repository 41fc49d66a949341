import { hash } from "node:crypto";
import type { Delegation } from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import {
  type Identity,
  isRole,
  type Role,
  rolesProblem,
  type Token,
  type TokenKind,
} from "../model/identity.ts";
import { foldName } from "../model/names.ts";
import type { TenantStore } from "../store/store.ts";
import { fromIso } from "../util/clock.ts";
import {
  codeHash,
  cookieHeader,
  newCode,
  newSecret,
  newSessionSecret,
  readSecret,
  type Signed,
  secretOf,
  withCode,
} from "./authenticate.ts";
import type { Call, Services, SignInTerms } from "./route.ts";

export type SignInServices = Pick<
  Services,
  "store" | "gates" | "random" | "signIn" | "origins" | "door"
>;

/** A link that signs one person in, once and for a short time. Anyone who has it can sign in as that person. */
export async function makeSignInLink(
  person: Identity,
  services: SignInServices,
  actor: string,
  lifeMs: number = services.signIn.linkMs,
): Promise<string> {
  const { tenant, subject, roles, owner } = person;
  const { text, hash } = newSecret(tenant, services.random);
  const link = { kind: "link", hash, subject, roles, owner, note: "", lifeMs } as const;
  await services.store.tenant(tenant).tokens.make(link, { actor });
  services.door.admit(text);
  return `${services.origins.main}/signin?link=${text}`;
}

const TOKEN_MS = 30 * 24 * 3_600_000;

/** How long a token lives: 30 days unless asked otherwise. Throws invalid_input for more than this server gives. */
function lifeOf(lifeMs: number | undefined, { tokenMs }: SignInTerms): number {
  if (lifeMs === undefined) return Math.min(TOKEN_MS, tokenMs);
  if (lifeMs <= tokenMs) return lifeMs;
  const hint = `A token lives for at most ${tokenMs} ms here (http.signIn.tokenMs); rotate it before it ends.`;
  throw new SallyportError("invalid_input", { what: "lifeMs", hint });
}

/**
 * Another secret for the same program. The old one works for `overlapMs` more, so that every copy of it can be replaced
 * without an interruption. Throws not_found, illegal_transition for one that ended, not_allowed for one that no admin made.
 */
export async function rotateToken(
  { id, overlapMs, ...asked }: RotatedToken,
  { store, random, door, signIn }: SignInServices,
  { tenant, subject: actor }: Identity,
): Promise<{ readonly token: Token; readonly secret: string }> {
  const lifeMs = lifeOf(asked.lifeMs, signIn);
  const { hash, text: secret } = newSecret(tenant, random);
  const { tokens } = store.tenant(tenant);
  const token = await tokens.rotate(id, { hash, lifeMs, overlapMs }, { actor });
  door.admit(`Bearer ${secret}`);
  return { token, secret };
}

interface RotatedToken {
  readonly id: string;
  readonly overlapMs: number;
  readonly lifeMs?: number | undefined;
}

/** A token for a program. Its secret is shown only now; its hash is stored. */
export async function makeToken(
  given: NewServerToken & { readonly tenant: string },
  { store, random, door, signIn }: SignInServices,
  actor: string,
): Promise<{ readonly token: Token; readonly secret: string }> {
  const { tenant, subject, roles, owner = "", note = "", taskRoles = [] } = given;
  const lifeMs = lifeOf(given.lifeMs, signIn);
  const { hash, text: secret } = newSecret(tenant, random);
  const kind = "token";
  const fresh = { kind, hash, subject, roles, owner, note, lifeMs, taskRoles } as const;
  const token = await store.tenant(tenant).tokens.make(fresh, { actor });
  door.admit(`Bearer ${secret}`);
  return { token, secret };
}

/**
 * The token of a sub-agent: the delegation's own proof with the tenant before it, so that its holder can do what the
 * delegation allows and nothing else. It ends with the delegation's time.
 */
export async function makeSubagentToken(
  { id, scope }: Pick<Delegation, "id" | "scope">,
  proof: string,
  { identity, services, by, store }: Call,
): Promise<string> {
  const { text, hash } = secretOf(identity.tenant, proof);
  const lifeMs = Math.max(1_000, fromIso(scope.expiresAt) - services.clock.now());
  const roles = ["subagent"] as const;
  const token = { kind: "token", hash, subject: id, roles, owner: "", note: "", lifeMs } as const;
  await store.tokens.make(token, { actor: by });
  services.door.admit(`Bearer ${text}`);
  return text;
}

/** The half of a token that is not the tenant. */
export function proofOf({ secret }: Signed): string {
  return secret.text.slice(secret.text.indexOf(".") + 1);
}

export interface NewServerToken extends Partial<Identity> {
  readonly subject: string;
  readonly roles: readonly Role[];
  readonly lifeMs?: number;
  readonly note?: string;
  /** Tasks that ask for one of these roles may be claimed with it; the others are for tokens that have theirs. */
  readonly taskRoles?: readonly string[];
}

/**
 * Asks another admin to confirm that this person may sign in. The inviter gets a code, the confirmer a link, and signing in
 * needs both: neither admin alone can sign in as the person they invite.
 */
export async function invite(
  person: Identity,
  services: SignInServices,
  actor: string,
): Promise<{ readonly id: string; readonly code: string }> {
  const { tenant, subject, roles, owner } = person;
  const code = newCode(services.random);
  const hash = codeHash(tenant, code);
  const lifeMs = services.signIn.inviteMs;
  const waiting = { kind: "link", hash, subject, roles, owner, note: "", lifeMs } as const;
  const { id } = await services.store.tenant(tenant).tokens.invite(waiting, { actor });
  return { id, code };
}

/** The confirmer's half. Throws not_found, not_allowed for the inviter, illegal_transition when it has expired. */
export async function linkOfInvite(
  id: string,
  services: SignInServices,
  { tenant, subject: actor }: Identity,
): Promise<string> {
  const { text } = newSecret(tenant, services.random);
  const lifeMs = services.signIn.inviteMs;
  const { tokens } = services.store.tenant(tenant);
  await tokens.confirm(id, (half) => ({ hash: withCode(text, half), lifeMs }), { actor });
  services.door.admit(text);
  return `${services.origins.main}/signin?link=${text}&needs=code`;
}

/** The two halves of a new session, as they leave the server: one in a header, the other for the page alone. */
export interface NewPersonSession {
  /** A `Set-Cookie` header. */
  readonly cookie: string;
  /** The page key; shown only once. */
  readonly key: string;
}

/** A new session; undefined when the link was used, revoked or has expired, or the code is wrong. */
export async function redeemSignInLink(
  { link: text, code }: { readonly link: string; readonly code: string },
  services: SignInServices,
): Promise<NewPersonSession | undefined> {
  const secret = readSecret(text);
  if (secret === undefined || !Object.hasOwn(services.gates, secret.tenant)) return undefined;
  const { tokens } = services.store.tenant(secret.tenant);
  const half = code === "" ? undefined : codeHash(secret.tenant, code);
  const link = await tokens.find(half === undefined ? secret.hash : withCode(text, half));
  if (link?.kind !== "link") return undefined;
  const session = newSession(link, services);
  const made = await tokens.exchange(link, session.token);
  if (made === undefined) return undefined;
  services.door.admit(session.text);
  return session;
}

/** A sign-in verified by an identity provider. */
export async function signInPerson(
  person: Identity,
  services: SignInServices,
): Promise<NewPersonSession> {
  const { token, cookie, key, text } = newSession(person, services);
  const { subject: actor } = person;
  await services.store.tenant(person.tenant).tokens.make(token, { actor });
  services.door.admit(text);
  return { cookie, key };
}

function newSession(person: Identity | Token, { random, signIn: terms, origins }: SignInServices) {
  const { tenant, subject, roles, owner } = person;
  const { text, key, hash } = newSessionSecret(tenant, random);
  const { cookie: name, sessionMs: lifeMs } = terms;
  const token = { kind: "session", hash, subject, roles, owner, note: "", lifeMs } as const;
  const cookie = cookieHeader({
    name,
    value: text,
    maxAgeMs: lifeMs,
    secure: origins.isSecure,
    sameSite: "Strict",
  });
  return { token, cookie, key, text };
}

// Who counts as a person, and who as a program. Names are compared folded, so that names that look the same are the same.

/** A program never gets a person's name, so that the trail never attributes its actions to a person. */
export async function checkProgramName(subject: string, call: Call): Promise<void> {
  const { identity } = call;
  const folded = foldName(subject);
  const isPerson =
    folded === "" ||
    folded.startsWith("person:") ||
    folded === foldName(identity.subject) ||
    (await knownPeople(call)).has(folded);
  if (!isPerson) return;
  const hint =
    "This is a person's name. People sign in with a link or with their organisation; use people.invite for a new one, and another name for a program.";
  throw new SallyportError("not_allowed", { what: "subject", hint });
}

/** Folded names of everyone who was ever invited, got a link or signed in, and of those that the host lists. */
export async function knownPeople({ store, gate }: Call): Promise<ReadonlySet<string>> {
  const known = new Set((gate.people ?? []).map(({ id }) => foldName(id)));
  for (const kind of ["session", "link"] as const) {
    for await (const { subject } of tokensOf(store, kind)) known.add(foldName(subject));
  }
  return known;
}

/**
 * Folded names of admins who have signed in, also of those signed out since: revoking another admin's sessions must not make
 * an admin the only one.
 */
export async function knownAdmins(store: TenantStore): Promise<ReadonlySet<string>> {
  const admins = new Set<string>();
  for await (const { subject, roles } of tokensOf(store, "session")) {
    if (roles.includes("admin")) admins.add(foldName(subject));
  }
  return admins;
}

export async function knownPrograms(store: TenantStore): Promise<ReadonlySet<string>> {
  const programs = new Set<string>();
  for await (const { subject } of tokensOf(store, "token")) programs.add(foldName(subject));
  return programs;
}

/** Every live session and link of this person, under any spelling. */
export async function liveOf(store: TenantStore, subject: string): Promise<readonly Token[]> {
  const folded = foldName(subject);
  const found: Token[] = [];
  for (const kind of ["session", "link"] as const) {
    for await (const token of tokensOf(store, kind)) {
      if (token.isLive && foldName(token.subject) === folded) found.push(token);
    }
  }
  return found;
}

const PAGE = 500;

/** Signs a person out on every device: ends their sessions and unused links, under any spelling of the name. Says how many. */
export async function signOutEverywhere(
  { store, services, by }: Call,
  subject: string,
  reason: string,
): Promise<number> {
  let ended = 0;
  for (const token of await liveOf(store, subject)) {
    if (await store.tokens.end(token.id, reason, { actor: by })) ended += 1;
  }
  services.authenticator.forget();
  return ended;
}

/** All tokens of a kind, oldest first. */
export async function* tokensOf({ tokens }: TenantStore, kind: TokenKind): AsyncGenerator<Token> {
  for (let after = 0; ; ) {
    const page = await tokens.list({ kind, after, limit: PAGE });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.ord;
  }
}

/** Sign-in with an OpenID provider: it says who a person is; `groups` or `identify` says what they may do here. */
export interface OidcOptions {
  readonly issuer: string;
  readonly clientId: string;
  /** Omitted for a public client; PKCE protects the code in either case. */
  readonly clientSecret?: string;
  readonly scope?: string;
  /**
   * The provider must have seen the person within this time; `signIn.freshMs` when left out. So a sign-in is a proof of
   * presence, also when it is asked for again before something irreversible is approved.
   */
  readonly maxAgeSeconds?: number;
  /** `not_asked` for a provider that does not know `max_age`: then any sign-in counts as fresh. */
  readonly presence?: "proved" | "not_asked";
  /** Which groups of the provider have which roles here. A person in none of them is not signed in. */
  readonly groups?: GroupRoles;
  /** Maps the claims of a verified id token to a person, instead of `groups`; undefined refuses the sign-in. Shape: callback. */
  readonly identify?: (claims: Readonly<Record<string, unknown>>) => Identity | undefined;
}

export interface GroupRoles {
  /** The claim that lists a person's groups; `groups` when left out. */
  readonly claim?: string;
  readonly roles: Readonly<Record<string, readonly Role[]>>;
  /** The claim that names a person, as `person:NAME`; `sub` when left out. An `email` counts only when it is verified. */
  readonly subject?: string;
  /** The first one that is served when left out. */
  readonly tenant?: string;
}

const PERSON_ROLES: readonly Role[] = ["reviewer", "operator", "auditor", "admin"];

/** Throws TypeError for groups that would sign programs in, or no one. */
function identifyByGroups(groups: GroupRoles, firstTenant: string): Identify {
  const { claim = "groups", roles: rolesOf, subject: nameClaim = "sub" } = groups;
  const { tenant = firstTenant } = groups;
  for (const [group, roles] of Object.entries(rolesOf)) {
    const wrong = roles.find((role) => !PERSON_ROLES.includes(role));
    if (wrong === undefined && roles.length > 0) continue;
    const problem = wrong === undefined ? "no role" : `the role "${wrong}"`;
    throw new TypeError(
      `oidc.groups.roles["${group}"] has ${problem}; the roles of people are ${PERSON_ROLES.join(", ")}.`,
    );
  }
  return (claims) => {
    const name = claims[nameClaim];
    if (typeof name !== "string" || name === "") return undefined;
    if (nameClaim === "email" && claims["email_verified"] !== true) return undefined;
    const listed = claims[claim];
    const own = Array.isArray(listed) ? listed.filter((one) => typeof one === "string") : [];
    const roles = new Set(
      own.flatMap((group) => (Object.hasOwn(rolesOf, group) ? (rolesOf[group] ?? []) : [])),
    );
    // Roles that exclude each other, such as auditor and admin, sign no one in.
    if (rolesProblem([...roles]) !== undefined) return undefined;
    return { tenant, subject: `person:${name}`, roles: [...roles], owner: "" };
  };
}

type Identify = NonNullable<OidcOptions["identify"]>;

/** Throws TypeError unless exactly one of both says what people may do. */
function identifyOf({ identify, groups }: OidcOptions, firstTenant: string): Identify {
  if (identify !== undefined && groups === undefined) return identify;
  if (groups !== undefined && identify === undefined) return identifyByGroups(groups, firstTenant);
  throw new TypeError(
    "oidc needs either `groups` or `identify`: it says who a person is, and one of them what they may do.",
  );
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
export function signInWithOidc(
  options: OidcOptions,
  terms: { readonly tenant: string; readonly freshMs: number },
): SignInWithOidc {
  const { scope = "openid profile email", presence = "proved" } = options;
  const identify = identifyOf(options, terms.tenant);
  const { maxAgeSeconds: most = Math.ceil(terms.freshMs / 1_000) } = options;
  const maxAgeSeconds = presence === "proved" ? most : undefined;
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

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

const STYLE = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:32rem;margin:12vh auto;padding:0 1.25rem}
button,a.button{display:inline-block;font:inherit;padding:.6rem 1.4rem;border-radius:.5rem;border:1px solid;cursor:pointer;text-decoration:none;color:inherit;background:none}`;

/** The hash of the one inline style of the server's pages, for their content security policy. */
export const STYLE_HASH = `'sha256-${sha256Base64(STYLE)}'`;

/** A page without scripts. `body` is HTML; untrusted parts must be escaped. */
export function htmlPage(title: string, body: string, head = ""): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">${head}<title>${escapeHtml(title)}</title><style>${STYLE}</style></head><body><main><h1>${escapeHtml(title)}</h1>${body}</main></body></html>`;
}

/** Where the page key is kept in the browser: storage belongs to one origin, port included. The console reads the same name. */
const PAGE_KEY_NAME = "sallyport-key";

/** A constant text, so that the content security policy can allow it by hash. */
const KEEP_KEY = `const of=(n)=>document.querySelector('meta[name="'+n+'"]').content;localStorage.setItem("${PAGE_KEY_NAME}",of("sallyport-key"));location.replace(of("sallyport-next"));`;
export const KEEP_KEY_HASH = `'sha256-${sha256Base64(KEEP_KEY)}'`;

/** What a browser gets once after signing in: it stores the key and continues to `next`. */
export function signedInPage(key: string, next: string): string {
  const meta = (name: string, content: string) =>
    `<meta name="${name}" content="${escapeHtml(content)}">`;
  const head = meta("sallyport-key", key) + meta("sallyport-next", next);
  const body = `<p>You are signed in.</p><p><a href="${escapeHtml(next)}">Continue</a></p><noscript><p>The console needs JavaScript.</p></noscript><script>${KEEP_KEY}</script>`;
  return htmlPage("Signed in", body, head);
}

function sha256Base64(text: string): string {
  return hash("sha256", text, "base64");
}

/**
 * For pages: only our own scripts and styles, no inline code, no plugins, no framing, and the browser refuses to turn
 * text into code (Trusted Types). `styles` and `scripts` are hashes of inline ones.
 */
export function contentSecurityPolicy(
  styles: readonly string[] = [],
  scripts: readonly string[] = [],
): string {
  return [
    "default-src 'none'",
    `script-src 'self' ${scripts.join(" ")}`.trim(),
    `style-src 'self' ${styles.join(" ")}`.trim(),
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}
