import { z } from "zod";
import { CHAPTERS, partOf, type StoryMembers, storyLine } from "../../audit/trail.ts";
import { counterfactualIn } from "../../gate/operation-log.ts";
import { isDelegated } from "../../model/delegation.ts";
import type { TaskPage } from "../../store/tasks.ts";
import { SAFETY_CLASSES } from "../../tools/tool.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { access, type Call, findSession, gateSession, jsonRoute, notFound } from "../route.ts";
import {
  anyText,
  callRequest,
  cursorOf,
  DEFAULT_PAGE,
  finding,
  fitting,
  instantText,
  json,
  jsonObject,
  list,
  name,
  pageOf,
  paging,
  placeOf,
  texts,
} from "../wire.ts";
import { wireDecision } from "./decisions.ts";
import { lastBefore, pageOfPart } from "./service.ts";

// What happened, told in order; what would happen; and what agents predicted.

const chapters = [...new Set(Object.values(CHAPTERS)), "other"] as const;

const line = z.object({
  seq: z.int(),
  at: instantText,
  chapter: z.enum(chapters),
  ...texts("type", "subject", "session", "actor"),
  /** Null where it was erased, and for agents. */
  data: jsonObject.nullable(),
});

const storyPage = pageOf(line);

interface Asked {
  readonly cursor?: string | undefined;
  readonly limit?: number | undefined;
}

/** One page of a story; one with few lines, or none, may still have a `next`. */
async function storyPart(
  call: Call,
  members: StoryMembers,
  since: string,
  { cursor, limit = DEFAULT_PAGE }: Asked,
): Promise<z.output<typeof storyPage>> {
  const { audit } = call.gate;
  const start = since === "" ? 0 : await lastBefore(audit, since);
  const after = cursor === undefined ? start : placeOf(cursor);
  const part = await partOf(audit, { after, limit }, (entry) => {
    const found = storyLine(entry, members);
    return found === undefined || call.own === undefined ? found : { ...found, data: null };
  });
  const items = part.items.slice(0, fitting(part.items));
  const last = items.at(-1);
  if (items.length === part.items.length || last === undefined) return pageOfPart(part);
  return { items, next: cursorOf(last.seq) };
}

/** A session and those of its sub-agents, at any depth. */
async function withSubagents({ gate }: Call, id: string): Promise<ReadonlySet<string>> {
  const sessions = new Set([id]);
  for (const parentSession of sessions) {
    for (const below of await gate.delegations.list({ parentSession })) sessions.add(below.id);
  }
  return sessions;
}

const TASK_PAGE = 500;
/** Every page of a story looks again. Of tasks beyond these the story has the lines that name the session, as of all tasks. */
const MOST_TASK_PAGES = 20;

/** Its tasks, whose lines from before they were linked to it belong to the story as well. */
async function tasksOf({ gate }: Call, sessions: ReadonlySet<string>) {
  const tasks = new Set<string>();
  let first = "";
  let after: number | undefined = 0;
  for (let pages = 0; after !== undefined && pages < MOST_TASK_PAGES; pages += 1) {
    const page: TaskPage = await gate.tasks.page({ after, limit: TASK_PAGE });
    for (const { id, sessionId = "", createdAt } of page.tasks) {
      if (!sessions.has(sessionId)) continue;
      tasks.add(id);
      if (first === "" || createdAt < first) first = createdAt;
    }
    after = page.next;
  }
  return { tasks, first };
}

/** When a session began: the trail before it has nothing of it. Empty when that is not known. */
async function beginningOf(call: Call, id: string): Promise<string> {
  if (isDelegated(id)) return (await call.gate.delegations.get(id)).createdAt;
  return (await call.services.sessions.peek(call, id))?.createdAt ?? "";
}

export const storyRoutes = {
  "sessions.story": jsonRoute({
    summary:
      "Tell what happened in a session and its sub-agents', oldest first: tasks, plan, checks, decisions, people, operations.",
    ...access("read", "session"),
    input: z.strictObject({ id: name, ...paging }),
    answer: storyPage,
    async handle({ id, ...paged }, call) {
      const isKnown = isDelegated(id) || (await findSession(call, id)) !== undefined;
      if (!isKnown) throw notFound(id);
      const sessions = await withSubagents(call, id);
      const { tasks, first } = await tasksOf(call, sessions);
      const began = await beginningOf(call, id);
      // Its tasks may be older than the session.
      const since = first !== "" && first < began ? first : began;
      return storyPart(call, { sessions, tasks }, since, paged);
    },
  }),
  "decisions.story": jsonRoute({
    summary:
      "Tell what happened to a decision, oldest first: checks, reviews, people, attempts, outcome.",
    ...access("read", "decision"),
    input: z.strictObject({ id: name, ...paging }),
    answer: storyPage,
    async handle({ id, ...paged }, call) {
      const { gate, store } = call;
      const decision = await gate.decisions.get(id);
      const { sessionId: session } = decision;
      const operations = await store.operations.listBySession(session, { decisionId: id });
      const calls = wireDecision(decision).calls ?? [];
      const members = {
        session,
        subjects: new Set<string>([id, ...operations.map((one) => one.id)]),
        callIds: new Set(calls.map(({ callId }) => callId)),
      };
      return storyPart(call, members, await beginningOf(call, session), paged);
    },
  }),
  "sessions.preview": jsonRoute({
    summary:
      "Show what the gate would say to a call, and its dry run. Asks nobody, stages nothing, executes nothing.",
    ...access("propose", "session"),
    input: callRequest.extend({ id: name }),
    answer: z.object({
      verdict: z.enum(["allow", "review", "ask", "deny", "failed"]),
      text: anyText,
      findings: list(finding),
      /** Null: the tool has none, or the call would be refused. */
      dryRun: json.nullable(),
      safetyClass: z.enum(["", ...SAFETY_CLASSES]),
    }),
    async handle({ id, ...request }, call) {
      return (await gateSession(call, id)).preview(definedFields(request));
    },
  }),
};

const counterfactual = z.object({
  kind: z.literal("counterfactual"),
  ...texts("callId", "sessionId", "tool", "step", "verdict", "reason"),
  hiddenAssumptions: list(anyText),
  failureScenarios: list(anyText),
  at: instantText,
  seq: z.int(),
});

export const counterfactualRoutes = {
  "counterfactuals.list": jsonRoute({
    summary:
      "List the counter-checks that calls were made with, oldest first, to compare with what came of them.",
    ...access("readAll", "none"),
    input: z.strictObject({ ...paging }),
    answer: pageOf(counterfactual),
    async handle({ cursor, limit = DEFAULT_PAGE }, { gate }) {
      return pageOfPart(
        await partOf(gate.audit, { after: placeOf(cursor), limit }, counterfactualIn),
      );
    },
  }),
};
