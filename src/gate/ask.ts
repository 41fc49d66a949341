import { isSallyportError, SallyportError } from "../model/errors.ts";
import type {
  Interaction,
  InteractionDraft,
  Question,
  QuestionAnswer,
} from "../model/interaction.ts";
import type { InteractionStore } from "../store/interactions.ts";
import { defineTool } from "../tools/define-tool.ts";
import type { Tool } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";

/** Who asks. */
export interface Asker {
  readonly sessionId: string;
  /** The agent, who delegated to it, on whose behalf. */
  readonly chain: readonly string[];
}

/** Asked twice with the same id it is one question: the second caller gets the result of the first. */
export async function ask(
  question: Question,
  { sessionId, chain }: Asker,
  store: InteractionStore,
  defaultMs: number,
): Promise<QuestionAnswer> {
  const { callId, text, choices = [], deadlineMs = defaultMs } = question;
  const { assignedTo, escalation, metadata } = question;
  checkMetadata(metadata);
  const draft: InteractionDraft = {
    type: "ask_user",
    sessionId,
    callId,
    displayText: text,
    hash: questionHash(sessionId, question),
    chain,
    choices,
    deadlineMs,
    ...(assignedTo === undefined ? {} : { assignedTo }),
    ...(escalation === undefined ? {} : { escalation }),
    ...(metadata === undefined ? {} : { metadata }),
  };
  const id = questionId(sessionId, callId);
  try {
    return answerOfQuestion(await store.open(id, draft, { actor: chain[0] ?? "agent" }));
  } catch (error) {
    if (!isSallyportError(error, "already_exists")) throw error;
    const first = await store.get(id);
    if (first.hash === draft.hash) return answerOfQuestion(first);
    const hint = "This id was used for another question. Give every question its own.";
    throw new SallyportError("already_exists", { id, hint });
  }
}

/** What an agent says beside its question. Everybody who opens the inbox reads it. */
export const MOST_METADATA_BYTES = 16 * 1024;

function checkMetadata(metadata: Question["metadata"]): void {
  const bytes = metadata === undefined ? 0 : Buffer.byteLength(JSON.stringify(metadata));
  if (bytes <= MOST_METADATA_BYTES) return;
  const hint = `The metadata of a question has at most ${MOST_METADATA_BYTES} bytes.`;
  throw new SallyportError("payload_too_large", { what: "metadata", bytes, hint });
}

/** The same in every process, so that a restarted agent finds the question it had asked. */
export function questionId(sessionId: string, callId: string): string {
  return `q-${sha256Hex(canonicalJson([sessionId, callId])).slice(0, 40)}`;
}

/** Of what is asked: the same id with another content is a mistake. */
export function questionHash(
  sessionId: string,
  { callId, text, choices = [] }: Pick<Question, "callId" | "text" | "choices">,
): string {
  return sha256Hex(canonicalJson({ v: 1, sessionId, callId, text: text.toWellFormed(), choices }));
}

export function answerOfQuestion(asked: Interaction): QuestionAnswer {
  const { id: interactionId, status, outcome, answer, answeredBy: by } = asked;
  if (status === "open") {
    const text = `Not answered yet: it waits for a person as ${interactionId}. Go on with something else, or ask later.`;
    return { answer: "pending", interactionId, text };
  }
  if (outcome === "answered" && answer !== undefined) {
    return { answer: "answered", interactionId, value: answer, by };
  }
  const text = `No answer: ${asked.reason || "it was called off."} Do not take silence for a yes.`;
  return { answer: "unanswered", interactionId, outcome, text };
}

/** Throws invalid_input when the answer is not one of the choices. */
export function checkAnswer({ id, choices }: Interaction, answer: JsonValue): void {
  if (choices.length === 0) return;
  if (typeof answer === "string" && choices.includes(answer)) return;
  const hint = `Answer with one of: ${choices.join(", ")}.`;
  throw new SallyportError("invalid_input", { what: "answer", id, hint });
}

export const ASK_USER = "ask_user";

/**
 * For models that can only call tools: register it, and a call of it is the same question as `session.ask`, in the same
 * inbox. It is a pause of the flow and no action of its own, so it never reaches the executor.
 */
export function askUserTool(): Tool {
  return defineTool({
    name: ASK_USER,
    description:
      "Asks a person and waits for the answer, which may take long. Use it when you cannot go on without knowing something. It does not approve anything.",
    input: {
      type: "object",
      properties: {
        question: { type: "string", minLength: 1, maxLength: 4_000 },
        choices: { type: "array", items: { type: "string", minLength: 1 }, maxItems: 20 },
      },
      required: ["question"],
      additionalProperties: false,
    },
    safety: { effect: "read" },
    permissionClass: "readonly",
    execute() {
      throw new Error("A question is asked through the session, not executed.");
    },
  });
}

/** What a checked call of the tool asks. */
export function questionIn(input: JsonValue): { text: string; choices: readonly string[] } {
  const { question, choices } = input as JsonObject;
  return {
    text: String(question),
    choices: Array.isArray(choices) ? choices.map(String) : [],
  };
}
