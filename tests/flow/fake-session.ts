// The gate as a flow sees it, small enough to be bent into every answer. That a port's session is one is tested with the port.

import type { FlowSession } from "../../src/flow/runtime-state.ts";
import type { Question, QuestionAnswer } from "../../src/model/interaction.ts";
import type { CallAnswer, CallRequest } from "../../src/model/operation.ts";
import type { JsonValue } from "../../src/util/json.ts";

export type Lane = "allow" | "ask" | "deny" | "lost";

export class FakeSession implements FlowSession {
  readonly id = "session-1";
  /** `tool input`, in order: what reached production. */
  readonly effects: string[] = [];
  readonly calls: CallRequest[] = [];
  readonly questions: Question[] = [];
  lane: (tool: string) => Lane = () => "allow";
  readonly #answers = new Map<string, CallAnswer>();
  readonly #requests = new Map<string, CallRequest>();
  readonly #replies = new Map<string, JsonValue | undefined>();

  async call(request: CallRequest): Promise<CallAnswer> {
    this.calls.push(request);
    const key = request.key ?? "";
    const before = this.#answers.get(key);
    if (before !== undefined) return before;
    this.#requests.set(key, request);
    const answer = this.#begun(request);
    this.#answers.set(key, answer);
    return answer;
  }

  #begun(request: CallRequest): CallAnswer {
    const id = request.callId;
    switch (this.lane(request.tool)) {
      case "allow":
        return this.#done(request);
      case "ask":
        return {
          answer: "pending",
          text: "waits",
          decisionId: `d-${id}`,
          interactionId: `d-${id}`,
        };
      case "deny":
        return { answer: "denied", text: "the gate says no", findings: [] };
      case "lost":
        return { answer: "unknown", text: "nobody knows", operationId: `o-${id}` };
    }
  }

  #done(request: CallRequest): CallAnswer {
    this.effects.push(`${request.tool} ${String(request.input)}`);
    const operationId = `o-${request.callId}`;
    return { answer: "done", text: "done", operationId, truncated: false, storedPath: "" };
  }

  async ask(question: Question): Promise<QuestionAnswer> {
    const { callId } = question;
    const interactionId = `q-${callId}`;
    if (!this.questions.some((asked) => asked.callId === callId)) this.questions.push(question);
    if (!this.#replies.has(callId)) return { answer: "pending", interactionId, text: "waits" };
    const value = this.#replies.get(callId);
    if (value !== undefined) return { answer: "answered", interactionId, value, by: "person:ada" };
    return { answer: "unanswered", interactionId, outcome: "expired", text: "No answer." };
  }

  async resultOf(key: string): Promise<CallAnswer | undefined> {
    return this.#answers.get(key);
  }

  /** A person answers the question asked last; undefined for silence. */
  reply(value: JsonValue | undefined): void {
    this.#replies.set(this.questions.at(-1)?.callId ?? "", value);
  }

  /** A person decides about the last call, and an approved one is executed. */
  decide(verdict: "approve" | "reject" | "edit"): void {
    const key = this.calls.at(-1)?.key ?? "";
    const request = this.#requests.get(key);
    if (request === undefined) throw new Error("there was no call");
    const edited: CallAnswer = {
      answer: "pending",
      text: "waits",
      decisionId: "d-2",
      interactionId: "d-2",
    };
    const answers: Record<typeof verdict, () => CallAnswer> = {
      approve: () => this.#done(request),
      reject: () => ({ answer: "denied", text: "too expensive", findings: [] }),
      edit: () => edited,
    };
    this.#answers.set(key, answers[verdict]());
  }
}
