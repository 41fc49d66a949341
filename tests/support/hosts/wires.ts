// The wire formats of three model providers for the scripted model: OpenAI Responses (Codex), OpenAI Chat Completions
// (opencode) and Gemini. Each turns a request into the script's terms and a scripted turn into that provider's answer.

import { randomUUID } from "node:crypto";
import type { ScriptedRequest, ScriptedTurn } from "../scripted-model.ts";

/** One provider's format. `answer` returns the events of a stream, or one value where the request was not streamed. */
export interface Wire {
  readonly matches: (pathname: string) => boolean;
  readonly read: (body: never) => ScriptedRequest;
  readonly events: (turn: ScriptedTurn, body: never) => readonly WireEvent[];
  readonly whole: (turn: ScriptedTurn, body: never) => unknown;
  readonly isStreamed: (pathname: string, body: never) => boolean;
}

export interface WireEvent {
  readonly event?: string;
  readonly data: unknown;
}

interface ResponsesItem {
  readonly type?: string;
  readonly role?: string;
  readonly call_id?: string;
  readonly output?: unknown;
  readonly content?: string | readonly { readonly text?: string }[];
}
interface ResponsesBody {
  readonly stream?: boolean;
  readonly input: string | readonly ResponsesItem[];
  readonly tools?: readonly { readonly name?: string; readonly type: string }[];
}

const textOf = (content: unknown): string => {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map((part) => part?.text ?? "").join("\n");
  return content === undefined ? "" : JSON.stringify(content);
};

const responses: Wire = {
  matches: (pathname) => pathname.endsWith("/responses"),
  isStreamed: (_, body: ResponsesBody) => body.stream === true,
  read({ input, tools = [] }: ResponsesBody) {
    const items = typeof input === "string" ? [] : input;
    const results = items
      .filter(({ type }) => type === "function_call_output" || type === "custom_tool_call_output")
      .map(({ call_id: id = "", output }) => ({ id, text: textOf(output) }));
    const prompt = items
      // Codex passes on what a hook adds as a developer.
      .filter(({ role }) => role === "user" || role === "developer")
      .map(({ content }) => textOf(content))
      .join("\n");
    return { prompt, results, tools: tools.map(({ name, type }) => name ?? type) };
  },
  whole: (turn) => responseOf(turn),
  events(turn) {
    const response = responseOf(turn);
    const { output, ...rest } = response;
    return [
      { type: "response.created", response: { ...rest, output: [], status: "in_progress" } },
      ...output.flatMap((item, output_index) => [
        { type: "response.output_item.added", output_index, item },
        { type: "response.output_item.done", output_index, item },
      ]),
      { type: "response.completed", response },
    ].map((data) => ({ event: data.type, data }));
  },
};

function responseOf({ calls = [], text = "" }: ScriptedTurn) {
  const message = {
    type: "message",
    id: `msg_${randomUUID()}`,
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text, annotations: [] }],
  };
  const output: object[] = calls.length === 0 ? [message] : [];
  for (const { id, name, namespace, input } of calls) {
    const isText = typeof input === "string";
    output.push({
      id: `fc_${randomUUID()}`,
      type: isText ? "custom_tool_call" : "function_call",
      status: "completed",
      call_id: id,
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(isText ? { input } : { arguments: JSON.stringify(input) }),
    });
  }
  return {
    id: `resp_${randomUUID()}`,
    object: "response",
    created_at: 1,
    status: "completed",
    model: "scripted",
    output,
    usage: {
      input_tokens: 1,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 1,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 2,
    },
  };
}

interface ChatBody {
  readonly stream?: boolean;
  readonly messages: readonly {
    readonly role: string;
    readonly content: unknown;
    readonly tool_call_id?: string;
  }[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}

const chat: Wire = {
  matches: (pathname) => pathname.endsWith("/chat/completions"),
  isStreamed: (_, body: ChatBody) => body.stream === true,
  read({ messages, tools = [] }: ChatBody) {
    const results = messages
      .filter(({ role }) => role === "tool")
      .map(({ tool_call_id: id = "", content }) => ({ id, text: textOf(content) }));
    const prompt = messages
      .filter(({ role }) => role === "user")
      .map(({ content }) => textOf(content))
      .join("\n");
    return { prompt, results, tools: tools.map((tool) => tool.function.name) };
  },
  whole({ calls = [], text = "" }) {
    const message = { role: "assistant", content: text, tool_calls: chatCalls(calls) };
    return { ...CHAT, object: "chat.completion", choices: [choice({ message }, calls.length)] };
  },
  events({ calls = [], text = "" }) {
    const object = "chat.completion.chunk";
    const tool_calls = chatCalls(calls).map((call, index) => ({ index, ...call }));
    const delta = {
      role: "assistant",
      content: text,
      ...(calls.length === 0 ? {} : { tool_calls }),
    };
    const chunk = (part: object) => ({ data: { ...CHAT, object, choices: [part] } });
    return [
      chunk({ index: 0, delta, finish_reason: null }),
      chunk(choice({ delta: {} }, calls.length)),
      { data: "[DONE]" },
    ];
  },
};

const CHAT = {
  id: "chat-1",
  created: 1,
  model: "scripted",
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};
const choice = (part: object, calls: number) => ({
  index: 0,
  ...part,
  finish_reason: calls > 0 ? "tool_calls" : "stop",
});
const chatCalls = (calls: NonNullable<ScriptedTurn["calls"]>) =>
  calls.map(({ id, name, input }) => ({
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));

interface GeminiBody {
  readonly contents: readonly {
    readonly role: string;
    readonly parts: readonly {
      readonly text?: string;
      readonly functionResponse?: { readonly id?: string; readonly response: unknown };
    }[];
  }[];
  readonly tools?: readonly {
    readonly functionDeclarations?: readonly { readonly name: string }[];
  }[];
}

const gemini: Wire = {
  matches: (pathname) => /:(streamG|g)enerateContent$/.test(pathname),
  isStreamed: (pathname) => pathname.endsWith(":streamGenerateContent"),
  read({ contents, tools = [] }: GeminiBody) {
    const parts = contents.flatMap((content) => content.parts);
    const results = parts.flatMap(({ functionResponse: told }) =>
      told === undefined ? [] : [{ id: told.id ?? "", text: JSON.stringify(told.response) }],
    );
    return {
      prompt: parts.map(({ text = "" }) => text).join("\n"),
      results,
      tools: tools.flatMap(({ functionDeclarations = [] }) =>
        functionDeclarations.map(({ name }) => name),
      ),
    };
  },
  whole: (turn) => contentOf(turn),
  events: (turn) => [{ data: contentOf(turn) }],
};

function contentOf({ calls = [], text = "" }: ScriptedTurn) {
  const parts =
    calls.length === 0
      ? [{ text }]
      : calls.map(({ id, name, input: args }) => ({ functionCall: { id, name, args } }));
  return {
    candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    modelVersion: "scripted",
  };
}

export const WIRES: readonly Wire[] = [responses, chat, gemini];
