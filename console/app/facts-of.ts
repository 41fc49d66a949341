import type { Json } from "../text/canonical.ts";
import { isObject } from "../text/json-diff.ts";
import type { Interaction, Me, SafetyClass, Tool } from "./client.ts";

// What the lists say about a question, from facts alone: the stored call and the tools' own declarations, never an agent's words.

/** Too long for one line, so the row says so. */
const MOST_LINE = 160;

/** The names of the tools that would run. */
export function toolsIn({ pendingTool, ...item }: Interaction): readonly string[] {
  if (pendingTool === undefined) return [];
  if (pendingTool.tool_name !== "bundle") return [pendingTool.tool_name];
  // Not all of its calls are here, so it counts as an unknown tool: the highest risk.
  if (cutBytes(item, "pendingTool.args_json") > 0) return ["bundle"];
  const calls = parsed(pendingTool.args_json);
  return Array.isArray(calls)
    ? calls.map((call) => (isObject(call) ? String(call["tool"]) : "?"))
    : [];
}

/** How large a field is that the list has cut; 0 when it is whole. */
export function cutBytes({ cut = [] }: Pick<Interaction, "cut">, field: string): number {
  return cut.find((one) => one.field === field)?.bytes ?? 0;
}

const RANK: readonly SafetyClass[] = ["read", "reversible", "irreversible"];

/** The highest class of all calls; a missing tool counts as the highest. */
export function classIn(
  interaction: Interaction,
  tools: readonly Tool[] | undefined,
): SafetyClass | undefined {
  const names = toolsIn(interaction);
  if (tools === undefined || names.length === 0) return undefined;
  const ranks = names.map((name) => {
    const tool = tools.find((one) => one.name === name || one.metadata.aliases.includes(name));
    return RANK.indexOf(tool?.safetyClass ?? "irreversible");
  });
  return RANK[Math.max(...ranks)];
}

export interface Line {
  readonly text: string;
  readonly moreBytes: number;
}

/** The input on one line, as far as it fits. */
export function lineOf(item: Interaction): Line {
  const { pendingTool, displayText, type } = item;
  const isInput = type !== "ask_user" && pendingTool !== undefined;
  const text = isInput ? pendingTool.args_json : displayText;
  const shown = [...text].slice(0, MOST_LINE).join("");
  const encoder = new TextEncoder();
  const whole = cutBytes(item, isInput ? "pendingTool.args_json" : "displayText");
  const moreBytes =
    whole > 0
      ? whole - encoder.encode(shown).length
      : encoder.encode(text.slice(shown.length)).length;
  return { text: shown, moreBytes };
}

/** The input as names and values, for a call that has no sentence; empty when it is no object. */
export function inputLine({ pendingTool }: Interaction): string {
  return inputText(pendingTool?.args_json ?? "");
}

export function inputText(json: string): string {
  const input = parsed(json);
  if (!isObject(input)) return "";
  const parts = Object.entries(input).map(([name, value]) =>
    typeof value === "object" && value !== null ? name : `${name}: ${String(value)}`,
  );
  return [...parts.join(", ")].slice(0, MOST_LINE).join("");
}

/** What the dry runs said; undefined when one of the calls could not be inspected. */
export function summaryOf({ pendingTool }: Interaction): string | undefined {
  const lines = (pendingTool?.summary ?? "").split("\n").filter((line) => line !== "");
  const isUnknown = lines.some((line) => {
    const look = parsed(line);
    return isObject(look) && "unavailable" in look;
  });
  return lines.length === 0 || isUnknown ? undefined : lines.join(" · ");
}

/** Why this person cannot decide it, undefined when they can. The server checks again. */
export function whyNotMine(interaction: Interaction, me: Me | undefined): string | undefined {
  if (me === undefined) return undefined;
  const { chain, votes } = interaction;
  const may = interaction.type === "connection_lost" ? ["reviewer", "operator"] : ["reviewer"];
  if (!me.roles.some((role) => may.includes(role))) {
    return `Only a ${may.join(" or an ")} decides; you are signed in as ${me.roles.join(", ")}.`;
  }
  if (chain.includes(me.subject)) return "You requested this yourself: someone else must decide.";
  if (votes.some(({ by }) => by === me.subject))
    return "You have approved; others must approve too.";
  return undefined;
}

/** Waits for this person or one of their groups, not for the agent or others. */
export function isForMe(interaction: Interaction, me: Me | undefined): boolean {
  const { assignedTo, waitsFor } = interaction;
  const isOpenToMe =
    assignedTo === "" || assignedTo === me?.subject || me?.groups.includes(assignedTo) === true;
  return waitsFor === "people" && isOpenToMe && whyNotMine(interaction, me) === undefined;
}

export function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
