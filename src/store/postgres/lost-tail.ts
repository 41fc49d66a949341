import type { ChainHead } from "../../model/audit-entry.ts";
import { SallyportError } from "../../model/errors.ts";

/** A tenant's chain does not hold any more what this process saw in it. */
export class HeadLost extends Error {
  override readonly name = "HeadLost";
  readonly tenant: string;
  readonly seen: number;
  readonly found: number;

  constructor(tenant: string, seen: number, found: number) {
    super("the trail ends before the last entry that was acknowledged");
    this.tenant = tenant;
    this.seen = seen;
    this.found = found;
  }
}

/** What the lock found of a tenant's chain. */
export interface LockedHead {
  readonly tenant: string;
  readonly seq: number;
  readonly hash: string;
  /** The hash of the entry with the number that this process saw last; null when it is not there. */
  readonly seen_hash: string | null;
}

/** The same of a chain that may have no entries. */
export type FoundHead = {
  readonly [Key in Exclude<keyof LockedHead, "tenant">]: LockedHead[Key] | null;
};

export type Seen = Pick<ChainHead, "seq" | "hash">;

/** Compares a chain, with the turn on it in hand, with what was seen of it before the turn was asked for. Throws HeadLost. */
export function checkHead(tenant: string, seen: Seen | undefined, head?: FoundHead): void {
  if (seen === undefined) return;
  const hash = head?.seq === seen.seq ? head.hash : head?.seen_hash;
  if (hash !== seen.hash) throw new HeadLost(tenant, seen.seq, head?.seq ?? 0);
}

/**
 * Notices that the server lost what it had acknowledged: a standby that lagged was promoted, or an older copy was put in
 * place under a running process. From then on no effect begins, because its approval may have been used in the lost part,
 * until an operator begins another epoch (`sallyport store restored`). Everything else goes on.
 */
export class LostTail {
  readonly #seen = new Map<string, Seen>();
  readonly #epochs: () => Promise<ReadonlyMap<string, string>>;
  #error: SallyportError | undefined;
  /** The epoch of each tenant when the loss was noticed; undefined until it could be read. */
  #then: ReadonlyMap<string, string> | undefined;
  readonly #cleared = new Set<string>();

  /** `epochs` reads which epoch each tenant is in. */
  constructor(epochs: () => Promise<ReadonlyMap<string, string>>) {
    this.#epochs = epochs;
  }

  /** What this process saw last of a tenant's chain. */
  seenOf(tenant: string): Seen | undefined {
    return this.#seen.get(tenant);
  }

  remember({ tenant, seq, hash }: Seen & { readonly tenant: string }): void {
    this.#seen.set(tenant, { seq, hash });
  }

  /** Whether anything was found to be lost. */
  get isSet(): boolean {
    return this.#error !== undefined;
  }

  /** Takes the chain as it is now, and lets no effect begin. */
  async note({ tenant, seen, found }: HeadLost): Promise<void> {
    this.#seen.delete(tenant);
    this.#cleared.clear();
    const hint =
      "The database lost what it had acknowledged, as a failover to a standby that lags does. Nothing is executed until you have looked: stop the processes, run sallyport store restored, start them.";
    this.#error ??= new SallyportError("store_rolled_back", { remembered: seen, found, hint });
    this.#then = undefined;
    await this.#read();
  }

  /** Set while no effect of this tenant may begin. */
  of(tenant: string): SallyportError | undefined {
    return this.#cleared.has(tenant) ? undefined : this.#error;
  }

  /** Looks whether an operator has begun another epoch since. */
  async lookAgain(tenant: string): Promise<void> {
    if (this.of(tenant) === undefined) return;
    const now = await this.#read();
    if (now === undefined || this.#then === undefined) return;
    if (now.get(tenant) !== this.#then.get(tenant)) this.#cleared.add(tenant);
  }

  async #read(): Promise<ReadonlyMap<string, string> | undefined> {
    try {
      const now = await this.#epochs();
      this.#then ??= now;
      return now;
    } catch {
      // Nobody can say so right now, so it stays as it is: no effect begins.
      return undefined;
    }
  }
}
