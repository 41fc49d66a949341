import type { z } from "zod";
import type { RouteName } from "./paths.ts";
import type { JsonRoute, Route } from "./route.ts";
import { auditRoutes } from "./routes/audit.ts";
import { decisionRoutes } from "./routes/decisions.ts";
import { delegationRoutes, runRoutes } from "./routes/delegations.ts";
import { grantRoutes } from "./routes/grants.ts";
import { interactionRoutes } from "./routes/interactions.ts";
import { operationRoutes } from "./routes/operations.ts";
import { peopleRoutes, reviewerRoutes } from "./routes/people.ts";
import { eventRoutes, serviceRoutes, switchRoutes } from "./routes/service.ts";
import { sessionRoutes } from "./routes/sessions.ts";
import { signInRoutes } from "./routes/sign-in.ts";
import { standingRuleRoutes } from "./routes/standing-rules.ts";
import { taskRoutes } from "./routes/tasks.ts";
import { tokenRoutes } from "./routes/tokens.ts";
import { toolRoutes } from "./routes/tools.ts";

const table = {
  ...sessionRoutes,
  ...decisionRoutes,
  ...interactionRoutes,
  ...operationRoutes,
  ...taskRoutes,
  ...delegationRoutes,
  ...runRoutes,
  ...standingRuleRoutes,
  ...grantRoutes,
  ...toolRoutes,
  ...auditRoutes,
  ...switchRoutes,
  ...reviewerRoutes,
  ...peopleRoutes,
  ...tokenRoutes,
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
