import path from "node:path";
import { Command } from "commander";
import type { Client } from "../../client/index.ts";
import { withCodingAgents } from "../../coding-agents/with-coding-agents.ts";
import { readRequest } from "../../gate/judge.ts";
import { allowingRules, decide } from "../../policy/decide.ts";
import { compilePolicy, NO_RULES } from "../../policy/policy.ts";
import { createRegistry, type Registry } from "../../tools/registry.ts";
import { metadataOf, type Tool } from "../../tools/tool.ts";
import { resolveResources } from "../../tools/tool-call.ts";
import { systemClock } from "../../util/clock.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { errorText } from "../../util/error-text.ts";
import type { JsonValue } from "../../util/json.ts";
import type { SallyportConfig } from "../config.ts";
import { type ConfigFlags, NOTHING_CONFIGURED, readConfigured } from "../config-file.ts";
import { connect, type Shared } from "../connect.ts";
import { withFlags } from "../open-store.ts";
import { print, printable } from "../render.ts";

interface Recorded {
  readonly id: string;
  readonly tool: string;
  readonly title: string;
  /** What came of it then. */
  readonly was: string;
  /** Undefined for a refused call: its input is not kept. */
  readonly input?: JsonValue;
  readonly workingDirectory?: string;
}

interface Tested extends Pick<Recorded, "id" | "tool" | "title" | "was"> {
  /** What the policy says now. */
  readonly now: string;
  /** The rules and tables that decide it. */
  readonly rules: readonly string[];
}

export function policyCommand(): Command {
  const command = new Command("policy").description("Look at the rules of a configuration.");
  command
    .command("test")
    .description("Judge the calls of a recorded session by the rules of a configuration.")
    .argument("<session>", "the id of the session")
    .option("--config <module>", "the configuration whose rules are tested")
    .action(
      withFlags<ConfigFlags & Shared>(async (flags, id) => {
        const { config } = await readConfigured(flags, {
          source: "folder",
          otherwise: NOTHING_CONFIGURED,
        });
        const tested = await testPolicy(connect(flags), config, id, path.resolve(flags.data));
        const changed = tested.filter(isStricter).length;
        print({ items: tested, changed }, flags, [
          ...tested.map(lineOf),
          `${tested.length} calls; ${changed} of those that ran would not run unasked now.`,
        ]);
      }),
    );
  return command;
}

const isStricter = ({ was, now }: Tested) => was === "ran_alone" && now !== "allow";

function lineOf({ was, now, rules, title, tool }: Tested): string {
  const by = rules.length === 0 ? "" : `  (${rules.join(", ")})`;
  return `${was} -> ${now}  ${printable(title || tool)}${by}`;
}

/** Nothing is executed and nothing is written. Paths are resolved as the files are now. */
async function testPolicy(
  client: Client,
  config: SallyportConfig,
  sessionId: string,
  data: string,
): Promise<readonly Tested[]> {
  const whole =
    config.codingAgents === undefined
      ? config
      : withCodingAgents(config, config.codingAgents, path.join(data, "snapshots"));
  const { tools = [], policy = NO_RULES, fileRoots = [], protectedPaths = [] } = whole;
  const registry = registryOf(tools);
  const state = {
    policy: compilePolicy(policy),
    fileRoots,
    protectedPaths: [data, ...protectedPaths],
    policies: [],
    grants: [],
    canAsk: true,
  };
  const tested: Tested[] = [];
  for (const call of await recordedCalls(client, sessionId)) {
    const { id, tool: name, title, was, input, workingDirectory = "" } = call;
    const about = { id, tool: name, title, was };
    const tool = registry.get(name);
    if (input === undefined || tool === undefined) {
      const now = input === undefined ? "unknown: its input is not kept" : "unknown tool";
      tested.push({ ...about, now, rules: [] });
      continue;
    }
    try {
      const facts = await factsOf(tool, input, { sessionId, workingDirectory });
      const { answer, findings } = decide(facts, { ...state, workingDirectory });
      const said = findings.map(({ policy: by }) => by);
      const rules = answer === "allow" ? allowingRules(facts, state.policy) : [...new Set(said)];
      tested.push({ ...about, now: answer, rules });
    } catch (error) {
      tested.push({ ...about, now: `failed: ${errorText(error)}`, rules: [] });
    }
  }
  return tested;
}

function registryOf(tools: readonly Tool[] | Registry): Registry {
  if ("register" in tools) return tools;
  const registry = createRegistry();
  for (const tool of tools) registry.register(tool);
  return registry;
}

async function factsOf(
  tool: Tool,
  given: JsonValue,
  {
    sessionId,
    workingDirectory,
  }: { readonly sessionId: string; readonly workingDirectory: string },
) {
  const read = readRequest({ confidenceKey: undefined }, tool, given);
  if ("text" in read) throw new Error(read.text);
  const touched = tool.resources?.(read.input, { workingDirectory }) ?? [];
  const { permissionClass, effect } = metadataOf(tool);
  return {
    tool: tool.name,
    ...definedFields({ effect }),
    permissionClass,
    input: read.input,
    resources: await resolveResources(touched, workingDirectory),
    tenant: "default",
    sessionId,
    chain: [],
    now: systemClock.now(),
  };
}

const PAGE = 200;

/** Oldest first. */
async function recordedCalls(client: Client, sessionId: string): Promise<readonly Recorded[]> {
  const inputs = new Map<string, Pick<Recorded, "input" | "workingDirectory">>();
  for await (const { id, input, workingDirectory } of pages((cursor) =>
    client.operations.list({ sessionId, limit: PAGE, ...cursor }),
  )) {
    inputs.set(id, { input: JSON.parse(input), workingDirectory });
  }
  for await (const { id, calls } of pages((cursor) =>
    client.decisions.list({ sessionId, limit: PAGE, ...cursor }),
  )) {
    const [call] = calls ?? [];
    if (call === undefined) continue;
    const { input, workingDirectory } = call;
    inputs.set(id, { input, workingDirectory });
  }
  const found: Recorded[] = [];
  for await (const { id, tool, title, outcome } of pages((cursor) =>
    client.calls.list({ sessionId, limit: PAGE, ...cursor }),
  )) {
    found.push({ id, tool, title, was: outcome, ...inputs.get(id) });
  }
  return found.reverse();
}

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

async function* pages<Item>(
  read: (cursor: { readonly cursor?: string }) => Promise<Page<Item>>,
): AsyncGenerator<Item> {
  let next: string | null = "";
  while (next !== null) {
    const page: Page<Item> = await read(next === "" ? {} : { cursor: next });
    yield* page.items;
    next = page.next;
  }
}
