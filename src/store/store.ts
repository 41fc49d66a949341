import {
  type AuditEntry,
  type ChainHead,
  readEntry,
  type TrailEntry,
} from "../model/audit-entry.ts";
import { checkName } from "../model/names.ts";
import type { Clock } from "../util/clock.ts";
import { type Random, systemRandom } from "../util/random.ts";
import { type BreakerStore, engineBreakers } from "./breakers.ts";
import { type CallIndex, memoryCallIndex } from "./call-index.ts";
import { type CallBook, engineCalls } from "./calls.ts";
import {
  type DecisionStore,
  engineDecisions,
  engineProposals,
  type ProposalStore,
} from "./decisions.ts";
import { type DelegationStore, engineDelegations } from "./delegations.ts";
import type { Capabilities, Engine } from "./engine.ts";
import { engineTasks } from "./engine-tasks.ts";
import { type DurableFlowStates, engineFlowStates } from "./flow-states.ts";
import {
  engineGateLedger,
  engineGrants,
  engineRefusals,
  type GateLedger,
  type GrantStore,
  type RefusalLog,
} from "./grants.ts";
import { engineHttpKeys, type HttpKeyStore } from "./http-keys.ts";
import { engineInteractions, type InteractionStore } from "./interactions.ts";
import { engineLeftBehind, type LeftBehind } from "./left-behind.ts";
import { engineNotices, type NoticeStore } from "./notices.ts";
import { engineOperations, type OperationStore } from "./operations.ts";
import { engineReviewers, type ReviewerStore } from "./reviewers.ts";
import { engineRuns, engineSessions, type RunStore, type SessionStore } from "./sessions.ts";
import { engineStandingRules, type StandingRuleStore } from "./standing-rules.ts";
import {
  type ClockMark,
  type EpochStore,
  engineClockMark,
  engineEpoch,
  enginePauses,
  engineSwitch,
  type KillSwitch,
  type PauseStore,
} from "./switch.ts";
import type { TaskStore } from "./tasks.ts";
import {
  ContentKeys,
  type ContentProof,
  enginePictures,
  type PictureStore,
  type Redact,
  tenantEngine,
} from "./tenant-engine.ts";
import { engineTokens, type TokenStore } from "./tokens.ts";

/**
 * The one meeting point of all parts and processes. Made by `memoryStore`, `sqliteStore` or `postgresStore`. Shape: callback;
 * all parts wait for what it says.
 */
export interface Store extends AsyncDisposable {
  readonly name: string;
  readonly capabilities: Capabilities;
  /** Everything is reached through a tenant, so that no query can forget to name one. */
  tenant(tenant: string): TenantStore;
  /** Every tenant that ever wrote, with the end of its chain. */
  heads(): Promise<readonly ChainHead[]>;
  /** Shape: push. A hint that something was committed, by any process; it may be late or missing, so poll as well. */
  onCommit(listener: () => void): () => void;
  close(): Promise<void>;
}

export interface TenantStore {
  readonly tenant: string;
  readonly decisions: DecisionStore;
  readonly proposals: ProposalStore;
  readonly interactions: InteractionStore;
  readonly operations: OperationStore & PictureStore;
  readonly leftBehind: LeftBehind;
  readonly refusals: RefusalLog;
  readonly standingRules: StandingRuleStore;
  /** The shared task list's store: `createTaskList({ store: store.tenant(name).tasks })`. */
  readonly tasks: TaskStore;
  readonly delegations: DelegationStore;
  readonly grants: GrantStore;
  readonly runs: RunStore;
  readonly gateLedger: GateLedger;
  /** What `createFlow` keeps its snapshots in. */
  readonly flowStates: DurableFlowStates;
  readonly killSwitch: KillSwitch;
  readonly pauses: PauseStore;
  readonly breakers: BreakerStore;
  /** Calls as people look for them; derived from the records and the log. */
  readonly calls: CallBook;
  readonly epoch: EpochStore;
  readonly clock: ClockMark;
  readonly reviewers: ReviewerStore;
  readonly tokens: TokenStore;
  readonly sessions: SessionStore;
  readonly httpKeys: HttpKeyStore;
  /** What is to be told to people outside. */
  readonly notices: NoticeStore;
  /** To compare records with the log; undefined while the log proves no content. Nothing of it goes to a caller. */
  contentProof(): Promise<ContentProof | undefined>;
  readonly audit: Trail;
}

/** The trail of one tenant: as it is stored, for verification and export, and with its data read. */
export interface Trail extends AuditReader {
  /** Like `read`, with the data of each entry as an object. Throws damaged_record for data that is none. */
  entries(range: { after: number; limit: number }): Promise<readonly TrailEntry[]>;
}

/** Pull view of the trail. Nothing here writes: entries are made only by the transaction that changes the state. */
export interface AuditReader {
  readonly tenant: string;
  /** Entries after `seq` (0 for all), oldest first, contiguous. */
  read(range: { after: number; limit: number }): Promise<readonly AuditEntry[]>;
  head(): Promise<ChainHead>;
}

export interface StoreOptions {
  readonly redact: Redact;
  /** Measures how long searches take; the machine's own unless told otherwise. */
  readonly stopwatch?: Clock;
  /** Makes the keys under which the log proves contents; the machine's own unless told otherwise. */
  readonly random?: Random;
}

/** Puts the nouns over an engine. Authors of other engines call this too. */
export function createStore(engine: Engine, options: StoreOptions): Store {
  const keys = new ContentKeys(engine, options.random ?? systemRandom, options.stopwatch);
  return {
    name: engine.name,
    capabilities: engine.capabilities,
    tenant(tenant) {
      checkName("tenant", tenant);
      return tenantStore(engine, tenant, { ...options, keys });
    },
    heads: () => engine.heads(),
    onCommit: (listener) => engine.onCommit(listener),
    close: () => engine.close(),
    [Symbol.asyncDispose]: () => engine.close(),
  };
}

/** Each noun is made when it is first used, so that a call runs through no code of nouns that it does not need. */
function tenantStore(
  engine: Engine,
  tenant: string,
  { redact, stopwatch, keys }: StoreOptions & { readonly keys: ContentKeys },
): TenantStore {
  const own = tenantEngine(engine, tenant, redact, keys);
  const now = () => engine.now();
  const head = () => engine.head(tenant);
  return madeOnUse<TenantStore>({
    tenant: () => tenant,
    decisions: () => engineDecisions(own),
    proposals: () => engineProposals(own),
    interactions: () => engineInteractions(own, stopwatch),
    operations: () => ({ ...engineOperations(own), ...enginePictures(own) }),
    leftBehind: () => engineLeftBehind(own),
    refusals: () => engineRefusals(own),
    standingRules: () => engineStandingRules(own),
    tasks: () => engineTasks(own, now, stopwatch),
    delegations: () => engineDelegations(own),
    grants: () => engineGrants(own),
    runs: () => engineRuns(own),
    gateLedger: () => engineGateLedger(own),
    flowStates: () => engineFlowStates(own),
    killSwitch: () => engineSwitch(own),
    pauses: () => enginePauses(own),
    breakers: () => engineBreakers(own),
    calls: () =>
      engineCalls(own, {
        index: engine.callIndex?.(tenant) ?? indexInMemory(engine, tenant),
        redact,
        head,
        entries: (range) => engine.entries(tenant, range),
      }),
    epoch: () => engineEpoch(own),
    clock: () => engineClockMark(own, { head, now }),
    reviewers: () => engineReviewers(own),
    tokens: () => engineTokens(own),
    sessions: () => engineSessions(own),
    httpKeys: () => engineHttpKeys(own),
    notices: () => engineNotices(own),
    contentProof: () => () => keys.find(tenant),
    audit: () => ({
      tenant,
      head,
      read: (range) => engine.entries(tenant, range),
      entries: async (range) => (await engine.entries(tenant, range)).map(readEntry),
    }),
  });
}

/** For engines without an index of their own; one for all that use the engine. */
const inMemory = new WeakMap<Engine, Map<string, CallIndex>>();

function indexInMemory(engine: Engine, tenant: string): CallIndex {
  const known = inMemory.get(engine) ?? new Map<string, CallIndex>();
  inMemory.set(engine, known);
  const index = known.get(tenant) ?? memoryCallIndex();
  known.set(tenant, index);
  return index;
}

type Makers<Made> = { readonly [Name in keyof Made]: () => Made[Name] };

function madeOnUse<Made extends object>(makers: Makers<Made>): Made {
  const made = {} as Made;
  for (const name of Object.keys(makers) as (keyof Made)[]) {
    const get = () => {
      const value = makers[name]();
      Object.defineProperty(made, name, { value, enumerable: true });
      return value;
    };
    Object.defineProperty(made, name, { get, enumerable: true, configurable: true });
  }
  return made;
}
