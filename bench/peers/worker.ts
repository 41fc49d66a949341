import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { rootOf } from "../checkout.ts";
import type { Order, Place, Reply, ToolMode } from "./peer.ts";

/** The parent's end of a child. */
export interface Worker {
  /** Throws with the child's words when it failed, and when it went away before it replied. */
  order<Answer>(order: Order): Promise<Answer>;
  /** Resolves when the tool was entered. */
  inTheTool(): Promise<void>;
  kill(): Promise<void>;
  /** In good order, with the database closed. */
  end(): Promise<void>;
}

export async function startWorker(
  system: string,
  place: Place,
  how: { readonly tool: ToolMode; readonly role?: "all" | "answer" },
): Promise<Worker> {
  const child = fork(path.join(import.meta.dirname, "child.ts"), {
    execArgv: [...process.execArgv, "--disable-warning=DeprecationWarning"],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const worker = workerOf(child, system);
  const { tool, role = "all" } = how;
  await worker.order({ do: "open", system, place, tool, role, root: rootOf(system) });
  return worker;
}

function workerOf(child: ChildProcess, system: string): Worker {
  const entered = Promise.withResolvers<void>();
  child.on("message", (message: Reply | { event: string }) => {
    if ("event" in message) entered.resolve();
  });
  const gone = once(child, "exit");
  const order = <Answer>(given: Order): Promise<Answer> => {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const hear = (message: Reply | { event: string }) => {
      if ("event" in message) return;
      child.off("message", hear);
      if ("error" in message) reject(new Error(`${system}: ${message.error}`));
      else resolve(message.ok as Answer);
    };
    child.on("message", hear);
    gone.then(() => reject(new Error(`${system} went away during ${given.do}`)), reject);
    child.send(given, (error) => error !== null && reject(error));
    return promise;
  };
  return {
    order,
    inTheTool: () => entered.promise,
    async kill() {
      child.kill("SIGKILL");
      await gone;
    },
    async end() {
      await order({ do: "close" });
      child.disconnect();
      await gone;
    },
  };
}
