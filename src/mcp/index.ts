export { type McpConfig, readMcpConfig } from "./config.ts";
export type { McpConversation, Reply } from "./conversation.ts";
export { type ClientPlace, createGateway, type Gateway, type GatewayOptions } from "./gateway.ts";
export { type HttpClient, type McpEndpoint, serveHttp } from "./http-server.ts";
export { type InboxServer, serveInbox } from "./inbox-server.ts";
export { openPins, type Pins } from "./pins.ts";
export { type StdioClient, serveStdio } from "./stdio-server.ts";
