import type { WireCallAnswer } from "../http/wire/call.ts";
import type { Told } from "./evidence.ts";

/** What an answer to a call tells its caller, on whichever way it came; nothing for one that names no record. */
export function toldOf(answer: WireCallAnswer): readonly Told[] {
  if (answer.answer === "pending") {
    return answer.decisionId === "" ? [] : [{ decisionId: answer.decisionId, answer: "pending" }];
  }
  if (answer.answer === "denied") return [];
  const { operationId } = answer;
  return operationId === undefined || operationId === ""
    ? []
    : [{ operationId, answer: answer.answer }];
}
