import type { Intent, Outcome } from "../operations.ts";

export const BY = { actor: "person:ada" };
export const LEASE = 30_000;

export function intent(over: Partial<Intent> = {}): Intent {
  return {
    id: "op-1",
    sessionId: "session-1",
    messageId: "m-1",
    callId: "c-1",
    turn: 1,
    tool: "billing.refund",
    effect: "external",
    definitionHash: "d".repeat(64),
    input: '{"cents":1}',
    workingDirectory: "/srv/site",
    step: 0,
    undoOf: "",
    approval: undefined,
    leaseMs: LEASE,
    actor: "executor",
    ...over,
  };
}

export function success(over: Partial<Outcome & { status: "success" }> = {}): Outcome {
  return {
    status: "success",
    output: "done \u0000 \ud800",
    truncated: false,
    storedPath: "",
    undo: undefined,
    stateVersion: "v2",
    ...over,
  };
}
