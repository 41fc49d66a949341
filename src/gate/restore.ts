// After a store was restored from a backup: voids what the backup still allows, and asks about calls that were on their way.

import type { DecisionId } from "../model/decision.ts";
import { NO_VERDICT, type Verdict } from "../model/decision.ts";
import { TOKEN_KINDS } from "../model/identity.ts";
import { MAX_LIST } from "../model/record.ts";
import type { Store, TenantStore } from "../store/store.ts";
import { lostFrom } from "./settle.ts";

export interface RestoreOptions {
  /** Names the life of the store that begins; never used before. */
  readonly epoch: string;
  readonly by: string;
}

/** What was voided of one tenant. */
export interface Voided {
  readonly tenant: string;
  /** Approved, and not executed when the backup was made: failed. */
  readonly approvals: number;
  /** In review, and no one was asked yet: rejected. */
  readonly proposals: number;
  /** Confirmations that were open: canceled, which rejects what they were about. */
  readonly questions: number;
  /** Calls that were on their way: a person is asked what became of them. */
  readonly calls: number;
  /** Active and proposed ones. */
  readonly standingRules: number;
  /** Tokens, sign-in links and sessions: what was revoked since the backup must not come back, so everyone signs in again. */
  readonly tokens: number;
  /** Findings that people had lifted. */
  readonly grants: number;
  /** Active ones; their sub-agents can do nothing more. */
  readonly delegations: number;
}

const REASON =
  "The store was restored from a backup, and this may have happened since that was made. Look first, then propose it again.";

/**
 * Begins another epoch of a restored store. Whether something was executed, refused, revoked or stopped after the backup
 * cannot be read from it any more, so everything is stopped until an operator has looked, and nothing that was approved
 * before can be executed: the epoch is part of what was approved and is checked in the transaction that begins an effect.
 * May be repeated.
 */
export async function afterRestore(
  store: Store,
  { epoch, by }: RestoreOptions,
): Promise<readonly Voided[]> {
  const voided: Voided[] = [];
  for (const { tenant } of await store.heads()) {
    const part = store.tenant(tenant);
    await part.killSwitch.stop("restored from a backup: check, then resume", { actor: by });
    // Before anything else: a token that was revoked since may lift the stop.
    const tokens = await endTokens(part, by);
    await part.epoch.begin(epoch, REASON, { actor: by });
    voided.push({
      tenant,
      tokens,
      grants: await revokeGrants(part, by),
      delegations: await revokeDelegations(part, by),
      calls: await askAboutCalls(part, by),
      questions: await cancelQuestions(part, by),
      proposals: await rejectProposals(part, by),
      approvals: await failApprovals(part, by),
      standingRules: await revokeRules(part, by),
    });
  }
  return voided;
}

/** Not repeated, not even with the same key: it may have been undone since. */
async function askAboutCalls({ operations }: TenantStore, actor: string): Promise<number> {
  return eachOnce(
    () => operations.listAbandoned(MAX_LIST, "held"),
    async (operation) => {
      const along = [lostFrom(operation, REASON, actor)];
      const outcome = { status: "unknown", error: REASON } as const;
      const settlement = { fence: operation.fence, outcome, along, actor };
      return (await operations.settle(operation.id, settlement)).settled;
    },
  );
}

async function cancelQuestions({ interactions }: TenantStore, actor: string): Promise<number> {
  let count = 0;
  for (let after = 0, more = true; more; ) {
    const page = await interactions.list({ status: "open", after, limit: MAX_LIST });
    for (const { id, type } of page) {
      if (type !== "confirm") continue;
      await interactions.cancel(id, REASON, { actor });
      count += 1;
    }
    after = page.at(-1)?.ord ?? after;
    more = page.length > 0;
  }
  return count;
}

async function rejectProposals({ decisions }: TenantStore, actor: string): Promise<number> {
  const no: Verdict = { ...NO_VERDICT, severity: "block", reason: REASON, validator: actor };
  return eachOnce(
    () => decisions.list({ states: ["pending_tech", "pending_ml"], limit: MAX_LIST }),
    async ({ id, state }) => {
      if (state === "pending_tech") await decisions.updateTechVerdict(id, no);
      else await decisions.updateBizVerdict(id, no);
      return true;
    },
  );
}

/** Those with a call whose outcome is open are closed when a person reports it. */
async function failApprovals(
  { decisions, operations }: TenantStore,
  actor: string,
): Promise<number> {
  let count = 0;
  // From page to page: those that stay are no reason not to look at the ones behind them.
  for (let after: { after?: DecisionId } = {}; ; ) {
    const page = await decisions.list({ states: ["approved"], limit: MAX_LIST, ...after });
    for (const { id, sessionId } of page) {
      const begun = await operations.listBySession(sessionId, { decisionId: id });
      if (begun.some(({ status }) => status === "unknown")) continue;
      await decisions.markFailed(id, REASON, { actor });
      count += 1;
    }
    const last = page.at(-1);
    if (page.length < MAX_LIST || last === undefined) return count;
    after = { after: last.id };
  }
}

async function revokeRules({ standingRules }: TenantStore, actor: string): Promise<number> {
  let count = 0;
  for (const status of ["active", "proposed"] as const) {
    count += await eachOnce(
      () => standingRules.list({ status }),
      async ({ id }) => {
        await standingRules.revoke(id, REASON, { actor });
        return true;
      },
    );
  }
  return count;
}

async function endTokens({ tokens }: TenantStore, actor: string): Promise<number> {
  let count = 0;
  for (const kind of TOKEN_KINDS) {
    for (let after = 0, more = true; more; ) {
      const page = await tokens.list({ kind, after, limit: MAX_LIST });
      for (const { id, isLive } of page) {
        if (isLive && (await tokens.end(id, REASON, { actor }))) count += 1;
      }
      after = page.at(-1)?.ord ?? after;
      more = page.length > 0;
    }
  }
  return count;
}

async function revokeGrants({ grants }: TenantStore, actor: string): Promise<number> {
  let count = 0;
  for (let after = 0, more = true; more; ) {
    const page = await grants.list({ after, limit: MAX_LIST });
    for (const { id, revoked } of page) {
      if (revoked === true) continue;
      await grants.revoke(id, REASON, { actor });
      count += 1;
    }
    after = page.at(-1)?.ord ?? after;
    more = page.length > 0;
  }
  return count;
}

async function revokeDelegations({ delegations }: TenantStore, actor: string): Promise<number> {
  return eachOnce(
    () => delegations.active(MAX_LIST),
    async ({ id }) => {
      await delegations.close(id, { state: "revoked", reason: REASON }, { actor });
      return true;
    },
  );
}

/** Page after page, until there is none with anything that could be dealt with. */
async function eachOnce<Item>(
  list: () => Promise<readonly Item[]>,
  deal: (item: Item) => Promise<boolean>,
): Promise<number> {
  let count = 0;
  for (let before = -1; before < count; ) {
    before = count;
    for (const item of await list()) if (await deal(item)) count += 1;
  }
  return count;
}
