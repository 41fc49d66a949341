import type { OpenPeer } from "../peer.ts";

export interface System {
  readonly store: "sqlite" | "postgres";
  /** Called in a process of its own: no system carries the weight of another's packages. */
  readonly load: () => Promise<OpenPeer>;
}

export const SYSTEMS: Readonly<Record<string, System>> = {
  "sallyport.sqlite": {
    store: "sqlite",
    load: async () => (await import("./sallyport.ts")).sallyportSqlite,
  },
  "sallyport-staged.sqlite": {
    store: "sqlite",
    load: async () => (await import("./sallyport-staged.ts")).stagedSqlite,
  },
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
  "sallyport.postgres": {
    store: "postgres",
    load: async () => (await import("./sallyport.ts")).sallyportPostgres,
  },
  "sallyport-staged.postgres": {
    store: "postgres",
    load: async () => (await import("./sallyport-staged.ts")).stagedPostgres,
  },
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

async function langgraph(
  saver: "langgraphSqlite" | "langgraphPostgres",
  graph: "leanGraph" | "agentGraph",
): Promise<OpenPeer> {
  const graphs = await import("./langgraph-graphs.ts");
  return (await import("./langgraph.ts"))[saver](graphs[graph]);
}

export function systemOf(name: string): System {
  const system = SYSTEMS[name];
  if (system === undefined) throw new Error(`there is no system ${name}`);
  return system;
}
