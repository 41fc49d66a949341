import { CONTENT_KEYS } from "../model/switch.ts";
import { type Clock, stopwatch } from "../util/clock.ts";
import { hmacSha256Hex } from "../util/hash.ts";
import type { Random } from "../util/random.ts";
import { type Engine, type EventPlan, NOW, type Step } from "./engine.ts";

/**
 * What the log says about contents that it does not show. A plain hash of a short secret is found by trying all of them, so
 * the log holds an HMAC of the hash under a key of the tenant. The key is made with the tenant's first entry of this kind. It
 * lies in the database, is copied with it, and is in no entry, export or answer.
 */
export type ContentProof = (about: ProvenContent, sha256: string) => string;

/** Bound to its record, so that the same content in two records does not look the same. */
export interface ProvenContent {
  readonly field: string;
  readonly subject: string;
}

export function contentProofBy(key: string): ContentProof {
  return ({ field, subject }, sha256) => hmacSha256Hex(key, `${field}\n${subject}\n${sha256}`);
}

/** The name under which the log shows the proof of a field. Entries of earlier versions have a plain hash, `field_sha256`. */
export function proofName(field: string): string {
  return `${field}_hmac`;
}

const CURRENT = "current";
const KEY_BYTES = 32;

/**
 * A failover to a standby that lags may take back the transaction that made a key. Proofs under it could never be checked, so
 * for this long after a process has learned a key its changes require that the key is stored. No standby lags by more.
 */
const UNSETTLED_MS = 600_000;

interface KnownKey {
  readonly proof: ContentProof;
  readonly isStored: Step;
  readonly settlesAt: number;
}

/** The keys of one store, each read or made once per process. */
export class ContentKeys {
  readonly #engine: Engine;
  readonly #random: Random;
  readonly #stopwatch: Clock;
  readonly #known = new Map<string, KnownKey>();

  constructor(engine: Engine, random: Random, watch: Clock = stopwatch) {
    this.#engine = engine;
    this.#random = random;
    this.#stopwatch = watch;
  }

  /** Undefined when it was not looked up yet. */
  known(tenant: string): ContentProof | undefined {
    return this.#known.get(tenant)?.proof;
  }

  /** That the known key is stored, while it may be lost. */
  requirement(tenant: string): Step | undefined {
    const known = this.#known.get(tenant);
    if (known === undefined || this.#stopwatch.now() >= known.settlesAt) return undefined;
    return known.isStored;
  }

  /** It is not stored any more. */
  forget(tenant: string): void {
    this.#known.delete(tenant);
  }

  /** Undefined when the tenant has none yet. */
  async find(tenant: string): Promise<ContentProof | undefined> {
    const known = this.known(tenant);
    if (known !== undefined) return known;
    const row = await this.#engine.get(tenant, CONTENT_KEYS, CURRENT);
    return row === undefined ? undefined : this.learned(tenant, String(row["secret"]));
  }

  /** A new key with the step that stores it. It counts once that step is written. */
  fresh(): { readonly secret: string; readonly proof: ContentProof; readonly step: Step } {
    const secret = Buffer.from(this.#random.bytes(KEY_BYTES)).toString("hex");
    const row = CONTENT_KEYS.row({ secret, createdAt: NOW });
    const step = { op: "insert", table: CONTENT_KEYS, id: CURRENT, row } as const;
    return { secret, proof: contentProofBy(secret), step };
  }

  learned(tenant: string, secret: string): ContentProof {
    const proof = contentProofBy(secret);
    const key = { table: CONTENT_KEYS, id: CURRENT, where: { secret } } as const;
    const isStored: Step = { op: "require", ...key, absent: "refuses" };
    this.#known.set(tenant, { proof, isStored, settlesAt: this.#stopwatch.now() + UNSETTLED_MS });
    return proof;
  }
}

/** The plan as it goes into the log: with proofs where it named hashes of contents. */
export function provenPlan(
  { hashes, ...plan }: EventPlan,
  steps: readonly Step[],
  proof: ContentProof,
): EventPlan {
  const subject = idOf(plan.subject, steps);
  const proofs = Object.entries(hashes ?? {}).map(([field, sha256]) => [
    proofName(field),
    proof({ field, subject }, sha256),
  ]);
  return { ...plan, data: { ...plan.data, ...Object.fromEntries(proofs) } };
}

/** A proof names its record, so the record must be known before anything is written. */
function idOf(subject: EventPlan["subject"], steps: readonly Step[]): string {
  if (typeof subject === "string") return subject;
  const step = steps[subject.step ?? 0];
  if (subject.left === "id" && step !== undefined && step.op !== "take") return step.id;
  throw new TypeError("the hash of a content needs a record that is known");
}
