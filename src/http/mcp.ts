// The MCP gateway as part of the server: authenticated and limited like every other request of an agent. What MCP says is none
// of this file's business.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { Hono } from "hono";
import { SallyportError } from "../model/errors.ts";
import { enter, identified, problem } from "./answer.ts";
import type { Signed } from "./authenticate.ts";
import { type HttpContext, RULES, type Services, scopeOf } from "./route.ts";

/** The gateway of one tenant: `serveHttp` of `sallyport/mcp`. */
export interface McpMount {
  handle(
    request: IncomingMessage,
    response: ServerResponse,
    client: {
      readonly agent: string;
      readonly owner: string;
      openSession(name: string): Promise<string>;
      isValid(): Promise<boolean>;
    },
  ): Promise<void>;
}

const PATH = "/mcp";
/** RFC 9728: where a client learns how to get access, for the server and for the one resource. */
const METADATA = "/.well-known/oauth-protected-resource";

export function mountMcp(
  app: Hono<{ Bindings: HttpBindings }>,
  mounts: Readonly<Record<string, McpMount>>,
  services: Services,
): void {
  const { main } = services.origins;
  const metadata = {
    resource: `${main}${PATH}`,
    resource_name: "Sallyport MCP gateway",
    bearer_methods_supported: ["header"],
    resource_documentation: `${main}/v1/openapi.json`,
  };
  for (const path of [METADATA, `${METADATA}${PATH}`]) {
    app.get(path, (context) => context.json(metadata, 200, { "Cache-Control": "no-store" }));
  }
  app.all(PATH, async (context) => {
    let leave = () => {};
    try {
      const signed = await identified(context, services);
      const mount = mountFor(signed, mounts);
      leave = once(admitted(context, signed, services));
      const { incoming, outgoing } = context.env;
      for (const [name, value] of context.res.headers) outgoing.setHeader(name, value);
      outgoing.once("close", leave);
      await mount.handle(incoming, outgoing, clientOf(signed, services));
      return RESPONSE_ALREADY_SENT;
    } catch (error) {
      leave();
      const response = problem(context, error, services);
      if (response.status === 401) {
        const place = `Bearer realm="sallyport", resource_metadata="${main}${METADATA}${PATH}"`;
        response.headers.set("WWW-Authenticate", place);
      }
      return response;
    }
  });
}

function mountFor({ token }: Signed, mounts: Readonly<Record<string, McpMount>>): McpMount {
  const mount = Object.hasOwn(mounts, token.tenant) ? mounts[token.tenant] : undefined;
  if (scopeOf(RULES.propose, token) === undefined || token.kind !== "token") {
    const hint =
      "MCP clients send a token with the role agent: sallyport tokens make --roles agent.";
    throw new SallyportError("not_allowed", { route: PATH, hint });
  }
  if (mount === undefined) {
    throw new SallyportError("not_found", { id: PATH, hint: "This tenant has no MCP gateway." });
  }
  return mount;
}

/** A stream that only listens counts as a stream, everything else as a request. */
function admitted({ req }: HttpContext, { token }: Signed, services: Services): () => void {
  return req.method === "GET" ? services.streams.enter(token) : enter("agents", token, services);
}

function clientOf(signed: Signed, services: Services) {
  const { tenant, subject: agent, owner } = signed.token;
  const store = services.store.tenant(tenant);
  return {
    agent,
    owner,
    isValid: () => services.authenticator.isValid(signed),
    /** Stored, so that the agent may read what became of its calls. */
    async openSession(name: string) {
      const id = owner === "" ? `${agent}:${name}` : `${agent}:${name}:${owner}`;
      const opened = { id, agent, owner, workingDirectory: "" };
      await services.gates[tenant]?.sessions.open(opened).start();
      await store.sessions.open({ ...opened, metadata: "" });
      return id;
    },
  };
}

function once(leave: () => void): () => void {
  let left = false;
  return () => {
    if (!left) leave();
    left = true;
  };
}
