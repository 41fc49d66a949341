// `sallyport hook HOST`: started by a coding agent before and after each tool call, with the event on standard input. It prints
// one JSON object in the host's shape and nothing else. Whatever goes wrong before a call is an explicit deny in time: hosts run
// the tool when a hook fails. Started for every call, so it imports little and loads nothing it does not need.

import { existsSync, writeSync } from "node:fs";
import path from "node:path";
import type { Client } from "../client/index.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../util/json.ts";
import { systemTimers } from "../util/timers.ts";
import { type HookAccess, readHookAccess } from "./access.ts";
import { GUARDED, withMark } from "./guard.ts";
import {
  HOST_SHAPES,
  type HostAnswer,
  type HostEvent,
  type HostShape,
  isHostName,
} from "./hosts.ts";
import { toolFor } from "./kinds.ts";

interface HookOptions {
  readonly data: string;
  readonly waitMs: number;
  /** After this the answer is deny, whatever the server does. It must be less than the host's own time limit. */
  readonly deadlineMs: number;
}

/** Time for everything but the wait for a person. */
const WORK_MS = 10_000;
const ASK_EVERY_MS = 400;
/** Longer than a host lets a command run. Without a report by then, people are asked what happened. */
const PERMIT_MS = 15 * 60_000;

/** Set once: the process answers one event. */
let isGuarded = false;

/** Answers on standard output and ends the process. */
export async function runHook(args: readonly string[]): Promise<never> {
  const [name = "", ...rest] = args;
  if (!isHostName(name)) {
    return ends(2, "", `sallyport hook: there is no host "${name}".`);
  }
  const host = HOST_SHAPES[name];
  // A library that prints would make the host ignore the answer.
  console.log = console.error;
  isGuarded = rest.includes(GUARDED);
  const refuse = (why: string) => answers(host, { decision: "deny", reason: why });
  let options: HookOptions;
  try {
    options = optionsIn(
      rest.filter((word) => word !== GUARDED),
      host,
    );
  } catch (error) {
    return refuse(`The hook of Sallyport is not set up correctly: ${errorText(error)}.`);
  }
  const failed = (error: unknown) =>
    refuse(`Not executed: the hook of Sallyport failed (${errorText(error)}).`);
  process.on("uncaughtException", failed);
  process.on("unhandledRejection", failed);
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.on(signal, () => refuse("Not executed: the hook of Sallyport was ended."));
  }
  systemTimers.after(options.deadlineMs, () =>
    refuse(`Not executed: Sallyport did not answer in time. ${howToStart(options.data)}`),
  );
  try {
    const given: JsonValue = JSON.parse(await standardInput());
    if (!isJsonObject(given)) throw new Error("its input is not a JSON object");
    const event = host.read(given);
    if (event.when === "other") return ends(0, "{}");
    if (event.when === "after") return await afterCall(host, event, given, options);
    if (event.when === "end") return await endOfTurn(host, event, options);
    return answers(host, await beforeCall(host, event, options));
  } catch (error) {
    return failed(error);
  }
}

/** Read in parts, so that the deadline holds also when the host never ends it. */
async function standardInput(): Promise<string> {
  let text = "";
  process.stdin.setEncoding("utf8");
  for await (const chunk of process.stdin) text += chunk;
  return text;
}

function optionsIn(args: readonly string[], host: HostShape): HookOptions {
  const given = new Map<string, string>();
  for (let at = 0; at < args.length; at += 2) given.set(args[at] ?? "", args[at + 1] ?? "");
  const { SALLYPORT_DATA = ".sallyport" } = process.env;
  const data = path.resolve(given.get("--data") ?? SALLYPORT_DATA);
  const wait = given.get("--wait");
  const waitMs = wait === undefined ? host.waitMs : Number(wait) * 1_000;
  if (!(waitMs >= 0 && waitMs <= 3_600_000)) throw new Error("--wait is not a number of seconds");
  const extra = [...given.keys()].find((key) => key !== "--data" && key !== "--wait");
  if (extra !== undefined) throw new Error(`there is no option ${extra}`);
  return { data, waitMs, deadlineMs: waitMs + WORK_MS };
}

async function beforeCall(
  host: HostShape,
  event: HostEvent,
  { data, waitMs }: HookOptions,
): Promise<HostAnswer> {
  const reached = await reach(host, data);
  if (reached === undefined) return { decision: "deny", reason: unreachable(data) };
  const { client } = reached;
  const canDefer = host.canDefer(process.env) && event.agent === undefined;
  const patienceMs = canDefer ? 0 : waitMs;
  const started = systemTimers.elapsedMs();
  for (;;) {
    let answer: Awaited<ReturnType<Client["sessions"]["permit"]>>;
    try {
      answer = await permit(client, host, event);
    } catch (error) {
      if (isAway(error)) return { decision: "deny", reason: unreachable(data) };
      return { decision: "deny", reason: `Not executed: ${errorText(error)}` };
    }
    if (answer.answer === "permitted") {
      const { edited, text } = answer;
      const input = (answer.permit.calls?.[0]?.input as JsonObject | undefined)?.["input"];
      if (!isJsonObject(input)) throw new Error("the permit has no input");
      return edited === undefined
        ? { decision: "allow", reason: text }
        : { decision: "allow", reason: `${edited.by.join(" and ")} changed this call.`, input };
    }
    if (answer.answer === "done") return { decision: "deny", reason: ONCE };
    if (answer.answer !== "pending") return { decision: "deny", reason: answer.text };
    if (systemTimers.elapsedMs() - started >= patienceMs) {
      const isFirst = canDefer && (await isOldestOpen(client, event, host, answer.interactionId));
      if (isFirst) return { decision: "defer", reason: answer.text };
      return { decision: "deny", reason: waits(answer.decisionId, canDefer) };
    }
    await systemTimers.sleep(ASK_EVERY_MS);
  }
}

const ONCE = "Not executed: this call was executed before. Make a new call to do it again.";

function waits(decisionId: string, hasSibling: boolean): string {
  return hasSibling
    ? `Not executed: another call waits for a person, and so does this one, as decision ${decisionId}. Make this call again, unchanged, after the other one.`
    : `Not executed: it waits for a person as decision ${decisionId}. Go on with something else, and make the same call again, unchanged, once it is approved.`;
}

/** The host keeps one deferred call of a turn and drops the others, so only the call that was asked about first is deferred. */
async function isOldestOpen(
  client: Client,
  event: HostEvent,
  host: HostShape,
  interactionId: string,
): Promise<boolean> {
  const sessionId = sessionIdOf(host, event);
  const open = await client.interactions.list({ sessionId, status: "open" });
  const oldest = open.items.toSorted((a, b) => a.ord - b.ord)[0];
  return oldest === undefined || oldest.id === interactionId;
}

async function permit(client: Client, host: HostShape, event: HostEvent) {
  const { session, cwd, tool, agent, callId } = event;
  const input = { host: host.name, tool, cwd, input: event.input, ...(agent ? { agent } : {}) };
  const call = { callId: callId ?? "call", tool: toolFor(host.name, tool, event.input), input };
  const id = sessionIdOf(host, event);
  const ask = () =>
    client.sessions.permit(
      { id, ...call, leaseMs: PERMIT_MS },
      callId === undefined ? { idempotencyKey: contentKey(event) } : { idempotencyKey: callId },
    );
  try {
    return await ask();
  } catch (error) {
    if (codeOf(error) !== "not_found") throw error;
    await client.sessions.open({ id: session });
    return ask();
  }
}

function sessionIdOf({ name }: HostShape, { session }: HostEvent): string {
  return `${name}:${session}`;
}

/** A host that does not name its calls: one that is held or done needs a new key, which only the process can make. */
function contentKey(event: HostEvent): string {
  return `${event.tool}-${process.pid}-${systemTimers.elapsedMs()}`;
}

async function afterCall(
  host: HostShape,
  event: HostEvent,
  given: JsonObject,
  { data }: HookOptions,
): Promise<never> {
  const { callId, error, output, isInterrupted } = event;
  // What was interrupted may have acted: nothing is reported, and people are asked when the lease is over.
  if (isInterrupted) return ends(0, "{}");
  const reached = await reach(host, data);
  if (reached === undefined) return ends(1, "", unreachable(data));
  const isShell = toolFor(host.name, event.tool, event.input) === "coding.shell";
  // A command that failed has run, and may have changed something on its way.
  const sent =
    error === undefined || isShell
      ? { outcome: "executed" as const, output: cut(error ?? output, 900_000) }
      : { outcome: "failed" as const, reason: cut(error, 9_000) };
  const proof = isShell ? await workTreeOf(event.cwd) : undefined;
  try {
    const id = sessionIdOf(host, event);
    const key = callId ?? (await heldBy(reached.client, host, event));
    const report = { id, key, ...sent, ...(proof === undefined ? {} : { proof }) };
    const answer = await reached.client.sessions.report(report);
    const { edited } = answer;
    const note =
      edited === undefined
        ? ""
        : `${edited.by.join(" and ")} changed your call before it ran: ${ownInput(edited.input)} instead of ${ownInput(edited.original)}.`;
    return ends(0, JSON.stringify(host.note(note, given)));
  } catch (problem) {
    return ends(1, "", `Sallyport did not get the report: ${errorText(problem)}`);
  }
}

/**
 * Codex reports no patch that it applied out of a shell command. At the end of a turn none is running any more, so each is
 * settled with what it made of its files: without a report it could never be undone.
 */
async function endOfTurn(host: HostShape, event: HostEvent, { data }: HookOptions): Promise<never> {
  const reached = await reach(host, data);
  if (reached === undefined) return ends(1, "", unreachable(data));
  const id = sessionIdOf(host, event);
  try {
    for (const operation of await heldIn(reached.client, id)) {
      const { tool, input } = operation.asked;
      if (typeof tool !== "string" || !isJsonObject(input)) continue;
      const isPatch = tool === "Bash" && toolFor(host.name, tool, input) === "coding.edit";
      if (!isPatch) continue;
      const output = `${host.name} does not report patches in commands; its turn is over.`;
      await reached.client.sessions.report({ id, key: operation.id, outcome: "executed", output });
    }
    return ends(0, "{}");
  } catch (problem) {
    return ends(1, "", `Sallyport did not get the report: ${errorText(problem)}`);
  }
}

/** Permits that nobody has reported on, newest first, with what the host asked for. */
async function heldIn(client: Client, sessionId: string) {
  const { items } = await client.operations.list({ sessionId, limit: 500 });
  return items.flatMap(({ id, status, input }) => {
    const asked: JsonValue = status === "started" ? JSON.parse(input) : null;
    return isJsonObject(asked) ? [{ id, asked }] : [];
  });
}

/** The part of a call that the host knows. */
function ownInput(call: JsonValue): string {
  return JSON.stringify(isJsonObject(call) ? (call["input"] ?? null) : call);
}

/** Of a host that does not name its calls: the oldest one that is held and asked for the same. */
async function heldBy(client: Client, host: HostShape, event: HostEvent): Promise<string> {
  const held = await heldIn(client, sessionIdOf(host, event));
  const same = held.filter(
    ({ asked }) => asked["tool"] === event.tool && isSame(asked["input"], event.input),
  );
  const oldest = same.at(-1);
  if (oldest === undefined) throw new Error("no permit is held for this call");
  return oldest.id;
}

function isSame(one: JsonValue | undefined, other: JsonValue): boolean {
  return one !== undefined && canonicalJson(one) === canonicalJson(other);
}

/** What changed in tracked files, for the person who undoes a command by hand. It says what this process saw, and no more. */
async function workTreeOf(cwd: string): Promise<JsonObject | undefined> {
  const { execFile } = await import("node:child_process");
  const args = [
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "HEAD",
  ];
  return new Promise((resolve) => {
    execFile("git", args, { cwd, timeout: 5_000, maxBuffer: 4_000_000 }, (error, stdout) =>
      resolve(error === null && stdout !== "" ? { gitDiff: cut(stdout, 100_000) } : undefined),
    );
  });
}

function cut(words: string, most: number): string {
  return words.length <= most ? words : `${words.slice(0, most)}\n[cut]`;
}

async function reach(
  { name }: HostShape,
  data: string,
): Promise<{ readonly client: Client; readonly access: HookAccess } | undefined> {
  const access = readHookAccess(data);
  const token = access?.tokens[name];
  if (access === undefined || token === undefined) return undefined;
  const { createClient } = await import("../client/create-client.ts");
  return { client: createClient({ url: access.url, token, retries: 2 }), access };
}

function isAway(error: unknown): boolean {
  return ["store_unavailable", "unauthenticated"].includes(codeOf(error));
}

function codeOf(error: unknown): string {
  return isJsonObject(error as never) || error instanceof Error
    ? String((error as { readonly code?: unknown }).code ?? "")
    : "";
}

function unreachable(data: string): string {
  return `Not executed: Sallyport cannot be reached, so no tool runs. ${howToStart(data)}`;
}

/** Names the configuration that is beside the data folder or in the working folder. */
function howToStart(data: string): string {
  const folders = [path.dirname(data), process.cwd()];
  const files = folders.flatMap((folder) =>
    ["ts", "mts", "js", "mjs"].map((end) => path.join(folder, `sallyport.config.${end}`)),
  );
  const config = files.find((file) => existsSync(file));
  const flag = config === undefined ? "" : ` --config ${config}`;
  return `Start it with: sallyport serve --data ${data}${flag}`;
}

function answers(host: HostShape, answer: HostAnswer): never {
  const reason = answer.reason === "" ? "Sallyport gave no reason." : answer.reason;
  return ends(0, JSON.stringify(host.answer({ ...answer, reason })));
}

/** Written synchronously: the process ends right after. When it cannot be written, exit 2 and the error text refuse. */
function ends(code: number, stdout: string, stderr = ""): never {
  try {
    if (stderr !== "") writeSync(2, `${stderr}\n`);
    if (stdout !== "") writeAll(isGuarded ? withMark(stdout) : `${stdout}\n`);
  } catch (error) {
    try {
      writeSync(2, `Not executed: the hook of Sallyport could not answer (${errorText(error)}).\n`);
    } catch {
      // Nobody listens; the exit code is all that is left.
    }
    process.exit(2);
  }
  process.exit(code);
}

/** A pipe may take the answer in parts. */
function writeAll(whole: string): void {
  let rest = Buffer.from(whole);
  while (rest.byteLength > 0) rest = rest.subarray(writeSync(1, rest));
}
