import { AUTH_BUGS } from "./auth-bugs.ts";
import type { Bug } from "./bug.ts";
import { CLOCK_BUGS } from "./clock-bugs.ts";
import { DELEGATION_BUGS } from "./delegation-bugs.ts";
import { FILES_BUGS } from "./files-bugs.ts";
import { FLOW_BUGS } from "./flow-bugs.ts";
import { GATE_BUGS } from "./gate-bugs.ts";
import { HOOK_BUGS } from "./hook-bugs.ts";
import { HOT_BUGS } from "./hot-bugs.ts";
import { HTTP_BUGS } from "./http-bugs.ts";
import { LIMITS_BUGS } from "./limits-bugs.ts";
import { MCP_BUGS } from "./mcp-bugs.ts";
import { MERGED_BUGS } from "./merged-bugs.ts";
import { OUTCOME_BUGS } from "./outcome-bugs.ts";
import { PERMIT_BUGS } from "./permit-bugs.ts";
import { RECORDS_BUGS } from "./records-bugs.ts";
import { RECOVERY_BUGS } from "./recovery-bugs.ts";
import { ROW_BUGS } from "./row-bugs.ts";
import { SCREEN_BUGS } from "./screen-bugs.ts";
import { SERVE_BUGS } from "./serve-bugs.ts";
import { SHELL_BUGS } from "./shell-bugs.ts";
import { SIMULATED_BUGS } from "./simulated-bugs.ts";
import { STORE_FAULTS_BUGS } from "./store-faults-bugs.ts";
import { UNDO_BUGS } from "./undo-bugs.ts";

/**
 * One list for the whole product. Where the simulation or the crash kit can notice a mistake, they do: what they miss is a
 * hole in the oracle, and is mended there first.
 */
export const BUGS: readonly Bug[] = [
  {
    name: "hash-not-checked",
    what: "the stored bytes are executed without comparing them with what was approved",
    file: "src/gate/run.ts",
    right: "if (isWhole && isSame) return undefined;",
    wrong: "if (isWhole || isSame || true) return undefined;",
    caughtBy: { file: "tests/gate/tampering.test.ts", title: "T3 I1 I2" },
  },
  {
    name: "hash-of-summary",
    what: "the approval's hash covers the dry run and not the action",
    file: "src/model/interaction.ts",
    right: "return sha256Hex(canonicalJson({ ...preview, v: 1 }));",
    wrong: "return sha256Hex(canonicalJson({ dryRun: preview.dryRun, v: 1 }));",
    caughtBy: { file: "tests/interactions/replay.test.ts", title: "T7" },
  },
  {
    name: "hash-not-in-answer",
    what: "a yes is taken by the question's id alone, whatever the person saw",
    file: "src/gate/decide.ts",
    right: "const factor = yes.factor === undefined ? {} : { factor: yes.factor };",
    wrong:
      "yes = { ...yes, hash: (await interactions.get(id)).hash }; const factor = yes.factor === undefined ? {} : { factor: yes.factor };",
    caughtBy: { file: "tests/interactions/replay.test.ts", title: "another hash" },
  },
  {
    name: "answer-after-deadline",
    what: "an answer counts after its time was over",
    file: "src/store/interactions.ts",
    right: "const seen = (hash: string) => ({ hash, due_at: { atLeast: NOW } });",
    wrong: "const seen = (hash: string) => ({ hash });",
    caughtBy: { file: "tests/interactions/time.test.ts", title: "an answer in the last" },
  },
  {
    name: "expiry-not-in-consume",
    what: "the consuming transaction does not look at the approval's expiry",
    file: "src/store/operations.ts",
    right: "const shown = { hash, deadline: { atLeast: NOW } };",
    wrong: "const shown = { hash };",
    caughtBy: { file: "tests/gate/drift.test.ts", title: "stopped, or too late" },
  },
  {
    name: "kill-switch-not-in-consume",
    what: "the consuming transaction does not look at the kill switch",
    file: "src/store/switch.ts",
    right: 'requireStep(SWITCHES, KILL, { state: "running" }, "holds")',
    wrong: 'requireStep(SWITCHES, KILL, {}, "holds")',
    caughtBy: { file: "src/gate/executor.test.ts", title: "nothing starts" },
  },
  {
    name: "fence-not-in-settle",
    what: "an outcome is stored without looking at the fence",
    file: "src/store/operations.ts",
    right: "const isOurs = { fence, ...definedFields({ session_id: sessionId }),",
    wrong: "const isOurs = { ...definedFields({ session_id: sessionId }),",
    caughtBy: { file: "tests/store/memory.test.ts", title: "fence" },
  },
  {
    name: "live-lease-taken-over",
    what: "an operation is taken over while its owner still holds the lease",
    file: "src/store/operations.ts",
    right: `const where = { status: "started", lease_until: { atMost: NOW } };
      const type = "operation.taken_over";`,
    wrong: `const where = { status: "started" };
      const type = "operation.taken_over";`,
    caughtBy: { file: "tests/store/memory.test.ts", title: "lease" },
  },
  {
    name: "unknown-retried",
    what: "a plain tool whose outcome is unknown is called again",
    file: "src/gate/attempt.ts",
    right: 'return probe === undefined && idempotency !== "keyed";',
    wrong: "return probe === undefined && idempotency === undefined;",
    caughtBy: { file: "src/gate/executor.test.ts", title: "" },
  },
  {
    name: "probed-too-long",
    what: "who probed for longer than its lease calls again although another process has taken over",
    file: "src/store/operations.ts",
    right: 'const where = { status: "started", fence };',
    wrong: 'const where = { status: "started" };',
    caughtBy: { file: "src/gate/repeats.test.ts", title: "taken for dead" },
  },
  {
    name: "probe-not-asked",
    what: "a tool with a probe is called again without being asked",
    file: "src/gate/attempt.ts",
    right: "if (answer.happened === true) return settle(context, order, operation, answer.result);",
    wrong: "if (answer.happened === true) return act(context, order, held, repeats + 1);",
    caughtBy: { file: "src/gate/executor.test.ts", title: "" },
  },
  {
    name: "definition-pinned-by-name",
    what: "a tool is pinned by its name alone",
    file: "src/gate/show.ts",
    right: "if (definition === call.definition) return { fits: true, tool, definition };",
    wrong: "if (tool.name === call.tool) return { fits: true, tool, definition };",
    caughtBy: { file: "tests/gate/drift.test.ts", title: "T5 T10 I4" },
  },
  {
    name: "state-version-ignored",
    what: "a target that changed while the intent was written is touched all the same",
    file: "src/gate/order.ts",
    right: "if (expectedVersions?.includes(versionBefore) !== false) return { versionBefore };",
    wrong: "return { versionBefore };",
    caughtBy: { file: "tests/gate/drift.test.ts", title: "the world that changes" },
  },
  {
    name: "dry-run-not-compared",
    what: "the dry run is repeated at execution, but its difference does not matter",
    file: "src/gate/show.ts",
    right: "if (dryRun !== approved) {",
    wrong: "if (dryRun !== approved) return undefined; if (first < 0) {",
    caughtBy: { file: "tests/gate/drift.test.ts", title: "T4" },
  },
  {
    name: "self-approval-by-delegation",
    what: "only the agent itself is kept from approving, not who delegated to it",
    file: "src/gate/inbox.ts",
    right: "if (question.chain.some((asker) => own.has(foldName(asker)))) {",
    wrong: 'if (own.has(foldName(question.chain.at(-1) ?? ""))) {',
    caughtBy: { file: "tests/interactions/self-approval.test.ts", title: "T6" },
  },
  {
    name: "self-approval-by-automation",
    what: "the automation of a person does not count as that person",
    file: "src/gate/inbox.ts",
    right:
      "const own = new Set(sameHand(by, people).map(foldName));\n  if (question.chain.some((asker)",
    wrong: "const own = new Set([by].map(foldName));\n  if (question.chain.some((asker)",
    caughtBy: { file: "src/gate/who-may.test.ts", title: "" },
  },
  {
    name: "one-person-two-factors",
    what: "one person fills two factors",
    file: "src/store/interactions.ts",
    right: "if (now.votes.some((vote) => foldName(vote.by) === foldName(by))) return undefined;",
    wrong: "",
    caughtBy: { file: "tests/interactions/quorum.test.ts", title: "" },
  },
  {
    name: "nan-confidence-passes",
    what: "a confidence that is no number passes",
    file: "src/policy/before-call.ts",
    right: 'if (typeof value !== "number" || !(value >= 0 && value <= 100)) {',
    wrong: 'if (typeof value === "number" && (value < 0 || value > 100)) {',
    caughtBy: { file: "src/policy/confidence.test.ts", title: "" },
  },
  {
    name: "broken-check-allows",
    what: "a check of the gate that throws has said nothing",
    file: "src/policy/decide.ts",
    right: "return { check, ...deny(check, message) };",
    wrong: "return { check, ...allow(), findings: deny(check, message).findings };",
    caughtBy: { file: "src/policy/gate.test.ts", title: "" },
  },
  {
    name: "timeout-counts-as-yes",
    what: "a question that nobody answers in time ends as a yes",
    file: "src/model/interaction.ts",
    right: `return {
    approved: false,
    score: 0,`,
    wrong: `return {
    approved: true,
    score: 1,`,
    caughtBy: { file: "tests/interactions/checkpoint.test.ts", title: "nobody answers" },
  },
  {
    name: "undo-not-idempotent",
    what: "two rollbacks at once take the same thing back under ids of their own",
    file: "src/gate/undo.ts",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
    right: "const name = `undo.${id}${suffix}`;",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
    wrong: "const name = `undo.${id}${suffix}.${performance.now()}`;",
    caughtBy: { file: "src/gate/rollback-races.test.ts", title: "T9" },
  },
  {
    name: "undo-of-changed-world",
    what: "an undo does not look whether its target was changed since",
    file: "src/gate/undo.ts",
    right: 'if (changed !== undefined) return { answer: "conflicted", text: changed };',
    wrong: "",
    caughtBy: { file: "tests/gate/calls.test.ts", title: "" },
  },
  {
    name: "undo-mistakes-targets",
    what: "a record that somebody else changed is taken for one that an undo has brought back",
    file: "src/gate/order.ts",
    right: "(!isSame || to === after)",
    wrong: "(!isSame || after !== before)",
    caughtBy: { file: "tests/gate/undo-versions.test.ts", title: "the undo of one record" },
  },
  {
    name: "verify-ignores-count",
    what: "verify does not compare the length with the anchors",
    file: "src/audit/verify.ts",
    right: "if (anchored > seq) {",
    wrong: "if (anchored > seq && this.isEmpty) {",
    caughtBy: { file: "tests/audit/tampering.test.ts", title: "R21" },
  },
  {
    name: "verify-ignores-missing-tenant",
    what: "verify looks only at the tenants that are there",
    file: "src/audit/verify.ts",
    right: "new Set([...heads.keys(), ...run.expected])",
    wrong: "new Set([...heads.keys()])",
    caughtBy: { file: "tests/audit/verify.test.ts", title: "a tenant that only anchors know" },
  },
  {
    name: "verify-compares-length-only",
    what: "verify takes an anchor's number for the whole anchor",
    file: "src/audit/verify.ts",
    right: "if (anchor.seq === seq && anchor.hash !== hash) {",
    wrong: "if (anchor.seq > seq && anchor.hash !== hash) {",
    caughtBy: { file: "tests/audit/tampering.test.ts", title: "R22|R27" },
  },
  {
    name: "audit-not-with-the-change",
    what: "a change is committed though its entry could not be written",
    file: "src/store/sqlite/writer.ts",
    right: "if (!event.each) this.#append(event, rows, its);",
    wrong: `if (!event.each) {
        try {
          this.#append(event, rows, its);
        } catch {}
      }`,
    caughtBy: { file: "tests/store/sqlite.test.ts", title: "" },
  },
  {
    name: "not-synchronous",
    what: "SQLite is told not to wait for the disk",
    file: "src/store/sqlite/database.ts",
    right: 'database.pragma("synchronous = FULL");',
    wrong: 'database.pragma("synchronous = OFF");',
    caughtBy: { file: "tests/faults/syscalls.test.ts", title: "" },
  },
  {
    name: "acknowledged-before-commit",
    what: "a group's answers are given before its commit",
    file: "src/store/sqlite/writer.ts",
    right: `this.#commitGroup();
      return answers;`,
    wrong: `setImmediate(() => this.#commitGroup());
      return answers;`,
    caughtBy: { file: "tests/store/sqlite.test.ts", title: "" },
  },
  {
    name: "event-of-others",
    what: "the feed is filtered by tenant only, not by who may see the session",
    file: "src/http/feeds.ts",
    right: "if (await maySee(call, entry.session)) frames.push(frameOf(entry, own === undefined));",
    wrong: "frames.push(frameOf(entry, own === undefined));",
    caughtBy: { file: "tests/http/events.test.ts", title: "an agent receives" },
  },
  {
    name: "revoked-stream-goes-on",
    what: "a stream stays open when its token is revoked",
    file: "src/http/feeds.ts",
    right: "if (!(await services.authenticator.isValid(signed))) break;",
    wrong: "",
    caughtBy: { file: "tests/http/events.test.ts", title: "a revoked token" },
  },
  {
    name: "key-without-content",
    what: "a repeated idempotency key is answered whatever it came with",
    file: "src/store/http-keys.ts",
    right: 'if (current["route"] !== route || current["content_hash"] !== contentHash) {',
    wrong: 'if (current["route"] !== route) {',
    caughtBy: { file: "tests/http/idempotency.test.ts", title: "other content" },
  },
  {
    name: "origin-not-checked",
    what: "only the Host is checked, not the Origin",
    file: "src/http/authenticate.ts",
    right: 'if (!allowed.has(origin)) throw refused("origin");',
    wrong: "",
    caughtBy: { file: "tests/http/origins.test.ts", title: "foreign Host and foreign" },
  },
  {
    name: "revoked-delegation-acts",
    what: "a delegation's end is not looked at when its session acts",
    file: "src/store/operations.ts",
    right: "return isDelegated(sessionId) ? boundSteps(",
    wrong: "return isDelegated(sessionId) && sessionId.length === 0 ? boundSteps(",
    caughtBy: { file: "tests/delegation/trees.test.ts", title: "" },
  },
  {
    name: "second-answer",
    what: "a question that is closed can be changed again",
    file: "src/store/interactions.ts",
    right: 'const unchanged = { status: "open", version: before.version, ...where };',
    wrong: "const unchanged = {};",
    caughtBy: { file: "tests/store/memory.test.ts", title: "of 32 answers" },
  },
  ...AUTH_BUGS,
  ...DELEGATION_BUGS,
  ...FILES_BUGS,
  ...FLOW_BUGS,
  ...GATE_BUGS,
  ...HTTP_BUGS,
  ...HOOK_BUGS,
  ...LIMITS_BUGS,
  ...MCP_BUGS,
  ...MERGED_BUGS,
  ...HOT_BUGS,
  ...OUTCOME_BUGS,
  ...PERMIT_BUGS,
  ...CLOCK_BUGS,
  ...RECORDS_BUGS,
  ...RECOVERY_BUGS,
  ...ROW_BUGS,
  ...SCREEN_BUGS,
  ...SERVE_BUGS,
  ...SHELL_BUGS,
  ...STORE_FAULTS_BUGS,
  ...UNDO_BUGS,
  ...SIMULATED_BUGS,
];
