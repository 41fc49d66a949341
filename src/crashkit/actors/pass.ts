import { newSecret, type Secret } from "../../http/secret.ts";
import type { Role as MayDo } from "../../model/identity.ts";
import type { Store } from "../../store/store.ts";
import { seededRandom } from "../../util/random.ts";
import type { ActorPlan, Role } from "./actor.ts";

/** Who an actor is, and what it may do through the server. */
const USERS: Readonly<Partial<Record<Role, { kind: string; roles: readonly MayDo[] }>>> = {
  agent: { kind: "agent", roles: ["agent"] },
  reviewer: { kind: "person", roles: ["reviewer", "operator"] },
};

const LIFE_MS = 24 * 3_600_000;

/** The token that whoever plays this part shows to the server. All processes of the run come to the same one. */
export function passOf(
  { name, server }: Pick<ActorPlan, "name" | "server">,
  tenant: string,
): Secret {
  return newSecret(tenant, seededRandom(`${server.secret}/${name}`));
}

/** Made once, before the run: a short life has better things to do. */
export async function makePass(
  store: Store,
  { role, name, server }: Pick<ActorPlan, "role" | "name" | "server">,
): Promise<void> {
  const user = USERS[role];
  if (user === undefined) return;
  const { kind, roles } = user;
  for (const tenant of server.tenants) {
    const { hash } = passOf({ name, server }, tenant);
    const token = { kind: "token", hash, subject: `${kind}:${name}`, roles } as const;
    const terms = { owner: "", note: "crash kit", lifeMs: LIFE_MS };
    await store.tenant(tenant).tokens.make({ ...token, ...terms }, { actor: "crashkit" });
  }
}
