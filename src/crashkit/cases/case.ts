import type { CrashPoint } from "../../executor/crash-point.ts";
import type { Kind, Told } from "../evidence.ts";
import type { KitPlace } from "../open-kit.ts";
import type { Fault } from "../world/world.ts";

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
export const OWN_POINTS: readonly CasePoint[] = POINTS.filter(
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
