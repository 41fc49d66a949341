import type { GateAnswer } from "../model/finding.ts";
import { isBlocking } from "./answers.ts";

/** Counts of denied calls, by tool and by the check that denied them. For display, audit and the breaker. */
export interface Denials {
  readonly total: number;
  /** Denials since the last allowed call. */
  readonly inARow: number;
  readonly byTool: ReadonlyMap<string, number>;
  readonly byPolicy: ReadonlyMap<string, number>;
  /** Epoch milliseconds of the last denial. */
  readonly lastAt: number | undefined;
}

/** Names beyond this number are counted together: an agent can invent any number of tool names. */
const MOST_NAMES = 1_000;
const OTHERS = "(others)";

export const NO_DENIALS: Denials = Object.freeze({
  total: 0,
  inARow: 0,
  byTool: new Map(),
  byPolicy: new Map(),
  lastAt: undefined,
});

/** Records one answer of the gate. An allowed call ends a run of denials; an ask changes nothing. */
export function countAnswer(
  denials: Denials,
  call: { readonly tool: string; readonly answer: GateAnswer; readonly now: number },
): Denials {
  const { answer, findings } = call.answer;
  if (answer === "ask") return denials;
  if (answer === "allow") return denials.inARow === 0 ? denials : { ...denials, inARow: 0 };
  const policies = new Set(findings.filter(isBlocking).map(({ policy }) => policy));
  return {
    total: denials.total + 1,
    inARow: denials.inARow + 1,
    byTool: counted(denials.byTool, [call.tool]),
    byPolicy: counted(denials.byPolicy, policies),
    lastAt: call.now,
  };
}

interface DenialSnapshot {
  readonly total: number;
  readonly inARow: number;
  /** Most often denied first. */
  readonly byTool: readonly (readonly [string, number])[];
  readonly byPolicy: readonly (readonly [string, number])[];
  readonly lastAt: number | undefined;
}

/** Plain data that later denials do not change. */
export function denialSnapshot(denials: Denials): DenialSnapshot {
  return {
    total: denials.total,
    inARow: denials.inARow,
    byTool: ranked(denials.byTool),
    byPolicy: ranked(denials.byPolicy),
    lastAt: denials.lastAt,
  };
}

function counted(
  counts: ReadonlyMap<string, number>,
  names: Iterable<string>,
): ReadonlyMap<string, number> {
  const next = new Map(counts);
  for (const name of names) {
    const key = next.has(name) || next.size < MOST_NAMES ? name : OTHERS;
    next.set(key, (next.get(key) ?? 0) + 1);
  }
  return next;
}

function ranked(counts: ReadonlyMap<string, number>): readonly (readonly [string, number])[] {
  return [...counts].toSorted(([, a], [, b]) => b - a);
}
