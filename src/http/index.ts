export { createServer, type Server, type ServerOptions } from "./create-server.ts";
export { isLoopbackHost } from "./exposure.ts";
export { PATHS, type RouteName } from "./paths.ts";
export { type AccessRule, RULES } from "./route.ts";
export type { ServedFlow } from "./routes/conversations.ts";
export { openApiDocument, ROUTES } from "./routes.ts";
export type { NewServerToken, OidcOptions } from "./sign-in.ts";
