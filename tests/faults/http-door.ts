import { readFileSync } from "node:fs";
import path from "node:path";
import { type Client, createClient } from "../../src/client/index.ts";
import type { Door } from "./load.ts";

/** Every agent and reviewer with a token of its own, spread over the servers; the first has left its access in `data`. */
export function httpDoor(urls: readonly string[], data: string): Door {
  const { url, token } = JSON.parse(readFileSync(path.join(data, "local.json"), "utf8"));
  const admin = createClient({ url, token });
  const clients = new Map<string, Promise<Client>>();
  const clientOf = (subject: string, role: "agent" | "reviewer", number: number) => {
    const made =
      clients.get(subject) ??
      admin.tokens
        .make({ subject, roles: [role] })
        .then(({ secret }) =>
          createClient({ url: urls[number % urls.length] ?? url, token: secret }),
        );
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
