import { z } from "zod";
import { ERRORS } from "../model/errors.ts";
import { PATHS, type Path, pathOf, type RouteName } from "./paths.ts";
import type { JsonRoute, Route } from "./route.ts";
import { peopleRoutes, reviewerRoutes, signInRoutes, tokenRoutes } from "./routes/access.ts";
import { callRoutes } from "./routes/calls.ts";
import { conversationRoutes } from "./routes/conversations.ts";
import { decisionRoutes, operationRoutes } from "./routes/decisions.ts";
import { delegationRoutes, runRoutes } from "./routes/delegations.ts";
import { interactionRoutes } from "./routes/interactions.ts";
import { noticeRoutes } from "./routes/notices.ts";
import { pauseRoutes } from "./routes/pauses.ts";
import { permitRoutes } from "./routes/permits.ts";
import { grantRoutes, standingRuleRoutes } from "./routes/rules.ts";
import {
  auditRoutes,
  breakerRoutes,
  eventRoutes,
  serviceRoutes,
  switchRoutes,
  toolRoutes,
} from "./routes/service.ts";
import { sessionCallRoutes } from "./routes/session-calls.ts";
import { sessionRoutes } from "./routes/sessions.ts";
import { counterfactualRoutes, storyRoutes } from "./routes/stories.ts";
import { taskRoutes } from "./routes/tasks.ts";

const table = {
  ...sessionRoutes,
  ...sessionCallRoutes,
  ...storyRoutes,
  ...decisionRoutes,
  ...interactionRoutes,
  ...operationRoutes,
  ...permitRoutes,
  ...taskRoutes,
  ...delegationRoutes,
  ...runRoutes,
  ...conversationRoutes,
  ...standingRuleRoutes,
  ...grantRoutes,
  ...toolRoutes,
  ...auditRoutes,
  ...switchRoutes,
  ...callRoutes,
  ...pauseRoutes,
  ...breakerRoutes,
  ...counterfactualRoutes,
  ...reviewerRoutes,
  ...peopleRoutes,
  ...tokenRoutes,
  ...noticeRoutes,
  ...eventRoutes,
  ...serviceRoutes,
  ...signInRoutes,
};

/** The routes with their own types, for the client. */
export type RouteTable = typeof table;

/** Exactly one row for every path: a path without a route, and so without authorization, does not compile. */
export const ROUTES: Readonly<Record<RouteName, Route>> = table satisfies Record<
  RouteName,
  unknown
> as unknown as Readonly<Record<RouteName, Route>>;

/** Routes with JSON input and output: those that the client has functions for. */
export type CallName = {
  [Name in RouteName]: RouteTable[Name] extends JsonRoute<infer _I, infer _A> ? Name : never;
}[RouteName];

export type InputOf<Name extends RouteName> = z.input<RouteTable[Name]["input"]>;
export type AnswerOf<Name extends CallName> =
  RouteTable[Name] extends JsonRoute<infer _, infer Answer> ? z.output<Answer> : never;

type Json = Record<string, unknown>;

/** The OpenAPI 3.1 document, generated from the schemas that requests are checked with. */
export function openApiDocument(routes: Readonly<Record<RouteName, Route>>): Json {
  const paths: Record<string, Json> = {};
  for (const name of Object.keys(PATHS) as RouteName[]) {
    const place = pathOf(name);
    const path = place.path.replaceAll(/:(\w+)/g, "{$1}");
    const methods = paths[path] ?? {};
    methods[place.method.toLowerCase()] = operationOf(name, place, routes[name]);
    paths[path] = methods;
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Sallyport",
      version: "1",
      description:
        "A gate between AI agents and production: staged, reviewed, executed once, undoable.",
    },
    paths,
    components: {
      securitySchemes: {
        token: { type: "http", scheme: "bearer" },
        cookie: { type: "apiKey", in: "cookie", name: "sallyport" },
      },
      schemas: { Problem: PROBLEM },
    },
  };
}

function operationOf(name: RouteName, { method, params }: Path, route: Route): Json {
  const isOpen = "anyone" in route.rule;
  const shape = route.input.shape;
  const rest = Object.keys(shape).filter((field) => !params.includes(field));
  return {
    operationId: name,
    summary: route.summary,
    tags: [name.split(".")[0]],
    security: isOpen ? [] : [{ token: [] }, { cookie: [] }],
    "x-roles": "anyone" in route.rule ? { anyone: route.rule.anyone } : route.rule.roles,
    parameters: [
      ...params.map((param) => parameter("path", param, shape[param], true)),
      ...(method === "GET" ? rest.map((field) => query(field, shape[field])) : []),
      ...(method === "POST" && route.kind === "json" ? [IDEMPOTENCY_KEY] : []),
    ],
    ...(method === "POST" && route.kind !== "open" ? { requestBody: bodyOf(route, params) } : {}),
    responses: {
      [route.kind === "json" ? String(route.status) : "200"]: answerOf(route),
      default: { description: "The error.", content: PROBLEM_CONTENT },
    },
  };
}

function query(field: string, schema: z.core.$ZodType | undefined): Json {
  const isOptional = schema === undefined || schema._zod.optin === "optional";
  return parameter("query", field, schema, !isOptional);
}

function parameter(
  place: "path" | "query",
  field: string,
  schema: z.core.$ZodType | undefined,
  required: boolean,
): Json {
  return { in: place, name: field, required, schema: schema === undefined ? {} : schemaOf(schema) };
}

function bodyOf(route: Route, params: readonly string[]): Json {
  const fields = Object.entries(route.input.shape).filter(([field]) => !params.includes(field));
  const schema = schemaOf(z.strictObject(Object.fromEntries(fields)));
  return { required: true, content: { "application/json": { schema } } };
}

function answerOf(route: Route): Json {
  if (route.kind !== "json") {
    return { description: route.summary, content: { [route.contentType]: {} } };
  }
  const schema = schemaOf(route.answer, "output");
  return { description: route.summary, content: { "application/json": { schema } } };
}

function schemaOf(schema: z.core.$ZodType, io: "input" | "output" = "input"): Json {
  const { $schema, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Json;
  return rest;
}

const IDEMPOTENCY_KEY = {
  in: "header",
  name: "Idempotency-Key",
  required: false,
  description:
    "The same key with the same content gets the same answer; with other content an error.",
  schema: { type: "string", maxLength: 255 },
};

const PROBLEM = {
  type: "object",
  required: ["type", "title", "status", "code", "retry", "detail", "details"],
  properties: {
    type: { type: "string" },
    title: { type: "string" },
    status: { type: "integer" },
    code: { type: "string", enum: Object.keys(ERRORS) },
    retry: { type: "string", enum: ["never", "later", "after_reread", "safe", "ask_a_person"] },
    detail: { type: "string" },
    details: { type: "object" },
  },
};
const PROBLEM_CONTENT = {
  "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } },
};
