import path from "node:path";
import { z } from "zod";
import { type Capsule, describeCapsule } from "../../delegation/scope.ts";
import type { GateDelegations } from "../../gate/delegating.ts";
import type { Session } from "../../gate/session.ts";
import {
  AGENT_ROLES,
  type CompletionPromise,
  DELEGATION_MOVES,
  DELEGATIONS,
  type DelegationId,
  type DelegationState,
  isDelegated,
  LOOP_STAGES,
  PHASES,
  type Phase,
  type Run,
  type RunId,
  WRITE_PERMISSIONS,
} from "../../model/delegation.ts";
import { FINDING_SEVERITIES } from "../../model/finding.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { access, type Call, gateSession, jsonRoute, maySee, narrowed, notFound } from "../route.ts";
import { makeSubagentToken, proofOf } from "../sign-in.ts";
import {
  anyText,
  callAnswer,
  callRequest,
  instantText,
  list,
  name,
  pageFrom,
  pageOf,
  paging,
  questionAnswer,
  questionRequest,
  reason,
  remark,
  texts,
  wireAnswer,
  wireOf,
} from "../wire.ts";
import { rollbackReport } from "./decisions.ts";
import { answered, running } from "./sessions.ts";

const STATES = Object.keys(DELEGATION_MOVES) as [DelegationState, ...DelegationState[]];

/** What must be true in the end, and which evidence proves it. */
const promise = z.object({
  ...texts("id", "statement"),
  evidence: list(z.object({ name: anyText, command: anyText.optional() })),
});

const evidence = z.object({
  ...texts("promiseId", "need", "command"),
  exitCode: z.number(),
  ...texts("keyOutput", "conclusion"),
  green: z.boolean(),
  /** The gate has run the command itself; otherwise the agent says so. */
  observed: z.boolean(),
  sessionId: anyText,
  at: instantText,
});

const scope = z.object({
  planId: anyText,
  role: z.enum(AGENT_ROLES),
  writePermission: z.enum(WRITE_PERMISSIONS),
  planFiles: list(anyText),
  documents: list(anyText),
  artefact: anyText,
  tools: list(anyText),
  calls: z.number(),
  expiresAt: instantText,
  depth: z.number(),
});

/** Without the hash of the sub-agent's token. */
const delegation = wireOf(
  DELEGATIONS,
  // biome-ignore format: a list
  [
    "id", "state", "chain", "agents", "owner", "parentSession", "rootSession", "runId", "traceId", "task",
    "capsule", "promise", "scope", "workingDirectory", "output", "promiseMet", "reason", "createdAt", "updatedAt",
  ],
  { chain: list(anyText), agents: list(anyText), promise, scope },
);

const finding = z.object({
  severity: z.enum(FINDING_SEVERITIES),
  ...texts("policy", "message"),
});

/** What a sub-agent knows: its task, its context, what done means and what it may do. */
const capsule = z.object({
  ...texts("delegationId", "planId"),
  role: z.enum(AGENT_ROLES),
  ...texts("task", "context", "workingDirectory"),
  promise,
  scope: scope.extend({ expiresAt: instantText.optional() }),
  /** The same as a text for a model. */
  text: anyText,
});

const PLACES = z.array(z.string().max(4_096)).max(500).optional();

const delegationRequest = z.strictObject({
  /** The session that delegates: one of yours, or the delegation that you work for. */
  sessionId: name,
  agent: name,
  role: z.enum(AGENT_ROLES),
  task: z.string().min(1).max(10_000),
  /** Everything the sub-agent will know. */
  capsule: z.string().max(100_000),
  promise: z.union([
    name,
    z.strictObject({
      id: name,
      statement: z.string().max(10_000),
      evidence: z
        .array(z.strictObject({ name, command: z.string().max(4_096).optional() }))
        .max(50),
    }),
  ]),
  writePermission: z.enum(WRITE_PERMISSIONS).optional(),
  workingDirectory: z.string().max(4_096).optional(),
  planFiles: PLACES,
  documents: PLACES,
  artefact: z.string().max(4_096).optional(),
  tools: z.array(name).max(200).optional(),
  calls: z.int().min(1).max(10_000).optional(),
  ttlMs: z.int().min(1_000).optional(),
  depth: z.int().min(0).max(8).optional(),
  /** Plans and asks the gate, and starts nothing. */
  dryRun: z.boolean().optional(),
});

const delegated = z.discriminatedUnion("answer", [
  z.object({
    answer: z.literal("delegated"),
    delegation,
    capsule,
    /** The sub-agent's own token. Shown only now; empty when the answer is repeated for its idempotency key. */
    token: anyText,
  }),
  z.object({ answer: z.literal("dry_run"), capsule, allowed: z.boolean(), errors: list(finding) }),
  z.object({ answer: z.literal("denied"), text: anyText, errors: list(finding) }),
]);

type Delegated = Awaited<ReturnType<Session["delegate"]>>;

async function wireDelegated(given: Delegated, call: Call): Promise<z.output<typeof delegated>> {
  const { errors, allowed } = given.verdict;
  if (given.answer === "denied") return { answer: "denied", text: given.text, errors };
  const shown = wireCapsule(given.capsule);
  if (given.answer === "dry_run") return { answer: "dry_run", capsule: shown, allowed, errors };
  const { delegation: made, token } = given;
  return {
    answer: "delegated",
    delegation: made,
    capsule: shown,
    token: await makeSubagentToken(made, token, call),
  };
}

function wireCapsule(given: Capsule): z.output<typeof capsule> {
  return { ...given, text: describeCapsule(given) };
}

/** What a sub-agent does with its session. The proof is the second half of its token, as it is in a process of the host. */
async function asSubagent<Result>(
  id: string,
  { gate, signed }: Call,
  work: (attached: Awaited<ReturnType<GateDelegations["attach"]>>) => Promise<Result>,
): Promise<Result> {
  const attached = await gate.delegations.attach(id as DelegationId, proofOf(signed));
  try {
    return await work(attached);
  } finally {
    attached.watch.stop();
  }
}

/** Of an agent its session, of a sub-agent its delegation. */
async function delegatingSession<Result>(
  sessionId: string,
  call: Call,
  work: (session: Session) => Promise<Result>,
): Promise<Result> {
  if (!(await maySee(call, sessionId))) throw notFound(sessionId);
  if (isDelegated(sessionId)) return asSubagent(sessionId, call, ({ session }) => work(session));
  return work(await gateSession(call, sessionId));
}

export const delegationRoutes = {
  "delegations.list": jsonRoute({
    summary: "List delegations below a session, or all below one root.",
    ...access("read", "list"),
    input: z.strictObject({
      rootSession: name.optional(),
      parentSession: name.optional(),
      ...paging,
    }),
    answer: pageOf(delegation),
    async handle({ rootSession, parentSession, ...paged }, call) {
      // Both narrow the list, so that one of them that is the caller's own is enough.
      await narrowed(call, rootSession ?? parentSession, "rootSession");
      const query = definedFields({ rootSession, parentSession });
      return pageFrom(await call.gate.delegations.list(query), paged);
    },
  }),
  "delegations.delegate": jsonRoute({
    summary:
      "Delegate a task to a sub-agent, or say why not. A dry run shows what would be delegated.",
    ...access("delegate", "none"),
    input: delegationRequest,
    answer: delegated,
    ifCutOff: "ask",
    toKeep: (answer) => (answer.answer === "delegated" ? { ...answer, token: "" } : answer),
    handle: ({ sessionId, dryRun = false, promise: given, ...rest }, call) =>
      delegatingSession(sessionId, call, async (session) => {
        const promised = typeof given === "string" ? given : promiseIn(given);
        const request = { ...definedFields(rest), promise: promised };
        return wireDelegated(await session.delegate(request, { dryRun }), call);
      }),
  }),
  "delegations.get": jsonRoute({
    summary: "Get a delegation: task, scope, promise, report.",
    ...access("read", "delegation"),
    input: z.strictObject({ id: name }),
    answer: delegation,
    handle: ({ id }, call) => call.gate.delegations.get(id as DelegationId),
  }),
  "delegations.attach": jsonRoute({
    summary: "Get what a sub-agent must know: task, context, promise, scope.",
    ...access("workFor", "delegation"),
    input: z.strictObject({ id: name }),
    answer: capsule,
    handle: ({ id }, call) => asSubagent(id, call, async (own) => wireCapsule(own.capsule)),
  }),
  "delegations.call": jsonRoute({
    summary: "Call a tool as a sub-agent, within the scope of its delegation.",
    ...access("workFor", "delegation"),
    input: callRequest.extend({ id: name }),
    answer: callAnswer,
    keys: "passed",
    handle: ({ id, ...request }, call) =>
      asSubagent(id, call, async ({ session }) => {
        const requestKey = call.key === "" ? undefined : call.key;
        const sent = definedFields({ ...request, requestKey });
        return running(call, id, [request.callId], async (signal) =>
          answered(await session.call(sent, { signal })),
        );
      }),
  }),
  "delegations.ask": jsonRoute({
    summary:
      "Ask a person as a sub-agent. Asking again with the same id returns the state of that question.",
    ...access("workFor", "delegation"),
    input: questionRequest.extend({ id: name }),
    answer: questionAnswer,
    handle: ({ id, ...question }, call) =>
      asSubagent(id, call, ({ session }) => session.ask(definedFields(question))),
  }),
  "delegations.resultOf": jsonRoute({
    summary: "Get the result of a sub-agent's call or question; null if there is none.",
    ...access("workFor", "delegation"),
    input: z.strictObject({ id: name, key: name }),
    answer: z.object({ result: callAnswer.nullable() }),
    handle: ({ id, key }, call) =>
      asSubagent(id, call, async ({ session }) => {
        const result = await session.resultOf(key);
        return { result: result === undefined ? null : wireAnswer(result) };
      }),
  }),
  "delegations.report": jsonRoute({
    summary:
      "Report the work of a sub-agent, which is checked against its promise and ends the delegation.",
    ...access("workFor", "delegation"),
    input: z.strictObject({ id: name, output: z.string().max(100_000) }),
    answer: z.object({
      state: z.enum(STATES),
      promiseMet: z.boolean(),
      missing: list(anyText),
      ...texts("delegationId", "planId", "traceId", "promiseId", "output", "reason"),
    }),
    handle: ({ id, output }, call) =>
      call.gate.delegations.report(id as DelegationId, output, proofOf(call.signed)),
  }),
  "delegations.fail": jsonRoute({
    summary: "Say as a sub-agent that the work cannot be done. Ends the delegation.",
    ...access("workFor", "delegation"),
    input: z.strictObject({ id: name, reason }),
    answer: delegation,
    handle: ({ id, reason: why }, call) =>
      asSubagent(id, call, async ({ session: { id: own } }) => {
        const { agents } = await call.gate.delegations.get(own as DelegationId);
        const by = { actor: agents[0] ?? own };
        return call.gate.delegations.fail(own as DelegationId, why, by);
      }),
  }),
  "delegations.revoke": jsonRoute({
    summary: "Stop a sub-agent and everything below it.",
    ...access("undo", "delegation", "people"),
    input: z.strictObject({ id: name, reason }),
    answer: delegation,
    handle: ({ id, reason: why }, call) =>
      call.gate.delegations.revoke(id as DelegationId, why, { actor: call.by }),
  }),
  "delegations.rollback": jsonRoute({
    summary: "Roll back what was done under a delegation and below it, newest first.",
    ...access("undo", "delegation", "people"),
    input: z.strictObject({ id: name, only: z.array(name).min(1).max(1_000).optional() }),
    answer: z.object({
      items: list(z.object({ delegationId: anyText, report: rollbackReport })),
    }),
    handle: async ({ id, ...part }, call) => ({
      items: await call.gate.delegations.rollback(id as DelegationId, call.by, definedFields(part)),
    }),
  }),
};

function promiseIn({ id, statement, evidence: needs }: PromiseRequest): CompletionPromise {
  return { id, statement, evidence: needs.map((need) => definedFields(need)) };
}

type PromiseRequest = Exclude<z.output<typeof delegationRequest>["promise"], string>;

const STATUSES = ["open", "done", "stopped"] as const satisfies readonly Run["status"][];
const phase = z.enum(PHASES as readonly [Phase, ...Phase[]]);

const run = z.object({
  ...texts("id", "feature", "lead"),
  phase,
  status: z.enum(STATUSES),
  artefacts: z.partialRecord(phase, anyText),
  ...texts("documents", "evidenceFolder"),
  planFiles: list(anyText),
  promises: list(promise),
  evidence: list(evidence),
  budget: z.int(),
  rounds: z.int(),
  stage: z.enum(["", ...LOOP_STAGES]),
  reason: anyText,
  version: z.int(),
});

export const runRoutes = {
  "runs.list": jsonRoute({
    summary: "List the runs of lead agents: phase, promise, budget.",
    ...access("readAll", "none"),
    input: z.strictObject({
      /** All by default. */
      status: z.enum(STATUSES).optional(),
      ...paging,
    }),
    answer: pageOf(run),
    async handle({ status, ...paged }, { store }) {
      const asked = status === undefined ? STATUSES : [status];
      const found = await Promise.all(asked.map((one) => store.runs.list(one)));
      return pageFrom(found.flat(), paged);
    },
  }),
  "runs.get": jsonRoute({
    summary: "Get a run: plan, promises and their evidence.",
    ...access("read", "session"),
    input: z.strictObject({ id: name }),
    answer: run,
    handle: ({ id }, { gate }) => gate.runs.get(id as RunId),
  }),
  "runs.start": jsonRoute({
    summary: "Start a run of a feature, led by you. It is also your session for it.",
    ...access("propose", "none"),
    input: z.strictObject({
      feature: z.string().min(1).max(1_000),
      promise: delegationRequest.shape.promise.options[1],
      /** Folders that the operator listed as `sessionFolders`, or below one; none by default. */
      documents: z.string().max(4_096).optional(),
      evidenceFolder: z.string().max(4_096).optional(),
      workingDirectory: z.string().max(4_096).optional(),
      /** Rounds of its loop at most. */
      budget: z.int().min(1).max(1_000),
    }),
    answer: run,
    status: 201,
    ifCutOff: "ask",
    async handle({ feature, promise: given, budget, ...places }, call) {
      const { gate, store, identity, by } = call;
      const { folderFor } = gate.sessions;
      const { documents = "", evidenceFolder = "", workingDirectory = "" } = places;
      const folder = await folderFor(workingDirectory);
      const started = await gate.runs.start({
        feature,
        lead: by,
        promise: promiseIn(given),
        documents: await folderFor(documents),
        evidenceFolder: await folderFor(evidenceFolder),
        budget,
      });
      const { owner } = identity;
      await store.sessions.open({ id: started.id, agent: by, owner, workingDirectory: folder });
      return started;
    },
  }),
  "runs.proposePlan": jsonRoute({
    summary:
      "Put the files that a run may write before a person. Asking again returns the state of that question.",
    ...access("propose", "session"),
    input: z.strictObject({
      id: name,
      files: z.array(z.string().min(1).max(4_096)).min(1).max(200),
    }),
    answer: questionAnswer,
    handle: ({ id, files }, { gate }) => gate.runs.proposePlan(id as RunId, files),
  }),
  "runs.enter": jsonRoute({
    summary: "Enter the next phase of a run, if its table, its promise and the gate allow it.",
    ...access("undo", "session"),
    input: z.strictObject({ id: name, phase }),
    answer: z.object({ entered: z.boolean(), run, findings: list(finding) }),
    async handle({ id, phase: to }, { gate, by }) {
      const entered = await gate.runs.enter(id as RunId, to, { actor: by });
      if (entered.entered) return { entered: true, run: entered.run, findings: [] };
      return { entered: false, run: await gate.runs.get(id as RunId), findings: entered.findings };
    },
  }),
  "runs.nameArtefact": jsonRoute({
    summary: "Name the file that a phase of a run has produced.",
    ...access("undo", "session"),
    input: z.strictObject({ id: name, phase, path: z.string().min(1).max(4_096) }),
    answer: run,
    async handle({ id, phase: of, path: file }, { gate, by }) {
      await gate.runs.get(id as RunId);
      // A sub-agent may write it, so it lies where sessions may work.
      const folder = await gate.sessions.folderFor(path.dirname(file));
      const named = path.join(folder, path.basename(file));
      const event = { kind: "artefact_named", phase: of, path: named } as const;
      return gate.runs.tell(id as RunId, event, { actor: by });
    },
  }),
  "runs.finish": jsonRoute({
    summary: "End a run as done: it is in the phase ship and its promise is kept.",
    ...access("undo", "session"),
    input: z.strictObject({ id: name }),
    answer: run,
    handle: ({ id }, { gate, by }) => gate.runs.tell(id as RunId, { kind: "done" }, { actor: by }),
  }),
  "runs.stop": jsonRoute({
    summary: "Stop a run for good.",
    ...access("undo", "session", "people"),
    input: z.strictObject({ id: name, reason: remark }),
    answer: run,
    handle: ({ id, reason: why }, { gate, by }) =>
      gate.runs.tell(id as RunId, { kind: "stopped", reason: why }, { actor: by }),
  }),
};
