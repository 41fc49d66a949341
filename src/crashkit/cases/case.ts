import type { CrashPoint } from "../../gate/options.ts";
import type { Evidence, Invariant, Kind, Told } from "../evidence.ts";
import type { Violation } from "../invariants/table.ts";
import { BEGINS, type Look, lookAt } from "../look.ts";
import type { KitPlace } from "../open-kit.ts";
import { type Fault, KINDS } from "../world/world.ts";

/** The product's points, those inside the tool, and the one while the answer goes out. */
export type CasePoint = CrashPoint | "S6.request" | "S6.effect" | "S8.during";

/** Part 4 of the threat model: around every commit, before, in and after the act, before and while it is announced. */
export const POINTS = [
  "S1.before",
  "S1.after",
  "S2a.before",
  "S2a.after",
  "S2b.before",
  "S2b.after",
  "S3.before",
  "S3.after",
  "S4.before",
  "S4.after",
  "S5.before",
  "S5.after",
  "S6.before",
  "S6.request",
  "S6.effect",
  "S6.after",
  "S7.before",
  "S7.after",
  "S8.before",
  "S8.during",
] as const satisfies readonly CasePoint[];

/** Those that every step of a bundle, every compensation and every call of a rollback comes past. */
export const STEP_POINTS: readonly CasePoint[] = POINTS.slice(
  POINTS.indexOf("S5.before"),
  POINTS.indexOf("S8.before"),
);

/** Those that tools of the user's own come past: inside a tool only it knows where it is. */
const OWN_POINTS: readonly CasePoint[] = POINTS.filter(
  (point) => point !== "S6.request" && point !== "S6.effect",
);

/** One thing an agent wants done, and where the process that does it is killed. Its id is its session's. */
export interface Case {
  readonly id: string;
  readonly kind: Kind;
  /** `ask`: staged, shown and approved. `free`: the policy lets it through. `own`: calls of the user's module. */
  readonly lane: "ask" | "free" | "own";
  readonly steps: number;
  /** Production refuses the last step, so those before it are taken back. */
  readonly failsLast: boolean;
  /** Once it is done, a person takes the whole session back. */
  readonly takesBack: boolean;
  readonly fault: Fault;
  /** `S5.after:2` is the second time it comes past; `undo S5.after:2` counts from where the session is taken back. Empty: never. */
  readonly crashAt: string;
}

export function caseOf(own: Partial<Case> & Pick<Case, "kind">): Case {
  const plain = {
    id: "",
    lane: "ask",
    steps: 1,
    failsLast: false,
    takesBack: false,
    fault: "none",
    crashAt: "",
  } as const;
  return { ...plain, ...own };
}

/** What a process that plays cases is told. */
export interface CasePlan {
  readonly mode: "act" | "recover";
  readonly place: KitPlace;
  readonly history: string;
  readonly cases: readonly Case[];
}

/** What such a process writes down before anything else happens. */
export type CaseLine = { readonly run: string } & (
  | { readonly point: CasePoint }
  | { readonly told: Told }
  | { readonly recovered: number }
);

// What the invariants cannot know: how each case was meant to end, and which writes had answered before the kill.

interface Scene {
  readonly one: Case;
  readonly evidence: Evidence;
  readonly look: Look;
  say(id: Invariant["id"], problem: string): void;
}

export function checkCases(
  cases: readonly Case[],
  evidence: Evidence,
  history: readonly CaseLine[],
): readonly Violation[] {
  const violations: Violation[] = [];
  const decisions = Map.groupBy(evidence.decisions, ({ sessionId }) => sessionId);
  const operations = Map.groupBy(evidence.operations, ({ sessionId }) => sessionId);
  const passed = Map.groupBy(history, ({ run }) => run);
  for (const one of cases) {
    const scene: Scene = {
      one,
      evidence: {
        ...evidence,
        decisions: decisions.get(one.id) ?? [],
        operations: operations.get(one.id) ?? [],
      },
      look: lookAt(evidence),
      say: (id, problem) => violations.push({ id, problem: `${nameOf(one)}: ${problem}` }),
    };
    checkAcknowledged(scene, passed.get(one.id) ?? []);
    if (evidence.isAtRest && one.lane !== "own") checkEnd(scene);
  }
  return violations;
}

export function nameOf({ id, kind, crashAt }: Case): string {
  return `${id} (${kind}, ${crashAt === "" ? "not killed" : crashAt})`;
}

/** I9: every write that had answered before the process was killed is there. */
function checkAcknowledged({ evidence, look, say }: Scene, history: readonly CaseLine[]): void {
  const { decisions, operations } = evidence;
  const times = (point: string) =>
    history.filter((line) => "point" in line && line.point === point).length;
  const told = (records: readonly { readonly id: string }[], ...types: readonly string[]) =>
    records.flatMap(({ id }) => look.linesOf(id)).filter(({ type }) => types.includes(type)).length;
  const least: readonly (readonly [string, number])[] = [
    ["S1.after", decisions.length],
    ["S2a.after", told(decisions, "decision.reviewed")],
    ["S3.after", told(decisions, "decision.previewed")],
    ["S4.after", decisions.filter(({ state }) => !state.startsWith("pending")).length],
    ["S5.after", told(operations, ...BEGINS)],
    ["S7.after", told(operations, "operation.succeeded", "operation.failed", "operation.lost")],
  ];
  for (const [point, stored] of least) {
    if (times(point) <= stored) continue;
    say("I9", `came past ${point} ${times(point)} times, ${stored} stored`);
  }
}

function checkEnd({ one, evidence, look, say }: Scene): void {
  for (const { state, executionError } of evidence.decisions) {
    if (state === "executed" && one.failsLast) say("I6", "executed, though production refused it");
    if (state === "failed" && executionError === "") say("I28", "failed without a word");
    // What the done steps changed themselves must not look like a changed world to the rest.
    // A busy machine may be too slow for a look at the target, and then nothing may run: that is no violation.
    if (state === "failed" && !one.failsLast && !executionError.includes("No answer within")) {
      say("I14", `failed, though production refused nothing: ${executionError}`);
    }
  }
  const undos = evidence.operations.filter(({ undoOf }) => undoOf !== "");
  const isFlagged = undos.some(({ status }) => status === "unknown");
  for (const { id, status, undoOf } of evidence.operations) {
    const happened = look.effectsOf(id).some(({ applied }) => applied);
    if (status === "failed" && happened) say("I20", `${id} is failed, but it happened`);
    if (status === "unknown" && one.kind !== "plain" && one.fault !== "die") {
      say("I14", `${id} is unknown, though its target could have been asked`);
    }
    // What is older is not taken back before what rests on it.
    if (one.takesBack && undoOf === "" && status === "success" && !isFlagged) {
      say("I28", `${id} was to be taken back, and it was not`);
    }
  }
}

/** One call, killed at each of the 20 points. */
export function singleCases(seed: number): readonly Case[] {
  return POINTS.flatMap((point, at) => {
    // Without a person nothing is staged: such a call comes past the later points only.
    const lane = point >= "S5" && (at + seed) % 2 === 0 ? "free" : "ask";
    return KINDS.map((kind) => caseOf({ kind, lane, crashAt: `${point}:1` }));
  });
}

const ROLLBACK_STEPS = 2;
/** Those that the rollback of a finished session comes past. It is not staged, because the person who asks for it decides. */
const ROLLBACK_POINTS = [
  ...range(1, ROLLBACK_STEPS).flatMap((time) =>
    STEP_POINTS.map((point) => `undo ${point}:${time}`),
  ),
  "undo S8.before:1",
  "undo S8.during:1",
];

/** Two calls, done; then a person takes them back, and that is killed at each of its points. */
export function rollbackCases(kind: Kind): readonly Case[] {
  return ROLLBACK_POINTS.map((crashAt) =>
    caseOf({ kind, steps: ROLLBACK_STEPS, takesBack: true, crashAt }),
  );
}

const SAGA_STEPS = 10;

/** Ten calls as one decision: killed in each step, in each compensation when the last one fails, and in each call of a rollback. */
export function sagaCases(kind: Kind): readonly Case[] {
  const steps = SAGA_STEPS;
  return STEP_POINTS.flatMap((point) => [
    ...range(1, steps).map((time) => caseOf({ kind, steps, crashAt: `${point}:${time}` })),
    // The steps come past a point first, then the compensations of all but the last.
    ...range(steps + 1, 2 * steps - 1).map((time) =>
      caseOf({ kind, steps, failsLast: true, crashAt: `${point}:${time}` }),
    ),
    ...range(1, steps).map((time) =>
      caseOf({ kind, steps, takesBack: true, crashAt: `undo ${point}:${time}` }),
    ),
  ]);
}

/** Calls of the user's own module, killed at the points that every tool comes past. */
export function ownCases(): readonly Case[] {
  return OWN_POINTS.map((point) => caseOf({ kind: "plain", lane: "own", crashAt: `${point}:1` }));
}

/**
 * What `sallyport crashkit --points` does: every point of a single call and of a rollback with every kind of target, and of a
 * long saga each step, compensation and rollback call once, at a point and with a kind that the seed chooses.
 */
export function plannedPoints(seed: number): readonly Case[] {
  const sagas = Map.groupBy(KINDS.flatMap(sagaCases), wayOf);
  const some = [...sagas.values()].flatMap((all, at) => all[(seed + at * 5) % all.length] ?? []);
  return named([...singleCases(seed), ...KINDS.flatMap(rollbackCases), ...some]);
}

function wayOf({ crashAt, failsLast }: Case): string {
  const [phase] = crashAt.split("S");
  return `${phase}${failsLast} ${crashAt.split(":").at(-1)}`;
}

export function named(cases: readonly Case[], name = "case"): readonly Case[] {
  return cases.map((one, at) => ({ ...one, id: `${name}-${at}` }));
}

export function range(first: number, last: number): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}
