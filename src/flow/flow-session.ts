import type { CallAnswer, CallRequest } from "../model/call.ts";
import type { Question, QuestionAnswer } from "../model/question.ts";

/**
 * What a flow needs of the gate: a port's session fits. Asked again with the same key or id it answers what became of the first
 * time, and makes no second call and no second question. Shape: callback; the flow waits for every answer.
 */
export interface FlowSession {
  readonly id: string;
  call(request: CallRequest): Promise<CallAnswer>;
  ask(question: Question): Promise<QuestionAnswer>;
  /** Undefined when there was no such call. */
  resultOf(key: string): Promise<CallAnswer | undefined>;
}
