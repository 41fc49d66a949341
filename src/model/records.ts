import { DECISIONS } from "./decision.ts";
import { DELEGATION_SLOTS, DELEGATIONS, RUNS } from "./delegation.ts";
import { GRANTS } from "./finding.ts";
import { FLOW_STATES } from "./flow-state.ts";
import { DECOYS, HTTP_KEYS, REVIEWERS, SESSIONS, TOKENS } from "./identity.ts";
import { CALL_KEYS, DEFINITIONS, INTERACTIONS } from "./interaction.ts";
import { NOTICE_CURSORS, NOTICES } from "./notice.ts";
import { OPERATIONS, PICTURES } from "./operation.ts";
import { PAUSES } from "./pause.ts";
import { STANDING_RULES } from "./standing-rule.ts";
import { BREAKERS, CONTENT_KEYS, SWITCHES } from "./switch.ts";
import { TASK_BLOCKS, TASK_QUEUE, TASKS } from "./task.ts";

/** All records that stores have tables for. */
export const RECORDS = [
  BREAKERS,
  CALL_KEYS,
  CONTENT_KEYS,
  DECISIONS,
  DECOYS,
  DEFINITIONS,
  DELEGATION_SLOTS,
  DELEGATIONS,
  FLOW_STATES,
  GRANTS,
  HTTP_KEYS,
  INTERACTIONS,
  NOTICE_CURSORS,
  NOTICES,
  OPERATIONS,
  PAUSES,
  PICTURES,
  REVIEWERS,
  RUNS,
  SESSIONS,
  STANDING_RULES,
  SWITCHES,
  TASK_BLOCKS,
  TASK_QUEUE,
  TASKS,
  TOKENS,
];
