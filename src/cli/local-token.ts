import { hostname } from "node:os";
import type { Server } from "../http/index.ts";
import type { TenantStore } from "../store/store.ts";
import type { Token } from "../store/tokens.ts";
import { sha256Hex } from "../util/hash.ts";
import type { StorePlace } from "./open-store.ts";

/** Never a person: what it does stands in the trail as done by this machine's commands. */
const SUBJECT = "local:commands";
const BY = { actor: "server" };
const PAGE = 500;

/**
 * The token of the commands on this machine. It reads, stops and resumes; it neither decides nor administers, because whatever
 * runs here as the same user can read its file, agents included. It ends with the server, and one that a killed server left
 * behind ends when the next one starts.
 */
export async function makeLocalToken(
  server: Server,
  store: TenantStore,
  { data, database }: StorePlace,
): Promise<{ readonly token: string; end(): Promise<void> }> {
  const note = `commands on ${hostname()} over ${data}`.slice(0, 500);
  const isEarlier = (token: Token) =>
    // Servers on other machines may share a database, and each has a token of its own; a file belongs to one folder.
    token.isLive &&
    token.roles.includes("local") &&
    (database === undefined || token.note === note);
  await endAll(store, isEarlier, "the server started again");
  const token = await server.makeToken({
    tenant: store.tenant,
    subject: SUBJECT,
    roles: ["local"],
    note,
  });
  return {
    token,
    async end() {
      const own = await store.tokens.find(sha256Hex(token));
      if (own !== undefined) await store.tokens.end(own.id, "the server stopped", BY);
    },
  };
}

async function endAll(
  store: TenantStore,
  which: (token: Token) => boolean,
  reason: string,
): Promise<void> {
  for (const { id } of (await all(store)).filter(which)) {
    await store.tokens.end(id, reason, BY);
  }
}

async function all({ tokens }: TenantStore): Promise<readonly Token[]> {
  const found: Token[] = [];
  for (let after = 0; ; ) {
    const page = await tokens.list({ kind: "token", after, limit: PAGE });
    found.push(...page);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return found;
    after = last.ord;
  }
}
