// Which test shows what an option or a flag changes: by file, by the beginning of its title. `wiring.test.ts` compares this
// with the options and flags that exist, both ways.

type Shown = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

export const SHOWN: Shown = {
  "src/adapters/gate-tools.test.ts": {
    "gateTools: a later run replaces the tools of an earlier one, and never": ["createGate.tools"],
  },
  "src/policy/review-rules.test.ts": {
    "none: one person, within the default deadline": [
      "createGate.review.assignedTo",
      "createGate.review.tools",
    ],
    "gets the strictest of all rules for any of its calls": [
      "createGate.review.deadlineMs",
      "createGate.review.escalation",
    ],
  },
  "src/policy/shell/differential.test.ts": {
    "shell gate: no program starts that the gate has not seen [T32 I-21 C1]": ["shellRun.shell"],
  },
  "src/tools/builtin/file-tools.test.ts": {
    "a relative path begins at the context's directory, else at the tool's": [
      "fileTools.directory",
    ],
  },
  "src/tools/builtin/http-tools.test.ts": {
    "a redirect to another host is reported": ["httpSend.credentials"],
    "a long answer is cut": ["httpSend.maxBytes", "httpSend.timeoutMs"],
  },
  "src/tools/builtin/http-trap.test.ts": {
    "only hosts of the operator's list are asked": ["httpSend.allowHosts"],
    "a resolver that flips is asked once per hop, and the checked address i": ["httpSend.resolver"],
  },
  "src/tools/builtin/postgres-database.test.ts": {
    "a connection lost while committing": ["postgresDatabase.pool.connect"],
  },
  "src/tools/builtin/shell-run.test.ts": {
    "a command runs in the context's directory and gives exit code and both": [
      "shellRun.directory",
    ],
  },
  "src/tools/builtin/sql-query.test.ts": {
    "sql.query passes values as parameters and returns at most the row limi": ["sqlQuery.maxRows"],
  },
  "src/tools/builtin/sql-update-row.test.ts": {
    "tools that write take no bare handle [I-16]": ["sqlUpdateRow.database", "sqlUpdateRow.tables"],
    "a budget reads again and retries; used up, it fails with all the facts": [
      "sqlUpdateRow.retryBudget",
    ],
  },
  "tests/adapters/worker.test.ts": {
    "two workers continue exactly the runs of %s whose answers are in, each": [
      "worker --config",
      "worker --every",
    ],
  },
  "tests/audit/blocks.test.ts": {
    "%s: a store of the first format is continued in blocks; store and expo": ["createGate.audit"],
  },
  "tests/cli/cli.test.ts": {
    "exit codes: wrong usage is 2, no server is 4, and both say what to do": ["--data"],
  },
  "tests/cli/config-file.test.ts": {
    "worker reads the same file, and refuses a wrong field of http by its w": ["serve.http"],
    "flags take precedence over the configuration": ["--json"],
    "two configurations in one folder are refused, and --config chooses": ["serve --config"],
    "mcp does not execute a configuration that it finds in a project; SALLY": ["mcp --config"],
  },
  "tests/cli/front-door.test.ts": {
    "--store opens a PostgreSQL database by its URL for the list and the co": ["--store"],
    "sallyport --version prints the version of package.json": ["--version"],
    "interactions list fits 100 columns, says what would happen, and its sh": ["demo --no-anchors"],
  },
  "tests/cli/local-token.test.ts": {
    "the token of a stopped or killed": ["demo --quiet"],
  },
  "tests/cli/model.test.ts": {
    "sallyport demo --model runs with a provider that the user has installe": ["demo --model"],
  },
  "tests/cli/notify.test.ts": {
    "a server tells a webhook about a question": ["serve.started"],
  },
  "tests/cli/people.test.ts": {
    "serve on a port that is in use says so in a sentence": ["serve --port", "serve.http.port"],
    "find says so when nothing is found, and tail prints what happens": ["--token", "--url"],
    "approve prints the whole call": ["--link"],
    "approve finds what is beyond the first page of the inbox": ["approve --yes"],
    "undo takes the id that find prints, shows what it would do, and undoes": ["undo --yes"],
  },
  "tests/cli/serve-config.test.ts": {
    "a config module sets OIDC sign-in and the roles of people who sign in": [
      "createServer.signIn.roles",
    ],
  },
  "tests/cli/serve-folder.test.ts": {
    "serve and demo: data and state folder are 0700 and every file in them": ["demo --every"],
  },
  "tests/cli/serve-listen.test.ts": {
    "flags take precedence over http of the configuration, and the rest of": [
      "serve.http.publicUrl",
    ],
    "with a sign-in method a public address is served, and commands on the": [
      "serve.http.signInBy",
    ],
    "serve --tls-cert --tls-key speaks TLS, and reads a renewed certificate": [
      "serve --tls-cert",
      "serve --tls-key",
      "serve.http.tls.cert",
      "serve.http.tls.key",
    ],
    "serve beyond loopback without": ["createServer.host"],
    "flags take precedence over http": ["createServer.listenPort"],
    "serve beyond loopback without a public address, or without a sign-in m": [
      "serve --host",
      "serve --public-url",
    ],
  },
  "tests/cli/serve-state.test.ts": {
    "serve: a config module sets the locations": [
      "serve.anchors",
      "serve.epochFile",
      "serve.redactionKey",
    ],
    "serve: a store without its state folder is served, with one warning [M": ["serve.state"],
    "serve: --state and --epoch-file set the locations, and doctor prints t": [
      "* --epoch-file",
      "* --state",
    ],
    "serve: --no-anchors prints a warning, and by default key and anchors a": [
      "serve --no-anchors",
    ],
  },
  "tests/cli/stop-without-server.test.ts": {
    "stop: --database writes a PostgreSQL store without a server [H5]": [
      "* --database",
      "stop --database",
    ],
    "stop: --direct writes the store beside a running server, which then st": ["stop --direct"],
    "stop: no store is created, and with several tenants resume needs a nam": [
      "resume --direct",
      "resume --tenant",
      "stop --tenant",
    ],
  },
  "tests/cli/store-clock.test.ts": {
    "store clock: a trail ahead of the clock is shown with what to do, and": [
      "store clock --accept",
      "store clock --as",
    ],
  },
  "tests/cli/verbs.test.ts": {
    "conversations: send, reply, confirm, resume; what nobody holds is not": ["createServer.flows"],
  },
  "tests/coding-agents/hook.test.ts": {
    "sallyport policy test judges a recorded session by other rules, and na": [
      "policy test --config",
      "serve.codingAgents",
      "serve.codingAgents.project",
    ],
    "the hook answers deny when it is asked to end while it waits": ["hook --wait"],
  },
  "tests/coding-agents/install-cli.test.ts": {
    "%s: a project that the host does not trust is refused": [
      "install --program",
      "install --scope",
    ],
    "$host, $scope: install, doctor and uninstall": ["uninstall --scope"],
  },
  "tests/coding-agents/rollback.test.ts": {
    "a session of 20 edits and 5 commands is rolled back byte for byte": [
      "serve.codingAgents.commands",
    ],
  },
  "tests/console/demo.test.ts": {
    "npm start prints its link": ["demo --empty"],
  },
  "tests/console/other-ports.test.ts": {
    "an app that overwrites the cookie signs the reviewer out of the consol": [
      "createServer.console",
    ],
  },
  "tests/crash/command.test.ts": {
    "a target that accepts a key twice": [
      "crashkit --config",
      "crashkit --cycles",
      "crashkit --seed",
    ],
  },
  "tests/delegation/port-grants.test.ts": {
    "a failing ledger is reported, and the gate's decision holds": ["createGate.onLedgerProblem"],
  },
  "tests/faults/http-retries.test.ts": {
    "a slow request keeps its key: a repeat gets still_running, and later t": [
      "createServer.limits.keyLeaseMs",
    ],
  },
  "tests/gate/breaker.test.ts": {
    "a breaker needs a whole number of failures, and without the option no": ["createGate.breaker"],
  },
  "tests/gate/content-shown.test.ts": {
    "a review rule for irreversible calls binds content that cannot be insp": [
      "createGate.review.safetyClasses",
    ],
  },
  "tests/gate/defaults.test.ts": {
    "a store that was passed in stays open when the gate is closed": ["createGate.store"],
    "onPending and onSettled report a call once each, also when it is decid": [
      "createGate.onPending",
      "createGate.onSettled",
    ],
  },
  "tests/gate/drift.test.ts": {
    "stopped, or too late, between the yes and the execution: nothing happe": [
      "createGate.approvalMs",
    ],
  },
  "tests/gate/find-files.test.ts": {
    "a person who approved a folder did not approve the secrets in it": ["createGate.fileRoots"],
    "the gate's own files and denied places are refused as the folder itsel": [
      "createGate.protectedPaths",
    ],
    "a huge tree ends at its limits": ["fileTools.deadlineMs"],
  },
  "tests/gate/hooks.test.ts": {
    "a no at %s comes too late": ["createGate.onHookProblem"],
  },
  "tests/gate/lost-outcomes.test.ts": {
    "an outcome whose commit was answered with an error although it happene": [
      "createGate.leaseMs",
    ],
  },
  "tests/gate/offering.test.ts": {
    "a host may let the first call load a tool, and a higher threshold defe": [
      "createGate.deferredTools",
      "createGate.deferredTools.threshold",
      "createGate.deferredTools.whenCalled",
    ],
    "above the threshold only the always-loaded tools and the search are of": [
      "createGate.deferredTools.alwaysLoad",
    ],
  },
  "tests/gate/one-gate.test.ts": {
    "a sub-agent's call is judged like its parent's, with the whole chain i": [
      "createGate.gatePolicies",
    ],
  },
  "tests/gate/redirects.test.ts": {
    "a host that a rule denies is not reached through a redirect from one t": [
      "httpSend.unsafeAllowAddresses",
    ],
  },
  "tests/gate/reverse-thinking.test.ts": {
    "without the flag nothing is asked for, whatever handler and hooks are": [
      "createGate.hooks",
      "createGate.reverseThinking",
      "createGate.reverseThinking.handler",
    ],
    "a handler argues in the agent's place; one that fails or is silent mea": [
      "createGate.hookTimeoutMs",
    ],
    "only a host that says so in words lets a call go on without a counter-": [
      "createGate.reverseThinking.whenMissing",
    ],
  },
  "tests/gate/review-lane.test.ts": {
    "the guard is asked before the reviews alone approve anything": ["createGate.guard"],
    "the strictest of several rules counts: ask over review, review over al": ["createGate.review"],
  },
  "tests/gate/running-calls.test.ts": {
    "no more calls of a batch run at once than the gate allows [S2-84]": ["createGate.maxAtOnce"],
    "a result processor knows whose output it looks at: the call and its to": [
      "createGate.processor",
    ],
  },
  "tests/gate/standing-rule-names.test.ts": {
    "votes: one person under two names counts once towards a quorum [M13]": [
      "createGate.review.requires",
    ],
    "standing rules: a rule never serves its author's own agents, however t": [
      "createGate.people.agents",
    ],
  },
  "tests/gate/tool-contract.test.ts": {
    "neither the tool nor anything that is shown, stored or hashed for it s": [
      "createGate.confidenceKey",
    ],
  },
  "tests/http/breakers.test.ts": {
    "people see which tool was stopped": ["createGate.breaker.threshold"],
  },
  "tests/http/conversations.test.ts": {
    "a conversation whose call still ran elsewhere is continued once it has": [
      "createServer.onProblem",
      "serve.flow",
    ],
  },
  "tests/http/decoys.test.ts": {
    "decoys: no field that a reviewer's token can read distinguishes them f": [
      "createGate.attention.decoys",
      "createGate.attention.onProblem",
      "createGate.attention.rate",
    ],
  },
  "tests/http/events.test.ts": {
    "feed: an idle stream sends heartbeats": ["createServer.limits.heartbeatMs"],
  },
  "tests/http/exposure.test.ts": {
    "TLS by certificate: https alone, secure cookies, and a renewed certifi": ["createServer.tls"],
    "behind a trusted proxy each caller has its own limit, and what a calle": [
      "createServer.trustedProxies",
    ],
  },
  "tests/http/flood/flood.test.ts": {
    "one tenant sends ${FLOOD} times its rate: it is asked to slow down, an": [
      "createServer.limits.tenantRate",
      "createServer.limits.tenantRate.perSecond",
    ],
    "one tenant sends": ["createServer.limits.tenantRate.burst"],
  },
  "tests/http/heavy-lists.test.ts": {
    "questions: one agent may have a limited number and size open; an answe": [
      "createGate.quotas",
      "createGate.quotas.openBytes",
      "createGate.quotas.openQuestions",
    ],
  },
  "tests/http/hostile.test.ts": {
    "too large, too deep, too many: refused before parsing is complete [T25": [
      "createServer.limits.bodyMs",
    ],
  },
  "tests/http/inbox.test.ts": {
    "an edit is shown again and runs only after that is approved": [
      "createGate.review.editorMayApprove",
    ],
    "the id in the path counts: another in the body is refused": ["createGate.people.id"],
  },
  "tests/http/kill-switch.test.ts": {
    "kill switch under full load: no effect starts after the answer, and th": [
      "createServer.limits.inFlight",
    ],
  },
  "tests/http/limits.test.ts": {
    "connections: agents and strangers cannot use those reserved for people": [
      "createServer.limits.connections",
    ],
    "connections: agents and strangers": [
      "createServer.limits.connections.agents",
      "createServer.limits.connections.perSender",
      "createServer.limits.connections.strangers",
      "createServer.limits.connections.total",
    ],
    "event streams: a stream that ends frees its place, and one agent canno": [
      "createServer.limits.streams",
      "createServer.limits.streams.agentsPerTenant",
      "createServer.limits.streams.perAgent",
      "createServer.limits.streams.perPerson",
    ],
  },
  "tests/http/oidc.test.ts": {
    "OIDC: groups of a provider": ["serve.http.oidc.groups.claim"],
    "OIDC: groups of a provider in another process become roles; who is in": [
      "serve.http.oidc.groups.roles",
      "serve.http.oidc.groups.subject",
    ],
    "OIDC: a person without a role": ["serve.http.oidc.groups.tenant"],
    "OIDC: `presence: not_asked` serves a provider that does not say when a": [
      "createServer.oidc",
      "createServer.oidc.clientId",
      "createServer.oidc.presence",
    ],
    "OIDC: forged id tokens are refused: key, signature, audience, issuer,": [
      "createServer.oidc.issuer",
    ],
    "OIDC: a server refuses groups that name no role of people, and a provi": [
      "createServer.oidc.groups",
      "createServer.oidc.identify",
    ],
  },
  "tests/http/origins.test.ts": {
    "beyond loopback the server needs its addresses and a sign-in method [T": [
      "createServer.remote",
    ],
  },
  "tests/http/people.test.ts": {
    "an admin makes tokens for programs only: no role of people, no person'": ["createGate.people"],
  },
  "tests/http/service-accounts.test.ts": {
    "http.signIn.tokenMs is the longest life": ["createServer.signIn.tokenMs"],
    "only a live token of a program is rotated": ["createServer.signIn.freshMs"],
  },
  "tests/http/service.test.ts": {
    "health: a server whose store is unavailable is alive and not ready": ["createServer.store"],
  },
  "tests/http/session-folders.test.ts": {
    "a rule that allows a command without naming its folder is refused when": ["createGate.policy"],
    "the tools of a session are described for the folder it works in [S2-06": [
      "createGate.sessionFolders",
    ],
  },
  "tests/http/sessions.test.ts": {
    "GET /v1/me returns the person's groups": ["createGate.people.groups"],
  },
  "tests/http/sign-in.test.ts": {
    "a sign-in survives a restart of the server": ["createServer.gates"],
    "an expired link is refused": ["createServer.signIn", "createServer.signIn.linkMs"],
  },
  "tests/http/sql-query.test.ts": {
    "sql.query: the kill switch answers while an endless": ["sqliteDatabase.deadlineMs"],
  },
  "tests/http/tasks.test.ts": {
    "a Markdown list behind the server": ["createGate.tasks"],
    "one sender's quota counts every task of a batch": [
      "createServer.limits.openTasks",
      "createServer.limits.openTasks.most",
      "createServer.limits.openTasks.mostBytes",
    ],
  },
  "tests/http/tenants.test.ts": {
    "a token prefixed with another tenant's name is refused [T20]": ["createGate.tenant"],
    "truncated, extended, other-case and invented tokens are refused [T19]": [
      "createServer.limits.strangerRate",
      "createServer.limits.strangerRate.burst",
      "createServer.limits.strangerRate.perSecond",
    ],
  },
  "tests/interactions/checkpoint.test.ts": {
    "checkpoint of a call through the port: ${answer} [I-38 I-39 S2-48 S2-4": [
      "createGate.checkpoint",
    ],
  },
  "tests/interactions/editors-and-batches.test.ts": {
    "batch: a no is given to anything, one by one, and a review rule can al": [
      "createGate.review.mayBatch",
    ],
  },
  "tests/interactions/time.test.ts": {
    "the time a person takes does not count": ["createGate.timeoutMs"],
  },
  "tests/mcp/cli.test.ts": {
    "sallyport mcp --accept: forgets the pinned definitions of a tool, and": [
      "mcp --accept",
      "mcp --upstream",
    ],
    "sallyport mcp: a write waits": ["mcp --hold", "mcp --read-only"],
  },
  "tests/mcp/gateway.test.ts": {
    "mcp: initialize is answered by the upstream itself": ["createServer.mcp"],
  },
  "tests/mcp/inbox.test.ts": {
    "sallyport mcp --serve-inbox: an agent's token lists": ["mcp --serve-inbox"],
    "sallyport mcp --serve-inbox --approve: a person's yes": ["mcp --approve"],
  },
  "tests/mcp/restart.test.ts": {
    "mcp: another client of the same entry": ["mcp --session"],
  },
  "tests/notify/email.test.ts": {
    "a mail server that does not answer is tried again": [
      "serve.notify.channels",
      "serve.notify.routes",
    ],
    "a mail server that does not answer": ["serve.notify.attempts"],
  },
  "tests/notify/outbox.test.ts": {
    "a process that dies during an attempt: another one sends it again unde": [
      "serve.notify.timeoutMs",
    ],
  },
  "tests/notify/slack.test.ts": {
    "a call of low risk has buttons; a press of a mapped person decides it,": [
      "createServer.notify",
    ],
  },
  "tests/whole/attention.test.ts": {
    "an interrupted decoy becomes no question, and the real one is asked [T": [
      "createGate.attention",
    ],
    "over HTTP only another operator sees blind approvers and restores the": [
      "createGate.attention.misses",
    ],
    "approvals per hour are limited to what a person can read [T2]": [
      "createGate.attention.yesesPerHour",
    ],
  },
  "tests/wiring/flags.test.ts": {
    "audit proof: --tenant says whose entry, --check reads a proof of it, a": [
      "* --tenant",
      "audit proof --check",
      "audit proof --tenant",
    ],
    "find --limit shows so many at most": ["find --limit"],
    "stop %s pauses only that": [
      "resume --agent",
      "resume --session",
      "resume --tool",
      "stop --agent",
      "stop --session",
      "stop --tool",
    ],
    "store check: --no-records leaves the records out, --records compares t": [
      "store check --no-records",
      "store check --records",
    ],
    "audit verify: --file reads an export": [
      "audit verify --file",
      "audit verify --no-records",
      "audit verify --records",
    ],
  },
  "tests/wiring/limits.test.ts": {
    "a review that takes longer than reviewTimeoutMs is a no": [
      "createGate.reviewTimeoutMs",
      "createGate.validators",
    ],
    "a checkpoint that takes longer than checkpointTimeoutMs is a no": [
      "createGate.checkpointTimeoutMs",
    ],
    "a request larger than bodyBytes is refused": [
      "createServer.limits",
      "createServer.limits.bodyBytes",
    ],
    "a sender above senderRate waits, and other senders do not": [
      "createServer.limits.senderRate",
      "createServer.limits.senderRate.burst",
      "createServer.limits.senderRate.perSecond",
    ],
  },
  "tests/wiring/rows.test.ts": {
    "a sink of the host gets entries with exactly the documented fields [I-": [
      "createGate.audit.onProblem",
      "createGate.audit.sinks",
    ],
  },
  "tests/wiring/tool-options.test.ts": {
    "shellRun: environment is set, inheritEnvironment replaces what is pass": [
      "shellRun.environment",
      "shellRun.inheritEnvironment",
    ],
    "shellRun: maxTimeoutMs limits what a call may ask for, and its default": [
      "shellRun.maxOutputBytes",
      "shellRun.maxTimeoutMs",
    ],
    "postgresDatabase: statementTimeoutMs ends a query that takes longer": [
      "postgresDatabase.name",
      "postgresDatabase.pool",
      "postgresDatabase.statementTimeoutMs",
      "sqlQuery.database",
      "sqlQuery.permissionClass",
    ],
    "fileTools: maxBytes limits a file that is changed, maxReadBytes one th": [
      "fileTools.maxBytes",
      "fileTools.maxReadBytes",
    ],
  },
};

/** Parts that are given for tests, with no meaning of their own. */
export const GIVEN_PARTS: readonly string[] = ["at", "clock", "random", "timers"];

/** What no test shows yet. The list only gets shorter: a new name here is refused. */
export const NOT_SHOWN: readonly string[] = [
  "audit proof --key",
  "audit verify --anchors",
  "audit verify --key",
  "crashkit --database",
  "crashkit --pauses",
  "crashkit --points",
  "createGate.onResumeProblem",
  "createServer.audit",
  "createServer.audit.anchors",
  "createServer.audit.publicKeys",
  "createServer.limits.keyKeepMs",
  "createServer.limits.listenerBytes",
  "createServer.oidc.clientSecret",
  "createServer.oidc.maxAgeSeconds",
  "createServer.oidc.scope",
  "createServer.signIn.inviteMs",
  "createServer.signIn.sessionMs",
  "demo --as",
  "demo --port",
  "install --no-canary",
  "install --wait",
  "mcp --agent",
  "mcp --allow-roots",
  "notify test --config",
  "resume --database",
  "review --as",
  "review --config",
  "review --tenant",
  "serve --as",
  "serve --trusted-proxies",
  "serve.resume",
  "sqlRowTools.database",
  "sqlRowTools.tables",
  "sqliteDatabase.file",
  "store restore --as",
  "store restored --as",
];
