import { SallyportError } from "../model/errors.ts";
import type { GateAnswer } from "../model/finding.ts";
import { PERMISSION_CLASSES, type PermissionClass } from "../tools/safety.ts";
import { type Access, allow, ask, type CallFacts, deny, joinAnswers, shown } from "./answers.ts";
import { type BashLimits, checkBash } from "./bash.ts";
import {
  checkProtected,
  DANGEROUS_PATHS,
  type DangerousPath,
  dangersOf,
  type ProtectedState,
} from "./dangerous-paths.ts";
import { isWithin, type ReadUrl, segmentsOf } from "./patterns.ts";
import type { CompiledPolicy } from "./policy.ts";
import { allowingRule, otherKinds, restrictingRules } from "./rule-answers.ts";
import type { SeenCall, SeenFile } from "./seen-call.ts";

/** The inputs of the permission check: the compiled rules, and places and commands as data. */
export type PermissionState = FileLimits & BashLimits & ProtectedState;

type Check = (call: SeenCall, state: PermissionState) => GateAnswer;

/** The class alone selects the check. */
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

/** Class readonly: allowed. Rules that deny or ask are checked before the class. */
function checkReadonly(): GateAnswer {
  return allow();
}

/**
 * Class generic, and the fallback for tools that declare no class: rules first, then ask. Whether a tool calls itself
 * read-only or destructive has no effect; only the class readonly is allowed without a rule.
 */
function checkGeneric(
  { facts }: SeenCall,
  { policy }: { readonly policy: CompiledPolicy },
): GateAnswer {
  if (allowingRule(policy, facts, { kind: "call" })) return allow();
  return ask(
    "permission.generic",
    `Tool ${shown(facts.tool)} needs a person's consent, because no rule allows this call.`,
  );
}

const POLICY = "permission.file";

/** A folder in which files may be used without a rule; write includes read. */
export interface FileRoot {
  readonly path: string;
  readonly access: Access;
}

interface FileLimits {
  readonly policy: CompiledPolicy;
  readonly fileRoots: readonly FileRoot[];
  /** Replaces `DANGEROUS_PATHS`. */
  readonly dangerousPaths?: readonly DangerousPath[];
}

/**
 * Class file. Compares resolved paths only, by whole names. Each file must be allowed by itself, by a root that
 * contains it or by a rule; a dangerous path overrides both.
 */
function checkFile(call: SeenCall, limits: FileLimits): GateAnswer {
  const refused = checkUnresolved(call);
  if (refused !== undefined) return refused;
  if (call.files.length === 0) {
    return ask(
      POLICY,
      `Tool ${shown(call.facts.tool)} works on files but did not declare which for this input, so a person has to decide.`,
    );
  }
  return joinAnswers([
    ...call.files.flatMap((file) => [...dangers(file, limits), permitted(file, call, limits)]),
    ...otherKinds(call, "file", POLICY),
  ]);
}

/** A path that could not be resolved is denied in every class: what cannot be named cannot be judged. */
function checkUnresolved({ unresolved }: SeenCall): GateAnswer | undefined {
  if (unresolved.length === 0) return undefined;
  return joinAnswers(
    unresolved.map(({ path, reason }) =>
      deny(
        POLICY,
        `The path ${shown(path)} was refused, because it cannot be resolved: ${reason}. Nothing was executed. Use an absolute path to a place that can be reached.`,
      ),
    ),
  );
}

function dangers(file: SeenFile, { dangerousPaths = DANGEROUS_PATHS }: FileLimits): GateAnswer[] {
  const what = `${file.access === "write" ? "Writing" : "Reading"} ${shown(file.resolved)}`;
  return dangersOf(file.segments, file.access, dangerousPaths).map(({ id, answer, reason }) =>
    answer === "deny"
      ? deny(
          `danger.${id}`,
          `${what} is refused: ${reason}. Nothing was executed. Use a file elsewhere, or ask a person to do this step.`,
        )
      : ask(`danger.${id}`, `${what} needs a person's consent: ${reason}.`),
  );
}

function permitted(file: SeenFile, { facts }: SeenCall, limits: FileLimits): GateAnswer {
  const { segments, access } = file;
  const isOpen = limits.fileRoots.some((root) => {
    const folder = segmentsOf(root.path);
    const isEnough = root.access === "write" || access === "read";
    return isEnough && folder !== undefined && isWithin(segments, folder);
  });
  if (isOpen || allowingRule(limits.policy, facts, { kind: "file", segments, access })) {
    return allow();
  }
  return ask(
    POLICY,
    `${shown(file.resolved)} is outside the folders open for ${access === "write" ? "writing" : "reading"}, and no rule allows it, so a person has to decide. Stay inside the open folders to avoid the wait.`,
  );
}

const WEBFETCH_POLICY = "permission.webfetch";

/**
 * Class webfetch. Judges the host as fetch would parse it, never the text of the address. Private addresses are denied
 * by their text; names that resolve to private addresses are rejected by the fetcher after the lookup.
 */
function checkWebfetch(
  call: SeenCall,
  { policy }: { readonly policy: CompiledPolicy },
): GateAnswer {
  if (call.urls.length === 0) {
    return ask(
      WEBFETCH_POLICY,
      `Tool ${shown(call.facts.tool)} fetches addresses but did not declare which for this input, so a person has to decide.`,
    );
  }
  return joinAnswers([
    ...call.urls.map(({ url, read }) => checkUrl(url, read, call.facts, policy)),
    ...otherKinds(call, "url", WEBFETCH_POLICY),
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
      WEBFETCH_POLICY,
      `Fetching ${shown(withoutSecrets(url), 120)} is refused: ${read.why}. Nothing was executed. Use a public https address.`,
    );
  }
  const { host, port } = read.identity;
  if (allowingRule(policy, facts, { kind: "url", identity: read.identity })) return allow();
  return ask(
    WEBFETCH_POLICY,
    `Fetching from ${shown(host)} (port ${port}) needs a person's consent, because no rule allows this host and port.`,
  );
}

/** Queries and user names often hold secrets, and messages are stored. */
function withoutSecrets(url: string): string {
  return url.replace(/[?#].*$/s, "").replace(/\/\/[^/]*@/, "//");
}

/**
 * Maps tool names to permission classes. The registry holds it and passes it in; it is not module state. So the gate
 * needs no lock and no reset between tests, two gates in one process do not share tools, and equal input gives equal
 * answers. The engine knows no tool by name.
 */
type PermissionClasses = ReadonlyMap<string, PermissionClass>;

export const NO_CLASSES: PermissionClasses = new Map();

/**
 * Returns the table with one more tool. The same declaration again changes nothing; another class for a known name
 * throws `invalid_input`, because a second registration must not make a checked tool unchecked.
 */
export function withClass(
  table: PermissionClasses,
  tool: string,
  declared: PermissionClass = "",
): PermissionClasses {
  if (!PERMISSION_CLASSES.includes(declared)) {
    throw new SallyportError("invalid_input", {
      tool,
      hint: `${shown(String(declared))} is no permission class; use one of ${PERMISSION_CLASSES.join(", ")}or none.`,
    });
  }
  const known = table.get(tool);
  if (known === declared) return table;
  if (known !== undefined) {
    throw new SallyportError("invalid_input", {
      tool,
      hint: `The tool is registered with the class "${known}" already; remove it before registering it as "${declared}".`,
    });
  }
  return new Map(table).set(tool, declared);
}

/** Returns the table without a tool. */
export function withoutClass(table: PermissionClasses, tool: string): PermissionClasses {
  if (!table.has(tool)) return table;
  const next = new Map(table);
  next.delete(tool);
  return next;
}

/** Names are compared exactly. A tool that is not registered gets the fallback, which asks. */
export function classOf(table: PermissionClasses, tool: string): PermissionClass {
  return table.get(tool) ?? "";
}
