import { SallyportError } from "../model/errors.ts";
import type { TokenKind } from "../model/identity.ts";
import { foldName } from "../model/names.ts";
import type { TenantStore } from "../store/store.ts";
import type { Token } from "../store/tokens.ts";
import type { Call } from "./route.ts";

// Who counts as a person, and who as a program. Names are compared folded: what a reader takes for the same name is the same.

/** A program never gets a person's name, so that nothing in the trail looks like a person who was not there. */
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

/** Folded names of everybody who was ever invited, given a link or signed in, and of those that the host lists. */
export async function knownPeople({ store, port }: Call): Promise<ReadonlySet<string>> {
  const known = new Set((port.people ?? []).map(({ id }) => foldName(id)));
  for (const kind of ["session", "link"] as const) {
    for await (const { subject } of allOf(store, kind)) known.add(foldName(subject));
  }
  return known;
}

/**
 * Folded names of admins who have signed in, also of those who are signed out by now: ending somebody's sessions must not make
 * the one who ends them the only admin.
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
