// Notifications: channels, routes, and the notifier that sends what the trail says.

export type { NotifyChannel, NotifyItem, NotifyMessage } from "./channel.ts";
export { type EmailOptions, email, type Mail, type MailTransport } from "./email.ts";
export {
  checkNotify,
  createNotifier,
  type NotifierOptions,
  type NotifyConfig,
  type NotifyRound,
  startNotifier,
  type TestMessage,
  testChannel,
} from "./notifier.ts";
export type { NotifyRoute, QuietHours } from "./route.ts";
export { type PressedButton, type SlackChannel, type SlackOptions, slack } from "./slack.ts";
export { type WebhookOptions, webhook } from "./webhook.ts";
