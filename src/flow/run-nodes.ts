import { savedRuntimeState } from "../interactions/snapshot-json.ts";
import { FLOW_SNAPSHOT_VERSION } from "../model/flow-state.ts";
import { invariant } from "../util/invariant.ts";
import { chat } from "./nodes/chat.ts";
import { confirm } from "./nodes/confirm.ts";
import { deliver } from "./nodes/deliver.ts";
import { execute } from "./nodes/execute.ts";
import { interrupt } from "./nodes/interrupt.ts";
import { plan } from "./nodes/plan.ts";
import { type NodeName, nextNode } from "./routes.ts";
import type { FlowOutcome, Run } from "./run.ts";
import { savedWork } from "./work.ts";

interface Node {
  readonly run: (run: Run) => Promise<void>;
  /** Chat changes nothing that could not be found again, Interrupt comes after a save, Deliver is the end. */
  readonly saves: boolean;
}

const NODE: Readonly<Record<NodeName, Node>> = {
  chat: { run: chat, saves: false },
  plan: { run: plan, saves: true },
  confirm: { run: confirm, saves: true },
  execute: { run: execute, saves: true },
  interrupt: { run: interrupt, saves: false },
  deliver: { run: deliver, saves: false },
};

/** From chat along the routes to an end. Each node is saved after it ran, and one that throws leaves the save before it. */
export async function runNodes(run: Run): Promise<FlowOutcome> {
  // Each round is one choice and at most what it leads to: doing it, confirming it, doing it again.
  const most = 4 * run.state.common.round_limit + 16;
  let name: NodeName | "end" = "chat";
  for (let count = 0; name !== "end"; count += 1) {
    invariant(count < most, `a flow that never ends, at ${name}`);
    run.request.signal?.throwIfAborted();
    await NODE[name].run(run);
    if (NODE[name].saves && !(await save(run, name))) return { outcome: "taken_over" };
    name = nextNode(name, run.state, run.work);
  }
  return run.outcome ?? { outcome: "stopped" };
}

/** False when somebody else has gone on with this conversation. A save that fails is told and does not stop the run. */
async function save(run: Run, node: NodeName): Promise<boolean> {
  const { state, work, session, parts } = run;
  const { conversation_id: conversationId } = state.common;
  if (parts.states === undefined || conversationId === "") return true;
  const revision = run.revision + 1;
  const snapshot = {
    version: FLOW_SNAPSHOT_VERSION,
    conversation_id: conversationId,
    session_id: session.id,
    node,
    revision,
    state: savedRuntimeState(state),
    work: savedWork(work),
  };
  try {
    if (!(await parts.states.save(snapshot, { keepMs: parts.keepMs }))) return false;
    run.revision = revision;
  } catch (error) {
    parts.problem({ conversationId, what: "save", error });
  }
  return true;
}
