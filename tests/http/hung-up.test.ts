import { expect, test } from "vitest";
import { defineTool } from "../../src/tools/define-tool.ts";
import { openHttp } from "./http-world.ts";

test("a sender that hangs up aborts its running call, and the next one finds out what became of it [S2-04]", async () => {
  const began = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<unknown>();
  const goOn = Promise.withResolvers<string>();
  const slow = defineTool({
    name: "slow.read",
    description: "Takes its time.",
    input: { type: "object" },
    safety: { effect: "read" },
    permissionClass: "readonly",
    execute: ({ signal }) =>
      new Promise<string>((resolve, reject) => {
        void goOn.promise.then(resolve);
        signal.addEventListener("abort", () => {
          ended.resolve(signal.reason);
          reject(new Error("given up"));
        });
        began.resolve();
      }),
  });
  const world = await openHttp({ port: { tools: [slow] } });
  const agent = await world.client("acme", "agent");
  const { id } = await agent.sessions.open();
  const stop = new AbortController();
  const call = { callId: "c", tool: "slow.read", input: {}, key: "k" };
  const sent = fetch(`${world.server.url}/v1/sessions/${encodeURIComponent(id)}/calls`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${await world.token("acme", "agent")}`,
      "content-type": "application/json",
    },
    body: JSON.stringify(call),
    signal: stop.signal,
  });
  await began.promise;
  stop.abort();
  await expect(sent).rejects.toThrow();
  // A call that goes on ends here, and its server can be closed.
  const giveUp = setTimeout(() => goOn.resolve("it went on"), 15_000);
  expect(String(await Promise.race([ended.promise, goOn.promise]))).toContain("hung up");
  clearTimeout(giveUp);
  await expect
    .poll(async () => (await agent.sessions.resultOf({ id, key: "k" })).result?.answer)
    .toBe("failed");
});
