/**
 * Every route by its name: noun, then verb, as code, events and commands say them. Server, OpenAPI document and client read
 * this one table. It imports nothing, so that a browser can have it too.
 */
export const PATHS = {
  "me.get": "GET /v1/me",
  "me.signOut": "POST /v1/me/sign-out",
  "me.signOutEverywhere": "POST /v1/me/sign-out-everywhere",
  "me.link": "POST /v1/me/link",

  "sessions.open": "POST /v1/sessions",
  "sessions.list": "GET /v1/sessions",
  "sessions.get": "GET /v1/sessions/:id",
  "sessions.call": "POST /v1/sessions/:id/calls",
  "sessions.stream": "POST /v1/sessions/:id/stream",
  "sessions.cancel": "POST /v1/sessions/:id/cancel",
  "sessions.permit": "POST /v1/sessions/:id/permits",
  "sessions.report": "POST /v1/sessions/:id/reports",
  "sessions.callAll": "POST /v1/sessions/:id/call-all",
  "sessions.stage": "POST /v1/sessions/:id/stage",
  "sessions.ask": "POST /v1/sessions/:id/questions",
  "sessions.resultOf": "GET /v1/sessions/:id/results/:key",
  "sessions.askedBack": "GET /v1/sessions/:id/asked-back",
  "sessions.reply": "POST /v1/sessions/:id/replies",
  "sessions.withdrawAll": "POST /v1/sessions/:id/withdraw-all",
  "sessions.reach": "POST /v1/sessions/:id/points/:point",
  "sessions.end": "POST /v1/sessions/:id/end",
  "sessions.rollback": "POST /v1/sessions/:id/rollback",
  "sessions.rollbackPlan": "GET /v1/sessions/:id/rollback",
  "sessions.calls": "GET /v1/sessions/:id/calls",
  "sessions.story": "GET /v1/sessions/:id/story",
  "sessions.preview": "POST /v1/sessions/:id/previews",

  "decisions.list": "GET /v1/decisions",
  "decisions.stage": "POST /v1/decisions",
  "decisions.stuck": "GET /v1/decisions/stuck",
  "decisions.get": "GET /v1/decisions/:id",
  "decisions.story": "GET /v1/decisions/:id/story",

  "interactions.list": "GET /v1/interactions",
  "interactions.approveBatch": "POST /v1/interactions/approve-batch",
  "interactions.get": "GET /v1/interactions/:id",
  "interactions.shown": "GET /v1/interactions/:id/shown",
  "interactions.answer": "POST /v1/interactions/:id/answer",
  "interactions.approve": "POST /v1/interactions/:id/approve",
  "interactions.reject": "POST /v1/interactions/:id/reject",
  "interactions.edit": "POST /v1/interactions/:id/edit",
  "interactions.settle": "POST /v1/interactions/:id/settle",
  "interactions.handOver": "POST /v1/interactions/:id/hand-over",
  "interactions.askBack": "POST /v1/interactions/:id/ask-back",
  "interactions.cancel": "POST /v1/interactions/:id/cancel",

  "operations.list": "GET /v1/operations",
  "operations.get": "GET /v1/operations/:id",
  "operations.output": "GET /v1/operations/:id/output",
  "operations.undo": "POST /v1/operations/:id/undo",

  "calls.list": "GET /v1/calls",
  "calls.stats": "GET /v1/calls/stats",

  "permits.waiting": "GET /v1/permits",
  "permits.take": "POST /v1/decisions/:id/permit",
  "permits.renew": "POST /v1/permits/:id/renew",
  "permits.report": "POST /v1/permits/:id/report",
  "permits.giveBack": "POST /v1/permits/:id/give-back",

  "tasks.list": "GET /v1/tasks",
  "tasks.stuck": "GET /v1/tasks/stuck",
  "tasks.add": "POST /v1/tasks",
  "tasks.addAll": "POST /v1/tasks/add-all",
  "tasks.claimNext": "POST /v1/tasks/claim-next",
  "tasks.claimBatch": "POST /v1/tasks/claim-batch",
  "tasks.import": "POST /v1/tasks/import",
  "tasks.export": "GET /v1/tasks/export",
  "tasks.get": "GET /v1/tasks/:id",
  "tasks.claim": "POST /v1/tasks/:id/claim",
  "tasks.renew": "POST /v1/tasks/:id/renew",
  "tasks.release": "POST /v1/tasks/:id/release",
  "tasks.complete": "POST /v1/tasks/:id/complete",
  "tasks.fail": "POST /v1/tasks/:id/fail",
  "tasks.link": "POST /v1/tasks/:id/link",
  "tasks.block": "POST /v1/tasks/:id/block",
  "tasks.reopen": "POST /v1/tasks/:id/reopen",

  "delegations.list": "GET /v1/delegations",
  "delegations.delegate": "POST /v1/delegations",
  "delegations.get": "GET /v1/delegations/:id",
  "delegations.attach": "GET /v1/delegations/:id/capsule",
  "delegations.call": "POST /v1/delegations/:id/calls",
  "delegations.ask": "POST /v1/delegations/:id/questions",
  "delegations.resultOf": "GET /v1/delegations/:id/results/:key",
  "delegations.report": "POST /v1/delegations/:id/report",
  "delegations.fail": "POST /v1/delegations/:id/fail",
  "delegations.revoke": "POST /v1/delegations/:id/revoke",
  "delegations.rollback": "POST /v1/delegations/:id/rollback",
  "delegations.rollbackPlan": "GET /v1/delegations/:id/rollback",

  "runs.list": "GET /v1/runs",
  "runs.start": "POST /v1/runs",
  "runs.get": "GET /v1/runs/:id",
  "runs.proposePlan": "POST /v1/runs/:id/plan",
  "runs.enter": "POST /v1/runs/:id/enter",
  "runs.nameArtefact": "POST /v1/runs/:id/artefacts",
  "runs.finish": "POST /v1/runs/:id/finish",
  "runs.stop": "POST /v1/runs/:id/stop",

  "conversations.list": "GET /v1/conversations",
  "conversations.send": "POST /v1/conversations",
  "conversations.get": "GET /v1/conversations/:id",
  "conversations.reply": "POST /v1/conversations/:id/reply",
  "conversations.confirm": "POST /v1/conversations/:id/confirm",
  "conversations.resume": "POST /v1/conversations/:id/resume",

  "standingRules.list": "GET /v1/standing-rules",
  "standingRules.replay": "POST /v1/standing-rules/replay",
  "standingRules.propose": "POST /v1/standing-rules",
  "standingRules.confirm": "POST /v1/standing-rules/:id/confirm",
  "standingRules.revoke": "POST /v1/standing-rules/:id/revoke",

  "grants.list": "GET /v1/grants",
  "grants.give": "POST /v1/grants",
  "grants.revoke": "POST /v1/grants/:id/revoke",

  "tools.list": "GET /v1/tools",
  "tools.get": "GET /v1/tools/:name",

  "audit.entries": "GET /v1/audit",
  "audit.head": "GET /v1/audit/head",
  "audit.verify": "GET /v1/audit/verify",
  "audit.export": "GET /v1/audit/export",

  "switch.get": "GET /v1/switch",
  "switch.stop": "POST /v1/switch/stop",
  "switch.resume": "POST /v1/switch/resume",

  "pauses.list": "GET /v1/pauses",
  "pauses.pause": "POST /v1/pauses",
  "pauses.resume": "POST /v1/pauses/resume",
  "breakers.list": "GET /v1/breakers",
  "breakers.close": "POST /v1/breakers/:tool/close",
  "denials.get": "GET /v1/denials",
  "counterfactuals.list": "GET /v1/counterfactuals",

  "reviewers.list": "GET /v1/reviewers",
  "reviewers.restore": "POST /v1/reviewers/:id/restore",

  "people.invite": "POST /v1/people",
  "people.confirm": "POST /v1/people/:id/confirm",
  "people.list": "GET /v1/people",
  "people.signOut": "POST /v1/people/sign-out",

  "tokens.make": "POST /v1/tokens",
  "tokens.list": "GET /v1/tokens",
  "tokens.revoke": "POST /v1/tokens/:id/revoke",
  "tokens.rotate": "POST /v1/tokens/:id/rotate",

  "notices.list": "GET /v1/notices",
  "notices.retry": "POST /v1/notices/:id/retry",
  "notify.slack": "POST /v1/notify/:channel/slack",

  "events.follow": "GET /v1/events",

  "service.openapi": "GET /v1/openapi.json",
  "service.health": "GET /healthz",
  "service.ready": "GET /readyz",
  "service.metrics": "GET /metrics",

  "signIn.page": "GET /signin",
  "signIn.use": "POST /signin",
  "signIn.oidc": "GET /signin/oidc",
  "signIn.oidcCallback": "GET /signin/oidc/callback",
} as const satisfies Record<string, `${Method} /${string}`>;

export type RouteName = keyof typeof PATHS;
export type Method = "GET" | "POST";

export interface Path {
  readonly method: Method;
  readonly path: string;
  /** The names that stand in the path, in order. */
  readonly params: readonly string[];
}

export function pathOf(name: RouteName): Path {
  const [method = "", path = ""] = PATHS[name].split(" ");
  const params = [...path.matchAll(/:(\w+)/g)].map(([, param = ""]) => param);
  return { method: method as Method, path, params };
}
