import { ONE_PERSON, type Requirement } from "../model/requirement.ts";
import { SAFETY_CLASSES, type SafetyClass } from "../tools/safety-class.ts";
import { mergeRequirements } from "./merge-requirements.ts";
import { matchText } from "./wildcard.ts";

export { checkReviewRules } from "./review-rule-checks.ts";

/** Who has to say yes to which calls, and until when. Without `tools` and `safetyClasses` it is about every call. */
export interface ReviewRule {
  /** Names in which `*` stands for any run of characters. */
  readonly tools?: readonly string[];
  readonly safetyClasses?: readonly SafetyClass[];
  readonly requires: Requirement;
  readonly deadlineMs?: number;
  readonly escalation?: Escalation;
  /** A person or a group. */
  readonly assignedTo?: string;
  /** Whoever changed a call may also approve it; left out: somebody else has to. */
  readonly editorMayApprove?: boolean;
  /** These calls may be approved together with others whatever they are; left out: see `approveAll`. */
  readonly mayBatch?: boolean;
}

export interface Escalation {
  readonly afterMs: number;
  readonly to: string;
}

/** What holds for a call that no rule is about. One person, unless it says otherwise. */
export interface ReviewDefaults
  extends Pick<ReviewRule, "escalation" | "assignedTo" | "editorMayApprove" | "mayBatch"> {
  readonly requires?: Requirement;
  readonly deadlineMs: number;
}

export interface ReviewedCall {
  readonly tool: string;
  readonly safetyClass: SafetyClass;
}

/** How a bundle of calls is asked about. */
export interface Review {
  readonly requires: Requirement;
  readonly deadlineMs: number;
  readonly escalation?: Escalation;
  /** Left out: anybody who may decide. */
  readonly assignedTo?: string;
  readonly editorMayApprove?: true;
  readonly mayBatch?: true;
}

/** Impossible: the rules contradict each other, and nobody could ever approve it. The problem says what to do. */
export type ReviewAnswer =
  | { readonly possible: true; readonly review: Review }
  | { readonly possible: false; readonly problem: string };

/**
 * The strictest of everything that is said about any call of the bundle: all factors, each with its highest count and only
 * the people that all of them name, and the earliest deadline and escalation. A call that no rule is about brings the
 * defaults along, so that no call is reviewed less for travelling with others.
 */
export function reviewFor(
  calls: readonly ReviewedCall[],
  rules: readonly ReviewRule[],
  defaults: ReviewDefaults,
): ReviewAnswer {
  if (calls.length === 0) return impossible("There is nothing to review. Stage at least one call");
  const said: Said[] = rules.filter((rule) => calls.some((call) => isAbout(rule, call)));
  if (calls.some((call) => !rules.some((rule) => isAbout(rule, call)))) {
    const { requires = ONE_PERSON } = defaults;
    // Anybody's yes is given as soon as somebody else's is.
    said.push(
      said.length > 0 && isAnybody(requires)
        ? { ...defaults, requires: [] }
        : { ...defaults, requires },
    );
  }
  const merged = mergeRequirements(said.map(({ requires }) => requires));
  if (!merged.possible) return impossible(`${merged.problem}. ${ADVICE}`);
  const names = new Set(said.flatMap(({ assignedTo }) => assignedTo ?? []));
  if (names.size > 1) {
    return impossible(`It goes to different people at once (${[...names].join(", ")}). ${ADVICE}`);
  }
  const [assignedTo] = names;
  const deadlines = said.flatMap(({ deadlineMs }) => deadlineMs ?? []);
  const deadlineMs = deadlines.length === 0 ? defaults.deadlineMs : Math.min(...deadlines);
  const escalation = earliest(said, deadlineMs);
  return {
    possible: true,
    review: {
      requires: merged.requires,
      deadlineMs,
      // Only where everything that is said about these calls allows it.
      ...(said.every((one) => one.editorMayApprove === true) ? { editorMayApprove: true } : {}),
      ...(said.every((one) => one.mayBatch === true) ? { mayBatch: true } : {}),
      ...(assignedTo === undefined ? {} : { assignedTo }),
      ...(escalation === undefined ? {} : { escalation }),
    },
  };
}

const ADVICE = "Stage the calls one by one, or have the review rules changed";

type Said = Pick<
  ReviewRule,
  "requires" | "deadlineMs" | "escalation" | "assignedTo" | "editorMayApprove" | "mayBatch"
>;

function isAbout({ tools, safetyClasses }: ReviewRule, { tool, safetyClass }: ReviewedCall) {
  // A class that does not exist is taken for the worst.
  const known = SAFETY_CLASSES.find((name) => name === safetyClass) ?? "irreversible";
  if (safetyClasses !== undefined && !safetyClasses.includes(known)) return false;
  return tools === undefined || tools.some((pattern) => matchText(tool, pattern));
}

function isAnybody(requires: Requirement): boolean {
  return requires.length === 1 && requires[0]?.count === 1 && requires[0].from === undefined;
}

/** One that comes after the deadline would never fire. */
function earliest(said: readonly Said[], deadlineMs: number): Escalation | undefined {
  return said
    .flatMap(({ escalation }) => escalation ?? [])
    .filter(({ afterMs }) => afterMs < deadlineMs)
    .reduce<Escalation | undefined>(
      (first, one) => (first === undefined || one.afterMs < first.afterMs ? one : first),
      undefined,
    );
}

function impossible(problem: string): ReviewAnswer {
  return { possible: false, problem: `${problem}.` };
}
