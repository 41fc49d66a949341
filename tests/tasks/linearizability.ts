/**
 * Is there an order of these calls, agreeing with when each was asked and answered, in which a single task could have
 * given exactly these answers? The search is Wing and Gong's with Lowe's memory of what was tried before: pick any call
 * that no remaining call had finished before it began, let the model take it, continue; a set of calls that led into the
 * same state before is not tried again.
 */
export interface Call<Input, Output> {
  /** When it was asked and answered, by one clock that never steps back. Never answered: end is Infinity. */
  readonly start: number;
  readonly end: number;
  readonly input: Input;
  /** Undefined when unknown: it may have happened at any time after its start, or never. */
  readonly output: Output | undefined;
}

export interface Model<State, Input, Output> {
  readonly initial: State;
  /** The states this call may lead to, given its answer; none when it could not have been answered so. */
  step(state: State, input: Input, output: Output | undefined): readonly State[];
  /** The same text for the same state. */
  key(state: State): string;
}

export type Verdict<Input, Output> =
  | { readonly linearizable: true; readonly order: readonly Call<Input, Output>[] }
  /** The longest order that was possible; what could not follow it is among the calls it leaves out. */
  | { readonly linearizable: false; readonly longest: readonly Call<Input, Output>[] };

/** More tries than this say that the history is too entangled to judge; one task has a few dozen calls. */
const TRIES_MAX = 2_000_000;

interface Frame<State> {
  readonly state: State;
  /** Bit by bit, the calls that are behind us. */
  readonly done: bigint;
  /** The call that led here. */
  readonly index: number;
  readonly moves: Iterator<{ readonly index: number; readonly state: State }>;
}

export function checkLinearizable<State, Input, Output>(
  model: Model<State, Input, Output>,
  history: readonly Call<Input, Output>[],
): Verdict<Input, Output> {
  const calls = history.toSorted((a, b) => a.start - b.start || a.end - b.end);
  const orderOf = (frames: readonly Frame<State>[]) =>
    frames.slice(1).flatMap(({ index }) => calls[index] ?? []);
  const tried = new Set<string>();
  const enter = (done: bigint, index: number, state: State): Frame<State> => ({
    done,
    index,
    state,
    moves: movesFrom(model, calls, done, state),
  });
  const path: Frame<State>[] = [enter(0n, -1, model.initial)];
  let longest: readonly Call<Input, Output>[] = [];
  for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
    if (isFinished(calls, top.done)) return { linearizable: true, order: orderOf(path) };
    const { value: move } = top.moves.next();
    if (move === undefined) {
      path.pop();
      continue;
    }
    const done = top.done | (1n << BigInt(move.index));
    const key = `${done.toString(36)} ${model.key(move.state)}`;
    if (tried.has(key)) continue;
    tried.add(key);
    if (tried.size > TRIES_MAX) throw new Error("This history is too entangled to be judged.");
    path.push(enter(done, move.index, move.state));
    if (path.length - 1 > longest.length) longest = orderOf(path);
  }
  return { linearizable: false, longest };
}

/** What may come next. Calls are sorted by their start, so the scan ends at the first that began after another's end. */
function* movesFrom<State, Input, Output>(
  model: Model<State, Input, Output>,
  calls: readonly Call<Input, Output>[],
  done: bigint,
  state: State,
): Iterator<{ index: number; state: State }> {
  let firstEnd = Number.POSITIVE_INFINITY;
  for (const [index, { start, end, input, output }] of calls.entries()) {
    if (isDone(done, index)) continue;
    if (start > firstEnd) return;
    firstEnd = Math.min(firstEnd, end);
    for (const next of model.step(state, input, output)) yield { index, state: next };
  }
}

/** Who was never answered need not have happened. */
function isFinished(calls: readonly Call<unknown, unknown>[], done: bigint): boolean {
  return calls.every(({ output }, index) => output === undefined || isDone(done, index));
}

function isDone(done: bigint, index: number): boolean {
  return ((done >> BigInt(index)) & 1n) === 1n;
}
