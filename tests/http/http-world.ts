// A server on a free port of loopback over a store of its own, with two tenants, their tools and a token for every role.

import { type IncomingHttpHeaders, request as nodeRequest } from "node:http";
import { onTestFinished } from "vitest";
import { createRedactor } from "../../src/audit/redact.ts";
import type { Client } from "../../src/client/index.ts";
import { createGate, type Gate } from "../../src/gate/create-gate.ts";
import type { GateOptions } from "../../src/gate/options.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { createServer, type Server, type ServerOptions } from "../../src/http/index.ts";
import type { Role } from "../../src/model/identity.ts";
import { NO_RULES } from "../../src/policy/policy.ts";
import type { Engine } from "../../src/store/engine.ts";
import { memoryEngine } from "../../src/store/memory/index.ts";
import { createStore, type Store } from "../../src/store/store.ts";
import { type Clock, systemClock } from "../../src/util/clock.ts";
import { systemRandom } from "../../src/util/random.ts";
import { createWorld, type World } from "../support/port-world.ts";
import { sampleVerdictValidator } from "../support/validators.ts";
import { clientOf, newSession } from "./passes.ts";

export { bearer, clientOf, credentials, newSession } from "./passes.ts";

export const TENANTS = ["acme", "bolt"] as const;
export type Tenant = (typeof TENANTS)[number];

/** Tests send as fast as they can, and most are about something else. */
export const NO_RATES = {
  senderRate: { perSecond: 1e6, burst: 1e6 },
  tenantRate: { perSecond: 1e6, burst: 1e6 },
};

export interface HttpWorld {
  readonly server: Server;
  readonly store: Store;
  readonly gates: Readonly<Record<Tenant, Gate>>;
  readonly worlds: Readonly<Record<Tenant, World>>;
  readonly tasks: Readonly<Record<Tenant, Gate["tasks"]>>;
  /** Bugs that the server met; empty in a good run. */
  readonly problems: unknown[];
  /**
   * What a subject with this role sends to the server, as a text for `credentials`: people both halves of a session, agents,
   * auditors and the machine's own commands a bearer token.
   */
  pass(tenant: Tenant, role: Role, subject?: string): Promise<string>;
  /** A bearer token, whatever the role. */
  token(tenant: Tenant, role: Role, subject?: string): Promise<string>;
  client(tenant: Tenant, role: Role, subject?: string): Promise<Client>;
}

export interface WorldOptions {
  readonly server?: Partial<ServerOptions>;
  readonly port?: Partial<GateOptions>;
  readonly engine?: Engine;
  readonly clock?: Clock;
}

export async function openHttp(options: WorldOptions = {}): Promise<HttpWorld> {
  const { clock = systemClock } = options;
  const { engine = memoryEngine({ clock, random: systemRandom }) } = options;
  const store = createStore(engine, { redact: createRedactor({}) });
  const worlds = { acme: createWorld(), bolt: createWorld() };
  const portOf = (tenant: Tenant) =>
    createGate({
      store,
      clock,
      tenant,
      tools: Object.values(worlds[tenant].tools),
      validators: {
        tech: sampleVerdictValidator("schema"),
        business: sampleVerdictValidator("limits"),
      },
      guard: allowAlways,
      policy: NO_RULES,
      ...options.port,
    });
  const gates = { acme: portOf("acme"), bolt: portOf("bolt") };
  const tasks = { acme: gates.acme.tasks, bolt: gates.bolt.tasks };
  const problems: unknown[] = [];
  const server = await createServer({
    store,
    gates,
    clock,
    onProblem: (error) => problems.push(error),
    ...options.server,
    limits: { ...NO_RATES, ...options.server?.limits },
  });
  onTestFinished(() => server.close());
  const tokens = new Map<string, Promise<string>>();
  const token: HttpWorld["token"] = (tenant, role, subject = subjectOf(role)) => {
    const name = `${tenant} ${role} ${subject}`;
    const made = tokens.get(name) ?? server.makeToken({ tenant, subject, roles: [role] });
    tokens.set(name, made);
    return made;
  };
  const sessions = new Map<string, Promise<string>>();
  const pass: HttpWorld["pass"] = (tenant, role, subject = subjectOf(role)) => {
    if (!PEOPLE.includes(role)) return token(tenant, role, subject);
    const name = `${tenant} ${role} ${subject}`;
    const made = sessions.get(name) ?? newSession(server, { tenant, subject, roles: [role] });
    sessions.set(name, made);
    return made;
  };
  return {
    server,
    store,
    gates,
    worlds,
    tasks,
    problems,
    token,
    pass,
    client: async (tenant, role, subject) =>
      clientOf(server.url, await pass(tenant, role, subject)),
  };
}

/** Roles of people: they sign in. */
export const PEOPLE: readonly Role[] = ["reviewer", "operator", "admin"];

export function subjectOf(role: Role): string {
  return role === "agent" ? "agent:one" : `person:${role}`;
}

export interface Sent {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface Raw {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Buffer;
}

/** A request with exactly these headers: fetch would add its own and refuse some of ours. */
export function raw(url: string, { method = "GET", headers = {}, body }: Raw = {}): Promise<Sent> {
  return new Promise((resolve, reject) => {
    const sent = nodeRequest(
      url,
      { method, headers: headers as Record<string, string> },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.on("end", () =>
          resolve({
            status: answer.statusCode ?? 0,
            headers: answer.headers,
            text: Buffer.concat(chunks).toString("utf8"),
          }),
        );
        answer.on("error", reject);
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}
