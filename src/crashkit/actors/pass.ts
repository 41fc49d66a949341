import type { ClientOptions } from "../../client/index.ts";
import { newSecret, newSessionSecret, type SessionSecret } from "../../http/secret.ts";
import type { Role as MayDo } from "../../model/identity.ts";
import type { Store } from "../../store/store.ts";
import { seededRandom } from "../../util/random.ts";
import type { ActorPlan, Role } from "./actor.ts";

/** Who an actor is, and what it may do through the server. */
const USERS: Readonly<Partial<Record<Role, { prefix: string; roles: readonly MayDo[] }>>> = {
  agent: { prefix: "agent", roles: ["agent"] },
  reviewer: { prefix: "person", roles: ["reviewer", "operator"] },
};

const LIFE_MS = 24 * 3_600_000;

type Player = Pick<ActorPlan, "role" | "name" | "server">;

/**
 * What an actor shows to the server: a reviewer both halves of a session, an agent a bearer token. All processes of the run
 * derive the same one.
 */
export function passOf(player: Player, tenant: string): Pick<ClientOptions, "token" | "session"> {
  const { text, key } = secretOf(player, tenant);
  if (key === "") return { token: text };
  return { session: { cookie: `sallyport_${player.server.port}=${text}`, key } };
}

/** Its key is empty for a bearer token. */
function secretOf({ role, name, server }: Player, tenant: string): SessionSecret {
  const random = seededRandom(`${server.secret}/${name}`);
  if (role === "reviewer") return newSessionSecret(tenant, random);
  return { ...newSecret(tenant, random), key: "" };
}

/** Made once, before the run: a short life has better things to do. */
export async function makePass(store: Store, player: Player): Promise<void> {
  const { role, name, server } = player;
  const user = USERS[role];
  if (user === undefined) return;
  const { prefix, roles } = user;
  for (const tenant of server.tenants) {
    const { hash, key } = secretOf(player, tenant);
    const kind = key === "" ? "token" : "session";
    const token = { kind, hash, subject: `${prefix}:${name}`, roles } as const;
    const terms = { owner: "", note: "crash kit", lifeMs: LIFE_MS };
    await store.tenant(tenant).tokens.make({ ...token, ...terms }, { actor: "crashkit" });
  }
}
