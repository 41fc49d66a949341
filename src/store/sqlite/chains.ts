import type { Database, Statement } from "./database.ts";

/** Names come from outside, so what is remembered of them is bounded. */
const MOST_KNOWN = 4_096;

/** The numbers of the tenants' chains. Entries lie by chain and place, so that a chain grows at an end. */
export class Chains {
  readonly #known = new Map<string, number>();
  readonly #find: Statement;
  readonly #add: Statement;
  readonly #tenants: Statement;

  constructor(database: Database) {
    this.#find = database.prepare("SELECT nr FROM chains WHERE tenant = ?").pluck();
    this.#add = database.prepare("INSERT INTO chains (tenant) VALUES (?) RETURNING nr").pluck();
    this.#tenants = database.prepare("SELECT tenant FROM chains ORDER BY tenant").pluck();
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

  tenants(): string[] {
    return this.#tenants.all() as string[];
  }
}
