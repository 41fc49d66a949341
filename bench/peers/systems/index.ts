import type { OpenPeer } from "../peer.ts";

export interface System {
  readonly store: "sqlite" | "postgres";
  /** Called in a process of its own: no system carries the weight of another's packages. */
  readonly load: () => Promise<OpenPeer>;
}

/** What `npm run peers` compares. */
export const SYSTEMS: Readonly<Record<string, System>> = {
  "sallyport.sqlite": { store: "sqlite", load: () => sallyport("onSqlite", "approved") },
  "sallyport-staged.sqlite": { store: "sqlite", load: () => sallyport("onSqlite", "staged") },
  "langgraph.sqlite": {
    store: "sqlite",
    load: () => langgraph("langgraphSqlite", "leanGraph"),
  },
  "langgraph-agent.sqlite": {
    store: "sqlite",
    load: () => langgraph("langgraphSqlite", "agentGraph"),
  },
  "openai-agents.sqlite": {
    store: "sqlite",
    load: async () => (await import("./openai-agents.ts")).openaiAgents,
  },
  "sallyport.postgres": { store: "postgres", load: () => sallyport("onPostgres", "approved") },
  "sallyport-staged.postgres": { store: "postgres", load: () => sallyport("onPostgres", "staged") },
  "langgraph.postgres": {
    store: "postgres",
    load: () => langgraph("langgraphPostgres", "leanGraph"),
  },
  "langgraph-agent.postgres": {
    store: "postgres",
    load: () => langgraph("langgraphPostgres", "agentGraph"),
  },
  "dbos.postgres": {
    store: "postgres",
    load: async () => (await import("./dbos.ts")).dbos,
  },
  "graphile-worker.postgres": {
    store: "postgres",
    load: async () => (await import("./graphile-worker.ts")).graphileWorker,
  },
};

/** Sallyport's earlier release, named by `--previous`. */
export const PREVIOUS = onBothStores("sallyport-previous", "approved");

/** What `npm run bench -- --previous` compares besides: calls that need no person, and what is staged only. */
const VERSIONS = {
  ...onBothStores("sallyport-allowed", "allowed"),
  ...onBothStores("sallyport-allowed-previous", "allowed"),
  ...onBothStores("sallyport-staged-previous", "staged"),
};

type Kind = "approved" | "allowed" | "staged";

function onBothStores(name: string, what: Kind): Readonly<Record<string, System>> {
  return {
    [`${name}.sqlite`]: { store: "sqlite", load: () => sallyport("onSqlite", what) },
    [`${name}.postgres`]: { store: "postgres", load: () => sallyport("onPostgres", what) },
  };
}

async function sallyport(store: "onSqlite" | "onPostgres", what: Kind): Promise<OpenPeer> {
  const kinds = { ...(await import("./sallyport.ts")), ...(await import("./sallyport-staged.ts")) };
  return kinds[store](kinds[what]);
}

async function langgraph(
  saver: "langgraphSqlite" | "langgraphPostgres",
  graph: "leanGraph" | "agentGraph",
): Promise<OpenPeer> {
  const graphs = await import("./langgraph-graphs.ts");
  return (await import("./langgraph.ts"))[saver](graphs[graph]);
}

export function systemOf(name: string): System {
  const system = SYSTEMS[name] ?? PREVIOUS[name] ?? VERSIONS[name];
  if (system === undefined) throw new Error(`there is no system ${name}`);
  return system;
}
