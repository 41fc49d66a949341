import { type DecisionId, type DecisionState, isFinal } from "../../model/decision.ts";
import type { Guard } from "../../model/validator.ts";
import { oneLine } from "../../util/error-text.ts";
import { isFilledText, isObject, need } from "../need.ts";
import { untilAborted } from "../until-aborted.ts";

export interface WaitsForUpstreamOptions {
  /** Looks a decision up in the tenant that this guard serves; undefined when there is none. */
  readonly read: (id: DecisionId) => Promise<{ readonly state: DecisionState } | undefined>;
  /** Where the ids stand in the metadata: one, or a list of them. `upstream` when left out. */
  readonly key?: string;
}

/** Each upstream costs a read at every question. */
const MOST_UPSTREAMS = 100;

/**
 * Lets a decision move on only after the decisions it names are executed; one that names none waits for nothing.
 * Executed is final, so what was read stays true until the move is written.
 *
 * "Not yet" is a plain denial and worth asking again. What can never become a yes is thrown with the reason, which the
 * engine treats as a denial too: ids of the wrong type, unknown ids, the decision itself, an upstream that was rejected
 * or has failed.
 */
export function waitsForUpstreamGuard(options: WaitsForUpstreamOptions): Guard {
  const { read, key = "upstream" } = options;
  need(typeof read === "function", "waitsForUpstreamGuard needs a read function.");
  need(isFilledText(key), "waitsForUpstreamGuard needs the name of a metadata key.");
  return {
    async allows({ id, metadata }, _target, { signal }) {
      let allExecuted = true;
      for (const upstream of upstreamsOf(metadata, key)) {
        if (upstream === id) throw new Error(`Decision ${id} names itself as its ${key}.`);
        const found = await untilAborted(signal, () => read(upstream));
        // The ids were written by an agent, so they are shown as one line of limited length.
        const name = `${key} decision ${oneLine(upstream, 100)}`;
        if (found === undefined) throw new Error(`There is no ${name}.`);
        if (found.state === "executed") continue;
        if (isFinal(found.state)) throw new Error(`The ${name} ended as ${found.state}.`);
        allExecuted = false;
      }
      return allExecuted;
    },
  };
}

function upstreamsOf(metadata: unknown, key: string): ReadonlySet<DecisionId> {
  if (!isObject(metadata) || !Object.hasOwn(metadata, key)) return new Set();
  const value = metadata[key];
  // Array.from turns the holes of a sparse list into undefined, which `every` would have skipped.
  const ids: readonly unknown[] = Array.isArray(value) ? Array.from(value) : [value];
  if (ids.length > MOST_UPSTREAMS) {
    throw new Error(
      `A decision can wait for ${MOST_UPSTREAMS} others, ${key} names ${ids.length}.`,
    );
  }
  if (!ids.every(isFilledText)) {
    throw new Error(`The metadata key ${key} must hold a decision id or a list of decision ids.`);
  }
  return new Set(ids);
}
