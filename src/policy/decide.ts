import type { Finding, GateAnswer, GatePoint, Grant } from "../model/finding.ts";
import { PERMISSION_CLASSES, type PermissionClass } from "../tools/tool.ts";
import { definedFields } from "../util/defined-fields.ts";
import { shown, shownError, withoutUrlSecrets } from "../util/error-text.ts";
import { deepFreeze } from "../util/json.ts";
import {
  type Access,
  allow,
  ask,
  type CallFacts,
  changesFolder,
  deny,
  isBlocking,
  joinAnswers,
  mergeFindings,
  type ResolvedResource,
  review,
  type SeenCall,
  type SeenFile,
  type SeenScript,
} from "./answers.ts";
import {
  checkProtected,
  type Danger,
  type DangerousCommand,
  type DangerousPath,
  dangersBehindLink,
  dangersOf,
  dangersOfPart,
  dangersOfRedirect,
  type ProtectedState,
  STRUCTURE_DANGERS,
} from "./dangers.ts";
import { isWithin, type ReadUrl, readUrl, segmentsOf } from "./patterns.ts";
import {
  allowingRule,
  type CompiledPolicy,
  otherKinds,
  restrictingRules,
  subjectsOf,
} from "./policy.ts";
import { readShell } from "./shell/read-shell.ts";
import type { ShellPart, ShellWord } from "./shell/script.ts";

/** The inputs of the gate besides the call. */
export interface GateState extends PermissionState {
  readonly policies: readonly GatePolicy[];
  readonly grants: readonly Grant[];
  /** The run of the call; by default its session. */
  readonly run?: string;
  readonly phase?: string;
  /** The role of the requesting sub-agent. */
  readonly role?: string;
  readonly workingDirectory?: string;
  /** Whether a person can answer. If not, an ask becomes a denial. */
  readonly canAsk: boolean;
  /** Answers from outside the gate, such as hooks and reverse thinking. */
  readonly others?: readonly NamedAnswer[];
}

interface NamedAnswer extends GateAnswer {
  readonly check: string;
}

/** The answer, its reasons, and the rules it was given under. Plain data that is stored in the log unchanged. */
export interface GateDecision extends GateAnswer {
  /** The answer of each check, in order. */
  readonly trace: readonly NamedAnswer[];
  readonly overridden: readonly Overridden[];
  /** What the gate policies said, point by point; none were run when there are none. */
  readonly evaluations: readonly Evaluation[];
  readonly policyVersion: string;
  readonly policyHash: string;
}

interface Evaluation {
  readonly point: GatePoint;
  readonly findings: readonly Finding[];
  readonly overridden: readonly Overridden[];
}

/**
 * The one gate for every call, whatever its entry path. All checks run each time, so that the log shows every answer:
 * facts, permission (unresolved files, rules, class), gate policies before grants, outside answers. Deny beats ask, ask
 * beats review, review beats allow; silence asks. Finally, an ask without a person to answer becomes a denial.
 *
 * A check that throws denies in its own name. The same facts and state give the same decision: no clock, no randomness,
 * no I/O.
 */
export function decide(facts: CallFacts, state: GateState): GateDecision {
  const evaluations: Evaluation[] = [];
  const trace: NamedAnswer[] = [
    guarded("facts", () => checkFacts(facts)),
    guarded("permission", () => checkPermission(seeCall(facts), state)),
    guarded("policies", () => checkPolicies(facts, state, evaluations)),
    ...(state.others ?? []),
  ];
  const joined = joinAnswers(trace);
  return {
    ...(joined.answer === "ask" && !state.canAsk ? unanswerable(facts.tool, joined) : joined),
    trace,
    overridden: evaluations.flatMap(({ overridden }) => overridden),
    evaluations,
    policyVersion: state.policy.version,
    policyHash: state.policy.hash,
  };
}

/** The ids of the rules that allow or review parts of this call, each once: what a permit without a decision rests on. */
export function allowingRules(facts: CallFacts, policy: CompiledPolicy): readonly string[] {
  const found = subjectsOf(seeCall(facts)).map((subject) => allowingRule(policy, facts, subject));
  return [...new Set(found.flatMap((compiled) => (compiled ? [compiled.rule.id] : [])))];
}

/** Rules expire by this clock; a clock that is not a number would make all of them valid or void. */
function checkFacts({ now, tool }: CallFacts): GateAnswer {
  if (Number.isSafeInteger(now) && typeof tool === "string" && tool !== "") return allow();
  return deny(
    "facts",
    "The gate was given no tool or no time, so the call cannot be judged. Nothing was executed. Tell the operator.",
  );
}

function checkPolicies(facts: CallFacts, state: GateState, evaluations: Evaluation[]): GateAnswer {
  if (state.policies.length === 0) return allow();
  const isWrite = facts.resources.some((one) => "access" in one && one.access === "write");
  const points: readonly GatePoint[] = isWrite ? ["pre-tool", "pre-write"] : ["pre-tool"];
  for (const point of points) {
    const found = runPolicies(state.policies, contextOf(point, facts, state));
    const at = definedFields({ point, now: facts.now, phase: state.phase });
    const split = applyGrants(found, state.grants, at);
    evaluations.push({ point, findings: split.standing, overridden: split.overridden });
  }
  const findings = evaluations.flatMap((one) => one.findings);
  return { answer: findings.some(isBlocking) ? "deny" : "allow", findings };
}

function contextOf(point: GatePoint, facts: CallFacts, state: GateState): PolicyContext {
  const file = facts.resources.find((resource) => resource.kind === "file");
  const command = facts.resources.find((resource) => resource.kind === "command");
  return definedFields({
    point,
    run: state.run ?? facts.sessionId,
    tool: facts.tool,
    payload: facts,
    path: file?.resolved,
    command: command?.command,
    phase: state.phase,
    role: state.role,
    workingDirectory: state.workingDirectory,
  });
}

function guarded(check: string, work: () => GateAnswer): NamedAnswer {
  try {
    const { answer, findings } = work();
    return { check, answer, findings };
  } catch (error) {
    const message = `The check ${shown(check)} failed (${shownError(error)}), so the call cannot be judged. Nothing was executed. Tell the operator.`;
    return { check, ...deny(check, message) };
  }
}

function unanswerable(tool: string, { findings }: GateAnswer): GateAnswer {
  const denied = deny(
    "no-one-to-ask",
    `Tool ${shown(tool)} needs a person's consent, and there is no person to ask, so it is refused. Nothing was executed. Use a tool or an input that the rules allow.`,
  );
  return { answer: "deny", findings: [...findings, ...denied.findings] };
}

export interface Overridden {
  readonly finding: Finding;
  readonly grant: Grant["id"];
}

/** Splits findings into those that remain and those that a live grant overrides. */
export function applyGrants(
  findings: readonly Finding[],
  grants: readonly Grant[],
  at: { readonly point: GatePoint; readonly phase?: string; readonly now: number },
): { readonly standing: readonly Finding[]; readonly overridden: readonly Overridden[] } {
  const standing: Finding[] = [];
  const overridden: Overridden[] = [];
  for (const finding of findings) {
    const grant = grants.find((one) => overrides(one, finding, at));
    if (grant === undefined) standing.push(finding);
    else overridden.push({ finding, grant: grant.id });
  }
  return { standing, overridden };
}

function overrides(
  grant: Grant,
  finding: Finding,
  at: { readonly point: GatePoint; readonly phase?: string; readonly now: number },
): boolean {
  if (!isBlocking(finding) || !mayOverride(grant, finding)) return false;
  if (grant.revoked === true) return false;
  if (grant.expiresAt !== undefined && !(at.now < grant.expiresAt)) return false;
  if (grant.finding.policy !== finding.policy) return false;
  switch (grant.scope.kind) {
    case "finding":
      return grant.finding.message === finding.message;
    case "point":
      return grant.scope.point === at.point;
    case "phase":
      return grant.scope.phase === at.phase;
  }
}

/** No grant overrides a hard denial, any grant overrides a soft one, and only evidence overrides missing evidence. */
function mayOverride({ grantor }: Grant, { severity }: Finding): boolean {
  if (severity === "soft-deny") return true;
  return severity === "evidence-required" && grantor === "evidence-update";
}

/** The inputs of the permission check: the compiled rules, and places and commands as data. */
interface PermissionState extends ProtectedState {
  readonly policy: CompiledPolicy;
  readonly fileRoots: readonly FileRoot[];
  /** Replaces `DANGEROUS_PATHS`. */
  readonly dangerousPaths?: readonly DangerousPath[];
  /** Replaces `DANGEROUS_COMMANDS`. */
  readonly dangerousCommands?: readonly DangerousCommand[];
}

/** A folder in which files may be used without a rule; write includes read. */
export interface FileRoot {
  readonly path: string;
  readonly access: Access;
}

type Check = (call: SeenCall, state: PermissionState) => GateAnswer;

/** The class alone selects the check. Rules that deny or ask are checked before it, also for readonly. */
const CHECKS: Readonly<Record<PermissionClass, Check>> = {
  bash: checkBash,
  file: checkFile,
  webfetch: checkWebfetch,
  readonly: checkReadonly,
  generic: checkGeneric,
  "": checkGeneric,
};

/**
 * Decides whether a call is permitted. The gate's own files are denied to every class. Rules that deny or ask apply to
 * every class; then the class decides. Deny beats ask, ask beats allow. The same for every entry path, because the
 * facts do not contain the path.
 */
export function checkPermission(call: SeenCall, state: PermissionState): GateAnswer {
  const { permissionClass, tool } = call.facts;
  if (!PERMISSION_CLASSES.includes(permissionClass)) {
    return deny(
      "permission",
      `Tool ${shown(tool)} has the permission class ${shown(String(permissionClass))}, which does not exist, so the call cannot be checked. Nothing was executed. Tell the operator.`,
    );
  }
  const said = [
    checkUnresolved(call),
    checkProtected(call, state),
    restrictingRules(state.policy, call),
    CHECKS[permissionClass](call, state),
  ];
  return joinAnswers(said.filter((answer) => answer !== undefined));
}

/** A path that could not be resolved is denied in every class: what cannot be named cannot be judged. */
function checkUnresolved({ unresolved }: SeenCall): GateAnswer | undefined {
  if (unresolved.length === 0) return undefined;
  return joinAnswers(
    unresolved.map(({ path, reason }) =>
      deny(
        FILE,
        `The path ${shown(path)} was refused, because it cannot be resolved: ${reason}. Nothing was executed. Use an absolute path to a place that can be reached.`,
      ),
    ),
  );
}

/**
 * Class generic, and the fallback for tools that declare no class: rules first, then ask. Whether a tool calls itself
 * read-only or destructive has no effect; only the class readonly is allowed without a rule.
 */
function checkGeneric({ facts }: SeenCall, { policy }: PermissionState): GateAnswer {
  const allowed = answerOfRule(facts.tool, allowingRule(policy, facts, { kind: "call" }));
  if (allowed !== undefined) return allowed;
  return ask(
    "permission.generic",
    `Tool ${shown(facts.tool)} needs a person's consent, because no rule allows this call.`,
  );
}

/** What an allowing rule answers; undefined without one. */
function answerOfRule(
  tool: string,
  found: ReturnType<typeof allowingRule>,
): GateAnswer | undefined {
  if (found?.rule.effect !== "review") return found && allow();
  const { id, reason } = found.rule;
  const message = `Rule ${shown(id)} wants both machine reviews of tool ${shown(tool)}: ${reason}`;
  return review(`rule.${id}`, message);
}

/** Class readonly is allowed without a rule; one that wants a review of it counts all the same. */
function checkReadonly({ facts, files, urls }: SeenCall, { policy }: PermissionState): GateAnswer {
  const subjects = [
    { kind: "call" } as const,
    ...files.map(({ segments, access }) => ({ kind: "file", segments, access }) as const),
    ...urls.flatMap(({ read }) =>
      read.ok ? [{ kind: "url", identity: read.identity } as const] : [],
    ),
  ];
  const rules = subjects.map((subject) => allowingRule(policy, facts, subject));
  const answers = rules.map((rule) => answerOfRule(facts.tool, rule) ?? allow());
  return joinAnswers(answers);
}

const FILE = "permission.file";

/**
 * Class file. Compares resolved paths only, by whole names. Each file must be allowed by itself, by a root that
 * contains it or by a rule; a dangerous path overrides both.
 */
function checkFile(call: SeenCall, state: PermissionState): GateAnswer {
  const refused = checkUnresolved(call);
  if (refused !== undefined) return refused;
  if (call.files.length === 0) return noneDeclared(FILE, call, "works on files");
  return joinAnswers([
    ...call.files.flatMap((file) => [...dangersIn(file, state), checkPath(file, call, state)]),
    ...otherKinds(call, "file", FILE),
  ]);
}

function dangersIn(file: SeenFile, { dangerousPaths }: PermissionState): GateAnswer[] {
  const what = `${file.access === "write" ? "Writing" : "Reading"} ${shown(file.resolved)}`;
  return dangersOf(file.segments, file.access, dangerousPaths).map((danger) =>
    dangerous(what, danger, "Use a file elsewhere"),
  );
}

function checkPath(file: SeenFile, { facts }: SeenCall, state: PermissionState): GateAnswer {
  const { segments, access } = file;
  const isOpen = state.fileRoots.some((root) => {
    const folder = segmentsOf(root.path);
    const isEnough = root.access === "write" || access === "read";
    return isEnough && folder !== undefined && isWithin(segments, folder);
  });
  const rule = allowingRule(state.policy, facts, { kind: "file", segments, access });
  const allowed = answerOfRule(facts.tool, rule) ?? (isOpen ? allow() : undefined);
  if (allowed !== undefined) return allowed;
  return ask(
    FILE,
    `${shown(file.resolved)} is outside the folders open for ${access === "write" ? "writing" : "reading"}, and no rule allows it, so a person has to decide. Stay inside the open folders to avoid the wait.`,
  );
}

const WEBFETCH = "permission.webfetch";

/**
 * Class webfetch. Judges the host as fetch would parse it, never the text of the address. Private addresses are denied
 * by their text; names that resolve to private addresses are rejected by the fetcher after the lookup.
 */
function checkWebfetch(call: SeenCall, { policy }: PermissionState): GateAnswer {
  if (call.urls.length === 0) return noneDeclared(WEBFETCH, call, "fetches addresses");
  return joinAnswers([
    ...call.urls.map(({ url, read }) => checkUrl(url, read, call.facts, policy)),
    ...otherKinds(call, "url", WEBFETCH),
  ]);
}

function checkUrl(
  url: string,
  read: ReadUrl,
  facts: CallFacts,
  policy: CompiledPolicy,
): GateAnswer {
  if (!read.ok) {
    return deny(
      WEBFETCH,
      `Fetching ${shown(withoutUrlSecrets(url), 120)} is refused: ${read.why}. Nothing was executed. Use a public https address.`,
    );
  }
  const { host, port } = read.identity;
  const rule = allowingRule(policy, facts, { kind: "url", identity: read.identity });
  const allowed = answerOfRule(facts.tool, rule);
  if (allowed !== undefined) return allowed;
  return ask(
    WEBFETCH,
    `Fetching from ${shown(host)} (port ${port}) needs a person's consent, because no rule allows this host and port.`,
  );
}

const BASH = "permission.bash";

/**
 * Class bash. A compound command is split, and each program in it needs a rule that allows it. One dangerous program
 * decides for the whole command. A command that cannot be resolved completely is never allowed.
 */
function checkBash(call: SeenCall, state: PermissionState): GateAnswer {
  if (call.scripts.length === 0) return noneDeclared(BASH, call, "runs commands");
  return joinAnswers([
    ...call.scripts.map((script) => checkScript(script, call, state)),
    ...otherKinds(call, "command", BASH),
  ]);
}

function checkScript(script: SeenScript, call: SeenCall, state: PermissionState): GateAnswer {
  const { dangerousCommands: commands, dangerousPaths: paths } = state;
  const refused = (what: string, dangers: readonly Danger[]) =>
    dangers.map((danger) => dangerous(what, danger, "Find a way that does less"));
  const structures = script.structures.map(
    (id): Danger => ({ id, answer: "deny", reason: STRUCTURE_DANGERS[id] }),
  );
  const answers = [
    ...refused("The command", structures),
    ...script.redirects.flatMap((redirect) => [
      ...refused(
        `The redirection to ${shown(redirect.target.text)}`,
        dangersOfRedirect(redirect, paths),
      ),
      ...(isHarmlessTarget(redirect.target) ? [] : [REDIRECTION]),
    ]),
    ...script.linked.flatMap(({ segments, leaves }) => [
      ...refused("A link that the command names", dangersBehindLink(segments, paths)),
      ...(leaves ? [unclear("The command", "a link that it names leads out of its folder")] : []),
    ]),
    ...script.blocks.map((why) => unclear("The command", why)),
    ...script.parts
      .filter((part) => !part.isGlue)
      .flatMap((part) => [
        ...refused(nameOf(part), dangersOfPart(part, commands, paths)),
        checkPart(part, script, call, state),
      ]),
  ];
  return answers.length > 0 ? joinAnswers(answers) : ask(BASH, "The command runs no program.");
}

function checkPart(
  part: ShellPart,
  script: SeenScript,
  { facts }: SeenCall,
  { policy }: PermissionState,
): GateAnswer {
  if (part.blocks.length > 0) {
    return joinAnswers(part.blocks.map((why) => unclear(nameOf(part), why)));
  }
  const rule = allowingRule(policy, facts, { kind: "command", part, script });
  const allowed = answerOfRule(facts.tool, rule);
  if (allowed !== undefined) return allowed;
  return ask(
    BASH,
    `${nameOf(part)} needs a person's consent, because no rule allows it in this folder.`,
  );
}

const REDIRECTION = ask(
  BASH,
  "A redirection to or from a file needs a person's consent. Use a file tool, or leave the output where it is, to avoid the wait.",
);

function isHarmlessTarget({ text, known }: ShellWord): boolean {
  return known && /^\/dev\/(null|stdout|stderr)$/.test(text);
}

function unclear(what: string, why: string): GateAnswer {
  return ask(
    BASH,
    `${what} needs a person's consent, because it cannot be judged from its text: ${why}. Plain commands with fixed words avoid the wait.`,
  );
}

/** Names the program only: its arguments may hold secrets, and messages are stored. */
function nameOf(part: ShellPart): string {
  const name = part.words[0];
  return name?.known === true
    ? `The command ${shown(name.text, 60)}`
    : "A command with a name that is not fixed";
}

function noneDeclared(policy: string, { facts }: SeenCall, does: string): GateAnswer {
  return ask(
    policy,
    `Tool ${shown(facts.tool)} ${does} but did not declare which for this input, so a person has to decide.`,
  );
}

function dangerous(what: string, { id, answer, reason }: Danger, advice: string): GateAnswer {
  return answer === "deny"
    ? deny(
        `danger.${id}`,
        `${what} is refused: ${reason}. Nothing was executed. ${advice}, or ask a person to do this step.`,
      )
    : ask(`danger.${id}`, `${what} needs a person's consent: ${reason}.`);
}

/** The input of a policy. Only the fields that apply at the point are set. */
export interface PolicyContext {
  readonly point: GatePoint;
  readonly workingDirectory?: string;
  readonly run?: string;
  readonly tool?: string;
  readonly path?: string;
  readonly command?: string;
  readonly role?: string;
  readonly phase?: string;
  readonly payload?: unknown;
}

/** A pure function from context to findings, called whenever the answer is needed. Shape: callback, synchronous. */
export interface GatePolicy {
  readonly name: string;
  /** Empty means every point. */
  readonly points: readonly GatePoint[];
  check(context: PolicyContext): readonly Finding[];
}

/**
 * Runs every policy of a point. Each finding carries the name of its policy. A policy that throws, returns something
 * other than findings or tries to change the context yields a hard denial in its own name, so a broken policy cannot
 * let a call pass.
 */
export function runPolicies(
  policies: readonly GatePolicy[],
  context: PolicyContext,
): readonly Finding[] {
  const asked = policies.filter(
    ({ points }) => points.length === 0 || points.includes(context.point),
  );
  if (asked.length === 0) return [];
  // A frozen copy: a policy must not change what the next policy or the call sees.
  const frozen = deepFreeze(structuredClone(context));
  return mergeFindings(asked.flatMap((policy) => runPolicy(policy, frozen)));
}

function runPolicy(policy: GatePolicy, context: PolicyContext): readonly Finding[] {
  try {
    return policy.check(context).map(({ severity, message }) => {
      if (typeof severity !== "string" || typeof message !== "string") {
        throw new TypeError("a finding needs a severity and a message");
      }
      return { severity, message, policy: policy.name };
    });
  } catch (error) {
    const message = `The policy ${shown(policy.name)} failed (${shownError(error)}), so its findings are unknown. Nothing was executed. Tell the operator.`;
    return [{ severity: "hard-deny", policy: policy.name, message }];
  }
}

/** Parses the resources of a call, once. */
export function seeCall(facts: CallFacts): SeenCall {
  const scripts: SeenScript[] = [];
  const files: SeenFile[] = [];
  const urls: SeenCall["urls"][number][] = [];
  const unresolved: SeenCall["unresolved"][number][] = [];
  for (const resource of facts.resources) {
    switch (resource.kind) {
      case "command":
        scripts.push(seeScript(resource));
        break;
      case "url":
        urls.push({ url: resource.url, read: readUrl(resource.url) });
        break;
      case "file": {
        const { path, resolved, access } = resource;
        const segments = segmentsOf(resolved);
        if (segments !== undefined) files.push({ path, resolved, segments, access });
        else unresolved.push({ path, reason: "its resolved form is not an absolute plain path" });
        break;
      }
      case "unresolved":
        unresolved.push(resource);
        break;
      case "other":
        break;
    }
  }
  return { facts, scripts, files, urls, unresolved };
}

function seeScript({ command, folder, linked = [] }: ResolvedCommand): SeenScript {
  const script = readShell(command);
  const layers = script.parts.flatMap(({ words, wrappers }) => [words, ...wrappers]);
  return {
    ...script,
    folder: folder === undefined ? undefined : segmentsOf(folder),
    moves: layers.some(changesFolder),
    linked: linked.flatMap(({ resolved, leaves }) => {
      const segments = segmentsOf(resolved);
      return segments === undefined ? [] : [{ segments, leaves }];
    }),
  };
}

type ResolvedCommand = Extract<ResolvedResource, { kind: "command" }>;
