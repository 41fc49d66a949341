import type { AuditEntry } from "../model/audit-entry.ts";
import { publicKeys } from "./signing-key.ts";
import type { VerifyOptions } from "./verify.ts";
import { type CheckedAnchors, checkAnchors } from "./verify-anchors.ts";
import { ChainCheck } from "./verify-chain.ts";
import { type BlindWindow, ProblemList, type VerifyReport } from "./verify-report.ts";

const PROGRESS_EVERY = 10_000;

/** One run over the entries of all tenants: hands each entry to its chain and sums up. */
export class Verification {
  readonly problems = new ProblemList();
  #seen = 0;
  readonly #options: VerifyOptions;
  readonly #only: ReadonlySet<string> | undefined;
  readonly #chains = new Map<string, ChainCheck>();
  #anchors: CheckedAnchors = { count: 0, lastAt: "", points: new Map() };

  private constructor(options: VerifyOptions) {
    this.#options = options;
    this.#only = options.tenants && new Set(options.tenants);
  }

  static async start(options: VerifyOptions): Promise<Verification> {
    const keys = publicKeys(options.publicKeys ?? []);
    const run = new Verification(options);
    run.#anchors = await checkAnchors(options.anchors ?? [], keys, run.problems);
    for (const tenant of run.expected) run.#chainOf(tenant);
    return run;
  }

  /** Tenants that must be there: those that were asked for, or else those that anchors and trusted heads name. */
  get expected(): readonly string[] {
    const { tenants, from = [] } = this.#options;
    return tenants ?? [...this.#anchors.points.keys(), ...from.map((head) => head.tenant)];
  }

  /** A promise when the caller should wait before the next entry. */
  take(entry: AuditEntry): Promise<void> | void {
    if (this.#only?.has(entry.tenant) === false) return;
    this.#seen += 1;
    this.#chainOf(entry.tenant).take(entry);
    if (this.#seen % PROGRESS_EVERY === 0) {
      return this.#options.onProgress?.({ entries: this.#seen });
    }
  }

  finish(): VerifyReport {
    const { problems } = this;
    const tenants = [];
    for (const [tenant, chain] of this.#chains) {
      if (chain.isEmpty && this.#only?.has(tenant)) {
        problems.add("tenant_missing", { tenant });
      }
      tenants.push(chain.finish());
    }
    const { count, lastAt } = this.#anchors;
    return {
      ok: problems.count === 0,
      entries: tenants.reduce((sum, one) => sum + one.entries, 0),
      anchors: count,
      ...(lastAt === "" ? {} : { lastAnchorAt: lastAt }),
      tenants,
      problems: problems.kept,
      problemCount: problems.count,
      blindWindow: this.#blindWindow(tenants.reduce((sum, one) => sum + one.unanchored, 0)),
    };
  }

  #chainOf(tenant: string): ChainCheck {
    let chain = this.#chains.get(tenant);
    if (chain === undefined) {
      const from = this.#options.from?.find((head) => head.tenant === tenant);
      chain = new ChainCheck(tenant, this.problems, this.#anchors.points.get(tenant), from);
      this.#chains.set(tenant, chain);
    }
    return chain;
  }

  #blindWindow(entries: number): BlindWindow {
    const times = [...this.#chains.values()].flatMap((chain) => chain.unanchoredSince ?? []);
    const since = times.sort()[0];
    if (since === undefined) return { entries };
    const sinceMs = (this.#options.now ?? Number.NaN) - Date.parse(since);
    return Number.isNaN(sinceMs)
      ? { entries, since }
      : { entries, since, sinceMs: Math.max(0, sinceMs) };
  }
}
