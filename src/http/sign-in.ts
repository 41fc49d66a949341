import { SallyportError } from "../model/errors.ts";
import type { Identity, Token, TokenKind } from "../model/identity.ts";
import { foldName } from "../model/names.ts";
import type { TenantStore } from "../store/store.ts";
import {
  codeHash,
  cookieHeader,
  newCode,
  newSecret,
  newSessionSecret,
  readSecret,
  withCode,
} from "./authenticate.ts";
import type { Call } from "./route.ts";
import type { Services } from "./services.ts";

export type SignInServices = Pick<
  Services,
  "store" | "gates" | "random" | "signIn" | "origins" | "door"
>;

/** A link that signs one person in, once and for a short time. Whoever has it is that person. */
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
export interface NewSession {
  /** A `Set-Cookie` header. */
  readonly cookie: string;
  /** The page key; shown only once. */
  readonly key: string;
}

/** A new session; undefined when the link was used, revoked or has expired, or the code is wrong. */
export async function redeemSignInLink(
  { link: text, code }: { readonly link: string; readonly code: string },
  services: SignInServices,
): Promise<NewSession | undefined> {
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
export async function signIn(person: Identity, services: SignInServices): Promise<NewSession> {
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
    for await (const { subject } of allOf(store, kind)) known.add(foldName(subject));
  }
  return known;
}

/**
 * Folded names of admins who have signed in, also of those signed out since: revoking another admin's sessions must not make
 * an admin the only one.
 */
export async function knownAdmins(store: TenantStore): Promise<ReadonlySet<string>> {
  const admins = new Set<string>();
  for await (const { subject, roles } of allOf(store, "session")) {
    if (roles.includes("admin")) admins.add(foldName(subject));
  }
  return admins;
}

export async function knownPrograms(store: TenantStore): Promise<ReadonlySet<string>> {
  const programs = new Set<string>();
  for await (const { subject } of allOf(store, "token")) programs.add(foldName(subject));
  return programs;
}

/** Every live session and link of this person, under any spelling. */
export async function liveOf(store: TenantStore, subject: string): Promise<readonly Token[]> {
  const folded = foldName(subject);
  const found: Token[] = [];
  for (const kind of ["session", "link"] as const) {
    for await (const token of allOf(store, kind)) {
      if (token.isLive && foldName(token.subject) === folded) found.push(token);
    }
  }
  return found;
}

const PAGE = 500;

async function* allOf({ tokens }: TenantStore, kind: TokenKind): AsyncGenerator<Token> {
  for (let after = 0; ; ) {
    const page = await tokens.list({ kind, after, limit: PAGE });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.ord;
  }
}
