// SIGTERM: a server that is asked to stop answers what it has begun, takes nothing new, and ends by itself.

import { writeFileSync } from "node:fs";
import { request } from "node:http";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { createClient, signIn } from "../../src/client/index.ts";
import { cliPlace } from "./cli-process.ts";

const root = path.resolve(import.meta.dirname, "../..");
const from = (file: string) => pathToFileURL(path.join(root, "src", file)).href;

const CONFIG = `
import { defineTool } from "${from("tools/define-tool.ts")}";
const slow = defineTool({
  name: "world.slow", description: "Takes a while.", input: { type: "object" },
  safety: { effect: "external" },
  execute: () => new Promise((resolve) => setTimeout(() => resolve("done slowly"), 1500)),
});
export default {
  tools: [slow],
  policy: { version: "1", rules: [{ id: "all", effect: "allow", tool: "world.slow", reason: "a test" }] },
};
`;

test("SIGTERM during a call: its answer arrives, new connections are refused, and the process ends with 0", async () => {
  const place = cliPlace();
  writeFileSync(path.join(place.folder, "sallyport.config.mjs"), CONFIG);
  const server = await place.start("serve");
  const link = /http:\S+link=\S+/.exec(server.said())?.[0] ?? "";
  const person = createClient(await signIn({ link }));
  const { secret } = await person.tokens.make({ subject: "agent:slow", roles: ["agent"] });
  const agent = createClient({ url: server.url, token: secret });
  const { id } = await agent.sessions.open({});
  const running = agent.sessions.call({ id, callId: "c", tool: "world.slow", input: {} });
  await expect
    .poll(async () => (await person.operations.list({ sessionId: id })).items.length, {
      timeout: 10_000,
    })
    .toBe(1);
  const ended = new Promise<number | null>((resolve) => server.child.once("close", resolve));
  server.child.kill("SIGTERM");
  expect(await running).toMatchObject({ answer: "done" });
  expect(await ended).toBe(0);
  await expect(knock(server.url)).rejects.toThrow("ECONNREFUSED");
});

function knock(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/healthz`, () => resolve());
    sent.on("error", (error) => reject(new Error(String((error as NodeJS.ErrnoException).code))));
    sent.end();
  });
}
