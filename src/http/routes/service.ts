import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { z } from "zod";
import { exportTrail, partOf } from "../../audit/trail.ts";
import { verifyStore } from "../../audit/verify.ts";
import type { Gate } from "../../gate/create-gate.ts";
import type { ToolOffer } from "../../gate/offering.ts";
import type { AuditEntry } from "../../model/audit-entry.ts";
import { SallyportError } from "../../model/errors.ts";
import { BREAKERS } from "../../model/switch.ts";
import type { AuditReader } from "../../store/store.ts";
import { definitionHash } from "../../tools/registry.ts";
import {
  capabilityOf,
  metadataOf,
  SAFETY_CLASSES,
  safetyClassOf,
  type Tool,
} from "../../tools/tool.ts";
import { toIso } from "../../util/clock.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { TimeoutError, withDeadline } from "../../util/timers.ts";
import { sendEvents } from "../feeds.ts";
import {
  access,
  type HttpContext,
  jsonRoute,
  notFound,
  openRoute,
  rawRoute,
  type Services,
} from "../route.ts";
import {
  anyText,
  cursorOf,
  DEFAULT_PAGE,
  instantText,
  jsonObject,
  list,
  momentOf,
  NO_INPUT,
  name,
  page,
  pageOf,
  paging,
  placeOf,
  reason,
  texts,
  wireOf,
} from "../wire.ts";

/** An entry of the trail; `data` is redacted before it is stored. */
const auditEntry = z.object({
  v: z.union([z.literal(1), z.literal(2)]),
  tenant: anyText,
  seq: z.int(),
  at: instantText,
  ...texts("type", "subject", "session", "actor"),
  data: anyText.nullable(),
  salt: anyText.nullable(),
  ...texts("dataHash", "prev", "hash"),
});

const chainHead = z.object({ tenant: anyText, seq: z.int(), hash: anyText, at: instantText });

const verifyReport = z.object({
  ok: z.boolean(),
  entries: z.int(),
  anchors: z.int(),
  lastAnchorAt: instantText.optional(),
  tenants: list(
    z.object({
      tenant: anyText,
      entries: z.int(),
      head: chainHead,
      erased: z.int(),
      anchoredSeq: z.int(),
      unanchored: z.int(),
    }),
  ),
  problems: list(
    z.object({ ...texts("code", "tenant"), seq: z.int().optional(), message: anyText }),
  ),
  problemCount: z.int(),
  blindWindow: z.object({
    entries: z.int(),
    since: instantText.optional(),
    sinceMs: z.number().optional(),
  }),
});

export const auditRoutes = {
  "audit.entries": jsonRoute({
    summary: "List audit entries, oldest first, or newest first with `order=newest`.",
    ...access("readAll", "none"),
    input: z.strictObject({
      after: z.int().min(0).optional(),
      /** Written at this moment or later. */
      since: instantText.optional(),
      /** Of one session only; then a page may be short although `next` says that there is more. */
      session: name.optional(),
      /** From the beginning by default; `newest` reads backwards from the end. */
      order: z.enum(["oldest", "newest"]).optional(),
      ...paging,
    }),
    answer: pageOf(auditEntry),
    async handle({ after = 0, since, session, order, cursor, limit = DEFAULT_PAGE }, { gate }) {
      const { audit } = gate;
      const start =
        since === undefined ? after : Math.max(after, await lastBefore(audit, momentOf(since)));
      const place = cursor === undefined ? undefined : placeOf(cursor);
      if (order === "newest")
        return newestPart(audit, { after: start, limit, session, before: place });
      const from = place ?? start;
      if (session !== undefined) {
        const ofSession = (entry: AuditEntry) => (entry.session === session ? entry : undefined);
        return pageOfPart(await partOf(audit, { after: from, limit }, ofSession));
      }
      const entries = await audit.read({ after: from, limit: limit + 1 });
      return page(entries, limit, ({ seq }) => seq);
    },
  }),
  "audit.head": jsonRoute({
    summary: "Get the end of the trail: number, hash, time.",
    ...access("readAll", "none"),
    input: NO_INPUT,
    answer: chainHead,
    handle: (_, { gate }) => gate.audit.head(),
  }),
  "audit.verify": jsonRoute({
    summary: "Verify the trail: numbers, links, hashes, times, and its end against the anchors.",
    ...access("checkAudit", "none"),
    input: NO_INPUT,
    answer: verifyReport,
    async handle(_, { services, identity }) {
      const { store, audit, clock, timers } = services;
      return verifyStore(store, {
        ...audit,
        tenants: [identity.tenant],
        now: clock.now(),
        // A long trail must not block other requests.
        onProgress: () => new Promise((resolve) => timers.soon(resolve)),
        pageSize: 250,
      });
    },
  }),
  "audit.export": rawRoute({
    summary: "Export the whole trail as JSON Lines, to verify elsewhere.",
    ...access("checkAudit", "none", "people"),
    input: NO_INPUT,
    contentType: "application/jsonl",
    async handle(_, context, { gate, services }) {
      context.header("Content-Disposition", 'attachment; filename="audit.jsonl"');
      return streamed(context, "application/jsonl", exportTrail(gate.audit), services.report);
    },
  }),
};

/** A text generated while it is sent; an error aborts the response, so that it is not taken for complete. */
function streamed(
  context: HttpContext,
  contentType: string,
  lines: AsyncGenerator<string>,
  report: (error: unknown) => void,
): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await lines.next();
        if (done === true) controller.close();
        else controller.enqueue(encoder.encode(value));
      } catch (error) {
        report(error);
        controller.error(error);
      }
    },
    async cancel() {
      await lines.return(undefined);
    },
  });
  return context.body(body, 200, { "Content-Type": contentType, "Cache-Control": "no-store" });
}

/** How many entries one request scans for those of one session, from the end. */
const LOOK = 500;
const MOST_LOOKS = 20;

/** A part of the trail as a page. */
export function pageOfPart<Item>({ items, next }: Awaited<ReturnType<typeof partOf<Item>>>) {
  return { items, next: next === undefined ? null : cursorOf(next) };
}

interface NewestQuery {
  readonly session: string | undefined;
  /** Entries with this number and smaller ones are not read. */
  readonly after: number;
  /** Entries with this number and larger ones were read before; undefined for the end of the trail. */
  readonly before: number | undefined;
  readonly limit: number;
}

/** A page from the end of the trail, newest first. With a session it scans a bounded part, as `partOf` does. */
async function newestPart(
  reader: AuditReader,
  { session, after, before, limit }: NewestQuery,
): Promise<{ items: readonly AuditEntry[]; next: string | null }> {
  const items: AuditEntry[] = [];
  let end = before ?? (await reader.head()).seq + 1;
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const size = session === undefined ? limit - items.length : LOOK;
    const start = Math.max(after, end - 1 - size);
    const count = end - 1 - start;
    if (count <= 0) return { items, next: null };
    const read = await reader.read({ after: start, limit: count });
    for (const entry of read.toReversed()) {
      if (session === undefined || entry.session === session) items.push(entry);
      end = entry.seq;
      const isLast = end <= after + 1;
      if (items.length === limit) return { items, next: isLast ? null : cursorOf(end) };
    }
    if (read.length === 0) return { items, next: null };
  }
  return { items, next: end <= after + 1 ? null : cursorOf(end) };
}

/** The number of the last entry before an instant, by binary search: times never decrease. */
export async function lastBefore(reader: AuditReader, moment: string): Promise<number> {
  let before = 0;
  let notBefore = (await reader.head()).seq + 1;
  while (notBefore - before > 1) {
    const middle = Math.floor((before + notBefore) / 2);
    const [entry] = await reader.read({ after: middle - 1, limit: 1 });
    if (entry !== undefined && entry.at < moment) before = middle;
    else notBefore = middle;
  }
  return before;
}

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
    ...access("checkAudit", "none", "people"),
    input: NO_INPUT,
    contentType: "text/plain",
    async handle(_, context, { services }) {
      const { metrics, feeds, gates } = services;
      const all = Object.values(gates);
      const breakers = (await Promise.all(all.map((gate) => gate.breakers.list()))).flat();
      const denials = all.map((gate) => gate.denials());
      return context.text(metrics.text({ listeners: feeds.listeners, breakers, denials }), 200, {
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

export const switchRoutes = {
  "switch.get": jsonRoute({
    summary: "Show whether everything is paused, by whom, since when and why.",
    ...access("everybody", "none", "people"),
    input: NO_INPUT,
    answer: state.extend(texts("by", "reason", "at")),
    handle: (_, { gate }) => gate.killSwitch.look(),
  }),
  "switch.stop": jsonRoute({
    summary: "Stop everything: after the answer no new effect of this tenant starts.",
    ...access("stop", "none", "people"),
    input: z.strictObject({ reason }),
    answer: state,
    async handle({ reason: why }, call) {
      await call.gate.killSwitch.stop(why, { actor: call.by });
      return { stopped: true };
    },
  }),
  "switch.resume": jsonRoute({
    summary: "Allow effects to start again.",
    ...access("stop", "none", "people"),
    input: z.strictObject({ reason }),
    answer: state,
    async handle({ reason: why }, call) {
      await call.gate.killSwitch.resume(why, { actor: call.by });
      return { stopped: false };
    },
  }),
};

const breaker = wireOf(BREAKERS, ["id", "state", "failures", "reason", "closedBy", "updatedAt"]);

const counts = list(z.object({ name: anyText, count: z.int() }));

/** Tools that fail, and calls that were denied. */
export const breakerRoutes = {
  "breakers.list": jsonRoute({
    summary: "List the breakers of tools that have failed: how often in a row, and which are open.",
    ...access("readAll", "none", "people"),
    input: NO_INPUT,
    answer: z.object({ items: list(breaker) }),
    handle: async (_, { gate }) => ({ items: await gate.breakers.list() }),
  }),
  "breakers.close": jsonRoute({
    summary: "Close the breaker of a tool, so that it is called again.",
    ...access("settle", "none", "people"),
    input: z.strictObject({ tool: name, reason: reason.min(1) }),
    answer: breaker,
    handle: ({ tool: of, reason: why }, { gate, by }) =>
      gate.breakers.close(of, { by, reason: why }),
  }),
  "denials.get": jsonRoute({
    summary: "Count the calls that this server has denied since it was started.",
    ...access("readAll", "none", "people"),
    input: NO_INPUT,
    answer: z.object({
      total: z.int(),
      /** Since the last allowed call. */
      inARow: z.int(),
      byTool: counts,
      /** By the check that denied: a rule, a class, a hook, a policy. */
      byPolicy: counts,
      byAgent: counts,
      lastAt: instantText.nullable(),
    }),
    async handle(_, { gate }) {
      const { total, inARow, byTool, byPolicy, byAgent, lastAt } = gate.denials();
      return {
        total,
        inARow,
        byTool: named(byTool),
        byPolicy: named(byPolicy),
        byAgent: named(byAgent),
        lastAt: lastAt === undefined ? null : toIso(lastAt),
      };
    },
  }),
};

function named(ranked: readonly (readonly [string, number])[]) {
  return ranked.map(([of, count]) => ({ name: of, count }));
}

export const eventRoutes = {
  "events.follow": rawRoute({
    summary: "Stream audit entries as server-sent events, numbered and resumable.",
    ...access("read", "list", "people"),
    input: z.strictObject({
      /** The number of the last known entry; the header Last-Event-ID takes precedence. */
      after: z.int().min(0).optional(),
    }),
    contentType: "text/event-stream",
    async handle({ after }, context, call) {
      const start = lastSeen(context) ?? after;
      const leave = call.services.streams.enter(call.identity);
      try {
        await sendEvents(context, call, start);
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

const tool = z.object({
  name: anyText,
  /** The tool's own words. */
  description: anyText,
  safetyClass: z.enum(SAFETY_CLASSES),
  definitionHash: anyText,
  metadata: z.object({
    effect: anyText,
    concurrencySafe: z.boolean(),
    readOnly: z.boolean(),
    destructive: z.boolean(),
    aliases: list(anyText),
    ...texts("searchHint", "permissionClass", "auditOperation"),
  }),
  capability: z.object({
    confidenceMin: z.number(),
    checkpoint: z.boolean(),
    reverseThinking: z.boolean(),
    ...texts("undoMethod", "undoTool"),
    affects: list(anyText),
  }),
  has: z.object({
    dryRun: z.boolean(),
    undo: z.boolean(),
    probe: z.boolean(),
    stateVersion: z.boolean(),
    idempotencyKey: z.boolean(),
  }),
  version: anyText.nullable(),
  /** As a model gets it. */
  inputSchema: jsonObject,
  /** 2: has a dry run; 1: can be undone; 0: neither, and then there is a warning. */
  safetyLevel: z.int(),
  warning: anyText.nullable(),
});

/** As the gate offers it, with its own name for the reserved keys; none when it was removed meanwhile. */
function wireTools({ tools }: Pick<Gate, "tools">, shown: ToolOffer): z.output<typeof tool>[] {
  return tools.filter([shown.name]).map((one) => wireTool(one, shown));
}

function wireTool(one: Tool, shown: ToolOffer): z.output<typeof tool> {
  return {
    name: one.name,
    description: shown.description,
    safetyClass: safetyClassOf(one),
    definitionHash: definitionHash(one),
    metadata: metadataOf(one),
    capability: capabilityOf(one),
    has: {
      dryRun: one.dryRun !== undefined,
      undo: one.generateUndo !== undefined,
      probe: one.probe !== undefined,
      stateVersion: one.stateVersion !== undefined,
      idempotencyKey: one.idempotency === "keyed",
    },
    version: one.version ?? null,
    inputSchema: shown.inputSchema,
    safetyLevel: shown.safetyLevel,
    warning: shown.warning ?? null,
  };
}

export const toolRoutes = {
  "tools.list": jsonRoute({
    summary:
      "List the tools, safer ones first. An agent gets those that it is offered: all, or those that its session has loaded.",
    ...access("everybody", "none"),
    input: z.strictObject({ sessionId: name.optional() }),
    answer: z.object({ items: list(tool) }),
    async handle({ sessionId }, call) {
      const { gate, identity } = call;
      const isAgent = identity.roles.includes("agent");
      const session =
        sessionId === undefined ? undefined : await call.services.sessions.peek(call, sessionId);
      if (isAgent && sessionId !== undefined && session?.agent !== identity.subject) {
        throw notFound(sessionId);
      }
      const { workingDirectory } = session ?? {};
      // People see all of them.
      const all = !isAgent && sessionId === undefined;
      const offered = await gate.offered(definedFields({ sessionId, workingDirectory, all }));
      return { items: offered.flatMap((one) => wireTools(gate, one)) };
    },
  }),
  "tools.get": jsonRoute({
    summary: "Get a tool by name or alias.",
    ...access("everybody", "none"),
    input: z.strictObject({ name }),
    answer: tool,
    async handle(input, { gate }) {
      const found = gate.tools.get(input.name);
      if (found === undefined) throw notFound(input.name);
      const offered = await gate.offered({ all: true });
      const shown = offered.filter((one) => one.name === found.name);
      const [item] = shown.flatMap((one) => wireTools(gate, one));
      if (item === undefined) throw notFound(input.name);
      return item;
    },
  }),
};
