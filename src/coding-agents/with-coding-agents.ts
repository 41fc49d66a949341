import { type CodingProject, codingPolicy } from "../policy/coding-preset.ts";
import { NO_RULES, type Policy } from "../policy/policy.ts";
import { createRegistry, type Registry } from "../tools/registry.ts";
import type { Tool } from "../tools/tool.ts";
import { codingTools } from "./tools.ts";

/** The field `codingAgents` of a configuration. */
export type CodingAgentsConfig = CodingProject;

interface Parts {
  readonly tools?: readonly Tool[] | Registry;
  readonly policy?: Policy;
}

/** The parts of a gate, with the tools of coding agents and the rules for this project added to them. */
export function withCodingAgents<Given extends Parts>(
  parts: Given,
  config: CodingAgentsConfig,
  folder: string,
): Given & Required<Parts> {
  const { tools = [], policy = NO_RULES } = parts;
  const registry = isRegistry(tools) ? tools : createRegistry();
  if (!isRegistry(tools)) for (const tool of tools) registry.register(tool);
  for (const tool of codingTools({ folder })) registry.register(tool);
  const preset = codingPolicy(config);
  const version = policy === NO_RULES ? preset.version : `${policy.version}+${preset.version}`;
  return {
    ...parts,
    tools: registry,
    policy: { version, rules: [...policy.rules, ...preset.rules] },
  };
}

function isRegistry(tools: readonly Tool[] | Registry): tools is Registry {
  return "register" in tools;
}
