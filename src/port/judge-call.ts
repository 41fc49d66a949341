import type { CallFacts } from "../gate/call-facts.ts";
import { checkConfidence } from "../gate/confidence.ts";
import { decide, type GateDecision } from "../gate/gate.ts";
import { mergeHooks } from "../gate/hooks.ts";
import type { CompiledPolicy } from "../gate/policy.ts";
import { runCheckpoint } from "../gate/run-checkpoint.ts";
import { runHooks } from "../gate/run-hooks.ts";
import type { CallRequest } from "../model/call.ts";
import { SallyportError } from "../model/errors.ts";
import type { Finding } from "../model/finding.ts";
import { parseJson } from "../model/parse-json.ts";
import type { ClaimRef } from "../store/tasks.ts";
import { capabilityOf } from "../tools/capability.ts";
import { definitionHash } from "../tools/definition-hash.ts";
import { inputError } from "../tools/input-error.ts";
import { metadataOf } from "../tools/metadata.ts";
import type { Registry } from "../tools/registry.ts";
import { placesOf, resolveResources } from "../tools/resolve-resources.ts";
import type { Resource, Tool } from "../tools/tool.ts";
import { errorText } from "../util/error-text.ts";
import type { JsonValue } from "../util/json.ts";
import type { Timers } from "../util/timers.ts";
import type { Bindings } from "./bindings.ts";
import type { SallyportOptions } from "./options.ts";

/** Who asks, and from where. */
export interface Caller {
  readonly tenant: string;
  readonly sessionId: string;
  /** The agent, then whoever delegated to it. */
  readonly chain: readonly string[];
  /** On whose behalf; empty when nobody was named. */
  readonly owner?: string;
  /** The claim of a task under which it works: once that is over, so are its calls. */
  readonly claim?: ClaimRef;
  readonly workingDirectory: string;
  /** Ends its calls. */
  readonly signal?: AbortSignal;
  /** An undo that somebody began goes on. */
  readonly takesBack?: boolean;
}

export interface JudgeParts
  extends Pick<SallyportOptions, "hooks" | "checkpoint" | "confidenceKey"> {
  readonly registry: Registry;
  readonly policy: CompiledPolicy;
  readonly bindings: Bindings;
  readonly fileRoots: NonNullable<SallyportOptions["fileRoots"]>;
  readonly protectedPaths: NonNullable<SallyportOptions["protectedPaths"]>;
  /** What is to be said against working under this claim; empty while it is live. */
  readonly checkClaim: (claim: ClaimRef) => Promise<readonly Finding[]>;
  readonly timers: Timers;
  readonly now: () => number;
}

/** A call that was looked at: refused with a text for the model, or ready to be run or staged. */
export type Judged =
  | { readonly verdict: "failed"; readonly text: string }
  | { readonly verdict: "deny"; readonly text: string; readonly findings: readonly Finding[] }
  | {
      readonly verdict: "allow" | "ask";
      readonly tool: Tool;
      readonly definition: string;
      readonly input: JsonValue;
      readonly decision: GateDecision;
      readonly facts: CallFacts;
      /** Where the files and folders that it names are; see `ToolContext.places`. */
      readonly places: readonly string[];
      /** Each call is let through by a person; no rule made beforehand stands for that. */
      readonly needsPerson: boolean;
    };

const ASK_MS = 60_000;

/**
 * The one way into the gate, for every call however it comes in: direct, batched, staged, approved, resumed or undone. An
 * agent's estimate belongs to its own call and is not asked for again; a person who approved needs no checkpoint.
 */
export async function judgeCall(
  request: CallRequest,
  caller: Caller,
  parts: JudgeParts,
  again?: "approved" | "undo",
): Promise<Judged> {
  const tool = parts.registry.get(request.tool);
  if (tool === undefined) {
    return {
      verdict: "failed",
      text: `There is no tool "${request.tool}". Use one of those listed.`,
    };
  }
  const { confidenceMin: min, checkpoint } = capabilityOf(tool);
  const { confidenceKey: key } = parts;
  const confident = checkConfidence(request.input, {
    min: again === undefined ? min : 0,
    ...(key === undefined ? {} : { key }),
  });
  if (!confident.ok) {
    const finding = {
      severity: "soft-deny",
      policy: "confidence",
      message: confident.message,
    } as const;
    return { verdict: "deny", text: confident.message, findings: [finding] };
  }
  const parsed = readInput(tool, confident.input);
  if ("text" in parsed) return { verdict: "failed", text: parsed.text };
  const { input } = parsed;
  const { workingDirectory } = caller;
  const touched = touchedBy(tool, input, workingDirectory);
  if ("text" in touched) return { verdict: "failed", text: touched.text };
  const event = { tool: tool.name, sessionId: caller.sessionId, callId: request.callId };
  const waiting = { timers: parts.timers, timeoutMs: ASK_MS };
  const isUndo = again === "undo" || caller.takesBack === true;
  if (tool.undoOnly === true && !isUndo) return onlyAsUndo(tool);
  const lost = caller.claim === undefined || isUndo ? [] : await parts.checkClaim(caller.claim);
  if (lost.length > 0) return { verdict: "deny", text: textOf(tool, lost), findings: lost };
  const bound = await parts.bindings.of(caller, isUndo ? "undo" : "call");
  const hooks = parts.hooks?.length
    ? await runHooks(parts.hooks, "before_tool", event, waiting)
    : mergeHooks("before_tool", []);
  const facts: CallFacts = {
    tool: tool.name,
    permissionClass: metadataOf(tool).permissionClass,
    input,
    resources:
      touched.resources.length === 0
        ? []
        : await resolveResources(touched.resources, workingDirectory),
    tenant: caller.tenant,
    sessionId: caller.sessionId,
    chain: caller.chain,
    now: parts.now(),
  };
  const decision = decide(facts, {
    policy: parts.policy,
    fileRoots: parts.fileRoots,
    protectedPaths: parts.protectedPaths,
    ...bound,
    canAsk: true,
    others: [{ check: "hooks", ...hooks }],
    workingDirectory,
  });
  if (decision.overridden.length > 0) await parts.bindings.overridden(caller, decision);
  if (decision.answer === "deny") {
    // What would only have been asked about is no part of the answer: there is nobody to ask for a call that is denied.
    const denials = decision.trace.filter(({ answer }) => answer === "deny");
    const said = denials.flatMap(({ findings }) => findings);
    return { verdict: "deny", text: textOf(tool, said), findings: decision.findings };
  }
  const definition = definitionHash(tool);
  const places = placesOf(facts.resources);
  const needed = checkpoint && again !== "approved";
  // Answered from the inbox, in minutes or in days: the call becomes a decision like every other that people are asked about.
  if (needed && parts.checkpoint === "inbox") {
    return { verdict: "ask", tool, definition, input, decision, facts, places, needsPerson: true };
  }
  // Asked last: nobody is bothered with a call that is refused anyway.
  if (needed) {
    const handler = parts.checkpoint === "inbox" ? undefined : parts.checkpoint;
    const reason = "The tool wants a person to let each call through.";
    const asked = { tool: tool.name, input, reason };
    const waited = await runCheckpoint(asked, { needed, handler, ...waiting });
    if (!waited.go) {
      const { message } = waited;
      const finding = { severity: "soft-deny", policy: "checkpoint", message } as const;
      return { verdict: "deny", text: message, findings: [finding] };
    }
  }
  const { answer: verdict } = decision;
  return { verdict, tool, definition, input, decision, facts, places, needsPerson: false };
}

/** The input as the gate reads it, without the agent's estimate: for calls that are compared with one that was judged before. */
export function readRequest(
  tool: Tool,
  given: CallRequest["input"],
  { confidenceKey: key }: Pick<JudgeParts, "confidenceKey">,
): { input: JsonValue } | { text: string } {
  const { confidenceMin: min } = capabilityOf(tool);
  const read = checkConfidence(given, { min, ...(key === undefined ? {} : { key }) });
  return read.ok ? readInput(tool, read.input) : { text: read.message };
}

function readInput(tool: Tool, given: string | JsonValue): { input: JsonValue } | { text: string } {
  try {
    const parsed = tool.parseInput(typeof given === "string" ? parseJson(given) : given);
    return parsed.ok
      ? { input: parsed.value }
      : { text: inputError(tool.name, parsed.issues).text };
  } catch (error) {
    if (error instanceof SallyportError) {
      return { text: `"${tool.name}" was not called: ${error.details.hint ?? error.message}` };
    }
    const why = `its input could not be read (${errorText(error)})`;
    return { text: `"${tool.name}" was not called: ${why}. Tell the operator.` };
  }
}

/** What a tool cannot tell, no rule can judge: that is a no, and nothing the agent can change. */
function touchedBy(
  tool: Tool,
  input: JsonValue,
  workingDirectory: string,
): { resources: readonly Resource[] } | { text: string } {
  try {
    return { resources: tool.resources?.(input, { workingDirectory }) ?? [] };
  } catch (error) {
    const why = `it could not say what it would touch (${errorText(error)})`;
    return { text: `"${tool.name}" was not called: ${why}. Tell the operator.` };
  }
}

/** Its input is an undo record, which only the record of an operation can vouch for. */
function onlyAsUndo({ name }: Tool): Judged {
  const message = `"${name}" only undoes what another tool did and cannot be called by itself. Nothing was executed. Ask for a rollback of the call you want to undo.`;
  const finding = { severity: "hard-deny", policy: "undo-only", message } as const;
  return { verdict: "deny", text: message, findings: [finding] };
}

function textOf(tool: Tool, findings: readonly Finding[]): string {
  const said = findings.map(({ message }) => message).join("\n");
  return said || `"${tool.name}" was refused. Nothing was executed.`;
}
