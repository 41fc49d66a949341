// I-52: the author of an extension has to know whether it is called, notified or read. Each extension point says so in
// its doc comment: "Shape: callback", "Shape: push" or "Shape: pulled", anywhere in it, or the word as its beginning.

import { expect, test } from "vitest";
import { filesIn, isTest, read } from "./support/source-files.ts";

type Shape = "push" | "pull" | "callback";

/**
 * Everything a user of the package can put in or hook on to, by the file that declares it: `Name`, or `Name.member`.
 * push: it is notified. pull: it is read, when and as often as the reader likes. callback: the engine waits for it.
 */
const EXTENSION_POINTS: Readonly<Record<string, Readonly<Record<string, Shape>>>> = {
  "src/audit/anchor.ts": { AnchorSink: "callback", AnchorSigner: "callback", TextSource: "pull" },
  "src/audit/anchorer.ts": { "AnchorerOptions.onProblem": "push" },
  "src/audit/trail.ts": { followTrail: "pull", "FollowOptions.onCommit": "push" },
  "src/audit/observer.ts": { ObserverProblemListener: "push", AuditSink: "callback" },
  "src/audit/redact.ts": { Redactor: "callback" },
  "src/audit/verify.ts": { AnchorSource: "pull", "VerifyOptions.onProgress": "callback" },
  "src/delegation/delegations.ts": { "DelegationParts.onProblem": "push" },
  "src/delegation/plan.ts": {
    Authorisation: "callback",
    "GateRunnerOptions.onProblem": "push",
  },
  "src/delegation/runs.ts": { LoopParts: "callback" },
  "src/delegation/verify.ts": { "VerifyToolsOptions.onProblem": "push" },
  "src/delegation/worker.ts": { Worker: "callback" },
  "src/client/create-client.ts": { "Client.events": "pull", "EventsOptions.onLine": "push" },
  "src/crashkit/cases/run-cases.ts": { "CasesOptions.onCase": "push" },
  "src/crashkit/random/run-random.ts": { "RandomOptions.onCycle": "push" },
  "src/crashkit/run-crash-kit.ts": { "CrashKitOptions.onProgress": "push" },
  "src/cli/demo/agents.ts": { "DemoOptions.onProblem": "push" },
  "src/cli/open-store.ts": { "OpenOptions.onNotice": "push" },
  "src/cli/serve.ts": { "ServeOptions.onProblem": "push", "ServedParts.started": "callback" },
  "src/gate/hooks.ts": {
    CommandHook: "callback",
    GateHook: "callback",
    "HookContext.onHookProblem": "push",
  },
  "src/gate/image-result.ts": { PartReader: "callback" },
  "src/gate/orchestrate.ts": {
    orchestrate: "pull",
    "OrchestrateOptions.isConcurrencySafe": "callback",
    "OrchestrateOptions.onProgress": "push",
    "OrchestrateOptions.run": "callback",
  },
  "src/flow/create-flow.ts": {
    "FlowOptions.onEvent": "callback",
    "FlowOptions.onProblem": "push",
    "FlowOptions.openSession": "callback",
  },
  "src/flow/runtime-state.ts": { "FlowCallOptions.onProgress": "push", FlowSession: "callback" },
  "src/policy/decide.ts": { GatePolicy: "callback" },
  "src/policy/before-call.ts": { CheckpointHandler: "callback", Hook: "callback" },
  "src/policy/reverse-thinking.ts": { ReverseThinkingHandler: "callback" },
  "src/model/flow-state.ts": { FlowStateStore: "callback" },
  "src/http/create-server.ts": { "ServerOptions.onProblem": "push" },
  "src/http/sign-in.ts": { "OidcOptions.identify": "callback" },
  "src/model/decision.ts": { Guard: "callback", Validator: "callback" },
  "src/gate/operation-log.ts": { OperationObserver: "push", onOperation: "push", readLog: "pull" },
  "src/gate/create-gate.ts": { "Gate.onCommit": "push" },
  "src/gate/context.ts": { "GateContext.onCommit": "push" },
  "src/gate/attention.ts": { "AttentionOptions.onProblem": "push" },
  "src/gate/recover.ts": { "Round.onDamaged": "push" },
  "src/mcp/conversation.ts": { "ConversationOptions.onProblem": "push", Reply: "push" },
  "src/mcp/gated-calls.ts": { "GatedCallsOptions.onProblem": "push" },
  "src/mcp/gateway.ts": { "GatewayOptions.onProblem": "push" },
  "src/mcp/offered-tools.ts": { "OfferedToolsOptions.onProblem": "push", CallUpstream: "callback" },
  "src/mcp/tasks.ts": { "CallTasksOptions.onDelivered": "callback" },
  "src/mcp/wire.ts": {
    "WireRequest.onStream": "push",
    "WireRequest.onPause": "push",
    "WireEvents.onMessage": "push",
    "WireEvents.onEnd": "push",
    "WireEvents.onProblem": "push",
  },
  "src/notify/channel.ts": { NotifyChannel: "callback" },
  "src/notify/email.ts": { MailTransport: "callback" },
  "src/notify/notifier.ts": { "NotifierOptions.onError": "push" },
  "src/gate/upkeep.ts": { "UpkeepOptions.onError": "push", "UpkeepOptions.onRound": "push" },
  "src/gate/options.ts": {
    "GateOptions.onHookProblem": "push",
    "GateOptions.onLedgerProblem": "push",
    "GateOptions.onPending": "push",
    "GateOptions.onResumeProblem": "push",
    "GateOptions.onSettled": "push",
  },
  "src/gate/session.ts": { "CallOptions.onProgress": "push" },
  "src/gate/validators/adapters.ts": {
    "EvaluatorListenerOptions.onEvaluation": "callback",
    "ValidatorListenerOptions.onVerdict": "callback",
    Evaluator: "callback",
    ReplayListener: "callback",
    ReplayLog: "push",
  },
  "src/gate/validators/validated-tool.ts": {
    "ValidatedToolOptions.toDiff": "callback",
  },
  "src/store/decisions.ts": { DecisionStore: "callback", "DecisionPage.onDamaged": "push" },
  "src/store/engine.ts": { Engine: "callback", "Engine.onCommit": "push" },
  "src/store/tasks.ts": { TaskStore: "callback" },
  "src/store/store.ts": { AuditReader: "pull", Store: "callback", "Store.onCommit": "push" },
  "src/store/tenant-engine.ts": { Redact: "callback" },
  "src/tasks/watchdog.ts": {
    CompletionObserver: "push",
    "WatchdogOptions.onError": "push",
    "WatchdogOptions.onStuck": "push",
  },
  "src/tasks/create-task-list.ts": {
    "TaskListOptions.mayComplete": "callback",
    "TaskListOptions.onObserverError": "push",
  },
  "src/tools/builtin/sql-table.ts": { SqlDatabase: "callback" },
  "src/tools/registry.ts": { Registry: "pull", RegistryListener: "push" },
  "src/tools/tool-call.ts": {
    ResultProcessor: "callback",
    "ResultProcessorOptions.redact": "callback",
  },
  "src/tools/result-store.ts": { ResultStore: "callback" },
  "src/tools/tool.ts": {
    Capability: "pull",
    Tool: "callback",
    "ToolContext.progress": "push",
    ToolMetadata: "pull",
  },
  "src/util/clock.ts": { Clock: "pull" },
  "src/util/random.ts": { Random: "pull" },
  "src/util/timers.ts": { Timers: "callback" },
};

/** Names that sound like an extension point. One that is none stands in the table below, with its reason. */
const SOUNDS_LIKE_ONE =
  /(?:Sink|Listener|Observer|Handler|Hook|Validator|Guard|Engine|Store|Signer|Processor|Evaluator|GatePolicy|Reader|Source|Redact|Redactor|Log|Dispatch|Database|Clock|Random|Timers)$/;
const OURS_ALONE: Readonly<Record<string, string>> = {
  BreakerStore: "a part of Store, made over an engine",
  MemoryEngine: "the engine of the memory store",
  AuditObserver: "ours; the host's side of it is AuditSink",
  Database: "a driver's own type",
  DelegationStore: "a part of Store, made over an engine",
  EpochStore: "a part of Store, made over an engine",
  PauseStore: "a part of Store, made over an engine",
  EvidenceReader: "reads a store's records for the crash kit",
  GrantStore: "a part of Store, made over an engine",
  GuardedHook: "what the shell around a hook of a coding agent is made from",
  HttpKeyStore: "a part of Store, made over an engine",
  InteractionStore: "a part of Store, made over an engine",
  NoticeStore: "a part of Store, made over an engine",
  LinesReader: "reads what a child process wrote",
  ManualClock: "a Clock",
  MarkdownTaskStore: "a TaskStore",
  OpenTaskStore: "how the conformance suite opens a TaskStore",
  OperationStore: "a part of Store, made over an engine",
  Reader: "one engine's own",
  RefusalLog: "a part of Store, made over an engine",
  PictureStore: "a part of Store, made over an engine",
  ProposalStore: "a part of Store, made over an engine",
  ReviewerStore: "a part of Store, made over an engine",
  RunStore: "a part of Store, made over an engine",
  SessionStore: "a part of Store, made over an engine",
  Source: "the queue's own side of its input",
  StagingDatabase: "a mark on a SqlDatabase",
  StandingRuleStore: "a part of Store, made over an engine",
  TenantEngine: "an Engine seen by one tenant",
  TenantStore: "a Store seen by one tenant",
  TokenStore: "a part of Store, made over an engine",
  UndoDispatch: "between operations and port",
};

const WORDS: Readonly<Record<Shape, string>> = {
  push: "push(?:ed)?",
  pull: "pull(?:ed)?",
  callback: "callbacks?",
};

const points = Object.entries(EXTENSION_POINTS).flatMap(([file, names]) =>
  Object.entries(names).map(([name, shape]) => ({ file, name, shape })),
);
const sources = filesIn("src").filter((file) => file.endsWith(".ts") && !isTest(file));

test.each(points)(
  "$name of $file states that its shape is $shape [I-52]",
  ({ file, name, shape }) => {
    const comment = commentOf(read(file), name);
    expect(comment, `${name} is declared in ${file}`).toBeDefined();
    expect(comment).toMatch(statement(shape));
  },
);

test("everything exported under the name of an extension point is in the list [I-52]", () => {
  const listed = new Set(points.map(({ file, name }) => `${file} ${name}`));
  const problems = sources.flatMap((file) =>
    [...read(file).matchAll(/^export (?:interface|type|class|abstract class) (\w+)/gm)]
      .map(([, name = ""]) => name)
      .filter((name) => SOUNDS_LIKE_ONE.test(name) && OURS_ALONE[name] === undefined)
      .filter((name) => !listed.has(`${file} ${name}`))
      .map((name) => `${file}: ${name} is neither in EXTENSION_POINTS nor in OURS_ALONE`),
  );
  expect(problems).toEqual([]);
});

test("every option that is called when something happens is in the list [I-52]", () => {
  const listed = new Set(points.map(({ file, name }) => `${file} ${name.split(".")[1]}`));
  // Methods of ours that take a listener, parts that the PostgreSQL store wires to itself, and the one method of a listener that
  // is listed as a whole.
  const others = [
    "src/tasks/create-task-list.ts onCompleted",
    "src/cli/demo/story.ts onProblem",
    "src/store/postgres/write-path.ts onHeld",
    "src/store/postgres/write-path.ts onCommit",
    "src/gate/validators/adapters.ts onEvent",
  ];
  const problems = sources.flatMap((file) =>
    [...read(file).matchAll(/^ {2}(?:readonly )?(on[A-Z]\w*)\??(?:: \(|\(\w+: ).*;$/gm)]
      .map(([, member = ""]) => `${file} ${member}`)
      .filter((member) => !listed.has(member) && !others.includes(member)),
  );
  expect(problems).toEqual([]);
});

test("the lists name nothing that is gone", () => {
  const all = sources.map(read).join("\n");
  const gone = Object.keys(OURS_ALONE).filter(
    (name) => !new RegExp(`^export (?:interface|type|class) ${name}\\b`, "m").test(all),
  );
  expect(gone).toEqual([]);
});

test.each<[Shape, string, boolean]>([
  ["callback", "Does it. Shape: callback; the engine waits.", true],
  ["callback", "Shapes: execute and probe are callbacks; metadata is pulled.", true],
  ["push", "Shape: pulled; changes are pushed to listeners.", true],
  ["push", "Push: while a call runs.", true],
  ["pull", "The pull view: a session's log.", true],
  ["push", "Does it. Shape: callback. Then git push.", false],
  ["callback", "Logs whether the callback throws.", false],
  ["pull", "Shape: callback.", false],
  ["callback", "", false],
])("a statement of %s is told from a mere mention: %s", (shape, comment, expected) => {
  expect(statement(shape).test(comment)).toBe(expected);
});

test("the comment read is the one right above the declaration", () => {
  const source =
    "/** One. */\nexport type A = string;\nexport type B = string;\n/**\n * Two\n * lines.\n */\nexport interface C<X> {\n  /** Three. */\n  readonly on?: X;\n  off(): void;\n}\n";
  const names = ["A", "B", "C", "C.on", "C.off", "D", "A.on"];
  expect(names.map((name) => commentOf(source, name))).toEqual([
    ...["One.", "", "Two lines.", "Three.", ""],
    ...[undefined, undefined],
  ]);
});

function statement(shape: Shape): RegExp {
  const word = WORDS[shape];
  return new RegExp(`\\bShapes?: [^.]*\\b${word}\\b|^(?:The )?${word}\\b(?: view|[:,])`, "i");
}

/** The doc comment of `Name` or `Name.member` as one line: empty when it has none, undefined when nothing is declared. */
function commentOf(source: string, name: string): string | undefined {
  const [owner = "", member] = name.split(".");
  const start = `^export (?:declare )?(?:interface|type|class|(?:async )?function\\*?) ${owner}\\b`;
  const found = new RegExp(start, "m").exec(source);
  if (found === null) return undefined;
  if (member === undefined) return commentBefore(source.slice(0, found.index));
  const [declaration = ""] = source.slice(found.index).split(/(?<=\n)(?=export )/);
  const body = /\{\n(.*?)\n\}/s.exec(declaration)?.[1] ?? "";
  const at = new RegExp(`^ {2}(?:readonly )?${member}\\??[:(]`, "m").exec(body);
  return at === null ? undefined : commentBefore(body.slice(0, at.index));
}

function commentBefore(text: string): string {
  const opening = text.lastIndexOf("/**");
  const comment = opening < 0 ? "" : text.slice(opening).trimEnd();
  if (comment.indexOf("*/") !== comment.length - 2) return "";
  return comment
    .slice(3, -2)
    .replaceAll(/\n\s*\*/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}
