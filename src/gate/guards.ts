import { type DecisionId, type DecisionState, isFinal } from "../model/decision.ts";
import type { Guard } from "../model/verdict.ts";
import { oneLine } from "../util/error-text.ts";
import { isFilledText, isObject, need, untilAborted } from "./validators/ask-validator.ts";

/** "No dependency rules", written out: the engine has no default guard, so this has to be chosen. */
export const allowAlways: Guard = Object.freeze({ allows: () => true });

/**
 * Denies decisions of the tenants that are marked true. Only a positively identified tenant is stopped: no metadata, no
 * `tenant` key or one that is not text is let through, so this guard is a block list and not an isolation boundary.
 *
 * The list is read at each question, so marking a tenant later takes effect at once. Keys are looked up as own
 * properties: a tenant that calls itself "constructor" is not found on the prototype of every list.
 */
export function tenantDenyGuard(blocked: Readonly<Record<string, boolean>> | undefined): Guard {
  const list: unknown = blocked ?? {};
  // A Map, a Set or an array has no own keys that match and would silently deny nobody.
  need(isObject(list) && isPlain(list), "tenantDenyGuard needs an object of tenants and booleans.");
  for (const [tenant, isBlocked] of Object.entries(list)) {
    need(typeof isBlocked === "boolean", `The block list needs true or false for "${tenant}".`);
  }
  return {
    allows({ metadata }) {
      if (!isObject(metadata) || !Object.hasOwn(metadata, "tenant")) return true;
      const tenant = metadata["tenant"];
      return typeof tenant !== "string" || !Object.hasOwn(list, tenant) || list[tenant] !== true;
    },
  };
}

function isPlain(list: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(list);
  return prototype === Object.prototype || prototype === null;
}

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
