import type { SessionId } from "./decision.ts";
import type { Instant } from "./names.ts";
import {
  data,
  flag,
  instant,
  integer,
  key,
  oneOf,
  prose,
  type RecordOf,
  record,
  text,
} from "./record.ts";

/** What a sub-agent is sent out for. */
export const AGENT_ROLES = ["research", "doc", "code", "review", "verify"] as const;
export type AgentRole = (typeof AGENT_ROLES)[number];

/** What a sub-agent may write. Reading is a matter of its tools and of the permission check. */
export const WRITE_PERMISSIONS = [
  "none",
  "docs-and-current-phase-artifact",
  "plan-approved-files-only",
  "evidence-through-kd_verify_result",
] as const;
export type WritePermission = (typeof WRITE_PERMISSIONS)[number];

export const DEFAULT_PERMISSION = {
  research: "none",
  doc: "docs-and-current-phase-artifact",
  code: "plan-approved-files-only",
  review: "none",
  verify: "evidence-through-kd_verify_result",
} as const satisfies Record<AgentRole, WritePermission>;

/** Verify may leave evidence through its tool, but touches no file: it may work beside others. */
export const READ_ONLY_ROLES: readonly AgentRole[] = ["research", "review", "verify"];

export function isReadOnlyRole(role: AgentRole): boolean {
  return READ_ONLY_ROLES.includes(role);
}

export function isAgentRole(name: unknown): name is AgentRole {
  return typeof name === "string" && (AGENT_ROLES as readonly string[]).includes(name);
}

/** The life of a delegation. `revoked` stops everything below it too; time that is over needs no state of its own. */
export const DELEGATION_MOVES = {
  active: ["reported", "failed", "revoked"],
  reported: [],
  failed: [],
  revoked: [],
} as const satisfies Record<string, readonly string[]>;
export type DelegationState = keyof typeof DELEGATION_MOVES;

const DELEGATION_STATES = Object.keys(DELEGATION_MOVES) as readonly DelegationState[];

/** The id of a delegation is the id of the sub-agent's session, so the session alone leads to what binds it. */
export type DelegationId = `dlg-${string}`;

const PREFIX = "dlg-";

/** True for the session of a sub-agent. The id alone decides, so no path can omit the check. */
export function isDelegated(sessionId: SessionId): sessionId is DelegationId {
  return sessionId.startsWith(PREFIX);
}

export function delegationId(unique: string): DelegationId {
  return `${PREFIX}${unique}`;
}

/** What a sub-agent may do; the key is its session id. Checked again after reading, so a changed row grants nothing more. */
export const DELEGATIONS = record(
  "delegations",
  {
    id: key<DelegationId>(),
    parentSession: text<SessionId>(),
    rootSession: text<SessionId>(),
    /** The run it belongs to, empty for none. */
    runId: text(),
    traceId: text(),
    promiseId: text(),
    state: oneOf(DELEGATION_STATES),
    /** The delegations above it, the root's first, itself last. All of them must be active. */
    chain: data<readonly DelegationId[]>({ check: Array.isArray }),
    /** The sub-agent, then its delegators, up to the root. */
    agents: data<readonly string[]>(),
    /** The person on whose behalf all of them act; empty when none was named. */
    owner: text(),
    task: prose(),
    /** Everything the sub-agent receives. */
    capsule: prose(),
    promise: data<CompletionPromise>(),
    /** What it may do: where it may write, what it may call, how much, how long. It only shrinks downwards. */
    scope: {
      planId: text(),
      role: oneOf(AGENT_ROLES),
      writePermission: oneOf(WRITE_PERMISSIONS),
      /** Absolute paths, and ids of other resources, such as `sql:shop/orders`. */
      planFiles: data<readonly string[]>().packedIn("scope"),
      /** Absolute paths of documents, and of folders that hold nothing else. */
      documents: data<readonly string[]>().packedIn("scope"),
      /** Absolute path of the artefact of the phase in which it was delegated; empty for none. */
      artefact: prose().packedIn("scope"),
      /** Names of tools, `files.*` for all of a family, `*` for all. */
      tools: data<readonly string[]>().packedIn("scope"),
      /** How many levels it may delegate further; 0 for none. */
      depth: integer().packedIn("scope"),
      /** How many calls it may still make, including those of all sub-agents below it. */
      calls: integer(0).as("calls_left"),
      expiresAt: instant(),
    },
    workingDirectory: prose(),
    tokenHash: text(),
    /** What came back, cut to its limit. */
    output: prose().optional(""),
    /** Undefined until it has reported. */
    promiseMet: flag().optional(),
    /** Why it failed or was revoked. */
    reason: prose().optional(""),
    createdAt: instant(),
    updatedAt: instant(),
  },
  {
    indexes: [
      { name: "by_parent", on: ["parent_session", "ord"] },
      { name: "by_root", on: ["root_session", "ord"] },
      { name: "by_state", on: ["state", "ord"] },
    ],
    check: ({ id, chain }) => (chain.at(-1) === id ? undefined : "chain"),
  },
);
export type Delegation = Omit<RecordOf<typeof DELEGATIONS>, "promiseId">;
export type Scope = Delegation["scope"];

/** Places for children beside each other. A parent has a few, and a child needs one, so no race gives it more children. */
export const DELEGATION_SLOTS = record(
  "delegation_slots",
  { id: key(), parentSession: text<SessionId>(), childId: text(), updatedAt: instant() },
  { indexes: [{ name: "by_parent", on: ["parent_session", "ord"] }] },
);

/**
 * The delegations that bind the one who undoes what was done under this one: a sub-agent is bound by its own and all above
 * it, a delegator by those above itself, and a root or an outsider by none.
 */
export function boundTo(
  { chain, agents }: Pick<Delegation, "chain" | "agents">,
  by: string,
): readonly DelegationId[] {
  const at = agents.indexOf(by);
  return at < 0 || at >= chain.length ? [] : chain.slice(0, chain.length - at);
}

/**
 * The phases of a run and where each may lead. Forward, one after the other; from verify back to execute, which is repair;
 * from execute back to plan, when the plan has to be revised. Nothing but a verification leads to ship.
 */
export const PHASE_MOVES = {
  discuss: ["spec"],
  spec: ["plan"],
  plan: ["execute"],
  execute: ["verify", "plan"],
  verify: ["ship", "execute"],
  ship: [],
} as const satisfies Record<string, readonly string[]>;
export type Phase = keyof typeof PHASE_MOVES;
export const PHASES = Object.keys(PHASE_MOVES) as readonly Phase[];

export function mayFollow(from: Phase, to: Phase): boolean {
  return (PHASE_MOVES[from] as readonly string[]).includes(to);
}

/** The parts of one round of the loop, in order. */
export const LOOP_STAGES = ["reason", "gate", "act", "observe", "update", "evaluate"] as const;
export type LoopStage = (typeof LOOP_STAGES)[number];

/** A run is also the session of its lead agent, so that everything done in it is found under one id. */
export type RunId = `run-${string}`;

export function isRunId(sessionId: string): sessionId is RunId {
  return sessionId.startsWith("run-");
}

const RUN_STATUSES = ["open", "done", "stopped"] as const;

/** One feature, from talk to delivery. Made from its events alone, by `reduceRun`. */
export interface Run {
  readonly id: RunId;
  readonly feature: string;
  readonly lead: string;
  readonly phase: Phase;
  readonly status: (typeof RUN_STATUSES)[number];
  /** Absolute path of the artefact of each phase. */
  readonly artefacts: Readonly<Partial<Record<Phase, string>>>;
  /** Absolute path of the folder with the run's documents, and of the one with its evidence. */
  readonly documents: string;
  readonly evidenceFolder: string;
  /** What the approved plan lists: the only production files that may be written. */
  readonly planFiles: readonly string[];
  readonly promises: readonly CompletionPromise[];
  readonly evidence: readonly Evidence[];
  /** Rounds of the loop: how many there may be, how many there were, and where the current one is. */
  readonly budget: number;
  readonly rounds: number;
  readonly stage: LoopStage | "";
  /** Why it was stopped; empty while it runs. */
  readonly reason: string;
  /** Events so far. */
  readonly version: number;
}

/** A run is stored as one text, and beside it what is asked for. */
export const RUNS = record(
  "runs",
  {
    id: key<RunId>(),
    phase: oneOf(PHASES),
    status: oneOf(RUN_STATUSES),
    version: integer(),
    run: data<Run>().as("state"),
    createdAt: instant(),
    updatedAt: instant(),
  },
  {
    indexes: [{ name: "by_status", on: ["status", "ord"] }],
    check({ run, id, version, phase }) {
      const fits = run.id === id && run.version === version && run.phase === phase;
      return fits ? undefined : "state";
    },
  },
);

/** Everything that can happen to a run. The audit log holds these as `run.<kind>`, with `data` as it is here. */
export type RunEvent =
  | {
      readonly kind: "started";
      readonly feature: string;
      readonly lead: string;
      readonly documents: string;
      readonly evidenceFolder: string;
      readonly promise: CompletionPromise;
      readonly budget: number;
    }
  | { readonly kind: "promised"; readonly promise: CompletionPromise }
  /** A person has agreed to the list of files. */
  | { readonly kind: "plan_approved"; readonly files: readonly string[] }
  | { readonly kind: "artefact_named"; readonly phase: Phase; readonly path: string }
  | { readonly kind: "phase_changed"; readonly from: Phase; readonly to: Phase }
  | { readonly kind: "evidence_recorded"; readonly evidence: Evidence }
  | { readonly kind: "staged"; readonly stage: LoopStage; readonly round: number }
  | { readonly kind: "done" }
  | { readonly kind: "stopped"; readonly reason: string };

/** An event with its time, as the audit log has it. */
export interface ToldRunEvent {
  readonly event: RunEvent;
  readonly at: Instant;
}

/** What must be true in the end, and which evidence proves it. */
export interface CompletionPromise {
  readonly id: string;
  readonly statement: string;
  /** Empty: the report itself is enough. */
  readonly evidence: readonly EvidenceNeed[];
}

export interface EvidenceNeed {
  /** Unique in its promise. */
  readonly name: string;
  /** The command whose outcome counts; left out: any that proves it. */
  readonly command?: string;
}

/** One check, as the verify-result tool recorded it. */
export interface Evidence {
  readonly promiseId: string;
  readonly need: string;
  readonly command: string;
  readonly exitCode: number;
  readonly keyOutput: string;
  readonly conclusion: string;
  /** Whether the gate's own tool ran the command. What an agent reports about a check is a claim. */
  readonly observed: boolean;
  /** Decided when it was recorded: only green evidence proves anything. */
  readonly green: boolean;
  /** The call that recorded it: made again, it is the same evidence. */
  readonly key: string;
  /** The session that recorded it. */
  readonly sessionId: string;
  readonly at: Instant;
}

/**
 * The needs that the evidence does not meet. A need that names a command is met by observed evidence alone. The newest about each need counts: a check that failed
 * since is a failed check.
 */
export function unmetNeeds(
  promise: CompletionPromise,
  evidence: readonly Evidence[],
): readonly EvidenceNeed[] {
  return promise.evidence.filter((need) => {
    const newest = evidence.findLast(
      (one) =>
        one.promiseId === promise.id &&
        one.need === need.name &&
        (need.command === undefined || (one.command === need.command && one.observed === true)),
    );
    return newest?.green !== true;
  });
}

export function isMet(promise: CompletionPromise, evidence: readonly Evidence[]): boolean {
  return unmetNeeds(promise, evidence).length === 0;
}
