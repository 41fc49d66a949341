// Threats 3.2: role × route × {own, other, other tenant}, generated from the route table. A route without a duty in the table
// below, or with a rule that gives more than its duty, fails here; one without a rule does not compile.

import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { requestOf } from "../../src/client/create-client.ts";
import { PATHS, ROUTES, type RouteName } from "../../src/http/index.ts";
import { ROLES, type Role } from "../../src/model/identity.ts";
import { payloadTool } from "../../src/tools/builtin/payload.ts";
import { SCALE } from "../support/scale.ts";
import {
  credentials,
  type HttpWorld,
  newSession,
  openHttp,
  PEOPLE,
  raw,
  subjectOf,
} from "./http-world.ts";
import { makeRecords, type Records, sampleInput } from "./matrix-samples.ts";

/** The columns of the table of roles and duties, with who has them, as in docs/spec/threats.md. */
const DUTIES = {
  propose: { agent: "own", operator: "own" },
  approve: { reviewer: "tenant" },
  override: { reviewer: "tenant" },
  settle: { reviewer: "tenant", operator: "tenant" },
  undo: { agent: "own", operator: "tenant" },
  execute: { agent: "own", executor: "tenant", operator: "tenant" },
  findWork: { executor: "tenant", operator: "tenant" },
  undoOwn: { reviewer: "tenant", operator: "tenant" },
  workFor: { subagent: "own" },
  delegate: { agent: "own", subagent: "own", operator: "own" },
  work: { agent: "tenant", operator: "tenant" },
  operate: { operator: "tenant" },
  restoreReviewer: { operator: "tenant" },
  kill: { operator: "tenant", admin: "tenant", local: "tenant" },
  administer: { admin: "tenant" },
  readAccess: { admin: "tenant" },
  ownSignIns: { reviewer: "tenant", operator: "tenant", auditor: "tenant", admin: "tenant" },
  ownLink: { reviewer: "tenant", operator: "tenant", auditor: "tenant", admin: "tenant" },
  /** Change policy: an operator proposes, an admin approves what others proposed. */
  proposePolicy: { operator: "tenant" },
  tighten: { reviewer: "tenant", operator: "tenant", admin: "tenant" },
  readOwnOrAll: {
    agent: "own",
    reviewer: "tenant",
    operator: "tenant",
    auditor: "tenant",
    admin: "tenant",
    local: "tenant",
  },
  readAll: {
    reviewer: "tenant",
    operator: "tenant",
    auditor: "tenant",
    admin: "tenant",
    local: "tenant",
  },
  exportAudit: { operator: "tenant", auditor: "tenant", admin: "tenant", local: "tenant" },
  everybody: {
    agent: "tenant",
    reviewer: "tenant",
    operator: "tenant",
    auditor: "tenant",
    admin: "tenant",
    local: "tenant",
  },
  anyone: {},
} as const satisfies Record<string, Partial<Record<Role, "own" | "tenant">>>;

/** Duties of people: they count only from a session, and a bearer token is refused whatever its role (H3). */
const OF_PEOPLE: readonly (keyof typeof DUTIES)[] = [
  "approve",
  "override",
  "settle",
  "restoreReviewer",
  "undoOwn",
  "administer",
  "readAccess",
  "ownSignIns",
  "ownLink",
  "proposePolicy",
];

/** Duties that need a sign-in of the last minutes (L3); approving something irreversible does too, which its route checks. */
const FRESH: readonly (keyof typeof DUTIES)[] = [
  "administer",
  "ownLink",
  "override",
  "proposePolicy",
];

const DUTY_OF: Readonly<Record<RouteName, keyof typeof DUTIES>> = {
  "me.get": "everybody",
  "me.signOut": "everybody",
  "me.signOutEverywhere": "ownSignIns",
  "me.link": "ownLink",
  "sessions.open": "propose",
  "sessions.list": "readOwnOrAll",
  "sessions.get": "readOwnOrAll",
  "sessions.call": "propose",
  "sessions.stream": "propose",
  "sessions.cancel": "undo",
  "sessions.permit": "propose",
  "sessions.report": "propose",
  "sessions.callAll": "propose",
  "sessions.stage": "propose",
  "sessions.ask": "propose",
  "sessions.resultOf": "propose",
  "sessions.askedBack": "propose",
  "sessions.reply": "propose",
  "sessions.withdrawAll": "undo",
  "sessions.reach": "propose",
  "sessions.end": "propose",
  "sessions.rollback": "undo",
  "sessions.rollbackPlan": "readOwnOrAll",
  "sessions.calls": "readOwnOrAll",
  "sessions.story": "readOwnOrAll",
  "sessions.preview": "propose",
  "decisions.list": "readOwnOrAll",
  "decisions.stage": "propose",
  "decisions.stuck": "readAll",
  "decisions.get": "readOwnOrAll",
  "decisions.story": "readOwnOrAll",
  "interactions.list": "readOwnOrAll",
  "interactions.approveBatch": "approve",
  "interactions.get": "readOwnOrAll",
  "interactions.shown": "readAll",
  "interactions.answer": "approve",
  "interactions.approve": "approve",
  "interactions.reject": "approve",
  "interactions.edit": "approve",
  "interactions.settle": "settle",
  "interactions.handOver": "settle",
  "interactions.askBack": "approve",
  "interactions.cancel": "settle",
  "operations.list": "readOwnOrAll",
  "operations.get": "readOwnOrAll",
  "operations.output": "readOwnOrAll",
  "operations.undo": "undoOwn",
  "permits.waiting": "findWork",
  "permits.take": "execute",
  "permits.renew": "execute",
  "permits.report": "execute",
  "permits.giveBack": "execute",
  "tasks.list": "everybody",
  "tasks.stuck": "readAll",
  "tasks.add": "work",
  "tasks.addAll": "work",
  "tasks.claimNext": "work",
  "tasks.claimBatch": "work",
  "tasks.import": "operate",
  "tasks.export": "readAll",
  "tasks.get": "everybody",
  "tasks.claim": "work",
  "tasks.renew": "work",
  "tasks.release": "work",
  "tasks.complete": "work",
  "tasks.fail": "work",
  "tasks.link": "work",
  "tasks.block": "operate",
  "tasks.reopen": "operate",
  "delegations.list": "readOwnOrAll",
  "delegations.delegate": "delegate",
  "delegations.get": "readOwnOrAll",
  "delegations.attach": "workFor",
  "delegations.call": "workFor",
  "delegations.ask": "workFor",
  "delegations.resultOf": "workFor",
  "delegations.report": "workFor",
  "delegations.fail": "workFor",
  "delegations.revoke": "undo",
  "delegations.rollback": "undo",
  "delegations.rollbackPlan": "readOwnOrAll",
  "runs.list": "readAll",
  "runs.start": "propose",
  "runs.get": "readOwnOrAll",
  "runs.proposePlan": "propose",
  "runs.enter": "undo",
  "runs.nameArtefact": "undo",
  "runs.finish": "undo",
  "runs.stop": "undo",
  "conversations.list": "readOwnOrAll",
  "conversations.send": "propose",
  "conversations.get": "readOwnOrAll",
  "conversations.reply": "propose",
  "conversations.confirm": "propose",
  "conversations.resume": "propose",
  "standingRules.list": "readAll",
  "standingRules.replay": "readAll",
  "standingRules.propose": "proposePolicy",
  "standingRules.confirm": "administer",
  "standingRules.revoke": "tighten",
  "grants.list": "readAll",
  "grants.give": "override",
  "grants.revoke": "tighten",
  "tools.list": "everybody",
  "tools.get": "everybody",
  "audit.entries": "readAll",
  "audit.head": "readAll",
  "audit.verify": "exportAudit",
  "audit.export": "exportAudit",
  "switch.get": "everybody",
  "switch.stop": "kill",
  "switch.resume": "kill",
  "calls.list": "readAll",
  "calls.stats": "readAll",
  "pauses.list": "everybody",
  "pauses.pause": "kill",
  "pauses.resume": "kill",
  "breakers.list": "readAll",
  "breakers.close": "settle",
  "denials.get": "readAll",
  "counterfactuals.list": "readAll",
  "reviewers.list": "exportAudit",
  "reviewers.restore": "restoreReviewer",
  "people.invite": "administer",
  "people.confirm": "administer",
  "people.list": "readAccess",
  "people.signOut": "administer",
  "tokens.make": "administer",
  "tokens.list": "readAccess",
  "tokens.revoke": "administer",
  "tokens.rotate": "administer",
  "notices.list": "exportAudit",
  "notices.retry": "operate",
  "notify.slack": "anyone",
  "events.follow": "readOwnOrAll",
  "service.openapi": "anyone",
  "service.health": "anyone",
  "service.ready": "anyone",
  "service.metrics": "exportAudit",
  "signIn.page": "anyone",
  "signIn.use": "anyone",
  "signIn.oidc": "anyone",
  "signIn.oidcCallback": "anyone",
};

const NAMES = Object.keys(PATHS) as RouteName[];

test.each(NAMES)("authorization of %s: exactly what its duty requires", (name) => {
  const { rule } = ROUTES[name];
  expect(rule, "a route without a rule").toBeDefined();
  const given = "anyone" in rule ? {} : rule.roles;
  const duty = DUTY_OF[name];
  expect(given).toEqual(DUTIES[duty]);
  if ("anyone" in rule) expect(duty).toBe("anyone");
  else {
    expect(rule.person === true, "only people").toBe(OF_PEOPLE.includes(duty));
    expect(rule.freshSignIn === true, "recent sign-in").toBe(FRESH.includes(duty));
  }
});

test("every path that answers is in the table of routes", async () => {
  const { server } = await openHttp();
  expect(Object.keys(ROUTES).toSorted()).toEqual(NAMES.toSorted());
  const others = [
    "/v1",
    "/v1/",
    "/v1/unknown",
    "/v1/interactions/x/y/z",
    "/v2/me",
    "/v1/../v1/nope",
  ];
  for (const path of others) expect((await raw(`${server.url}${path}`)).status).toBe(404);
});

/** Roles that may never have a session record of their own here own nothing; `own` is agent:one's. */
const OWNERS = ["own", "other", "otherTenant"] as const;
type Owner = (typeof OWNERS)[number];
const BEARERS = ["reviewerToken", "operatorToken", "adminToken"] as const;
const CREDENTIALS = [...ROLES, ...BEARERS, "nobody", "revoked", "expired"] as const;
type Credential = (typeof CREDENTIALS)[number];

test("role × route × {own, other, other tenant}: no unexpected access, and a refusal writes nothing", async () => {
  const world = await openHttp({
    port: { sessionFolders: [tmpdir()] },
    server: { limits: { inFlight: 10_000 } },
  });
  for (const gate of Object.values(world.gates)) gate.tools.register(payloadTool());
  const records: Record<Owner, Records> = {
    own: await makeRecords(world, "acme", "agent:one"),
    other: await makeRecords(world, "acme", "agent:two"),
    otherTenant: await makeRecords(world, "bolt", "agent:one"),
  };
  const tokens = await tokensOf(world);
  const heads = async () =>
    JSON.stringify(
      await Promise.all((["acme", "bolt"] as const).map((t) => world.store.tenant(t).audit.head())),
    );
  const before = await heads();
  const unexpected: string[] = [];
  let refused = 0;
  let allowed = 0;
  const guarded = NAMES.filter((name) => DUTY_OF[name] !== "anyone");
  for (const name of guarded) {
    for (const credential of CREDENTIALS) {
      for (const owner of OWNERS) {
        const expected = expectation(name, credential, owner);
        if (expected === "allow") continue;
        // Authentication comes before any look-up of the record.
        if (expected === "401" && owner !== "own" && SCALE === "test") continue;
        const { status, text } = await send(world, name, records[owner], tokens[credential]);
        refused += 1;
        const right = expected === "hide" ? isHidden(status, text) : status === Number(expected);
        if (!right)
          unexpected.push(`${credential} ${name} ${owner}: ${status} ${text.slice(0, 80)}`);
      }
    }
  }
  expect(unexpected).toEqual([]);
  expect(await heads(), "a refusal has written something").toBe(before);
  for (const name of guarded) {
    for (const credential of [...ROLES, ...BEARERS]) {
      const owner = credential === "agent" ? "own" : "other";
      if (expectation(name, credential, owner) !== "allow") continue;
      // A reviewer undoes only what they approved themselves: tests/http/undo-own.test.ts.
      if (name === "operations.undo" && credential === "reviewer") continue;
      const agent =
        roleOf(credential) === "operator" && ["propose", "delegate"].includes(DUTY_OF[name])
          ? subjectOf("operator")
          : "agent:one";
      const fresh = await makeRecords(world, "acme", agent);
      const { status, text } = await send(world, name, fresh, tokens[credential]);
      allowed += 1;
      if (
        [401, 403, 500].includes(status) ||
        (status === 404 &&
          !/^(?:delegations|tokens|reviewers|people|breakers|notices|conversations)\./.test(name))
      ) {
        unexpected.push(`${credential} ${name} was refused: ${status} ${text.slice(0, 120)}`);
      }
      if (name === "switch.stop")
        await world.gates.acme.killSwitch.resume("test", { actor: "test" });
      if (name.startsWith("me.signOut")) tokens[credential] = await freshToken(world, credential);
    }
  }
  expect(unexpected).toEqual([]);
  expect(world.problems).toEqual([]);
  expect(refused + allowed, "cases").toBeGreaterThanOrEqual(1_000);
  console.info(`role matrix: ${refused} refusals and ${allowed} allows as expected, 0 unexpected`);
});

/** What must happen; `hide`: as if the records were not there. */
function expectation(
  name: RouteName,
  credential: Credential,
  owner: Owner,
): "allow" | "hide" | "401" | "403" {
  if (credential === "nobody" || credential === "revoked" || credential === "expired") return "401";
  const duty: Partial<Record<Role, "own" | "tenant">> = DUTIES[DUTY_OF[name]];
  const scope = duty[roleOf(credential)];
  if (scope === undefined) return "403";
  if (!isPerson(credential) && OF_PEOPLE.includes(DUTY_OF[name])) return "403";
  if (!isAboutRecords(name)) return "allow";
  if (owner === "otherTenant") return "hide";
  if (scope === "tenant") return "allow";
  // Only agent:one owns something of its own here.
  return owner === "own" && credential === "agent" ? "allow" : "hide";
}

function roleOf(credential: Exclude<Credential, "nobody" | "revoked" | "expired">): Role {
  return credential.replace("Token", "") as Role;
}

/** Signed in, in a session of their own. */
function isPerson(credential: Credential): boolean {
  return PEOPLE.some((role) => role === credential);
}

const GENERAL =
  /^(?:me|tools|audit|switch|pauses|calls|breakers|denials|conversations|reviewers|tokens|people|events|service|grants)\.|^standingRules\.(?:list|replay|propose)$|^runs\.(?:list|start)$|sessions\.(?:open|list)$|tasks\.(?:list|stuck|add|addAll|claimNext|claimBatch|import|export)$|decisions\.stuck$|permits\.waiting$|interactions\.approveBatch$/;

function isAboutRecords(name: RouteName): boolean {
  return !GENERAL.test(name);
}

/** Not found, or an empty list. */
function isHidden(status: number, text: string): boolean {
  if (status === 404) return true;
  return status === 200 && text === '{"items":[],"next":null}';
}

async function send(world: HttpWorld, name: RouteName, of: Records, token: string) {
  const { method, address, body } = requestOf(name, sampleInput(name, of));
  const url = `${world.server.url}${address}`;
  if (name === "events.follow") return follow(url, token);
  return raw(url, {
    method,
    headers: token === "" ? {} : credentials(token),
    ...(body === undefined ? {} : { body }),
  });
}

/** A stream does not end by itself. */
async function follow(url: string, token: string) {
  const response = await fetch(url, { headers: token === "" ? {} : credentials(token) });
  const text = response.status === 200 ? "" : await response.text();
  await response.body?.cancel().catch(() => {});
  return { status: response.status, text };
}

async function tokensOf(world: HttpWorld): Promise<Record<Credential, string>> {
  const revoked = await world.token("acme", "admin", "person:gone");
  const late = { tenant: "acme", subject: "person:late", roles: ["admin"], lifeMs: 1 } as const;
  const expired = await world.server.makeToken(late);
  await new Promise((resolve) => setTimeout(resolve, 10));
  const { tokens } = world.store.tenant("acme");
  const listed = await tokens.list({ kind: "token", limit: 100 });
  const { id = "" } = listed.find(({ subject }) => subject === "person:gone") ?? {};
  await tokens.end(id, "test", { actor: "test" });
  const made = ROLES.map(async (role) => [role, await world.pass("acme", role)] as const);
  return {
    ...(Object.fromEntries(await Promise.all(made)) as Record<Role, string>),
    reviewerToken: await world.token("acme", "reviewer"),
    operatorToken: await world.token("acme", "operator"),
    adminToken: await world.token("acme", "admin"),
    nobody: "",
    revoked,
    expired,
  };
}

function freshToken(
  { server }: HttpWorld,
  credential: Exclude<Credential, "nobody" | "revoked" | "expired">,
): Promise<string> {
  const role = roleOf(credential);
  const one = { tenant: "acme", subject: subjectOf(role), roles: [role] } as const;
  return isPerson(credential) ? newSession(server, one) : server.makeToken(one);
}
