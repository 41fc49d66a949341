import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { z } from "zod";
import { SallyportError } from "../../model/errors.ts";
import { TimeoutError, withDeadline } from "../../util/timers.ts";
import { followEvents } from "../feeds.ts";
import { type Call, type HttpContext, jsonRoute, openRoute, RULES, rawRoute } from "../route.ts";
import type { Services } from "../services.ts";
import { NO_INPUT, reason } from "../wire/common.ts";

const READY_MS = 2_000;

export const serviceRoutes = {
  "service.openapi": openRoute({
    summary: "Get this OpenAPI document.",
    rule: { anyone: "it says what is on the package's own pages" },
    input: NO_INPUT,
    contentType: "application/json",
    handle: async (_, context, { openapi }) => context.json(openapi()),
  }),
  "service.health": openRoute({
    summary: "Check that the process is alive.",
    rule: { anyone: "it says nothing else" },
    input: NO_INPUT,
    contentType: "application/json",
    handle: async (_, context) => fresh(context).json({ ok: true }),
  }),
  "service.ready": openRoute({
    summary: "Check that the store answers and the server accepts requests.",
    rule: { anyone: "it says nothing else" },
    input: NO_INPUT,
    contentType: "application/json",
    async handle(_, context, services) {
      const ready = services.isOpen() && (await isStoreThere(services));
      return fresh(context).json({ ready }, ready ? 200 : 503);
    },
  }),
  "service.metrics": rawRoute({
    summary: "Get metrics in Prometheus format.",
    rule: RULES.checkAudit,
    of: "none",
    input: NO_INPUT,
    contentType: "text/plain",
    async handle(_, context, { services }) {
      const { metrics, feeds } = services;
      return context.text(metrics.text({ listeners: feeds.listeners }), 200, {
        "Content-Type": "text/plain; version=0.0.4; charset=utf-8",
      });
    },
  }),
};

function fresh(context: HttpContext): HttpContext {
  context.header("Cache-Control", "no-store");
  return context;
}

async function isStoreThere({ store, gates, timers, report }: Services): Promise<boolean> {
  try {
    const [tenant = ""] = Object.keys(gates);
    await withDeadline(() => store.tenant(tenant).audit.head(), READY_MS, timers);
    return true;
  } catch (error) {
    if (!(error instanceof TimeoutError)) report(error);
    return false;
  }
}

const state = z.object({ stopped: z.boolean() });
const lane = "people" as const;

export const switchRoutes = {
  "switch.get": jsonRoute({
    summary: "Show whether everything is stopped.",
    rule: RULES.everybody,
    of: "none",
    input: NO_INPUT,
    answer: state,
    lane,
    handle: (_, call) => stateOf(call),
  }),
  "switch.stop": jsonRoute({
    summary: "Stop everything: after the answer no new effect of this tenant starts.",
    rule: RULES.stop,
    of: "none",
    input: z.strictObject({ reason }),
    answer: state,
    lane,
    async handle({ reason: why }, call) {
      await call.gate.killSwitch.stop(why, { actor: call.identity.subject });
      return { stopped: true };
    },
  }),
  "switch.resume": jsonRoute({
    summary: "Allow effects to start again.",
    rule: RULES.stop,
    of: "none",
    input: z.strictObject({ reason }),
    answer: state,
    lane,
    async handle({ reason: why }, call) {
      await call.gate.killSwitch.resume(why, { actor: call.identity.subject });
      return { stopped: false };
    },
  }),
};

async function stateOf({ gate }: Call): Promise<{ stopped: boolean }> {
  return { stopped: await gate.killSwitch.isStopped() };
}

export const eventRoutes = {
  "events.follow": rawRoute({
    summary: "Stream audit entries as server-sent events, numbered and resumable.",
    rule: RULES.read,
    of: "list",
    input: z.strictObject({
      /** The number of the last known entry; the header Last-Event-ID takes precedence. */
      after: z.int().min(0).optional(),
    }),
    contentType: "text/event-stream",
    async handle({ after }, context, call) {
      const start = lastSeen(context) ?? after;
      const leave = call.services.streams.enter(call.identity);
      try {
        await followEvents(context, call, start);
      } finally {
        leave();
      }
      return RESPONSE_ALREADY_SENT;
    },
  }),
};

function lastSeen(context: HttpContext): number | undefined {
  const text = context.req.header("last-event-id");
  if (text === undefined || text === "") return undefined;
  if (!/^\d{1,15}$/.test(text)) {
    const hint = "Last-Event-ID is the number of the last event that was seen.";
    throw new SallyportError("invalid_input", { what: "Last-Event-ID", hint });
  }
  return Number(text);
}
