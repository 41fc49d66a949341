import type { Identity } from "../model/identity.ts";
import type { Token } from "../store/tokens.ts";
import { cookieHeader } from "./cookie.ts";
import { codeHash, newCode, newSecret, newSessionSecret, readSecret, withCode } from "./secret.ts";
import type { Services } from "./services.ts";

export type SignInServices = Pick<Services, "store" | "ports" | "random" | "signIn" | "origins">;

/** An address that signs one person in, once, and not for long. Whoever has it is that person. */
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
  return `${services.origins.main}/signin?link=${text}`;
}

/**
 * Asks another admin to confirm that this person may sign in. The inviter gets a code, the confirmer a link, and signing in
 * needs both: neither of the two admins alone can become the person they let in.
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

/** The confirmer's half. Throws not_found, not_allowed for whoever invited, illegal_transition when it is over. */
export async function linkOfInvite(
  id: string,
  services: SignInServices,
  { tenant, subject: actor }: Identity,
): Promise<string> {
  const { text } = newSecret(tenant, services.random);
  const lifeMs = services.signIn.inviteMs;
  const { tokens } = services.store.tenant(tenant);
  await tokens.confirm(id, (half) => ({ hash: withCode(text, half), lifeMs }), { actor });
  return `${services.origins.main}/signin?link=${text}&needs=code`;
}

/** The two halves of a new session, as they leave the server: one in a header, the other for the page alone. */
export interface NewSession {
  /** A `Set-Cookie` header. */
  readonly cookie: string;
  /** The page key; shown this once. */
  readonly key: string;
}

/** A new session; undefined when the link was used, ended or is too old, or its code is not the right one. */
export async function redeemSignInLink(
  { link: text, code }: { readonly link: string; readonly code: string },
  services: SignInServices,
): Promise<NewSession | undefined> {
  const secret = readSecret(text);
  if (secret === undefined || !Object.hasOwn(services.ports, secret.tenant)) return undefined;
  const { tokens } = services.store.tenant(secret.tenant);
  const half = code === "" ? undefined : codeHash(secret.tenant, code);
  const link = await tokens.find(half === undefined ? secret.hash : withCode(text, half));
  if (link?.kind !== "link") return undefined;
  const session = newSession(link, services);
  const made = await tokens.exchange(link, session.token);
  return made === undefined ? undefined : session;
}

/** A sign-in of somebody whom another party vouches for. */
export async function signIn(person: Identity, services: SignInServices): Promise<NewSession> {
  const { token, cookie, key } = newSession(person, services);
  const { subject: actor } = person;
  await services.store.tenant(person.tenant).tokens.make(token, { actor });
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
  return { token, cookie, key };
}
