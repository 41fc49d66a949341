import type { Migration } from "../../migration.ts";
import { spine } from "./0001-spine.ts";
import { operations } from "./0002-operations.ts";
import { interactions } from "./0003-interactions.ts";
import { tasks } from "./0004-tasks.ts";
import { delegations } from "./0005-delegations.ts";
import { flowStates } from "./0006-flow-states.ts";
import { http } from "./0007-http.ts";
import { askers } from "./0008-askers.ts";
import { ruleProposals } from "./0009-rule-proposals.ts";
import { reviewers } from "./0010-reviewers.ts";
import { contentKeys } from "./0011-content-keys.ts";
import { origin } from "./0012-origin.ts";
import { chainLocks } from "./0013-chain-locks.ts";
import { confirmations } from "./0014-confirmations.ts";

/** `$schema` in the text stands for the schema the store lives in. */
export const MIGRATIONS: readonly Migration[] = [
  spine,
  operations,
  interactions,
  tasks,
  delegations,
  flowStates,
  http,
  askers,
  ruleProposals,
  reviewers,
  contentKeys,
  origin,
  chainLocks,
  confirmations,
];
