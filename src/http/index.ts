export {
  createServer,
  type NewServerToken,
  type Server,
  type ServerOptions,
} from "./create-server.ts";
export type { OidcOptions } from "./oidc.ts";
export { openApiDocument } from "./openapi.ts";
export { PATHS, type RouteName } from "./paths.ts";
export { RULES, type Rule } from "./route.ts";
export { ROUTES } from "./routes.ts";
