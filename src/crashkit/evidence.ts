import { listOperations } from "../gate/operation-log.ts";
import type { AuditEntry } from "../model/audit-entry.ts";
import type { Decision } from "../model/decision.ts";
import type { Interaction, Preview } from "../model/interaction.ts";
import type { Operation } from "../model/operation.ts";
import type { ContentProof } from "../store/content-proof.ts";
import { MAX_LIST } from "../store/decisions.ts";
import type { Store, TenantStore } from "../store/store.ts";
import { operationIdOf } from "./look.ts";

/** How a target of production can be spoken to: takes a key once, can be asked what it has done, or neither. */
export type Kind = "keyed" | "probed" | "plain";

/** One line of the world's ledger: a request to change something, as it arrived in production. */
export interface Effect {
  readonly kind: Kind;
  readonly key: string;
  readonly fence: number;
  /** Of the bytes that arrived: the input in canonical form. */
  readonly inputSha256: string;
  /** False for what the target did not take: a key that it has seen before, a fence older than one it has seen. */
  readonly applied: boolean;
  /** Milliseconds since 1970, by the world's own clock. */
  readonly at: number;
}

/** What a caller was told, from its own history: it counts from the moment it was told. */
export type Told =
  | { readonly operationId: string; readonly answer: "done" | "failed" | "unknown" }
  /** Put before people, or what they said to it. */
  | { readonly decisionId: string; readonly answer: "pending" | "approved" | "rejected" };

/** Everything that can be compared after (or, in a simulation, during) a run, of one tenant. */
export interface Evidence {
  readonly tenant: string;
  readonly ledger: readonly Effect[];
  readonly trail: readonly AuditEntry[];
  /** How the trail proves contents; undefined when the store has no key for it. */
  readonly contentProof: ContentProof | undefined;
  readonly decisions: readonly Decision[];
  /** What reviewers were shown. */
  readonly previews: readonly Preview[];
  readonly operations: readonly Operation[];
  readonly interactions: readonly Interaction[];
  readonly told: readonly Told[];
  /** Ids of calls that were asked for under a key, no two of them the same. However often it was asked for, each is one call. */
  readonly keyed?: readonly string[];
  /** Faults have stopped and recovery has come to rest: only then may it be asked that everything has ended. */
  readonly isAtRest: boolean;
  /** Whether a tool may change something without anybody being asked. Left out: nobody can tell, and it is not looked at. */
  readonly mayRunAlone?: (tool: string) => boolean;
  /** How far the world's clock may be behind the store's; 0 when they are the same. */
  readonly clockSkewMs?: number;
}

/** One of I1 to I30 of the threat model, as far as evidence can show it broken. */
export interface Invariant {
  readonly id: `I${number}`;
  readonly text: string;
  /** Every violation as a sentence that names the record. */
  check(evidence: Evidence): readonly string[];
}

/** What the store cannot know. The ledger may be of all tenants: only this one's lines are taken. */
export type FromOutside = Pick<
  Evidence,
  "ledger" | "told" | "keyed" | "isAtRest" | "mayRunAlone" | "clockSkewMs"
>;

/** Reads everything about one tenant, page by page. */
export function collectEvidence(
  store: Store,
  tenant: string,
  outside: FromOutside,
): Promise<Evidence> {
  return followEvidence(store, tenant).read(outside);
}

/** Reads the same tenant again and again, and from the second time on only what is new in the trail and what it touched. */
export interface EvidenceReader {
  /** Throws when others write so fast that no moment can be seen. */
  read(outside: FromOutside): Promise<Evidence>;
}

/** Often enough to see a moment in which nobody has written between the first look and the last. */
const MOST_TRIES = 50;

export function followEvidence(store: Store, tenant: string): EvidenceReader {
  const bound = store.tenant(tenant);
  const trail: AuditEntry[] = [];
  const operations = new Map<string, readonly Operation[]>();
  const previews = new Map<string, Preview>();

  async function readOnce(): Promise<Omit<Evidence, keyof FromOutside>> {
    const news = await readTrail(bound, trail.at(-1)?.seq ?? 0);
    const touched = news.filter(({ type }) => type.startsWith("operation."));
    for (const session of new Set(touched.map((entry) => entry.session))) {
      operations.set(session, await listOperations(bound.operations, { sessionId: session }));
    }
    // Not before what it touched was read too: whoever is cut off in between reads it again.
    trail.push(...news);
    const decisions = await readDecisions(bound);
    for (const { id } of decisions) {
      const shown = previews.has(id) ? undefined : await bound.interactions.shown(id);
      // It is stored once and never changed.
      if (shown !== undefined) previews.set(id, shown.preview);
    }
    return {
      tenant,
      trail: [...trail],
      contentProof: await bound.contentProof(),
      decisions,
      previews: [...previews.values()],
      operations: [...operations.values()].flat(),
      interactions: await readInteractions(bound),
    };
  }

  return {
    async read(outside) {
      for (let tries = 0; tries < MOST_TRIES; tries += 1) {
        const inside = await readOnce();
        // Records are read after the trail: if somebody wrote in between, they may be ahead of it.
        if ((await bound.audit.head()).seq !== (trail.at(-1)?.seq ?? 0)) continue;
        const ledger = outside.ledger.filter((one) => operationIdOf(one, tenant) !== undefined);
        return { ...outside, ...inside, ledger };
      }
      throw new Error(`${tenant} is written faster than it can be read`);
    },
  };
}

function readTrail({ audit }: TenantStore, from: number): Promise<readonly AuditEntry[]> {
  return pages((last?: AuditEntry) => audit.read({ after: last?.seq ?? from, limit: MAX_LIST }));
}

function readDecisions({ decisions }: TenantStore): Promise<readonly Decision[]> {
  return pages((last?: Decision) =>
    decisions.list({ limit: MAX_LIST, ...(last === undefined ? {} : { after: last.id }) }),
  );
}

function readInteractions({ interactions }: TenantStore): Promise<readonly Interaction[]> {
  return pages((last?: Interaction) =>
    interactions.list({ limit: MAX_LIST, ...(last === undefined ? {} : { after: last.ord }) }),
  );
}

async function pages<Item>(
  read: (last?: Item) => Promise<readonly Item[]>,
): Promise<readonly Item[]> {
  const all: Item[] = [];
  for (;;) {
    const page = await read(all.at(-1));
    all.push(...page);
    if (page.length < MAX_LIST) return all;
  }
}
