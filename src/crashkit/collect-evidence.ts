import type { Preview } from "../model/approval.ts";
import type { AuditEntry } from "../model/audit-entry.ts";
import type { Decision } from "../model/decision.ts";
import type { Interaction } from "../model/interaction.ts";
import type { Operation } from "../model/operation.ts";
import { listOperations } from "../operations/list-operations.ts";
import { MAX_LIST } from "../store/decisions.ts";
import type { Store, TenantStore } from "../store/store.ts";
import type { Evidence } from "./evidence.ts";
import { operationIdOf } from "./look.ts";

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
      const shown = previews.has(id) ? undefined : await bound.approvals.shown(id);
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
