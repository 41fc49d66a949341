import type { ChainHead } from "../../model/audit-entry.ts";
import { toIso } from "../../util/clock.ts";
import type { Database, Statement } from "./database.ts";

/** Names come from outside, so what is remembered of them is bounded. */
const MOST_KNOWN = 4_096;

/** The numbers of the tenants' chains. Entries lie by chain and place, so that a chain grows at an end. */
export class Chains {
  readonly #known = new Map<string, number>();
  readonly #find: Statement;
  readonly #add: Statement;
  readonly #heads: Statement;

  constructor(database: Database) {
    this.#find = database.prepare("SELECT nr FROM chains WHERE tenant = ?").pluck();
    this.#add = database.prepare("INSERT INTO chains (tenant) VALUES (?) RETURNING nr").pluck();
    // One statement for all of them: an anchor round looks at every tenant.
    this.#heads = database.prepare(
      `SELECT c.tenant, a.seq, a.hash, a.at FROM chains AS c JOIN audit AS a
ON a.ord = (SELECT max(ord) FROM audit WHERE ord > c.nr << 32 AND ord < (c.nr + 1) << 32) ORDER BY c.tenant`,
    );
  }

  /** Undefined for a tenant that never wrote. Ask before `begin` in a transaction: what is found is remembered for good. */
  find(tenant: string): number | undefined {
    const known = this.#known.get(tenant);
    if (known !== undefined) return known;
    const found = this.#find.get(tenant) as number | undefined;
    if (found === undefined) return undefined;
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(tenant, found);
    return found;
  }

  /** A new chain. It is not remembered: it is there only once the transaction is. */
  begin(tenant: string): number {
    return this.#add.get(tenant) as number;
  }

  heads(): readonly ChainHead[] {
    const rows = this.#heads.all() as (Omit<ChainHead, "at"> & { readonly at: number })[];
    return rows.map((row) => ({ ...row, at: toIso(row.at) }));
  }
}
