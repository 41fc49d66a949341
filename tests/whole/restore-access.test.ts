// M7: a backup does not contain later revocations, so a restore ends all access from before.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { main } from "../../src/cli/main.ts";
import { openStore } from "../../src/cli/open-store.ts";
import { createClient, signIn } from "../../src/client/index.ts";
import { createServer } from "../../src/http/index.ts";
import { delegationId } from "../../src/model/delegation.ts";
import type { NewDelegation } from "../../src/store/delegations.ts";
import type { Store } from "../../src/store/store.ts";
import { drillPort, TENANT } from "./restore-world.ts";

const BY = { actor: "person:ada" };

const DELEGATION: NewDelegation = {
  id: delegationId("sub"),
  parent: undefined,
  parentSession: "s",
  rootSession: "s",
  agents: ["agent:sub", "agent:a"],
  owner: "",
  runId: "",
  traceId: "t",
  task: "look",
  capsule: "all there is",
  promise: { id: "p", statement: "it is known", evidence: [] },
  scope: {
    planId: "plan",
    role: "research",
    writePermission: "none",
    planFiles: [],
    documents: [],
    artefact: "",
    tools: ["*"],
    calls: 10,
    depth: 2,
  },
  ttlMs: 3_600_000,
  atOnce: 4,
  workingDirectory: "",
  tokenHash: "h".repeat(64),
  actor: "agent:a",
};

async function served(store: Store, folder: string) {
  const gate = drillPort(store, path.join(folder, "ledger"));
  const server = await createServer({ store, gates: { [TENANT]: gate } });
  onTestFinished(() => server.close());
  return { gate, server };
}

async function sallyport(...args: readonly string[]): Promise<string> {
  let said = "";
  const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    said += String(text);
    return true;
  });
  try {
    expect(await main(args)).toBe(0);
  } finally {
    write.mockRestore();
  }
  return said;
}

test("a restore ends every token, link, session, grant and delegation from before, also those revoked since [M7]", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-access-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [data, other, copy] = ["data", "other", "copy.db"].map((name) => path.join(folder, name));
  if (data === undefined || other === undefined || copy === undefined) throw new Error("no paths");
  const before = await openStore({ data });
  const { server } = await served(before, folder);
  const eve = await server.makeToken({ subject: "ops:eve", roles: ["operator"] });
  const link = await server.signInLink({ subject: "person:ada" });
  const { session } = await signIn({ link: await server.signInLink({ subject: "person:ben" }) });
  const own = before.tenant(TENANT);
  await own.sessions.open({ id: "s", agent: "agent:a", owner: "", workingDirectory: "" });
  const finding = { policy: "p", message: "m" };
  const terms = { finding, grantor: "user", scope: { kind: "finding" } } as const;
  const grant = await own.grants.give({ ...terms, sessionId: "s", by: BY.actor, reason: "r" });
  const made = await own.delegations.create(DELEGATION);
  expect(made.created).toBe(true);
  await sallyport("--data", data, "store", "backup", copy);
  // All of it is revoked after the backup, which does not contain that.
  for (const kind of ["token", "session", "link"] as const) {
    for (const { id } of await own.tokens.list({ kind, limit: 100 })) {
      await own.tokens.end(id, "revoked", BY);
    }
  }
  await own.grants.revoke(grant.id, "revoked", BY);
  await server.close();
  await before.close();

  const said = await sallyport("--data", other, "store", "restore", copy);
  expect(said).toContain("1 grants and 1 delegations are void");
  const after = await openStore({ data: other });
  onTestFinished(() => after.close());
  const now = await served(after, folder);
  const { url } = now.server;
  const revived = createClient({ url, token: eve, retries: 0 });
  await expect(revived.me.get()).rejects.toMatchObject({ code: "unauthenticated" });
  await expect(revived.switch.resume({ reason: "x" })).rejects.toMatchObject({
    code: "unauthenticated",
  });
  const { cookie, key } = session;
  const here = cookie.replace(/^sallyport_\d+/, `sallyport_${new URL(url).port}`);
  const ben = createClient({ url, session: { cookie: here, key }, retries: 0 });
  await expect(ben.me.get()).rejects.toMatchObject({ code: "unauthenticated" });
  const again = `${url}${link.slice(link.indexOf("/signin"))}`;
  await expect(signIn({ link: again })).rejects.toMatchObject({ code: "unauthenticated" });
  const restored = after.tenant(TENANT);
  expect(await restored.grants.get(grant.id)).toMatchObject({ revoked: true });
  expect((await restored.delegations.get(DELEGATION.id)).state).toBe("revoked");
  expect(await restored.killSwitch.isStopped()).toBe(true);
  // Each end is in the audit log, and the operator signs in again.
  const ada = createClient(
    await signIn({ link: await now.server.signInLink({ subject: "person:ada" }) }),
  );
  const { items } = await ada.audit.entries({ limit: 500 });
  const types = items.filter(({ actor }) => actor === "operator").map(({ type }) => type);
  expect(types.filter((type) => type === "token.ended")).toHaveLength(3);
  expect(types).toContain("grant.revoked");
  expect(types.some((type) => type.startsWith("delegation."))).toBe(true);
  expect(await ada.switch.resume({ reason: "checked" })).toEqual({ stopped: false });
});
