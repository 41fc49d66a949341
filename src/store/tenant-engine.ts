import { type AuditEntry, dataHash, GENESIS } from "../model/audit-entry.ts";
import { SallyportError } from "../model/errors.ts";
import { toIso } from "../util/clock.ts";
import type { JsonObject } from "../util/json.ts";
import { systemRandom } from "../util/random.ts";
import { ContentKeys, type ContentProof, provenPlan } from "./content-proof.ts";
import type { Change, ChangeResult, Engine, EventPlan, Query, Row, Step, Table } from "./engine.ts";
import { isOpenFact } from "./turn.ts";

/** Takes secrets out of what goes into the trail, before it is handed to the engine. Shape: callback, at once. */
export type Redact = (tenant: string, data: JsonObject) => JsonObject;

/** An engine seen by one tenant: the nouns are written over this and cannot name another tenant by mistake. */
export interface TenantEngine {
  readonly tenant: string;
  newId(): string;
  commit(change: Change): Promise<ChangeResult>;
  get(table: Table, id: string): Promise<Row | undefined>;
  find(table: Table, query: Query): Promise<readonly Row[]>;
}

export function tenantEngine(
  engine: Engine,
  tenant: string,
  redact: Redact,
  keys: ContentKeys = new ContentKeys(engine, systemRandom),
): TenantEngine {
  function redacted(plan: EventPlan, steps: readonly Step[]): EventPlan {
    for (const [name, fact] of Object.entries(plan.facts ?? {})) {
      if (!isOpenFact(fact, steps)) throw new TypeError(`${name} might hold a secret`);
    }
    const data = redact(tenant, plan.data);
    return data === plan.data ? plan : { ...plan, data };
  }

  /** Throws invalid_input. */
  function ready({ steps, events }: Change, proof?: ContentProof): Change {
    try {
      const plans = events.map((plan) => {
        const open = redacted(plan, steps);
        if (open.hashes === undefined) return open;
        if (proof === undefined) throw new TypeError("there is no key for a hash of contents");
        return provenPlan(open, steps, proof);
      });
      return { steps, events: plans };
    } catch (cause) {
      const hint = "What happened could not be put into the trail, so nothing was written.";
      throw new SallyportError("invalid_input", { what: "event", hint }, cause);
    }
  }

  /** The first of a tenant in this process: its key is looked up, or made in the transaction that needs it first. */
  async function commitFirst(change: Change): Promise<ChangeResult> {
    const known = keys.known(tenant) ?? (await keys.find(tenant));
    if (known !== undefined) return commitUnder(known, change);
    const { secret, proof, step } = keys.fresh();
    const { steps, events } = ready(change, proof);
    const result = await engine.commit(tenant, { steps: [...steps, step], events });
    if (result.committed) {
      keys.learned(tenant, secret);
      return { ...result, rows: result.rows.slice(0, -1) };
    }
    // Somebody made the key in between: nothing was written, and theirs counts.
    return result.step === steps.length ? commitFirst(change) : result;
  }

  async function commitUnder(proof: ContentProof, change: Change): Promise<ChangeResult> {
    const required = keys.requirement(tenant);
    const { steps, events } = ready(change, proof);
    // A take is the only step of its change.
    if (required === undefined || steps.some(({ op }) => op === "take")) {
      return engine.commit(tenant, { steps, events });
    }
    const result = await engine.commit(tenant, { steps: [...steps, required], events });
    if (result.committed) return { ...result, rows: result.rows.slice(0, -1) };
    if (result.step < steps.length) return result;
    // Lost with the transaction that made it: nothing was written, and the change gets another key.
    keys.forget(tenant);
    return commitFirst(change);
  }

  return {
    tenant,
    newId: () => engine.newId(),
    commit(change) {
      try {
        const needsKey = change.events.some(({ hashes }) => hashes !== undefined);
        const proof = needsKey ? keys.known(tenant) : undefined;
        if (proof !== undefined) return commitUnder(proof, change);
        if (needsKey) return commitFirst(change);
        return engine.commit(tenant, ready(change));
      } catch (error) {
        return Promise.reject(error);
      }
    },
    get: (table, id) => engine.get(tenant, table, id),
    find: (table, query) => engine.find(tenant, table, query),
  };
}

/** An entry as the SQL engines keep it: `prev` is not stored, since it is the hash of the row before. */
export interface AuditRow extends Omit<AuditEntry, "at" | "dataHash" | "prev"> {
  readonly at: number;
  /** Null while the data is there to compute it from. */
  readonly data_hash: string | null;
}

/** Entries after `after`, from rows that start one earlier: the first row only lends its hash. */
export function entriesOf(rows: readonly AuditRow[], after: number, limit: number): AuditEntry[] {
  const entries: AuditEntry[] = [];
  let prev = after === 0 ? GENESIS : "";
  for (const { at, data_hash, ...row } of rows) {
    if (row.seq > after && entries.length < limit) {
      const stored = data_hash ?? dataHash(row.salt ?? "", row.data ?? "");
      entries.push({ ...row, at: toIso(at), dataHash: stored, prev });
    }
    prev = row.hash;
  }
  return entries;
}
