import { hasPendingInteraction, type RuntimeState } from "../interactions/runtime-state.ts";
import type { FlowPhase } from "../model/flow-state.ts";
import { isExhausted } from "./common-state.ts";
import { openAct, type Work } from "./work.ts";

export const NODES = ["chat", "plan", "confirm", "execute", "interrupt", "deliver"] as const;
export type NodeName = (typeof NODES)[number];

/** A row fits when all it names is so. */
export interface Route {
  readonly pending?: true;
  readonly phase?: FlowPhase;
  /** Something was chosen, or accepted, and is not done yet. */
  readonly open?: true;
  readonly exhausted?: true;
  readonly to: NodeName | "end";
}

/** Where it goes on after every node: the first row that fits. A pending interaction is looked at before anything else. */
export const ROUTES: readonly Route[] = [
  { pending: true, to: "interrupt" },
  // Called off, and nobody has said yet how it goes on.
  { phase: "interrupted", to: "end" },
  { phase: "chatting", to: "end" },
  { phase: "done", to: "deliver" },
  { phase: "waiting_confirm", to: "confirm" },
  // What the last round chose, or a person accepted, is still done.
  { phase: "planning", open: true, to: "plan" },
  { phase: "executing", open: true, to: "execute" },
  { phase: "planning", exhausted: true, to: "deliver" },
  { phase: "executing", exhausted: true, to: "deliver" },
  { phase: "planning", to: "plan" },
  { phase: "executing", to: "execute" },
];

/** These are the last of their run, whatever the state says. */
const LAST: readonly NodeName[] = ["interrupt", "deliver"];

export function nextNode(after: NodeName, state: RuntimeState, work: Work): NodeName | "end" {
  if (LAST.includes(after)) return "end";
  const { common, mailbox } = state;
  const isOpen = mailbox !== undefined || openAct(work) !== undefined;
  const fits = (route: Route): boolean =>
    (route.pending === undefined || hasPendingInteraction(state)) &&
    (route.phase === undefined || route.phase === common.phase) &&
    (route.open === undefined || isOpen) &&
    (route.exhausted === undefined || isExhausted(common));
  return ROUTES.find(fits)?.to ?? "end";
}
