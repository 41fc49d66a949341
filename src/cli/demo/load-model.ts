import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { LanguageModel } from "ai";
import { SallyportError } from "../../model/errors.ts";

/** The AI SDK and a model of it, as the user has installed them. */
export interface LoadedModel {
  readonly sdk: typeof import("ai");
  readonly model: LanguageModel;
}

/**
 * `PACKAGE:MODEL`, like `@ai-sdk/some-provider:some-model`. Nothing of it is a dependency of ours: whoever wants a model
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

/** From where we are installed, else from where the command runs. */
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

/** Not there, as opposed to there and broken. */
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
