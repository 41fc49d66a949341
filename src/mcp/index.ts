export { type McpConfig, readMcpConfig } from "./config.ts";
export type { McpConversation, Reply } from "./conversation.ts";
export { type ClientPlace, createGateway, type Gateway, type GatewayOptions } from "./gateway.ts";
export { openPins, type Pins } from "./pins.ts";
export { type StdioClient, serveStdio } from "./stdio-server.ts";
