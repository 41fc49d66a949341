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

/** What the permission check goes by: the compiled rules, and places and commands as data. */
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
 * May this call be made? The gate's own files are denied to every class. Rules that deny or ask bind every class; then the class has its say. Deny beats ask, ask beats
 * allow. The same for every way a call can come in, because the facts do not hold the way.
 */
export function checkPermission(call: SeenCall, state: PermissionState): GateAnswer {
  const { permissionClass, tool } = call.facts;
  if (!PERMISSION_CLASSES.includes(permissionClass)) {
    return deny(
      "permission",
      `Tool ${shown(tool)} has the permission class ${shown(String(permissionClass))}, which does not exist, so nobody can check the call. Nothing was executed. Tell the operator.`,
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

/** Class readonly: allowed at once. Rules that deny or ask are looked at before and apart from the class. */
function checkReadonly(): GateAnswer {
  return allow();
}

/**
 * Class generic, and the fallback for tools that declare none: rules first, then ask. Whether a tool calls itself
 * read-only or destructive plays no part; a free pass needs the class readonly.
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

/** A folder that files may be used in without a rule; write includes read. */
export interface FileRoot {
  readonly path: string;
  readonly access: Access;
}

interface FileLimits {
  readonly policy: CompiledPolicy;
  readonly fileRoots: readonly FileRoot[];
  /** Instead of `DANGEROUS_PATHS`, not in addition to it. */
  readonly dangerousPaths?: readonly DangerousPath[];
}

/**
 * Class file. Only resolved paths are compared, by whole names. Each file must be let through by itself: by a root that
 * holds it or by a rule; a dangerous path overrules both.
 */
function checkFile(call: SeenCall, limits: FileLimits): GateAnswer {
  const refused = checkUnresolved(call);
  if (refused !== undefined) return refused;
  if (call.files.length === 0) {
    return ask(
      POLICY,
      `Tool ${shown(call.facts.tool)} works on files but did not say on which for this input, so a person has to look at it.`,
    );
  }
  return joinAnswers([
    ...call.files.flatMap((file) => [...dangers(file, limits), permitted(file, call, limits)]),
    ...otherKinds(call, "file", POLICY),
  ]);
}

/** A path that nobody could resolve is denied whatever the class: what cannot be named cannot be judged. */
function checkUnresolved({ unresolved }: SeenCall): GateAnswer | undefined {
  if (unresolved.length === 0) return undefined;
  return joinAnswers(
    unresolved.map(({ path, reason }) =>
      deny(
        POLICY,
        `The path ${shown(path)} was refused, because nobody can say where it leads: ${reason}. Nothing was executed. Use an absolute path to a place that can be reached.`,
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
    `${shown(file.resolved)} lies outside the folders open for ${access === "write" ? "writing" : "reading"}, and no rule allows it, so a person has to decide. Stay inside the open folders to avoid the wait.`,
  );
}

const WEBFETCH_POLICY = "permission.webfetch";

/**
 * Class webfetch. What counts is the host as fetch itself would read it, never the text of the address. Addresses that
 * lead inside are refused by their letters; names that resolve there are the fetcher's to refuse, after looking them up.
 */
function checkWebfetch(
  call: SeenCall,
  { policy }: { readonly policy: CompiledPolicy },
): GateAnswer {
  if (call.urls.length === 0) {
    return ask(
      WEBFETCH_POLICY,
      `Tool ${shown(call.facts.tool)} fetches addresses but did not say which for this input, so a person has to look at it.`,
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

/** Queries and user names often hold secrets, and messages are kept. */
function withoutSecrets(url: string): string {
  return url.replace(/[?#].*$/s, "").replace(/\/\/[^/]*@/, "//");
}

/**
 * Tool name to permission class. A plain map that the registry holds and hands in, not a table of this module: the gate
 * then needs no lock and no reset between tests, two gates in one process cannot see each other's tools, and the same
 * input keeps giving the same answer. The engine itself knows no tool by name.
 */
export type PermissionClasses = ReadonlyMap<string, PermissionClass>;

export const NO_CLASSES: PermissionClasses = new Map();

/**
 * The table with one tool more. The same declaration again changes nothing; another class for a known name throws
 * `invalid_input`, because a second registration must not turn a checked tool into a free one.
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
      hint: `The tool is registered with the class "${known}" already; take it out before registering it as "${declared}".`,
    });
  }
  return new Map(table).set(tool, declared);
}

/** The table without a tool. */
export function withoutClass(table: PermissionClasses, tool: string): PermissionClasses {
  if (!table.has(tool)) return table;
  const next = new Map(table);
  next.delete(tool);
  return next;
}

/** Names are compared letter by letter. A tool nobody registered gets the fallback, which asks. */
export function classOf(table: PermissionClasses, tool: string): PermissionClass {
  return table.get(tool) ?? "";
}
