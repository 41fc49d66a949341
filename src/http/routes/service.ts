import { TimeoutError, withDeadline } from "../../util/timers.ts";
import { type HttpContext, openRoute, rawRoute } from "../route.ts";
import { RULES } from "../rule.ts";
import type { Services } from "../services.ts";
import { NO_INPUT } from "../wire/common.ts";

const READY_MS = 2_000;

export const serviceRoutes = {
  "service.openapi": openRoute({
    summary: "This document.",
    rule: { anyone: "it says what is on the package's own pages" },
    input: NO_INPUT,
    contentType: "application/json",
    handle: async (_, context, { openapi }) => context.json(openapi()),
  }),
  "service.health": openRoute({
    summary: "The process is alive.",
    rule: { anyone: "it says nothing else" },
    input: NO_INPUT,
    contentType: "application/json",
    handle: async (_, context) => fresh(context).json({ ok: true }),
  }),
  "service.ready": openRoute({
    summary: "The store answers and the server takes requests.",
    rule: { anyone: "it says nothing else" },
    input: NO_INPUT,
    contentType: "application/json",
    async handle(_, context, services) {
      const ready = services.isOpen() && (await isStoreThere(services));
      return fresh(context).json({ ready }, ready ? 200 : 503);
    },
  }),
  "service.metrics": rawRoute({
    summary: "Counters and gauges for Prometheus.",
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

async function isStoreThere({ store, ports, timers, report }: Services): Promise<boolean> {
  try {
    const [tenant = ""] = Object.keys(ports);
    await withDeadline(() => store.tenant(tenant).audit.head(), READY_MS, timers);
    return true;
  } catch (error) {
    if (!(error instanceof TimeoutError)) report(error);
    return false;
  }
}
