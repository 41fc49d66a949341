// Codex skips a hook that it does not trust, without a word. It trusts what is written by its own app server, so that is asked
// to do it: it lists the hooks with their hashes and writes them into the user's configuration.

import { spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";
import { SallyportError } from "../model/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../util/json.ts";
import { systemTimers, withDeadline } from "../util/timers.ts";
import { codexFolder, type InstallPlace, keepFile } from "./install.ts";

export interface CodexProgram {
  readonly program: string;
  readonly env: NodeJS.ProcessEnv;
}

interface CodexHook {
  readonly key: string;
  readonly currentHash: string;
  readonly trustStatus: string;
  readonly command: string;
}

/** Answers of `codex app-server`, one request after the other. */
export async function withAppServer<Answer>(
  { program, env }: CodexProgram,
  cwd: string,
  work: (ask: (method: string, params: JsonObject) => Promise<JsonObject>) => Promise<Answer>,
): Promise<Answer> {
  const child = spawn(program, ["app-server"], { cwd, env, stdio: ["pipe", "pipe", "ignore"] });
  const waiting = new Map<number, (message: JsonObject) => void>();
  const fails: ((error: Error) => void)[] = [];
  const failAll = (error: Error) => {
    for (const fail of fails) fail(error);
  };
  child.on("error", failAll);
  child.on("close", () => failAll(new Error("codex app-server ended")));
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = parsed(line);
    if (isJsonObject(message) && typeof message["id"] === "number" && !("method" in message)) {
      waiting.get(message["id"])?.(message);
    }
  });
  let last = 0;
  const ask = (method: string, params: JsonObject) =>
    withDeadline(
      () =>
        new Promise<JsonObject>((resolve, reject) => {
          last += 1;
          fails.push(reject);
          waiting.set(last, (message) => {
            const { result, error } = message;
            if (isJsonObject(result)) resolve(result);
            else reject(new Error(`codex answered ${JSON.stringify(error ?? null)} to ${method}`));
          });
          child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: last, method, params })}\n`);
        }),
      20_000,
      systemTimers,
    );
  try {
    const clientInfo = { name: "sallyport", title: "Sallyport", version: "1" };
    await ask("initialize", { clientInfo });
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "initialized" })}\n`);
    return await work(ask);
  } finally {
    child.kill("SIGKILL");
  }
}

function parsed(line: string): JsonValue | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

export async function codexHooks(codex: CodexProgram, cwd: string): Promise<readonly CodexHook[]> {
  return withAppServer(codex, cwd, async (ask) =>
    hooksIn(await ask("hooks/list", { cwds: [cwd] })),
  );
}

/** Every object in the answer that has a key and a hash, wherever the version puts it. */
function hooksIn(value: JsonValue): readonly CodexHook[] {
  if (Array.isArray(value)) return value.flatMap(hooksIn);
  if (!isJsonObject(value)) return [];
  if (typeof value["key"] === "string" && typeof value["currentHash"] === "string") {
    const { key, currentHash, trustStatus, command } = value;
    return [{ key, currentHash, trustStatus: `${trustStatus}`, command: `${command}` }];
  }
  return Object.values(value).flatMap(hooksIn);
}

/** Trusts our hooks and no others. Throws not_allowed when Codex does not see them or still does not trust them. */
export async function trustCodexHooks(place: InstallPlace, codex: CodexProgram): Promise<void> {
  // Trust is the user's, also for the hooks of a project.
  const kept = keepFile(place, path.join(codexFolder({ ...place, scope: "user" }), "config.toml"));
  await withAppServer(codex, place.project, async (ask) => {
    const list = async () =>
      hooksIn(await ask("hooks/list", { cwds: [place.project] })).filter(({ command }) =>
        / hook codex --data /.test(command),
      );
    const own = await list();
    const state = Object.fromEntries(
      own.map(({ key, currentHash }) => [key, { trusted_hash: currentHash }]),
    );
    const edits = [{ keyPath: "hooks.state", value: state, mergeStrategy: "upsert" }];
    if (own.length > 0) await ask("config/batchWrite", { edits });
    const after = await list();
    if (after.length === 0 || after.some(({ trustStatus }) => trustStatus !== "trusted")) {
      const hint =
        place.scope === "project"
          ? `Codex skips the hooks of projects that it does not trust. Open codex in ${place.project} once and trust the project.`
          : "Codex does not trust the hook. Open codex once and trust it under /hooks.";
      throw new SallyportError("not_allowed", { what: "codex", hint });
    }
  });
  kept();
}
