// Every verb of delegations, runs, conversations, tasks, breakers, permits and staged decisions, and --progress, on the command
// line against a real server: what it changes, and how it refuses.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createProgram } from "../../src/cli/main.ts";
import { createFlow } from "../../src/flow/index.ts";
import type { Role } from "../../src/model/identity.ts";
import { defineTool, payloadTool } from "../../src/tools/index.ts";
import { callOf, DONE, PLAN, planOf } from "../flow/flow-world.ts";
import { modelSaying } from "../flow/scripted-model.ts";
import { faultOf, runApart, runHere } from "../fuzz/cli-run.ts";
import { type HttpWorld, openHttp, subjectOf } from "../http/http-world.ts";
import { createWorld } from "../support/port-world.ts";

interface Caller {
  /** The answer as JSON; the command must succeed. */
  ok(...args: readonly string[]): Promise<Answer>;
  /** What a person reads. */
  text(...args: readonly string[]): Promise<{ readonly out: string; readonly err: string }>;
  /** The message of a command that is refused: with exit code 3, in words. */
  no(...args: readonly string[]): Promise<string>;
}

// biome-ignore lint/suspicious/noExplicitAny: what the server sends; every test says what it expects of it.
type Answer = any;

function caller(url: string, how: () => Promise<readonly string[]>): Caller {
  const run = async (flags: readonly string[], args: readonly string[]) =>
    runHere([...flags, "--url", url, ...(await how()), ...args]);
  return {
    async ok(...args) {
      const { code, out, err } = await run(["--json"], args);
      expect({ code, err }, args.join(" ")).toEqual({ code: 0, err: "" });
      expect(out, args.join(" ")).toMatch(/^[[{]/);
      return JSON.parse(out);
    },
    async text(...args) {
      const { code, out, err } = await run([], args);
      expect(code, `${args.join(" ")}: ${err}`).toBe(0);
      return { out, err };
    },
    async no(...args) {
      const ended = await run([], args);
      expect(ended.code, `${args.join(" ")}: ${ended.out}`).toBe(3);
      expect(faultOf(ended, "fail")).toBeUndefined();
      return ended.err;
    },
  };
}

const byToken = (url: string, token: string) => caller(url, async () => ["--token", token]);

/** A program with a token of this role. */
async function program(world: HttpWorld, role: Role, subject = subjectOf(role)) {
  return byToken(world.server.url, await world.token("acme", role, subject));
}

/** A person, who signs in by a link for each command. */
function person(world: HttpWorld, role: Role): Caller {
  const terms = { tenant: "acme", subject: subjectOf(role), roles: [role] };
  return caller(world.server.url, async () => ["--link", await world.server.signInLink(terms)]);
}

const json = JSON.stringify;

test("no flag of a verb is one of the program, which would take it", () => {
  const program = createProgram();
  const own = new Set(program.options.map(({ long }) => long));
  const verbs = program.commands.flatMap((noun) => [...noun.commands]);
  expect(verbs.length, "void: no verbs").toBeGreaterThan(90);
  const taken = verbs.flatMap((verb) =>
    verb.options.filter(({ long }) => own.has(long)).map(({ long }) => `${verb.name()} ${long}`),
  );
  expect(taken).toEqual([]);
});

const LOOK = ["--tool", "world.look", "--input", json({ key: "k" })];
const PROMISE = { id: "looked", statement: "k was looked at", evidence: [] };

function delegating(sessionId: string, agent = "agent:below"): readonly string[] {
  return [
    ...["delegations", "delegate", "--session-id", sessionId, "--agent", agent],
    ...["--role", "research", "--task", "Look at k.", "--capsule", "The key is k."],
    ...["--promise", json(PROMISE), "--tools", json(["world.look"]), "--calls", "5"],
  ];
}

test("delegations: delegate, attach, call, ask, report, fail, revoke, roll back; refused verbs say why", async () => {
  const world = await openHttp();
  const { url } = world.server;
  const lead = await program(world, "agent");
  const operator = await program(world, "operator");
  const { id: sessionId } = await lead.ok("sessions", "open", "--id", "root");

  const dry = await lead.ok(...delegating(sessionId), "--dry-run");
  expect(dry).toMatchObject({ answer: "dry_run", allowed: true });
  expect(await lead.ok("delegations", "list", "--root-session", sessionId)).toEqual({
    items: [],
    next: null,
  });
  const { delegation, token } = await lead.ok(...delegating(sessionId));
  const { id } = delegation;
  const { items } = await lead.ok("delegations", "list", "--parent-session", sessionId);
  expect(items).toMatchObject([{ id, state: "active" }]);
  expect(await lead.no(...delegating("other"))).toContain("not_found");

  const sub = byToken(url, token);
  expect((await sub.text("delegations", "attach", id)).out).toContain("The key is k.");
  const call = ["delegations", "call", id, "--call-id", "1"];
  expect(await sub.ok(...call, ...LOOK)).toMatchObject({ answer: "done" });
  expect(world.worlds.acme.reads).toHaveLength(1);
  expect(await lead.no(...call, ...LOOK)).toContain("It takes the role subagent");
  const ask = ["delegations", "ask", id, "--call-id", "q", "--text", "Which shelf?"];
  expect(await sub.ok(...ask)).toMatchObject({ answer: "pending" });
  const [question] = await world.gates.acme.interactions.list();
  expect(question?.displayText).toContain("Which shelf?");
  const found = await sub.ok("delegations", "result-of", id, "q");
  expect(found.result).toMatchObject({ answer: "pending", interactionId: question?.id });
  expect(await sub.ok("delegations", "report", id, "--output", "seen")).toMatchObject({
    state: "reported",
    promiseMet: true,
  });
  expect(await lead.ok("delegations", "get", id)).toMatchObject({ output: "seen" });
  expect(await sub.no(...call, ...LOOK)).toContain("illegal_transition");

  const failed = await lead.ok(...delegating(sessionId, "agent:lost"));
  const lost = byToken(url, failed.token);
  const failing = ["delegations", "fail", failed.delegation.id, "--reason", "no k"];
  expect(await lost.ok(...failing)).toMatchObject({ state: "failed", reason: "no k" });

  const third = (await lead.ok(...delegating(sessionId, "agent:third"))).delegation.id;
  const revoke = ["delegations", "revoke", third, "--reason", "enough"];
  const stranger = await program(world, "agent", "agent:two");
  expect(await stranger.no(...revoke)).toContain("not_found");
  expect(await operator.ok(...revoke)).toMatchObject({ state: "revoked", reason: "enough" });
  expect(await operator.ok("delegations", "rollback-plan", id)).toEqual({ items: [] });
  const { items: reports } = await operator.ok("delegations", "rollback", id);
  expect(reports).toMatchObject([{ delegationId: id, report: { undone: [] } }]);
  expect(await stranger.no("delegations", "rollback", id)).toContain("not_found");
});

test("runs: start, plan approved in the inbox, enter, name an artefact, finish, stop; a phase out of order says what is missing", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-verbs-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const world = await openHttp({ port: { sessionFolders: [folder] } });
  const lead = await program(world, "agent");
  const start = ["runs", "start", "--feature", "labels", "--promise", json(PROMISE)];
  const { id } = await lead.ok(...start, "--budget", "3", "--working-directory", folder);
  expect(await lead.no(...start, "--budget", "3", "--documents", "/etc")).toContain(
    "sessionFolders",
  );
  const enter = (phase: string) => lead.ok("runs", "enter", id, "--phase", phase);
  expect(await lead.no("runs", "enter", id, "--phase", "execute")).toContain(
    "It cannot move from discuss to execute.",
  );
  for (const phase of ["spec", "plan"]) expect(await enter(phase)).toMatchObject({ entered: true });
  const artefact = path.join(folder, "plan.md");
  const naming = ["runs", "name-artefact", id, "--phase", "plan", "--path"];
  expect((await lead.ok(...naming, artefact)).artefacts).toMatchObject({ plan: artefact });
  expect(await lead.no(...naming, "/etc/plan.md")).toContain("not_allowed");

  expect(await lead.no("runs", "enter", id, "--phase", "execute")).toContain(
    "A person must approve the plan and its files first.",
  );
  const proposing = ["runs", "propose-plan", id, "--files", json([path.join(folder, "a.ts")])];
  const asked = await lead.ok(...proposing);
  expect(asked.answer).toBe("pending");
  const reviewer = person(world, "reviewer");
  const { hash } = await reviewer.ok("interactions", "get", asked.interactionId);
  const answer = ["interactions", "answer", asked.interactionId, "--hash", hash];
  await reviewer.ok(...answer, "--answer", "approve");
  expect(await lead.ok(...proposing)).toMatchObject({ answer: "answered", value: "approve" });
  expect(await enter("execute")).toMatchObject({ entered: true });
  expect((await lead.ok("runs", "get", id)).planFiles).toEqual([path.join(folder, "a.ts")]);
  expect(await lead.no("runs", "finish", id)).toMatch(/illegal_transition/);
  const operator = await program(world, "operator");
  expect((await operator.ok("runs", "list", "--status", "open")).items).toMatchObject([{ id }]);
  expect(await operator.ok("runs", "stop", id, "--reason", "later")).toMatchObject({
    status: "stopped",
    reason: "later",
  });
  expect((await operator.ok("runs", "list", "--status", "open")).items).toEqual([]);
});

test("runs finish: a run in its last phase ends as done", async () => {
  const world = await openHttp();
  const lead = await program(world, "agent");
  const { runs } = world.gates.acme;
  const start = ["runs", "start", "--feature", "labels", "--promise", json(PROMISE)];
  const { id } = await lead.ok(...start, "--budget", "3");
  for (const phase of ["spec", "plan"] as const)
    await runs.enter(id, phase, { actor: "agent:one" });
  const asked = await runs.proposePlan(id, ["/srv/a.ts"]);
  const { hash } = await world.gates.acme.interactions.get(asked.interactionId);
  const yes = { hash, by: "person:reviewer", answer: "approve" };
  await world.gates.acme.interactions.answer(asked.interactionId, yes);
  for (const phase of ["execute", "verify", "ship"]) {
    const entered = await lead.ok("runs", "enter", id, "--phase", phase);
    expect(entered, phase).toMatchObject({ entered: true });
  }
  expect(await lead.ok("runs", "finish", id)).toMatchObject({ status: "done" });
});

test("conversations: send, reply, confirm, resume; what nobody holds is not found", async () => {
  const sold: string[] = [];
  const sell = defineTool({
    name: "shop.sell",
    description: "Sells.",
    input: { type: "object" },
    safety: { effect: "external" },
    execute() {
      sold.push("one");
      return "sold";
    },
  });
  const flows: Record<string, ReturnType<typeof createFlow>> = {};
  const world = await openHttp({ port: { tools: [sell] }, server: { flows } });
  const gate = world.gates.acme;
  flows["acme"] = createFlow({
    model: modelSaying(PLAN, planOf("sell"), callOf("shop.sell"), DONE),
    openSession: ({ conversationId, userId }) =>
      gate.sessions.open({ id: `talk.${conversationId}`, agent: "agent:shop", owner: userId }),
    tools: gate.tools,
    states: world.store.tenant("acme").flowStates,
    onEvent: () => {},
    onProblem: ({ error }) => world.problems.push(error),
    modelRetries: 0,
  });
  const app = await program(world, "agent", "app:one");
  const reviewer = person(world, "reviewer");
  const send = ["conversations", "send", "--id", "order", "--message", "Sell one."];
  const begun = await app.ok(...send);
  expect(begun).toMatchObject({ outcome: "waiting", interaction: { type: "ask_user" } });
  const { id } = begun;
  const { items } = await app.ok("conversations", "list");
  expect(items).toMatchObject([{ id, user: "app:one", waitsFor: { type: "ask_user" } }]);
  expect(await app.ok("conversations", "get", id)).toMatchObject({ steps: [{ text: "sell" }] });
  const other = await program(world, "agent", "app:two");
  expect(await other.no("conversations", "get", id)).toContain("not_found");
  const about = ({ interaction: { interaction_id, version } }: Answer) => [
    ...[id, "--interaction-id", interaction_id, "--question-version", String(version)],
  ];
  const [plan] = await gate.interactions.list();
  const answering = ["--hash", plan?.hash ?? "", "--answer", plan?.choices[0] ?? "yes"];
  await reviewer.ok("interactions", "answer", plan?.id ?? "", ...answering);
  const called = await app.ok("conversations", "reply", ...about(begun));
  expect(called).toMatchObject({ outcome: "waiting", interaction: { type: "confirm" } });
  const [confirm] = await gate.interactions.list();
  const approving = ["interactions", "approve", confirm?.id ?? "", "--hash", confirm?.hash ?? ""];
  await reviewer.ok(...approving);
  const delivered = await app.ok("conversations", "confirm", ...about(called));
  expect(delivered).toMatchObject({ outcome: "delivered" });
  expect(sold).toEqual(["one"]);
  expect(await app.ok("conversations", "resume", id)).toMatchObject({ outcome: "nothing_stored" });
  expect(world.problems).toEqual([]);
});

test("conversations: a server without a flow says what is missing", async () => {
  const world = await openHttp();
  const app = await program(world, "agent");
  const said = await app.no("conversations", "send", "--message", "Hello");
  expect(said).toContain("give it a flow");
});

test("tasks: add-all, claim-batch, link, block, renew, complete, fail, reopen, stuck; what another holds is refused with its way out", async () => {
  const world = await openHttp();
  const one = await program(world, "agent");
  const two = await program(world, "agent", "agent:two");
  const operator = await program(world, "operator");
  const drafts = [
    { key: "count", subject: "Count" },
    { key: "order", subject: "Order", blockedBy: ["count"] },
    { subject: "Sweep" },
  ];
  const { tasks } = await one.ok("tasks", "add-all", "--tasks", json(drafts));
  const [count, order, sweep] = tasks.map(({ id }: Answer) => id);
  const block = ["tasks", "block", sweep, "--blocked-by", json([order])];
  expect(await one.no(...block)).toContain("not_allowed");
  expect((await operator.ok(...block)).blockedBy).toEqual([order]);
  const batch = await two.ok("tasks", "claim-batch", "--limit", "10", "--lease-ms", "60000");
  expect(batch.tasks).toMatchObject([{ id: count, claimer: "agent:two" }]);
  expect(await one.no("tasks", "claim", count)).toMatch(/not_claimable/);

  const { id: sessionId } = await two.ok("sessions", "open", "--id", "work");
  const held = [count, "--fence", String(batch.tasks[0].fence)];
  const linked = await two.ok("tasks", "link", ...held, "--session-id", sessionId);
  expect(linked).toMatchObject({ id: count, sessionId });
  expect(await one.no("tasks", "complete", ...held, "--result", "mine")).toMatch(
    /operator.*claim_lost/s,
  );
  const renewed = await two.ok("tasks", "renew", ...held, "--lease-ms", "120000");
  expect(renewed.leaseUntil > batch.tasks[0].leaseUntil).toBe(true);
  expect(await two.ok("tasks", "complete", ...held, "--result", "12")).toMatchObject({
    status: "completed",
  });
  const { task: next } = await two.ok("tasks", "claim-next");
  expect(next.id).toBe(order);
  expect((await operator.ok("tasks", "stuck", "--claimed-for-ms", "0")).items).not.toEqual([]);
  const failing = ["tasks", "fail", order, "--fence", "any", "--reason", "No paper."];
  expect(await operator.ok(...failing)).toMatchObject({ status: "failed" });
  expect(await operator.ok("tasks", "reopen", order)).toMatchObject({ status: "pending" });
  const again = await one.ok("tasks", "claim", order);
  await one.ok("tasks", "release", order, "--fence", String(again.fence));
  expect(await one.ok("tasks", "get", order)).toMatchObject({ status: "pending" });
  const { items } = await one.ok("tasks", "list", "--status", "completed");
  expect(items).toMatchObject([{ id: count, result: "12" }]);
});

test.each(["json", "markdown"])(
  "tasks: a list is exported to a file as %s and imported from it",
  async (format) => {
    const folder = mkdtempSync(path.join(tmpdir(), "sallyport-verbs-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = path.join(folder, "tasks");
    const from = await openHttp();
    const { id } = await (await program(from, "agent")).ok(
      "tasks",
      "add",
      "--subject",
      "Count\u2003it",
    );
    const operator = await program(from, "operator");
    await operator.ok("tasks", "add", "--subject", "x".repeat(80), "--priority", "3");
    const said = await operator.text("tasks", "export", "--format", format, "--file", file);
    expect(said.out).toMatch(/2/);
    expect(readFileSync(file, "utf8")).toContain("Count\u2003it");
    const to = await program(await openHttp(), "operator");
    const importing = ["tasks", "import", "--format", format];
    const { added } = await to.ok(...importing, "--file", file);
    expect(added).toHaveLength(2);
    expect(await to.ok("tasks", "get", id)).toMatchObject({ subject: "Count\u2003it" });
    expect((await to.ok(...importing, "--file", file)).skipped).toEqual(added);
    expect(await to.no(...importing, "--file", path.join(folder, "none"))).toContain("none");
    expect(await to.no(...importing)).toMatch(/--file/);
    writeFileSync(file, "{");
    expect(await to.no(...importing, "--file", file)).toMatch(/invalid_input/);
  },
);

test("interactions settle: what did not happen is said as such", async () => {
  const world = await openHttp({
    port: {
      tools: [
        defineTool({
          name: "shop.sell",
          description: "Sells.",
          input: { type: "object" },
          safety: { effect: "external" },
          execute: () => Promise.reject(new Error("The line went dead.")),
        }),
      ],
      policy: {
        version: "1",
        rules: [{ id: "sell", effect: "allow", tool: "shop.sell", reason: "test" }],
      },
    },
  });
  const agent = await program(world, "agent");
  const { id } = await agent.ok("sessions", "open");
  const call = ["--call-id", "1", "--tool", "shop.sell", "--input", "{}"];
  const lost = await agent.ok("sessions", "call", id, ...call);
  expect(lost).toMatchObject({ answer: "unknown" });
  const operator = person(world, "operator");
  const { hash } = await operator.ok("interactions", "get", lost.interactionId);
  const settle = ["interactions", "settle", lost.interactionId, "--hash", hash, "--happened"];
  expect(await operator.no(...settle, "perhaps")).toContain("--happened as JSON");
  await operator.ok(...settle, "false", "--reason", "no sale in the book");
  expect(await operator.ok("operations", "get", lost.operationId)).toMatchObject({
    status: "failed",
  });
});

test("breakers: list shows the tool that was stopped, close takes a signed-in person and a reason", async () => {
  const broken = defineTool({
    name: "shop.sell",
    description: "Sells.",
    input: { type: "object" },
    safety: { effect: "external" },
    execute: () => ({ text: "sold out", isError: true }),
  });
  const rules = [{ id: "sell", effect: "allow", tool: "shop.sell", reason: "test" }] as const;
  const world = await openHttp({
    port: { tools: [broken], policy: { version: "1", rules }, breaker: { threshold: 2 } },
  });
  const agent = await program(world, "agent");
  const { id: session } = await agent.ok("sessions", "open", "--id", "s");
  const call = (id: string) =>
    agent.ok("sessions", "call", session, "--call-id", id, "--tool", "shop.sell", "--input", "{}");
  for (const id of ["1", "2"]) expect(await call(id)).toMatchObject({ answer: "failed" });
  expect(await call("3")).toMatchObject({ answer: "denied" });
  const operator = await program(world, "operator");
  expect((await operator.ok("breakers", "list")).items).toMatchObject([
    { id: "shop.sell", state: "open", reason: "sold out" },
  ]);
  expect(await operator.ok("denials", "get")).toMatchObject({ total: 1 });
  const close = ["breakers", "close", "shop.sell", "--reason", "the shop is back"];
  expect(await operator.no(...close)).toMatch(/sign/i);
  expect(
    await person(world, "operator").no("breakers", "close", "none", "--reason", "x"),
  ).toContain("not_found");
  expect(await person(world, "operator").ok(...close)).toMatchObject({ state: "closed" });
  expect(await call("4")).toMatchObject({ answer: "failed" });
});

async function openStaging() {
  const tools = [payloadTool(), ...Object.values(createWorld().tools)];
  const world = await openHttp({ port: { tools } });
  const agent = await program(world, "agent");
  const { id: session } = await agent.ok("sessions", "open", "--id", "s");
  const executor = await program(world, "executor", "exec:erp");
  const reviewer = person(world, "reviewer");
  const stage = async (callId: string) => {
    const about = ["--session-id", session, "--call-id", callId, "--source", "erp.post"];
    const payload = ["--payload", Buffer.from(callId).toString("base64"), "--encoding", "base64"];
    const answer = await agent.ok("decisions", "stage", ...about, ...payload);
    expect(answer).toMatchObject({ answer: "pending" });
    return answer.decisionId as string;
  };
  const approve = async (id: string) => {
    const { hash } = await reviewer.ok("interactions", "get", id);
    return reviewer.ok("interactions", "approve", id, "--hash", hash);
  };
  return { world, session, agent, executor, stage, approve };
}

test("permits: a staged decision is approved, taken, renewed, given back, taken again and reported", async () => {
  const { agent, executor, stage, approve } = await openStaging();
  const id = await stage("p1");
  expect((await executor.ok("permits", "waiting")).items).toEqual([]);
  expect(await executor.no("permits", "take", id)).toContain("illegal_transition");
  await approve(id);
  expect(await agent.ok("decisions", "get", id)).toMatchObject({ state: "approved" });
  expect((await executor.ok("permits", "waiting")).items).toMatchObject([{ id }]);
  const taken = await executor.ok("permits", "take", id, "--lease-ms", "60000");
  expect(taken.calls[0].input).toMatchObject({ source: "erp.post" });
  const held = [taken.id, "--fence", String(taken.fence)];
  const renewed = await executor.ok("permits", "renew", ...held, "--lease-ms", "120000");
  expect(renewed.leaseUntil > taken.leaseUntil).toBe(true);
  await executor.ok("permits", "give-back", ...held);
  const again = await executor.ok("permits", "take", id);
  expect(again.fence).toBeGreaterThan(taken.fence);
  const report = ["--outcome", "executed", "--proof", json({ booking: "b-1" })];
  expect(await executor.no("permits", "report", ...held, ...report)).toMatch(/fence|claim_lost/);
  const now = [again.id, "--fence", String(again.fence)];
  expect(await executor.ok("permits", "report", ...now, ...report)).toMatchObject({
    state: "executed",
    executionProof: { booking: "b-1" },
  });
});

test("staged decisions: an executor reports a failure, and what waits is called off at once", async () => {
  const { agent, executor, session, stage, approve, world } = await openStaging();
  const id = await stage("p1");
  await approve(id);
  const { id: permit, fence } = await executor.ok("permits", "take", id);
  const report = ["permits", "report", permit, "--fence", String(fence), "--outcome", "failed"];
  const failed = await executor.ok(...report, "--reason", "The ledger is closed.");
  expect(failed).toMatchObject({ state: "failed", executionError: "The ledger is closed." });
  const waiting = await stage("p2");
  const stuck = ["decisions", "stuck", "--state", "pending_ml", "--for-at-least-ms", "0"];
  const operator = await program(world, "operator");
  expect((await operator.ok(...stuck)).items).toMatchObject([{ id: waiting }]);
  const off = await agent.ok("sessions", "withdraw-all", session, "--reason", "canceled");
  expect(off.withdrawn).toEqual([waiting]);
  const rejected = ["decisions", "list", "--session-id", session, "--state", '["rejected_ml"]'];
  expect((await agent.ok(...rejected)).items).toMatchObject([{ id: waiting }]);
  expect(await executor.no("decisions", "list")).toContain("not_allowed");
});

test("staged decisions: a gate that stages no payloads says which tool it lacks", async () => {
  const agent = await program(await openHttp(), "agent");
  const { id } = await agent.ok("sessions", "open");
  const about = ["--session-id", id, "--call-id", "c", "--source", "erp", "--payload", "x"];
  expect(await agent.no("decisions", "stage", ...about, "--encoding", "text")).toContain(
    "payloadTool()",
  );
});

test("sessions call --progress: the tool's reports go to standard error, the answer to standard output", async () => {
  const bake = defineTool({
    name: "shop.bake",
    description: "Bakes.",
    input: { type: "object" },
    permissionClass: "readonly",
    execute({ progress }) {
      progress({ message: "kneading\u001b[2J", done: 0.25 });
      progress({ message: "in the oven" });
      return "a loaf";
    },
  });
  const world = await openHttp({ port: { tools: [bake] } });
  const agent = await program(world, "agent");
  const { id } = await agent.ok("sessions", "open");
  const here = ["--url", world.server.url, "--token", await world.token("acme", "agent")];
  // In a process of its own, as a shell separates the two streams.
  const call = (tool: string, session: string) => {
    const what = ["--call-id", tool, "--tool", tool, "--input", "{}", "--progress"];
    return runApart([...here, "sessions", "call", session, ...what], tmpdir());
  };
  const [baked, denied, lost] = await Promise.all([
    call("shop.bake", id),
    call("shop.none", id),
    call("shop.bake", "none"),
  ]);
  expect(baked).toMatchObject({ code: 0, out: expect.stringContaining("a loaf") });
  expect(baked.err).toBe("kneading\\u{1b}[2J (25 %)\nin the oven\n");
  expect(denied).toMatchObject({ err: "", out: expect.stringContaining("shop.none") });
  expect(lost).toMatchObject({ code: 3, err: expect.stringContaining("not_found") });
});
