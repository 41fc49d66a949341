import type { Identity } from "../model/identity.ts";
import type { Token } from "../store/tokens.ts";
import { cookieHeader } from "./cookie.ts";
import { newSecret, readSecret } from "./secret.ts";
import type { Services } from "./services.ts";

export type SignInServices = Pick<Services, "store" | "ports" | "random" | "signIn" | "origins">;

/** An address that signs one person in, once, and not for long. Whoever has it is that person. */
export async function makeSignInLink(
  person: Identity,
  services: SignInServices,
  actor: string,
): Promise<string> {
  const { tenant, subject, roles, owner } = person;
  const { text, hash } = newSecret(tenant, services.random);
  const lifeMs = services.signIn.linkMs;
  const link = { kind: "link", hash, subject, roles, owner, note: "", lifeMs } as const;
  await services.store.tenant(tenant).tokens.make(link, { actor });
  return `${services.origins.main}/signin?link=${text}`;
}

/** The cookie of a new sign-in; undefined when the link was used, ended or is too old. */
export async function redeemSignInLink(
  text: string,
  services: SignInServices,
): Promise<string | undefined> {
  const secret = readSecret(text);
  if (secret === undefined || !Object.hasOwn(services.ports, secret.tenant)) return undefined;
  const { tokens } = services.store.tenant(secret.tenant);
  const link = await tokens.find(secret.hash);
  if (link?.kind !== "link") return undefined;
  const session = newSession(link, services);
  const made = await tokens.exchange(link, session.token);
  return made === undefined ? undefined : session.cookie;
}

/** A sign-in of somebody whom another party vouches for. */
export async function signIn(person: Identity, services: SignInServices): Promise<string> {
  const { token, cookie } = newSession(person, services);
  const { subject: actor } = person;
  await services.store.tenant(person.tenant).tokens.make(token, { actor });
  return cookie;
}

function newSession(person: Identity | Token, { random, signIn: terms, origins }: SignInServices) {
  const { tenant, subject, roles, owner } = person;
  const { text, hash } = newSecret(tenant, random);
  const { cookie: name, sessionMs: lifeMs } = terms;
  const token = { kind: "session", hash, subject, roles, owner, note: "", lifeMs } as const;
  const cookie = cookieHeader({
    name,
    value: text,
    maxAgeMs: lifeMs,
    secure: origins.isSecure,
    sameSite: "Strict",
  });
  return { token, cookie };
}
