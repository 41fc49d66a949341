import { defineTool } from "../tools/define-tool.ts";
import type { Tool } from "../tools/tool.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";

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
