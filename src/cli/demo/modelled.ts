import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { LanguageModel, ToolSet } from "ai";
import { SallyportError } from "../../model/errors.ts";
import { describeTool, inputSchemaForModel } from "../../tools/definition.ts";
import type { JsonValue } from "../../util/json.ts";
import { withDeadline } from "../../util/timers.ts";
import { type DemoAgent, type DemoOptions, open, type Turn } from "./scripted.ts";

interface Duty {
  readonly agent: string;
  readonly owner: string;
  readonly tools: readonly string[];
  readonly duty: string;
}

/** The same three agents as in the script, described by their duty instead of their steps. */
const DUTIES: readonly Duty[] = [
  {
    agent: "agent:buyer",
    owner: "person:olga",
    tools: ["stock.look", "orders.place"],
    duty: "You buy for a warehouse. Look at the stock, choose one article that runs low, and place one order for it. Order numbers are PO- and digits; use each once. Orders above 20,000 EUR are refused.",
  },
  {
    agent: "agent:counter",
    owner: "person:ivan",
    tools: ["stock.look", "stock.adjust", "ask_user"],
    duty: "You count in a warehouse. Look at the stock, choose one article, and either correct its amount by one to three pieces, or ask a person when a count looks wrong to you.",
  },
  {
    agent: "agent:shipper",
    owner: "person:olga",
    tools: ["stock.look", "carriers.book"],
    duty: "You ship for a warehouse. Book one carrier for one open order. Carriers: Harbour Freight, Nightline, Blue Van.",
  },
];

const TURN_MS = 90_000;
const MOST_STEPS = 5;
/** Pauses grow while a model keeps failing. */
const MOST_REST = 32;

/** Agents driven by a model. Their calls go through the gate like any other. */
export function modelled(loaded: LoadedModel): readonly DemoAgent[] {
  return DUTIES.map((duty) => (options) => thinking(duty, loaded, options));
}

function thinking(duty: Duty, { sdk, model }: LoadedModel, options: DemoOptions): Turn {
  const { timers, run } = options;
  const session = open(options, duty.agent, duty.owner);
  let before = "This is your first turn.";
  let rest = 0;
  let failures = 0;
  return async (turn) => {
    if (rest > 0) {
      rest -= 1;
      return;
    }
    const tools = toolsOf(duty, sdk, options, (name, input, id) =>
      session.call({
        callId: `${turn}-${id}`,
        key: `${turn}-${id}`,
        tool: name,
        input,
        messageId: `m-${turn}`,
        turn,
      }),
    );
    const ask = (abortSignal: AbortSignal) =>
      sdk.generateText({
        model,
        instructions: `${duty.duty} Do one thing per turn, then say in one sentence what you did. What waits for a person is decided later: do not ask for it again.`,
        prompt: `Turn ${turn}, order numbers begin with PO-${run}${turn}. ${before}`,
        tools,
        stopWhen: sdk.stepCountIs(MOST_STEPS),
        maxRetries: 1,
        abortSignal,
        telemetry: { recordInputs: false, recordOutputs: false },
      });
    try {
      const { text } = await withDeadline(ask, TURN_MS, timers);
      before = `In your last turn you said: ${text.slice(0, 1_000)}`;
      failures = 0;
    } catch (error) {
      failures += 1;
      rest = Math.min(MOST_REST, 2 ** failures);
      throw error;
    }
  };
}

type Send = (
  tool: string,
  input: JsonValue,
  id: string,
) => Promise<{ readonly answer: string; readonly text: string }>;

/** Models accept few punctuation characters in names, so dots are replaced. */
function toolsOf(
  { tools }: Duty,
  sdk: LoadedModel["sdk"],
  { gate }: DemoOptions,
  send: Send,
): ToolSet {
  const known = tools.flatMap((name) => gate.tools.get(name) ?? []);
  return Object.fromEntries(
    known.map((tool) => [
      tool.name.replaceAll(".", "_"),
      sdk.tool({
        description: describeTool(tool),
        inputSchema: sdk.jsonSchema(inputSchemaForModel(tool)),
        async execute(input, { toolCallId }) {
          const { answer, text } = await send(tool.name, input as JsonValue, toolCallId);
          return `${answer}: ${text}`;
        },
      }),
    ]),
  );
}

/** The AI SDK and a model, as installed by the user. */
interface LoadedModel {
  readonly sdk: typeof import("ai");
  readonly model: LanguageModel;
}

/**
 * `PACKAGE:MODEL`, like `@ai-sdk/some-provider:some-model`. These are not dependencies: to use a model, the user
 * installs the package, and its provider reads its own key. Throws invalid_input with what to do.
 */
export async function loadModel(name: string, folder: string): Promise<LoadedModel> {
  const at = name.indexOf(":");
  const [from, id] = at < 0 ? ["", ""] : [name.slice(0, at), name.slice(at + 1)];
  if (from === "" || id === "") throw refused(name, "Write it as PACKAGE:MODEL.");
  const sdk = (await load("ai", folder)) as typeof import("ai");
  const provider = Object.values(await load(from, folder)).find(isProvider);
  if (provider === undefined) {
    throw refused(name, `${from} exports no provider of the AI SDK.`);
  }
  return { sdk, model: provider.languageModel(id) };
}

/** From Sallyport's own location, else from the current folder. */
async function load(from: string, folder: string): Promise<object> {
  try {
    return await import(from);
  } catch (error) {
    if (!isMissing(error, from)) throw error;
  }
  try {
    const file = createRequire(path.join(folder, "here.js")).resolve(from);
    return await import(pathToFileURL(file).href);
  } catch (error) {
    if (!isMissing(error, from)) throw error;
    throw refused(
      from,
      `Install it first: npm install ai ${from === "ai" ? "" : from}`.trim(),
      error,
    );
  }
}

/** Not installed, as opposed to installed and broken. */
function isMissing(error: unknown, from: string): boolean {
  const { code = "", message = "" } = error as { code?: string; message?: string };
  return /^(?:ERR_)?MODULE_NOT_FOUND$/.test(code) && message.includes(`'${from}'`);
}

function isProvider(value: unknown): value is { languageModel(id: string): LanguageModel } {
  const isThing = typeof value === "function" || (typeof value === "object" && value !== null);
  return isThing && typeof (value as { languageModel?: unknown }).languageModel === "function";
}

function refused(what: string, hint: string, cause?: unknown): SallyportError {
  return new SallyportError("invalid_input", { what, hint }, cause);
}
