import { SallyportError } from "../model/errors.ts";

/** What one agent may have waiting for people at a time. */
export interface QuotaOptions {
  /** Questions and proposals that wait for a person; 5,000 when left out. */
  readonly openQuestions?: number;
  /** Bytes of what they ask, all together; 32 MiB when left out. */
  readonly openBytes?: number;
}

export interface OpenQuota {
  /** Throws quota_exceeded when this sender may not open one more of so many bytes. */
  check(sender: string, bytes: number): Promise<void>;
  opened(sender: string, id: string, bytes: number): void;
  has(sender: string, id: string): boolean;
}

export interface OpenQuotaTerms {
  /** For the refusal. */
  readonly what: string;
  readonly hint: string;
  readonly most: number;
  readonly mostBytes: number;
  /** Asked only about a sender that is at its limit. */
  isOpen(id: string): Promise<boolean>;
  now(): number;
}

/** A sender that is at its limit and keeps trying makes us look at what it has open no more often than this. */
const LOOK_EVERY_MS = 5_000;

interface Open {
  readonly bytes: Map<string, number>;
  sum: number;
  lookedAt: number;
}

/**
 * Counts what each sender opened through this process. Only a sender at its limit costs anything: then those that are closed
 * by now are forgotten. Other processes count for themselves.
 */
export function openQuota(terms: OpenQuotaTerms): OpenQuota {
  const { what, hint, most, mostBytes, now } = terms;
  const senders = new Map<string, Open>();

  function forget(open: Open, id: string): void {
    open.sum -= open.bytes.get(id) ?? 0;
    open.bytes.delete(id);
  }

  async function forgetClosed(open: Open): Promise<void> {
    if (now() - open.lookedAt < LOOK_EVERY_MS) return;
    open.lookedAt = now();
    for (const id of [...open.bytes.keys()]) if (!(await terms.isOpen(id))) forget(open, id);
  }

  return {
    async check(sender, bytes) {
      const open = senders.get(sender);
      const isFull = () => (open?.bytes.size ?? 0) >= most || (open?.sum ?? 0) + bytes > mostBytes;
      if (isFull() && open !== undefined) await forgetClosed(open);
      if (!isFull()) return;
      throw new SallyportError("quota_exceeded", { what, most, mostBytes, hint });
    },
    opened(sender, id, bytes) {
      const open = senders.get(sender) ?? {
        bytes: new Map(),
        sum: 0,
        lookedAt: Number.NEGATIVE_INFINITY,
      };
      senders.set(sender, open);
      forget(open, id);
      open.bytes.set(id, bytes);
      open.sum += bytes;
    },
    has: (sender, id) => senders.get(sender)?.bytes.has(id) === true,
  };
}
