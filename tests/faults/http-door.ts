import type { Client } from "../../src/client/index.ts";
import { clientOf as clientWith } from "../http/passes.ts";
import { passMaker } from "../replicas/pass-maker.ts";
import type { Door } from "./load.ts";

/** Every agent with a token and every reviewer with a session of their own, spread over the servers; `link` is the first's. */
export function httpDoor(urls: readonly string[], link: string): Door {
  const making = passMaker(link);
  const clients = new Map<string, Promise<Client>>();
  const clientOf = (subject: string, role: "agent" | "reviewer", number: number) => {
    const made =
      clients.get(subject) ??
      making
        .then((newPass) => newPass(subject, role))
        .then((pass) => clientWith(urls[number % urls.length] ?? "", pass));
    clients.set(subject, made);
    return made;
  };
  return {
    async session(agent, name) {
      const client = await clientOf(`agent:${agent}`, "agent", agent);
      const { id } = await client.sessions.open({ id: name });
      const call = async ({
        callId,
        tool,
        input,
        key = callId,
      }: Parameters<Awaited<ReturnType<Door["session"]>>["call"]>[0]) =>
        (
          await client.sessions.call(
            { id, callId, tool, input: input as never },
            { idempotencyKey: key },
          )
        ).answer;
      return { id, call };
    },
    async inbox(after) {
      const client = await clientOf("person:0", "reviewer", 0);
      // As the server writes where a page ends.
      const place = Buffer.from(`1:${after}`).toString("base64url");
      const cursor = after === 0 ? {} : { cursor: place };
      return (await client.interactions.list({ limit: 50, ...cursor })).items;
    },
    async decide(verb, { id, hash }, reviewer) {
      const { interactions } = await clientOf(`person:${reviewer}`, "reviewer", reviewer);
      await interactions[verb]({ id, hash });
    },
  };
}
