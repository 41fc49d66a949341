/** Each thing that can go wrong while anchoring, with what it means and what to do. */
export const ANCHOR_PROBLEMS = {
  sink_failed:
    "The anchor could not be written or read. It is tried again; until then the blind window grows.",
  sink_slow:
    "The place for anchors does not answer. Nothing is anchored until it does; look at that place.",
  signer_failed:
    "The anchor could not be signed. It is tried again; until then the blind window grows.",
  store_failed:
    "The store could not be read. It is tried again; until then the blind window grows.",
  trail_cut:
    "The trail is shorter than its last anchor: entries were deleted or an old copy was restored. Run audit verify.",
  trail_rewritten:
    "The entry at the last anchor has another hash: the trail was rewritten. It gets no new anchor. Run audit verify.",
  head_mismatch:
    "The end of the trail that the store reports is not in the trail. Run audit verify.",
  tenant_missing: "A tenant that was anchored has no trail any more. Run audit verify.",
} as const satisfies Record<string, string>;

export type AnchorProblemCode = keyof typeof ANCHOR_PROBLEMS;

export interface AnchorProblem {
  readonly code: AnchorProblemCode;
  readonly tenant?: string;
  readonly message: string;
  readonly cause?: unknown;
}

/** What is wrong at the moment. A failure is told each time, a damaged trail once, until it is whole again. */
export class AnchorProblems {
  readonly #onProblem: ((problem: AnchorProblem) => void) | undefined;
  readonly #current = new Map<string, AnchorProblem>();

  constructor(onProblem: ((problem: AnchorProblem) => void) | undefined) {
    this.#onProblem = onProblem;
  }

  get current(): readonly AnchorProblem[] {
    return [...this.#current.values()];
  }

  add(
    code: AnchorProblemCode,
    about: { readonly tenant?: string; readonly cause?: unknown } = {},
  ): void {
    const key = keyOf(code, about.tenant);
    const isKnown = about.tenant !== undefined && this.#current.has(key);
    const problem = { code, message: ANCHOR_PROBLEMS[code], ...about };
    this.#current.set(key, problem);
    if (isKnown) return;
    try {
      this.#onProblem?.(problem);
    } catch {
      // Whoever listens must not be able to stop the anchoring.
    }
  }

  clear(codes: readonly AnchorProblemCode[], tenant?: string): void {
    for (const code of codes) this.#current.delete(keyOf(code, tenant));
  }
}

function keyOf(code: AnchorProblemCode, tenant: string | undefined): string {
  return `${code}\n${tenant ?? ""}`;
}
