import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import Sqlite from "better-sqlite3";
import pg from "pg";
import { fileIn, type OpenPeer, type Peer } from "../peer.ts";
import type { Flow, MakeFlow } from "./langgraph-graphs.ts";

/** The saver sets WAL by itself and leaves `synchronous` as the driver has it; said here so that it is FULL for sure. */
export function langgraphSqlite(makeFlow: MakeFlow): OpenPeer {
  return async ({ dir, effect }) => {
    const db = new Sqlite(fileIn(dir));
    db.pragma("synchronous = FULL");
    // Two processes answer concurrently in one experiment.
    db.pragma("busy_timeout = 5000");
    return peer(makeFlow(new SqliteSaver(db), effect), async () => {
      db.close();
    });
  };
}

export function langgraphPostgres(makeFlow: MakeFlow): OpenPeer {
  return async ({ url, effect }) => {
    const pool = new pg.Pool({ connectionString: url, max: 16 });
    const saver = new PostgresSaver(pool);
    await saver.setup();
    return peer(makeFlow(saver, effect), () => pool.end());
  };
}

function peer(flow: Flow, close: () => Promise<void>): Peer {
  let count = 0;
  return {
    async propose(refund) {
      count += 1;
      const id = `${process.pid}-${count}`;
      await flow.start(refund, id);
      return id;
    },
    async approve(id) {
      return (await flow.goOn("yes", id)) ? "executed" : "nothing, still open";
    },
    /** Nothing goes on by itself: the host finds the thread and invokes it without a new input. */
    async recover(id) {
      if (await flow.goOn("nothing new", id)) return "executed";
      // The answer was not kept and the question is open again: the person says yes once more.
      return (await flow.goOn("yes", id)) ? "executed" : "nothing, still open";
    },
    close,
  };
}
