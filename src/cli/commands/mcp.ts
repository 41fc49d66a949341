import { Command, InvalidArgumentError } from "commander";
import type { Client } from "../../client/index.ts";
import { startUpkeep } from "../../gate/upkeep.ts";
import { nameFor, splitCommand } from "../../mcp/config.ts";
import {
  createGateway,
  type McpConfig,
  readMcpConfig,
  serveInbox,
  serveStdio,
} from "../../mcp/index.ts";
import { SallyportError } from "../../model/errors.ts";
import { errorText } from "../../util/error-text.ts";
import type { SallyportConfig } from "../config.ts";
import { readConfigured } from "../config-file.ts";
import { asPerson, connect } from "../connect.ts";
import { OPTION, type StoreFlags, storePlaceOf, withFlags } from "../open-store.ts";
import { describeItem, print, readItem, visible } from "../render.ts";
import { mcpPins, openGate, type ServedParts } from "../serve.ts";
import { lastingSession, type StorePlace } from "../state-folder.ts";

interface McpFlags extends StoreFlags {
  readonly upstream?: readonly string[];
  readonly readOnly?: readonly string[];
  readonly config?: string;
  readonly tenant?: string;
  readonly session?: string;
  readonly agent?: string;
  readonly hold?: number;
  readonly allowRoots?: boolean;
  readonly accept?: string;
  readonly serveInbox?: boolean;
  readonly approve?: boolean;
}

/** The gateway for an MCP host that starts it as a program. */
export function mcpCommand(): Command {
  return new Command("mcp")
    .description("Put MCP servers behind the gate; an MCP host starts this as its server.")
    .option(
      "--upstream <command>",
      "a server, as [name=]command with arguments or [name=]url; repeatable",
      many,
    )
    .option("--read-only <tools>", "tools that only read, as name or upstream.name", listed)
    .option("--config <file>", "a module or JSON file with an mcp part (docs/guide/mcp.md)")
    .option("--tenant <name>", "the tenant; `default` when nothing is said")
    .option(
      "--session <id>",
      "continue this session; by default that of the same client, folder and servers",
    )
    .option("--agent <name>", "who the calls are recorded for")
    .option(
      "--hold <ms>",
      "how long a call waits for a person before the client is answered",
      whole,
    )
    .option("--allow-roots", "let the servers learn and follow the client's folders")
    .option(
      "--serve-inbox",
      "be an MCP server for the inbox and the task list of a running server, instead of a gateway",
    )
    .option(
      "--approve",
      "with --serve-inbox and --link: calls can be approved, each in a form that the client shows to you",
    )
    .option(
      "--accept <tool>",
      "accept the changed definition of upstream.tool, or of all tools of an upstream, and exit",
    )
    .option(...OPTION.databaseToServe)
    .option(...OPTION.state)
    .option(...OPTION.epochFile)
    .action(
      withFlags<McpFlags>((flags) => {
        if (flags.serveInbox === true) return inbox(flags);
        if (flags.approve === true) throw refusal("--approve", "It belongs to --serve-inbox.");
        return flags.accept === undefined ? run(flags) : accept(flags, flags.accept);
      }),
    );
}

async function run(flags: McpFlags): Promise<void> {
  const { parts, config, place, tenant } = await readMcp(flags);
  const { store, gate } = await openGate(place, tenant, { checkpoint: "inbox", ...parts });
  const onProblem = (text: string) =>
    void process.stderr.write(`sallyport mcp: ${visible(text)}\n`);
  const upkeep = startUpkeep({
    gate,
    everyMs: 1_000,
    onError: (error) => onProblem(errorText(error)),
  });
  const gateway = createGateway({ gate, config, pins: mcpPins(place.data), onProblem });
  const { stdin: input, stdout: output } = process;
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => input.destroy());
  const { agent = "", upstreams } = config;
  const entry = [tenant, agent, process.cwd(), ...upstreams.map(({ name }) => name)];
  const { session = (client: string) => lastingSession(place, [...entry, client]) } = flags;
  try {
    await serveStdio(gateway, { input, output, session });
  } finally {
    await upkeep.stop();
    await gateway.close();
    await store.close();
  }
}

/** With an agent's token or as the person of a sign-in link. The token of this machine would show every agent everything. */
async function inbox(flags: McpFlags): Promise<void> {
  const isPerson = flags.link !== undefined;
  const isToken = flags.token !== undefined || process.env["SALLYPORT_TOKEN"] !== undefined;
  if (!isPerson && !isToken) {
    throw new SallyportError("not_allowed", { what: "inbox", hint: NO_CREDENTIAL });
  }
  if (flags.approve === true && !isPerson) {
    const hint = "--approve needs your sign-in link, with --link. A token never decides.";
    throw new SallyportError("not_allowed", { what: "--approve", hint });
  }
  await (isPerson
    ? asPerson(flags, (client) => serveInboxOf(client, flags))
    : serveInboxOf(connect(flags), flags));
}

const NO_CREDENTIAL =
  "The token of this machine reads what every agent does, so an MCP client does not get it. For an agent pass its own token with --token or SALLYPORT_TOKEN; an admin makes one with: sallyport tokens make --subject NAME --roles '[\"agent\"]'. To see everything pass your own sign-in link with --link; the console makes one.";

async function serveInboxOf(client: Client, { approve }: McpFlags): Promise<void> {
  const { stdin: input, stdout: output } = process;
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => input.destroy());
  const routes = client as unknown as Readonly<
    Record<string, Readonly<Record<string, (input: object) => Promise<unknown>>>>
  >;
  const describe = async (id: string) => {
    const item = await readItem(client, id);
    const { type, hash } = item;
    return { type, hash, ...(await describeItem(client, item)) };
  };
  await serveInbox({
    input,
    output,
    async call(route, given) {
      const [noun = "", verb = ""] = route.split(".");
      return routes[noun]?.[verb]?.(given);
    },
    ...(approve === true ? { describe } : {}),
  });
}

function refusal(what: string, hint: string): SallyportError {
  return new SallyportError("invalid_input", { what, hint });
}

function accept(flags: McpFlags, what: string): void {
  const [, upstream = what, tool] = /^([^.]+)\.(.+)$/s.exec(what) ?? [];
  const gone = mcpPins(storePlaceOf(flags).data).forget(upstream, tool);
  if (gone.length === 0) {
    const hint = "Nothing was accepted for it before, so there is nothing to accept anew.";
    throw new SallyportError("not_found", { id: what, hint });
  }
  const names = gone.map((one) => `${upstream}.${one}`);
  print(
    { accepted: names },
    flags,
    `The next definition counts for: ${names.join(", ")}. Restart its gateway.\n`,
  );
}

/** The gateway's part of the configuration, and what the gate itself gets: rules, reviews, tools. */
async function readMcp(flags: McpFlags): Promise<GatewayConfig> {
  const { upstream = [], readOnly = [], agent, hold, allowRoots } = flags;
  const terms = { source: "named", otherwise: NOTHING } as const;
  const { config, place, tenant } = await readConfigured(flags, terms);
  const { mcp, ...parts } = config;
  const given = typeof mcp === "object" && mcp !== null ? mcp : {};
  const listed = "upstreams" in given && Array.isArray(given.upstreams) ? given.upstreams : [];
  const read = readMcpConfig({
    ...given,
    upstreams: [...listed, ...upstream.map((line) => upstreamIn(line))],
    ...(agent === undefined ? {} : { agent }),
    ...(hold === undefined ? {} : { holdMs: hold }),
    ...(allowRoots === true ? { roots: "allow" } : {}),
  });
  return { parts, place, tenant, config: withReadOnly(read, readOnly) };
}

const NOTHING: SallyportConfig = { tools: [] };

interface GatewayConfig {
  readonly parts: ServedParts;
  readonly config: McpConfig;
  readonly place: StorePlace;
  readonly tenant: string;
}

/** `files=npx -y server ./docs` or `files=https://host/mcp`, or either without a name. */
function upstreamIn(line: string) {
  const [, given, rest = line] = /^([A-Za-z0-9][A-Za-z0-9_-]*)=(.*)$/s.exec(line) ?? [];
  if (/^https?:\/\//.test(rest)) {
    const name = given ?? nameFor([(URL.parse(rest)?.hostname ?? "upstream").replaceAll(".", "-")]);
    return { name, url: rest };
  }
  const [command = "", ...args] = splitCommand(rest);
  return { name: given ?? nameFor([command, ...args]), command, args };
}

function withReadOnly(config: McpConfig, names: readonly string[]): McpConfig {
  const of = (upstream: string) =>
    names.flatMap((name) => {
      const [first = "", ...rest] = name.split(".");
      if (rest.length === 0) return config.upstreams.length === 1 ? [first] : [];
      return first === upstream ? [rest.join(".")] : [];
    });
  const unclear = names.find((name) => !name.includes(".") && config.upstreams.length > 1);
  if (unclear !== undefined) {
    throw refusal(
      "--read-only",
      `Say which upstream "${unclear}" belongs to, as upstream.${unclear}.`,
    );
  }
  return {
    ...config,
    upstreams: config.upstreams.map((one) => ({
      ...one,
      tools: {
        ...one.tools,
        ...Object.fromEntries(
          of(one.name).map((name) => [name, { ...one.tools?.[name], effect: "read" as const }]),
        ),
      },
    })),
  };
}

function many(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function listed(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...value.split(",").map((one) => one.trim())];
}

function whole(text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new InvalidArgumentError("Expected a whole number.");
}
