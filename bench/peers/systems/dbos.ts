import { DBOS, DBOSClient } from "@dbos-inc/dbos-sdk";
import type { Effect, OpenPeer, Peer, Refund, Told } from "../peer.ts";

const TOPIC = "approval";
const WEEK_S = 7 * 24 * 3_600;

/** A workflow that waits for a message and then runs the tool as a step; the answer is a message with a key. */
export const dbos: OpenPeer = ({ url, effect, role }) =>
  role === "answer" ? answering(url) : working(url, effect);

async function working(url: string, effect: Effect): Promise<Peer> {
  async function refunding(refund: Refund): Promise<string> {
    const yes = await DBOS.recv<boolean>(TOPIC, WEEK_S);
    if (yes !== true) return "rejected";
    return DBOS.runStep(() => effect.run(refund), { name: "refund" });
  }
  const workflow = DBOS.registerWorkflow(refunding, { name: "refunding" });
  DBOS.setConfig({
    name: "peers",
    applicationVersion: "1",
    systemDatabaseUrl: url,
    systemDatabasePoolSize: 16,
    logLevel: "error",
  });
  await DBOS.launch();
  // The handle of a workflow that runs here resolves immediately; any other one polls the database every second.
  const handles = new Map<string, { getResult(): Promise<string | null> }>();
  return {
    async propose(refund) {
      const handle = await DBOS.startWorkflow(workflow)(refund);
      handles.set(handle.workflowID, handle);
      return handle.workflowID;
    },
    async approve(id) {
      const handle = handles.get(id) ?? DBOS.retrieveWorkflow<string>(id);
      handles.delete(id);
      await DBOS.send(id, true, TOPIC);
      const outcome = await handle.getResult();
      return outcome === "rejected" ? "nothing, still open" : "executed";
    },
    /** Launching has taken up what this executor left; the host only looks. */
    async recover(id): Promise<Told> {
      await DBOS.retrieveWorkflow<string>(id).getResult();
      return "executed";
    },
    close: () => DBOS.shutdown(),
  };
}

/** Another process that knows only the database. */
async function answering(url: string): Promise<Peer> {
  const client = await DBOSClient.create({ systemDatabaseUrl: url, applicationName: "peers" });
  const notHere = async () => {
    throw new Error("this process only answers");
  };
  return {
    propose: notHere,
    recover: notHere,
    async approve(id) {
      await client.send(id, true, TOPIC);
      return "accepted";
    },
    close: () => client.destroy(),
  };
}
