import type { CallAnswer, CallRequest } from "../model/call.ts";
import type { DecisionId } from "../model/decision.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Interaction, QuestionAnswer } from "../model/interaction.ts";
import type { Operation } from "../model/operation.ts";
import { callKeyId } from "../store/confirmations.ts";
import type { TenantStore } from "../store/store.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { operationOf, recorded, resultOfDecision } from "./answers.ts";
import { ASK_USER, answerOfQuestion, questionHash, questionId, questionIn } from "./ask.ts";
import type { GateContext } from "./context.ts";
import { readRequest } from "./judge.ts";
import { callHash } from "./show.ts";

/** The answer to a key that is used again for another call. */
export const OTHER_CALL: CallAnswer = Object.freeze({
  answer: "failed",
  text: "Not executed: this key was used for another call. Give every call its own key, and the same one only to repeat it.",
});

/** What a key of a session refers to: at most one of them, and nothing when it was never used. */
interface Standing {
  readonly decided: Awaited<ReturnType<TenantStore["interactions"]["ofCall"]>>;
  readonly operation: Operation | undefined;
  readonly asked: Interaction | undefined;
}

async function standingFor(sessionId: string, key: string, store: TenantStore): Promise<Standing> {
  const [decided, operation, asked] = await Promise.all([
    store.interactions.ofCall(sessionId, key),
    operationOf(callKeyId(sessionId, key), store),
    store.interactions.peek(questionId(sessionId, key)),
  ]);
  return { decided, operation, asked };
}

/** What became of a keyed call or a question; undefined when there is none. */
export async function resultOfKey(
  sessionId: string,
  key: string,
  store: TenantStore,
): Promise<CallAnswer | undefined> {
  return resultOf(await standingFor(sessionId, key, store), store);
}

async function resultOf(
  { decided, operation, asked }: Standing,
  store: TenantStore,
): Promise<CallAnswer | undefined> {
  if (decided !== undefined) return resultOfDecision(decided.decisionId, decided.step, store);
  if (operation !== undefined) return recorded(operation);
  return asked === undefined ? undefined : callAnswerOf(answerOfQuestion(asked));
}

/** The same for a repeated call: with another content the key is refused. */
export async function resultOfCall(
  context: GateContext,
  sessionId: string,
  call: KeyedCall,
): Promise<CallAnswer | undefined> {
  const { store } = context;
  const standing = await standingFor(sessionId, call.key, store);
  return isOtherCall(context, sessionId, call, standing) ? OTHER_CALL : resultOf(standing, store);
}

type KeyedCall = Pick<CallRequest, "tool" | "input"> & { readonly key: string };

/** True when the key refers to something else: a call with another tool or another input, or another question. */
function isOtherCall(
  context: GateContext,
  sessionId: string,
  { key, tool: name, input }: KeyedCall,
  { decided, operation, asked }: Standing,
): boolean {
  if (decided === undefined && operation === undefined && asked === undefined) return false;
  const tool = context.registry.get(name);
  // Without the tool the inputs cannot be compared; the stored answer stays true.
  if (tool === undefined) return false;
  const read = readRequest(context, tool, input);
  if ("text" in read) return true;
  if (decided !== undefined) return decided.actionHash !== callHash(tool.name, read.input);
  if (operation !== undefined) {
    return operation.tool !== tool.name || operation.input !== canonicalJson(read.input);
  }
  if (tool.name !== ASK_USER) return true;
  return asked?.hash !== questionHash(sessionId, { ...questionIn(read.input), callId: key });
}

/** A question in the words of a call, for models that ask through a tool. */
export function callAnswerOf(asked: QuestionAnswer): CallAnswer {
  const { interactionId } = asked;
  switch (asked.answer) {
    case "pending":
      return { answer: "pending", text: asked.text, decisionId: "", interactionId };
    case "answered": {
      const { value } = asked;
      const text = typeof value === "string" ? value : canonicalJson(value);
      return {
        answer: "done",
        text,
        operationId: "",
        data: value,
        truncated: false,
        storedPath: "",
      };
    }
    case "unanswered":
      return { answer: "failed", text: asked.text };
  }
}

/**
 * The decision behind a call that could not be put before people now: another caller proposed the same keyed call first,
 * another process continued a review that it took for abandoned, or the guard refused, and then the upkeep asks the guard
 * again. Every other error is thrown again.
 */
export function standingDecision(error: unknown): DecisionId {
  const stands = STANDING.some((code) => isSallyportError(error, code));
  const id = error instanceof SallyportError && stands ? error.details["id"] : undefined;
  if (typeof id === "string") return id;
  throw error;
}

const STANDING = ["already_exists", "dependency_denied", "illegal_transition"] as const;
