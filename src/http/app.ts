import type { HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import { SallyportError } from "../model/errors.ts";
import { handlerOf, problem } from "./answer.ts";
import { type Console, noConsole } from "./console-files.ts";
import { PATHS, pathOf, type RouteName } from "./paths.ts";
import { ROUTES } from "./routes.ts";
import { NO_PAGE_POLICY, SECURITY_HEADERS } from "./security-headers.ts";
import type { Services } from "./services.ts";

/** The router: every path of the table, each behind its rule, and the console's files. Nothing else is served. */
export function createApp(
  services: Services,
  files: Console = noConsole,
): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.use("*", async (context, next) => {
    for (const [header, value] of Object.entries(SECURITY_HEADERS)) context.header(header, value);
    context.header("Content-Security-Policy", NO_PAGE_POLICY);
    try {
      services.origins.check(context.env.incoming);
    } catch (error) {
      return problem(context, error, services);
    }
    return next();
  });
  for (const name of Object.keys(PATHS) as RouteName[]) {
    const { method, path } = pathOf(name);
    app.on(method, path, handlerOf(name, ROUTES[name], services));
  }
  app.get("*", async (context) => {
    const { pathname } = new URL(context.req.url);
    const response = pathname.startsWith("/v1/") ? undefined : await files(context, pathname);
    return response ?? problem(context, unknownPath(), services);
  });
  app.notFound((context) => problem(context, unknownPath(), services));
  app.onError((error, context) => problem(context, error, services));
  return app;
}

function unknownPath(): SallyportError {
  return new SallyportError("not_found", { hint: "See GET /v1/openapi.json for what is here." });
}
